"""Read what a STEP file says about itself: who made it with what, its unit, and the names of its parts."""

import re
from collections.abc import Iterator

from metaforge.formats.step_header import read_step_header
from metaforge.knowledge.blocks import Block, Fact, Row

_MAX_NAMES = 2_000
_STRING = rb"'((?:[^']|'')*+)'"
_PRODUCT = re.compile(rb"#\d+\s*=\s*PRODUCT\s*\(\s*" + rb"\s*,\s*".join([_STRING] * 3), re.DOTALL)
_FILE_NAME = re.compile(rb"FILE_NAME\s*\(((?:[^';]|'(?:[^']|'')*+')*)\)\s*;", re.DOTALL)
_DESCRIPTION = re.compile(rb"FILE_DESCRIPTION\s*\(\s*\(((?:[^')]|'(?:[^']|'')*+')*+)\)", re.DOTALL)
_ANY_STRING = re.compile(_STRING, re.DOTALL)
_UNICODE = re.compile(r"\\X2\\((?:[0-9A-F]{4})+)\\X0\\|\\X\\([0-9A-F]{2})|\\S\\(.)", re.DOTALL)
_FIELDS = ("File name", "Written", "Author", "Organisation", "Preprocessor", "CAD system", "Authorised by")


def read_step(data: bytes, name: str) -> Iterator[Block]:
    """Yield a file's facts, and a row for each part.

    Raises:
        ToolError: what `read_step_header` refuses.
    """
    header = read_step_header(data, name)
    said = [f"STEP model {name}", f"Schema: {header.schema}", f"Length unit: {header.source_unit}"]
    said += [f"Solids: {header.solids_count}", f"Part occurrences: {header.occurrences_count}"]
    if (found := _DESCRIPTION.search(data)) and (text := ", ".join(_texts(found[1]))):
        said.append(f"Description: {text}")
    if found := _FILE_NAME.search(data):
        said += [f"{field}: {text}" for field, text in zip(_FIELDS, _file_name(found[1]), strict=False) if text]
    yield Fact("\n".join(said), 1)
    seen: set[tuple[str, ...]] = set()
    newlines = counted = 0
    for product in _PRODUCT.finditer(data):
        newlines += data.count(b"\n", counted, product.start())
        counted = product.start()
        cells = tuple(_text(each) for each in product.groups())
        if cells not in seen and len(seen) < _MAX_NAMES:
            seen.add(cells)
            yield Row(cells, ("Part number", "Part name", "Description"), newlines + 1)


def _file_name(body: bytes) -> list[str]:
    """Return the fields of FILE_NAME; two of them are lists."""
    fields = re.findall(rb"\(((?:[^')]|'(?:[^']|'')*+')*+)\)|" + _STRING, body)
    return [", ".join(_texts(listed)) if listed else _text(single) for listed, single in fields]


def _texts(body: bytes) -> list[str]:
    return [text for found in _ANY_STRING.finditer(body) if (text := _text(found[1]))]


def _text(raw: bytes) -> str:
    text = _UNICODE.sub(_character, raw.decode("utf-8", "replace").replace("''", "'"))
    return " ".join(text.split())


def _character(found: re.Match[str]) -> str:
    if found[1]:
        return bytes.fromhex(found[1]).decode("utf-16-be", "replace")
    return bytes.fromhex(found[2]).decode("latin-1") if found[2] else chr(min(ord(found[3]) + 128, 0x10FFFF))

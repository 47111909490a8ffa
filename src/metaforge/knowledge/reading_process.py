"""The process that reads one document. It can open nothing once it has begun, and ends with the document.

Run as a module: the request is its argument, the document its standard input, the answer lines of JSON.
"""

import codecs
import gzip
import importlib
import io
import json
import os
import sys
from dataclasses import astuple
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO

import orjson

from metaforge.core.errors import OverLimit, ToolError
from metaforge.knowledge import decoding
from metaforge.knowledge.limits import MAX_FILE_BYTES
from metaforge.knowledge.parsing import MODULES, parse
from metaforge.tools.confine import confine
from metaforge.tools.descriptors import take_stdin, take_stdout
from metaforge.tools.guard import limit_cpu

_BATCH = 500


def main() -> None:
    """Read one document."""
    request = json.loads(sys.argv[1])
    reading, writing = take_stdin(), take_stdout()
    try:
        _load(request["kind"])
    except ModuleNotFoundError as fault:
        _say(writing, {"refused": {"kind": "reader_missing", "module": fault.name}})
        return
    data = reading.read(MAX_FILE_BYTES + 1)
    reading.close()
    limit_cpu(request["cpu_seconds"], sealed=True)
    confine(request["memory_mb"])
    _say_all(writing, _answers(data, request["kind"], request["name"], writing))


def _answers(data: bytes, kind: str, name: str, writing: BinaryIO) -> list[dict[str, Any]]:
    try:
        parsed = parse(data, kind, name, lambda done, total: _say(writing, {"done": done, "total": total}))
        listed = [astuple(passage) for passage in parsed.passages]
        batches = [{"passages": listed[begin : begin + _BATCH]} for begin in range(0, len(listed), _BATCH)]
        return [*batches, {"notes": parsed.notes, "pages_count": parsed.pages_count}]
    except ToolError as fault:
        return [{"refused": _plain(fault)}]
    except MemoryError:
        return [{"refused": {"kind": "document_memory"}}]
    except BrokenPipeError:
        raise
    except Exception as fault:  # noqa: BLE001 - the process's boundary: libraries raise what they like about bad files
        # Some libraries make an error of their own of it.
        if "memory" in str(fault).lower() and not isinstance(fault, ValueError):
            return [{"refused": {"kind": "document_memory"}}]
        said = " ".join(str(fault).split())[:300]
        return [{"refused": {"kind": "reader_fault", "message": f"{type(fault).__name__}: {said}"}}]


def _plain(fault: ToolError) -> dict[str, Any]:
    return {
        "message": fault.message, "kind": fault.kind, "where": fault.where, "fix": fault.fix,
        "failure_mode": fault.failure_mode, "over_limit": isinstance(fault, OverLimit),
    }  # fmt: skip


def _load(kind: str) -> None:
    """Load all that reading may need: nothing can be loaded afterwards."""
    for module in MODULES.get(kind, ()):
        importlib.import_module(module)
    for reader in ("csv", "docx", "html", "kicad", "markdown", "pdf", "plain", "step"):
        importlib.import_module(f"metaforge.knowledge.readers.{reader}")
    # Names in archives are in the last of these.
    for encoding in (
        *decoding.CANDIDATES,
        "utf-16-le",
        "utf-16-be",
        "utf-32-le",
        "utf-32-be",
        "latin-1",
        "ascii",
        "cp437",
    ):
        codecs.lookup(encoding)
    if kind == "pdf":
        _keep_character_maps()
    if kind in ("markdown", "text", "csv", "html"):
        # It is part of the extra, and most text does without.
        try:
            importlib.import_module("charset_normalizer").from_bytes("\u00fc\u4e2d\u6587".encode("gb18030") * 40)
        except ModuleNotFoundError:
            return


def _keep_character_maps() -> None:
    """Keep the maps of East Asian characters at hand, packed: fonts name them, and by then no file can be opened."""
    from pdfminer import cmapdb

    folder = Path(cmapdb.__file__).parent / "cmap"
    kept = {path.name: path.read_bytes() for path in folder.glob("*.gz")}

    def opened(path: str, *how: str, **more: Any) -> io.TextIOWrapper:
        return io.TextIOWrapper(gzip.GzipFile(fileobj=io.BytesIO(kept[os.path.basename(path)])), encoding="utf-8")

    cmapdb.gzip = SimpleNamespace(open=opened)  # type: ignore[assignment, attr-defined]


def _say_all(writing: BinaryIO, messages: list[dict[str, Any]]) -> None:
    for message in messages:
        _say(writing, message)


def _say(writing: BinaryIO, message: dict[str, Any]) -> None:
    view = memoryview(orjson.dumps(message) + b"\n")
    while view:
        view = view[writing.write(view) :]


if __name__ == "__main__":
    main()

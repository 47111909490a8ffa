"""Read a part's properties out of the documents: each with the line it stands in, and none that is not there.

A value is taken from a table row, from a column of a row that names the part, or from a sentence "label: value" of a
document or section about the part. Where documents disagree no value is given, and all are quoted.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from metaforge.knowledge import rows
from metaforge.knowledge.library import Library
from metaforge.knowledge.model import Source, Stored
from metaforge.knowledge.passages import split_row
from metaforge.knowledge.words import is_identifier, squeezed, stem, terms_of, tokens_of
from metaforge.store.transaction import Transaction

_MOST_NAMING = 400
_PART_KEYS = ("mpn", "part_number", "part", "manufacturer_part_number")
_PART_HEADERS = frozenset({"part", "mpn", "model", "type", "device", "order", "orderable"})
_REVISION_KEYS = ("datasheet_revision", "revision", "rev")
_DATE_KEYS = ("datasheet_published_at", "published_at", "published", "date")
_REVISION = re.compile(r"\brev(?:ision|\.)?\s*[:#]?\s*([A-Z]?\d{0,3}(?:\.\d+)*[A-Z]?)(?=[\s,;.)]|$)", re.I)
_DATE = re.compile(
    r"\b(\d{4}-\d{2}(?:-\d{2})?|(?:january|february|march|april|may|june|july|august|september|october|november|"
    r"december)\s+(?:\d{1,2},\s*)?\d{4})\b",
    re.I,
)
_SAME = {"maximum": "max", "minimum": "min", "typical": "typ", "temp": "temperature", "vin": "input voltage",
         "vout": "output voltage", "iout": "output current", "nom": "nominal"}  # fmt: skip
_COLUMNS = ("min", "typ", "max", "nominal")
_UNIT_OF_HEADER = re.compile(r"[(\[]\s*([^)\]]{1,12}?)\s*[)\]]\s*$")
_NUMBER_AND_UNIT = re.compile(r"^\s*([<>≤≥±~]?\s*[-+\u2212]?\d[\d.,]*(?:[eE][-+]?\d+)?)\s*([^\d\s].{0,11})?\s*$")
_SAID = (
    r"\s*(?:\([^)]{{0,40}}\)\s*)?(?:is|are|of|=|:|at)\s*(?:up to|about|rated at|specified at|typically|=|:)?\s*"
    r"([<>≤≥±]?\s*[-+\u2212]?\d[\d.,]*\s*(?:[a-zA-Z\u00b5\u03bc°\u03a9\u2126%/²³]{{1,8}})?)"
)
_HEADS_COUNT = 6
"""Passages at a document's beginning that may tell its revision and date."""


@dataclass(frozen=True)
class Value:
    """A property as a document gives it."""

    value: str
    unit: str
    quote: str
    label: str
    source_path: str
    heading: str
    page: int | None
    line: int | None
    entry_id: str
    closeness: float
    """1 where the label is the property's name, less where it says more."""
    cells: dict[str, str] = field(default_factory=dict)
    """The row by its header, where the row holds several values."""


@dataclass(frozen=True)
class Property:
    """What was found of one property."""

    name: str
    best: Value | None
    also: list[Value] = field(default_factory=list)
    """The same property elsewhere, with another value."""

    @property
    def is_agreed(self) -> bool:
        return self.best is not None and bool(self.best.value) and not self.also


@dataclass(frozen=True)
class PartFacts:
    """What the documents of a project say of a part."""

    mpn: str
    is_found: bool
    revision: str | None
    published_at: str | None
    source_path: str | None
    properties: list[Property]


def extract(
    library: Library, project_id: str, mpn: str, properties: Sequence[str], aliases: Mapping[str, Sequence[str]]
) -> PartFacts:
    """Return properties of a part as the current documents of a project give them.

    Args:
        mpn: the manufacturer's part number.
        properties: names, such as `max input voltage`.
        aliases: other names of a property.
    """
    with library.database.transaction(write=False) as transaction:
        passages = _about(transaction, project_id, mpn)
    names = {name: [name, *aliases.get(name, ())] for name in properties}
    found = [_property(name, list(_values(passages, mpn, labels))) for name, labels in names.items()]
    sheet = _sheet(passages)
    revision, published_at = _edition(sheet) if sheet else (None, None)
    return PartFacts(mpn, bool(passages), revision, published_at, sheet[0].source.source_path if sheet else None, found)


@dataclass(frozen=True)
class _Told:
    """A passage that names the part, or stands where everything is about it."""

    stored: Stored
    source: Source
    is_about: bool
    """Whether its document or section is about the part."""
    is_of_sheet: bool
    """Whether its whole document is."""


def _about(transaction: Transaction, project_id: str, mpn: str) -> list[_Told]:
    part = squeezed("".join(tokens_of(mpn)))
    every = {each.source_id: each for each in rows.sources(transaction, project_id) if not each.is_historical}
    sheets = [each for each in every.values() if part and _is_sheet(each, part)]
    found: dict[int, _Told] = {}
    for source in sheets:
        for stored in rows.passages_of(transaction, project_id, source.source_id):
            found[stored.passage_id] = _Told(stored, source, True, True)
    scopes = [rows.scope_of(project_id, is_current=True)]
    naming = rows.having(transaction, scopes, [part] if part else [], [], _MOST_NAMING)
    for stored in rows.passages(transaction, project_id, naming):
        if stored.source_id in every and stored.passage_id not in found:
            in_heading = _names(stored.heading, part)
            found[stored.passage_id] = _Told(stored, every[stored.source_id], in_heading, False)
    told = list(found.values())
    return sorted(told, key=lambda each: (not each.is_of_sheet, each.source.source_path, each.stored.ordinal))


def _is_sheet(source: Source, part: str) -> bool:
    named = [str(source.metadata[key]) for key in _PART_KEYS if key in source.metadata]
    return any(_names(text, part) or squeezed(text.lower()) == part for text in [*named, source.source_path])


def _names(text: str, part: str) -> bool:
    """Whether a text names a part, by itself or within a longer word such as a file's name."""
    return part in terms_of(text)


def _identifiers(text: str) -> set[str]:
    return {squeezed(token) for token in tokens_of(text) if is_identifier(token)}


def _values(passages: Sequence[_Told], mpn: str, labels: Sequence[str]) -> Iterator[Value]:
    part = squeezed("".join(tokens_of(mpn)))
    for told in passages:
        if told.stored.kind == "table_row":
            yield from _of_row(told, part, labels)
        else:
            yield from _of_prose(told, part, labels)


def _of_row(told: _Told, part: str, labels: Sequence[str]) -> Iterator[Value]:
    cells, header = split_row(told.stored.text), split_row(told.stored.context) if told.stored.context else []
    header = [*header, *[""] * (len(cells) - len(header))]
    if any(_names(cell, part) for cell in cells):
        # One row for each part: the property is a column.
        for cell, name in zip(cells, header, strict=False):
            closeness = _closeness(name, labels)
            if closeness and cell:
                yield _value(told, name, cell, _unit_of(name), closeness)
        return
    if not told.is_about and not _names(" ".join(header), part):
        return
    closeness = _closeness(cells[0], labels, header[1:])
    if not closeness or len(cells) < 2 or _identifiers(cells[0]):
        return
    mine = [at for at, name in enumerate(header) if at and _names(name, part)]
    if mine:
        unit = _unit_of(header[mine[0]]) or _unit_of(cells[0]) or _unit_of_row(cells, header)
        yield _value(told, cells[0], cells[mine[0]], unit, closeness)
    elif not any(_identifiers(name) for name in header):
        yield from _of_parameter(told, cells, header, labels, closeness)


def _of_parameter(
    told: _Told, cells: Sequence[str], header: Sequence[str], labels: Sequence[str], closeness: float
) -> Iterator[Value]:
    """A row for each parameter: its value is the cell that the property asks for, or the only one that holds any."""
    unit = _unit_of_row(cells, header) or _unit_of(cells[0])
    asked = set().union(*(_plain(each) for each in labels))
    columns = {name: cell for name, cell in zip(header[1:], cells[1:], strict=False) if name and cell}
    for name, cell in columns.items():
        if (chosen := _plain(name) & set(_COLUMNS)) and chosen <= asked:
            yield _value(told, cells[0], cell, unit or _unit_of(name), closeness)
            return
    values = [cell for name, cell in zip(header[1:], cells[1:], strict=False)
              if cell and not _plain(name) & {"unit", "units", "symbol", "condition", "conditions", "note", "notes"}
              and any(letter.isalnum() for letter in cell)]  # fmt: skip
    if len(values) == 1:
        yield _value(told, cells[0], values[0], unit, closeness)
    elif values:
        yield _value(told, cells[0], "", unit, closeness, columns)


def _of_prose(told: _Told, part: str, labels: Sequence[str]) -> Iterator[Value]:
    for sentence in re.split(r"(?<=[.;!?])\s+(?=[A-Z0-9])|\n", told.stored.text):
        others = _identifiers(sentence) - {part}
        if not _names(sentence, part) and (not told.is_about or others):
            continue
        for label in labels:
            words = r"[\s_-]+".join(re.escape(word) for word in re.split(r"[\s_-]+", label.strip()) if word)
            found = re.search(rf"\b{words}{_SAID.format()}", sentence, re.I) if words else None
            if found and found[1].strip(" .,"):
                yield _value(told, label, found[1].strip(" .,"), "", 0.9, quote=sentence.strip())
                break


def _value(
    told: _Told,
    label: str,
    text: str,
    unit: str,
    closeness: float,
    cells: dict[str, str] | None = None,
    quote: str = "",
) -> Value:
    value = text.strip()
    if parted := _NUMBER_AND_UNIT.fullmatch(value):
        value, unit = parted[1].strip(), (parted[2] or unit or "").strip()
    stored = told.stored
    return Value(
        value, unit, quote or stored.text, label.strip(), told.source.source_path, stored.heading, stored.page,
        stored.line, stored.entry_id, closeness, cells or {},
    )  # fmt: skip


def _property(name: str, values: Sequence[Value]) -> Property:
    if not values:
        return Property(name, None)
    closest = max(each.closeness for each in values)
    best, *rest = [each for each in values if each.closeness == closest]
    also = [each for each in rest if (_norm(each.value), each.unit) != (_norm(best.value), best.unit)]
    return Property(name, best, also)


def _norm(value: str) -> str:
    return re.sub(r"\s+", "", value).replace("\u2212", "-")


def _closeness(label: str, wanted: Sequence[str], columns: Sequence[str] = ()) -> float:
    """Return how well a label names a property: 1 alike, 0 not at all.

    Args:
        columns: of the row, which may say `max` where the label does not.
    """
    said = _plain(_UNIT_OF_HEADER.sub("", label))
    best = 0.0
    for each in wanted:
        asked = _plain(each)
        if not asked or not said:
            continue
        limits = asked & set(_COLUMNS) - said if columns and any(_plain(name) & asked for name in columns) else set()
        asked = asked - limits
        if asked == said:
            best = max(best, 1.0)
        elif asked and asked < said and len(said - asked) <= 3:
            best = max(best, 0.9 - 0.1 * len(said - asked))
    return best


def _plain(label: str) -> set[str]:
    words = re.findall(r"[^\W_]+", label.lower())
    told = " ".join(_SAME.get(word, word) for word in words).split()
    return {stem(word) for word in told if word not in {"the", "of", "a", "rating", "value"}}


def _unit_of_row(cells: Sequence[str], header: Sequence[str]) -> str:
    return next((cell for cell, name in zip(cells, header, strict=False) if "unit" in _plain(name)), "")


def _unit_of(header: str) -> str:
    found = _UNIT_OF_HEADER.search(header)
    return found[1] if found else ""


def _sheet(passages: Sequence[_Told]) -> list[_Told]:
    """Return the passages of the one document that is the part's datasheet, or nothing."""
    of_sheets = [each for each in passages if each.is_of_sheet]
    return [each for each in of_sheets if each.source is of_sheets[0].source] if of_sheets else []


def _edition(sheet: Sequence[_Told]) -> tuple[str | None, str | None]:
    metadata: Mapping[str, Any] = sheet[0].source.metadata
    revision = next((str(metadata[key]) for key in _REVISION_KEYS if key in metadata), None)
    published = next((str(metadata[key]) for key in _DATE_KEYS if key in metadata), None)
    for told in sheet[:_HEADS_COUNT]:
        text = f"{told.stored.heading}\n{told.stored.text}"
        if revision is None and (found := _REVISION.search(text)) and found[1]:
            revision = found[1]
        if published is None and (found := _DATE.search(text)):
            published = found[1]
    return revision, published


def parts_of(text: str, heading: str, kind: str, context: str, metadata: Mapping[str, Any]) -> list[str]:
    """Return the part numbers that a passage is about, as it writes them."""
    if kind == "table_row":
        cells, header = split_row(text), split_row(context)
        for cell, name in zip(cells, header, strict=False):
            if _plain(name) & _PART_HEADERS and _identifiers(cell):
                return [cell]
        if _identifiers(cells[0]):
            return [cells[0]]
    named = [str(metadata[key]) for key in _PART_KEYS if key in metadata]
    if named:
        return named[:1]
    for place in (heading, text):
        found = [word for word in re.findall(r"[^\s,;()]+", place) if is_identifier(word.lower().strip(".:"))]
        if found:
            return [found[0].strip(".:")]
    return []

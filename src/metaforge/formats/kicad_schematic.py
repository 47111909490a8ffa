"""Read what a KiCad schematic file (`.kicad_sch`) names and where its items are."""

from dataclasses import dataclass, field

from metaforge.formats.kicad_sexpr import Node, child, children, head, numbers, parse, properties, value

NEWEST_VERSION = 20250114
"""The file format of KiCad 9; newer ones it does not read."""
_PLACED = ("symbol", "label", "global_label", "hierarchical_label", "sheet", "no_connect", "junction", "bus_entry")


class NotASchematic(ValueError):
    """The file holds another kind of list."""


@dataclass(frozen=True)
class SubSheet:
    """A sheet symbol.

    Attributes:
        name: as it is shown.
        file: as it is written in the file, relative to the schematic's folder.
    """

    name: str
    file: str


@dataclass(frozen=True)
class Schematic:
    """One schematic file.

    Attributes:
        version: of the file format, a date as a number.
        sheets: the sheet symbols on it.
        places: uuid -> position of what is on it, mm.
        symbols_count: symbols on it, power symbols included.
    """

    version: int
    sheets: tuple[SubSheet, ...]
    places: dict[str, tuple[float, float]] = field(default_factory=dict)
    symbols_count: int = 0


def read_schematic(text: str) -> Schematic:
    """Read a schematic file.

    Raises:
        BadExpression: its lists are not closed.
        NotASchematic: it is a list of another kind.
    """
    root = parse(text)
    if head(root) != "kicad_sch":
        raise NotASchematic(f"the file holds a {head(root) or 'list without a keyword'}, not a kicad_sch")
    places: dict[str, tuple[float, float]] = {}
    for node in root:
        if not isinstance(node, str) and (found := _place(node)):
            places[value(node, "uuid")] = found
    version = value(root, "version", "0")
    return Schematic(
        int(version) if version.isdigit() else 0,
        tuple(_sub_sheet(node) for node in children(root, "sheet")),
        places,
        sum(1 for _ in children(root, "symbol")),
    )


def _place(node: Node) -> tuple[float, float] | None:
    if head(node) in _PLACED:
        at = numbers(node, "at")
    elif head(node) == "wire" and (points := child(node, "pts")):
        at = numbers(points, "xy")
    else:
        return None
    return (at[0], at[1]) if len(at) >= 2 else None


def _sub_sheet(node: Node) -> SubSheet:
    named = properties(node)
    # Version 6 wrote the names with a blank.
    return SubSheet(
        named.get("Sheetname", named.get("Sheet name", "")), named.get("Sheetfile", named.get("Sheet file", ""))
    )


def first_words(text: str) -> str:
    """Return how a file begins, for telling what it is instead."""
    return " ".join(text[:60].split())[:40]

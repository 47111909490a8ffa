"""Read the symbols of KiCad's libraries (`.kicad_sym`): their pins by unit, and what they take of room."""

from __future__ import annotations

import re
from dataclasses import dataclass

from metaforge.formats.kicad_sexpr import Node, Quoted, child, children, head, numbers, parse, texts, value


class NoSuchSymbol(LookupError):
    """The library has no symbol of this name; `names` are those it has."""

    def __init__(self, name: str, names: tuple[str, ...]) -> None:
        super().__init__(name)
        self.names = names


@dataclass(frozen=True)
class SymbolPin:
    """A pin of a symbol, in the symbol's own frame, mm, y upwards.

    Attributes:
        unit: 0 for a pin that every unit has.
        at: where a wire meets it.
        angle_deg: from there towards the body, counter-clockwise: 0 right, 90 up.
        kind: `input`, `passive`, `power_in` ...
    """

    unit: int
    number: str
    name: str
    kind: str
    at: tuple[float, float]
    angle_deg: int
    is_hidden: bool = False


@dataclass(frozen=True)
class Symbol:
    """One symbol, complete: what it inherits is in it.

    Attributes:
        node: its list, as a schematic embeds it.
        is_power: whether it only names a net.
        units_count: how many times a whole part is placed.
        extents_mm: left, bottom, right, top of each unit with its pins.
    """

    name: str
    node: Node
    pins: tuple[SymbolPin, ...]
    is_power: bool
    units_count: int
    extents_mm: dict[int, tuple[float, float, float, float]]

    def of_unit(self, unit: int) -> tuple[SymbolPin, ...]:
        return tuple(pin for pin in self.pins if pin.unit in (0, unit))


def find_symbol(library: str, name: str) -> Symbol:
    """Return a symbol of a library's text.

    Raises:
        NoSuchSymbol: there is none of this name.
        BadExpression: the library cannot be read.
    """
    return _symbol(name, _complete(library, name, 0))


def names_of(library: str) -> tuple[str, ...]:
    """Return the names of a library's symbols."""
    return tuple(re.findall(r'^(?:\t|  )\(symbol "((?:[^"\\]|\\.)*)"', library, re.MULTILINE))


def _complete(library: str, name: str, depth: int) -> Node:
    node = _raw(library, name)
    parent = value(node, "extends")
    if not parent or depth > 8:
        return node
    return _inherited(node, _complete(library, parent, depth + 1), name, parent)


def _raw(library: str, name: str) -> Node:
    # Libraries have many megabytes: the one symbol is cut out where the text is laid out as KiCad does.
    start = library.find(f'\n\t(symbol "{name}"')
    end = library.find("\n\t)", start)
    if start >= 0 and end >= 0:
        return parse(library[start : end + 3])
    for node in children(parse(library), "symbol"):
        if texts(node)[:1] == [name]:
            return node
    raise NoSuchSymbol(name, names_of(library))


def _inherited(own: Node, parent: Node, name: str, parent_name: str) -> Node:
    """Return a derived symbol with what it takes from another: drawing and pins, and properties it has not itself."""
    ours = {texts(each)[0]: each for each in children(own, "property")}
    made: Node = [own[0], Quoted(name)]
    for each in parent[2:]:
        if isinstance(each, str) or head(each) != "symbol":
            taken = ours.pop(texts(each)[0], each) if not isinstance(each, str) and head(each) == "property" else each
            made.append(taken)
            continue
        if ours:
            made += ours.values()
            ours = {}
        unit = texts(each)[0].removeprefix(parent_name)
        made.append(["symbol", Quoted(f"{name}{unit}"), *each[2:]])
    return made


def _symbol(name: str, node: Node) -> Symbol:
    pins: list[SymbolPin] = []
    boxes: dict[int, list[tuple[float, float]]] = {}
    for part in children(node, "symbol"):
        match = re.search(r"_(\d+)_(\d+)$", texts(part)[0])
        unit, style = (int(match[1]), int(match[2])) if match else (0, 1)
        if style > 1:
            continue
        boxes.setdefault(unit, []).extend(_points(part))
        pins += [_pin(each, unit) for each in children(part, "pin")]
    units = max([unit for unit in boxes if unit] or [1])
    shared = boxes.get(0, [])
    return Symbol(
        name, node, tuple(pins), child(node, "power") is not None, units,
        {unit: _box([*shared, *boxes.get(unit, [])]) for unit in range(1, units + 1)},
    )  # fmt: skip


def _pin(node: Node, unit: int) -> SymbolPin:
    at = (*numbers(node, "at"), 0.0, 0.0, 0.0)[:3]
    name, number = value(node, "name"), value(node, "number")
    hidden = value(node, "hide") == "yes" or "hide" in texts(node)
    return SymbolPin(
        unit, number, "" if name == "~" else name, texts(node)[0], (at[0], at[1]), round(at[2]) % 360, hidden
    )


def _points(part: Node) -> list[tuple[float, float]]:
    """Return points that a unit's drawing reaches to."""
    found: list[tuple[float, float]] = []
    for each in part:
        if isinstance(each, str):
            continue
        for name in ("start", "end", "mid", "at"):
            place = numbers(each, name)
            if len(place) >= 2 and head(each) not in ("property", "text"):
                found.append((place[0], place[1]))
        if head(each) == "circle":
            (x, y), radius = numbers(each, "center")[:2], next(iter(numbers(each, "radius")), 0.0)
            found += [(x - radius, y - radius), (x + radius, y + radius)]
        for corner in children(child(each, "pts") or [], "xy"):
            found.append((float(texts(corner)[0]), float(texts(corner)[1])))
    return found


def _box(points: list[tuple[float, float]]) -> tuple[float, float, float, float]:
    if not points:
        return (-2.54, -2.54, 2.54, 2.54)
    xs, ys = [x for x, _ in points], [y for _, y in points]
    return (min(xs), min(ys), max(xs), max(ys))

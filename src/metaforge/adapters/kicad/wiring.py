"""Connect placed pins: wires in the channel between two columns where a net lives there alone, else names."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from metaforge.adapters.kicad.placing import GRID_MM, STUB_MM, PinKey, Placed
from metaforge.formats.kicad_symbol import SymbolPin

Point = tuple[float, float]
HALF_GRID_MM = GRID_MM / 2
STEPS = {0: (1, 0), 90: (0, -1), 180: (-1, 0), 270: (0, 1)}


@dataclass(frozen=True)
class End:
    """A pin of a net on the sheet.

    Attributes:
        direction_deg: away from the body: 0 right, 90 up, 180 left, 270 down.
    """

    pin: PinKey
    at: Point
    direction_deg: int
    column: int


class Claims:
    """Where wires lie, and of which net: KiCad connects whatever touches."""

    def __init__(self) -> None:
        self._taken: list[tuple[str, Point, Point]] = []

    def take(self, net: str, wires: Sequence[tuple[Point, Point]]) -> None:
        self._taken += [(net, *wire) for wire in wires]

    def is_free(self, net: str, wires: Sequence[tuple[Point, Point]]) -> bool:
        """Return whether wires touch none of another net."""
        return not any(
            other != net and _touch(wire, (start, end)) for wire in wires for other, start, end in self._taken
        )


def _touch(one: tuple[Point, Point], other: tuple[Point, Point]) -> bool:
    """Return whether an end of one wire lies on the other; crossing in between connects nothing."""
    return any(_on(end, other) for end in one) or any(_on(end, one) for end in other)


def _on(point: Point, wire: tuple[Point, Point]) -> bool:
    (x1, y1), (x2, y2) = wire
    inside = min(x1, x2) - 0.01 <= point[0] <= max(x1, x2) + 0.01
    return inside and min(y1, y2) - 0.01 <= point[1] <= max(y1, y2) + 0.01


@dataclass
class Wiring:
    """What is drawn.

    Attributes:
        wires: from where to where.
        junctions: where three wires meet.
        names: places where a net's name stands, with the direction it points to.
        open: places of pins that are connected to nothing.
    """

    wires: list[tuple[Point, Point]] = field(default_factory=list)
    junctions: list[Point] = field(default_factory=list)
    names: list[tuple[str, Point, int]] = field(default_factory=list)
    open: list[tuple[PinKey, Point]] = field(default_factory=list)


def ends_of(placed: Sequence[Placed]) -> dict[PinKey, tuple[End, SymbolPin]]:
    """Return every pin that is drawn, once."""
    found: dict[PinKey, tuple[End, SymbolPin]] = {}
    for each in placed:
        for pin in each.symbol.of_unit(each.unit):
            key = (each.reference, pin.number)
            found.setdefault(key, (End(key, each.at(pin), each.outward(pin), each.column), pin))
    return found


def wire(placed: Sequence[Placed], nets: Mapping[str, Sequence[PinKey]], power: frozenset[str]) -> Wiring:
    """Draw every net, and mark the pins that are on none."""
    ends = ends_of(placed)
    net_of = {pin: name for name, pins in nets.items() for pin in pins}
    made, claims = Wiring(), Claims()
    for key, (end, _) in ends.items():
        # Room for every pin's name, whether it will need one or not.
        claims.take(net_of.get(key, f"open {end.at}"), [(end.at, _tip(end))])
    by_channel: dict[int, list[tuple[str, list[End]]]] = defaultdict(list)
    used: set[Point] = set()
    for name, pins in nets.items():
        members = [ends[pin][0] for pin in pins if pin in ends]
        used |= {end.at for end in members}
        channel = _channel(members) if name not in power and len(members) == len(pins) > 1 else None
        if channel is None:
            _name(name, members, made)
        else:
            by_channel[channel].append((name, members))
    for channel, listed in by_channel.items():
        _route(channel, listed, placed, made, claims)
    for key, (end, pin) in ends.items():
        if end.at not in used and pin.kind not in ("no_connect", "power_in"):
            used.add(end.at)
            made.open.append((key, end.at))
    return made


def _tip(end: End) -> Point:
    step = STEPS[end.direction_deg]
    return round(end.at[0] + step[0] * STUB_MM, 4), round(end.at[1] + step[1] * STUB_MM, 4)


def _channel(members: Sequence[End]) -> int | None:
    """Return the column to whose right all these pins look, or None."""
    sides = {end.column if end.direction_deg == 0 else end.column - 1 for end in members}
    if len(sides) != 1 or any(end.direction_deg not in (0, 180) for end in members):
        return None
    return sides.pop() if len({end.column for end in members}) > 1 else None


def _name(name: str, members: Sequence[End], made: Wiring) -> None:
    done: set[Point] = set()
    for end in members:
        if end.at in done:
            continue
        done.add(end.at)
        made.wires.append((end.at, _tip(end)))
        made.names.append((name, _tip(end), end.direction_deg))


def _route(
    channel: int, nets: list[tuple[str, list[End]]], placed: Sequence[Placed], made: Wiring, claims: Claims
) -> None:
    """Give each net a vertical line of its own in the channel; what finds no room gets names."""
    left = max(each.extents()[2] for each in placed if each.column == channel)
    right = min(each.extents()[0] for each in placed if each.column == channel + 1)
    first = round((left + STUB_MM) / HALF_GRID_MM) * HALF_GRID_MM
    lines = [round(first + n * GRID_MM, 4) for n in range(int((right - left - 2 * STUB_MM) / GRID_MM) + 1)]
    # Short nets first: they find the lines nearest to their pins.
    for name, members in sorted(nets, key=lambda each: _span(each[1])[1] - _span(each[1])[0]):
        drawn = next((wires for x in lines if claims.is_free(name, wires := _wires(x, members))), None)
        if drawn is None:
            _name(name, members, made)
            continue
        claims.take(name, drawn)
        made.wires += drawn
        _mark(name, drawn[0][1][0], members, made)


def _span(members: Sequence[End]) -> tuple[float, float]:
    heights = [end.at[1] for end in members]
    return min(heights), max(heights)


def _wires(x: float, members: Sequence[End]) -> list[tuple[Point, Point]]:
    """Return the wires of a net whose line stands at x."""
    heights = sorted({end.at[1] for end in members})
    across = [(end.at, (x, end.at[1])) for end in members]
    return across + [((x, upper), (x, lower)) for upper, lower in pairwise(heights)]


def _mark(name: str, x: float, members: Sequence[End], made: Wiring) -> None:
    """Mark where wires of a net meet, and write its name on it: whoever reads need not follow the wire."""
    heights = sorted({end.at[1] for end in members})
    made.junctions += [(x, height) for height in heights if _meeting(x, height, heights, members) > 2]
    made.names.append((name, (x, heights[0]), 0))


def _meeting(x: float, height: float, heights: Sequence[float], members: Sequence[End]) -> int:
    """Return how many wires meet in a point of a net's line."""
    beside = sum(1 for end in members if end.at[1] == height)
    return beside + (height != heights[0]) + (height != heights[-1])

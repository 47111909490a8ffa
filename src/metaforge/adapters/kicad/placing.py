"""Place a circuit's symbols on a sheet: columns from the inputs to the right, neighbours side by side."""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, cos, radians, sin

from metaforge.formats.kicad_symbol import Symbol, SymbolPin

GRID_MM = 2.54
SHEETS = (("A4", 297.0, 210.0), ("A3", 420.0, 297.0), ("A2", 594.0, 420.0), ("A1", 841.0, 594.0), ("A0", 1189.0, 841.0))
MARGIN_MM = 25.4
BELOW_MM = 45.0
"""Kept free at the foot of the sheet, for the title block."""
STUB_MM = 2.54
LETTER_MM = 1.1
GAP_MM = 10.16
SIGNAL_PINS = 6
"""Nets of more pins than this say little about who is whose neighbour."""
SOURCES = ("J", "P", "CN", "CONN", "BT", "V", "X")

PinKey = tuple[str, str]


@dataclass(frozen=True)
class Placed:
    """A unit of a part on the sheet.

    Attributes:
        x, y: of its origin, mm, y downwards.
        angle_deg: by which it is turned, counter-clockwise.
    """

    reference: str
    unit: int
    symbol: Symbol
    x: float
    y: float
    angle_deg: int
    column: int

    def at(self, pin: SymbolPin) -> tuple[float, float]:
        """Return where a wire meets a pin."""
        turn = radians(self.angle_deg)
        x = pin.at[0] * cos(turn) - pin.at[1] * sin(turn)
        y = pin.at[0] * sin(turn) + pin.at[1] * cos(turn)
        return round(self.x + x, 4), round(self.y - y, 4)

    def outward(self, pin: SymbolPin) -> int:
        """Return the direction away from the body: 0 right, 90 up, 180 left, 270 down."""
        return (pin.angle_deg + 180 + self.angle_deg) % 360

    def extents(self) -> tuple[float, float, float, float]:
        """Return left, top, right, bottom on the sheet."""
        return _turned_extents(self.symbol.extents_mm[self.unit], self.angle_deg, self.x, self.y)


@dataclass
class _Unit:
    reference: str
    unit: int
    symbol: Symbol
    angle_deg: int = 0
    level: int = 0
    neighbours: list["_Unit"] = field(default_factory=list)

    def size(self) -> tuple[float, float]:
        left, top, right, bottom = _turned_extents(self.symbol.extents_mm[self.unit], self.angle_deg, 0.0, 0.0)
        return right - left, bottom - top


def place(
    symbols: Mapping[str, Symbol], nets: Mapping[str, Sequence[PinKey]], power: frozenset[str]
) -> tuple[list[Placed], tuple[str, float, float]]:
    """Return every unit's place, and the sheet that holds them.

    Args:
        symbols: of the parts, by reference.
        nets: name -> pins as (reference, number).
        power: nets drawn with power symbols, which bind nobody together.
    """
    units = [
        _Unit(reference, unit, symbol)
        for reference, symbol in symbols.items()
        for unit in range(1, symbol.units_count + 1)
    ]
    owner = {(each.reference, pin.number): each for each in units for pin in each.symbol.of_unit(each.unit)}
    for name, pins in nets.items():
        if name not in power and len(pins) <= SIGNAL_PINS:
            members = [owner[pin] for pin in pins if pin in owner]
            for one in members:
                one.neighbours += [other for other in members if other is not one and other not in one.neighbours]
    _level(units)
    _turn(units, nets, owner)
    labels = max([len(name) for name in nets] or [1]) * LETTER_MM
    for sheet in SHEETS:
        placed, fits = _laid_out(units, sheet, labels)
        if fits or sheet is SHEETS[-1]:
            break
    return placed, sheet


def _level(units: list[_Unit]) -> None:
    """Number the columns by distance from where signals enter."""
    waiting = sorted(units, key=lambda each: (_rank(each), len(each.neighbours)))
    seen: set[int] = set()
    for start in waiting:
        if id(start) in seen:
            continue
        seen.add(id(start))
        queue = deque([start])
        while queue:
            here = queue.popleft()
            for other in here.neighbours:
                if id(other) not in seen:
                    seen.add(id(other))
                    other.level = here.level + 1
                    queue.append(other)


def _rank(unit: _Unit) -> int:
    letters = unit.reference.rstrip("0123456789")
    return 0 if letters in SOURCES and unit.neighbours else 1 if unit.neighbours else 2


def _turn(units: list[_Unit], nets: Mapping[str, Sequence[PinKey]], owner: Mapping[PinKey, _Unit]) -> None:
    """Lay parts of two pins down, the pin towards the column before at the left."""
    net_of = {pin: name for name, pins in nets.items() for pin in pins}
    for each in units:
        pins = each.symbol.of_unit(each.unit)
        directions = {pin.angle_deg for pin in pins}
        if len(pins) != 2 or directions not in ({90, 270}, {0, 180}):
            continue
        upright = directions == {90, 270}
        # The pin that is at the left when an upright part is turned by 90 degrees, or a lying one not at all.
        first, second = sorted(pins, key=lambda pin: -pin.at[1] if upright else pin.at[0])
        before = {
            pin.number: sum(
                1
                for other in nets.get(net_of.get((each.reference, pin.number), ""), ())
                if other in owner and owner[other].level < each.level
            )
            for pin in pins
        }
        each.angle_deg = (90 if upright else 0) + (0 if before[first.number] >= before[second.number] else 180)


def _laid_out(units: list[_Unit], sheet: tuple[str, float, float], labels: float) -> tuple[list[Placed], bool]:
    _, width, height = sheet
    room = height - MARGIN_MM - BELOW_MM
    columns = _columns(units, room)
    placed: list[Placed] = []
    order: dict[int, float] = {}
    x = MARGIN_MM + labels + STUB_MM
    for number, column in enumerate(columns):
        column.sort(key=lambda each: (_centre(each, order), each.reference, each.unit))
        widest = max(each.size()[0] for each in column)
        y = MARGIN_MM
        for each in column:
            _, top, _, bottom = _turned_extents(each.symbol.extents_mm[each.unit], each.angle_deg, 0.0, 0.0)
            # Neighbouring columns stand half a grid apart: their pins never share a line.
            origin_y = _on_grid(y - top) + (GRID_MM / 2 if number % 2 else 0.0)
            origin_x = _on_grid(x + widest / 2)
            placed.append(Placed(each.reference, each.unit, each.symbol, origin_x, origin_y, each.angle_deg, number))
            order[id(each)] = origin_y
            y = origin_y + bottom + GAP_MM
        x = _on_grid(x + widest + 2 * labels + 6 * GRID_MM)
    right_edge = max(each.extents()[2] for each in placed) + labels
    lowest = max(each.extents()[3] for each in placed)
    return placed, right_edge <= width - MARGIN_MM / 2 and lowest <= height - BELOW_MM


def _columns(units: list[_Unit], room: float) -> list[list[_Unit]]:
    """Split levels that are too high for the sheet."""
    levels: dict[int, list[_Unit]] = defaultdict(list)
    for each in units:
        levels[each.level].append(each)
    columns: list[list[_Unit]] = []
    for level in sorted(levels):
        height, column = 0.0, list[_Unit]()
        for each in levels[level]:
            need = each.size()[1] + GAP_MM + GRID_MM
            if column and height + need > room:
                columns.append(column)
                height, column = 0.0, []
            column.append(each)
            height += need
        columns.append(column)
    return columns


def _centre(unit: _Unit, order: Mapping[int, float]) -> float:
    """Return the mean height of a unit's neighbours that are placed already."""
    heights = [order[id(other)] for other in unit.neighbours if id(other) in order]
    return sum(heights) / len(heights) if heights else 0.0


def _on_grid(value: float) -> float:
    return ceil(value / GRID_MM - 1e-6) * GRID_MM


def _turned_extents(
    box: tuple[float, float, float, float], angle_deg: int, x: float, y: float
) -> tuple[float, float, float, float]:
    turn = radians(angle_deg)
    corners = [(box[0], box[1]), (box[2], box[1]), (box[2], box[3]), (box[0], box[3])]
    xs = [x + px * cos(turn) - py * sin(turn) for px, py in corners]
    ys = [y - (px * sin(turn) + py * cos(turn)) for px, py in corners]
    return min(xs), min(ys), max(xs), max(ys)

"""Write a schematic: symbols, wires, names, and what tells that a net is supplied."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from metaforge.adapters.kicad.placing import GRID_MM, Placed
from metaforge.adapters.kicad.wanted import Part
from metaforge.adapters.kicad.wiring import Point, Wiring
from metaforge.formats.kicad_schematic import NEWEST_VERSION
from metaforge.formats.kicad_sexpr import Node, Quoted, write
from metaforge.formats.kicad_symbol import Symbol

_IDS = uuid.UUID("0b6e7a54-0b4d-4b7e-9a39-8d4a4a6a7c02")
_FONT: Node = ["effects", ["font", ["size", "1.27", "1.27"]]]
TITLE_GAP_MM = 2.54


@dataclass(frozen=True)
class Supply:
    """A net that is drawn with a power symbol, or flagged as supplied.

    Attributes:
        symbol: None where the library has none of the net's name.
    """

    net: str
    symbol: Symbol | None
    flagged: bool


class Sheet:
    """A schematic in the making.

    Args:
        project: the project's name, which symbol instances carry.
        paper: size of the sheet.
        title: for the title block.
    """

    def __init__(self, project: str, paper: str, title: str) -> None:
        self.project = project
        self._root = self._id("root")
        self._embedded: dict[str, Node] = {}
        self._items: list[Node] = []
        self._paper, self._title = paper, title
        self._power_count = self._flag_count = 0

    def _id(self, what: str) -> str:
        return str(uuid.uuid5(_IDS, f"{self.project} {what}"))

    def add_part(self, part: Part, placed: Placed, library_id: str) -> None:
        """Place a unit of a part, with reference above and value below."""
        _, top, right, bottom = placed.extents()
        above, below = round(top - TITLE_GAP_MM / 2, 4), round(bottom + TITLE_GAP_MM / 2, 4)
        # Beside the names of pins that point up or down there is no room in the middle.
        upright = any(placed.outward(pin) in (90, 270) for pin in placed.symbol.of_unit(placed.unit))
        x = round(right + TITLE_GAP_MM / 2, 4) if upright else placed.x
        hidden = {"Footprint": part.footprint, **part.fields}
        fields = [
            _field("Reference", part.reference, (x, above), placed.angle_deg, left=upright),
            _field("Value", part.value, (x, below), placed.angle_deg, left=upright),
            *(_field(name, text, (placed.x, placed.y), placed.angle_deg, hidden=True) for name, text in hidden.items()),
        ]
        self._symbol(library_id, placed.symbol, part.reference, placed.unit, (placed.x, placed.y), placed.angle_deg,
                     fields)  # fmt: skip

    def add_wiring(self, wiring: Wiring, supplies: Mapping[str, Supply]) -> None:
        """Draw wires and names; a supply's name is its power symbol."""
        for start, end in wiring.wires:
            self._items.append(["wire", ["pts", _xy(start), _xy(end)], _STROKE, self._uuid(f"wire {start} {end}")])
        for place in wiring.junctions:
            self._items.append(["junction", ["at", *_numbers(place)], ["diameter", "0"], ["color", "0", "0", "0", "0"],
                                self._uuid(f"junction {place}")])  # fmt: skip
        for name, place, direction in wiring.names:
            supply = supplies.get(name)
            if supply is not None and supply.symbol is not None:
                self.add_power(supply.symbol, place, direction)
            else:
                self.add_label(name, place, direction)
        for _, place in wiring.open:
            self._items.append(["no_connect", ["at", *_numbers(place)], self._uuid(f"open {place}")])

    def add_label(self, name: str, place: Point, direction: int) -> None:
        """Write a net's name, reading away from its wire."""
        justify = "right" if direction in (180, 270) else "left"
        self._items.append(
            ["label", Quoted(name), ["at", *_numbers(place), str(direction)],
             [*_FONT, ["justify", justify, "bottom"]], self._uuid(f"label {name} {place}")]
        )  # fmt: skip

    def add_power(self, symbol: Symbol, place: Point, direction: int) -> None:
        """Place a power symbol; ground hangs down and supplies stand up unless the wire comes from there."""
        points_down = symbol.pins[0].angle_deg == 270
        angle = 180 if direction == (90 if points_down else 270) else 0
        self._power_count += 1
        reach = (1 if points_down else -1) * (-1 if angle else 1) * 3.81
        fields = [
            _field("Reference", f"#PWR{self._power_count:03d}", place, 0, hidden=True),
            _field("Value", symbol.name, (place[0], round(place[1] + reach, 4)), 0),
        ]
        self._symbol(f"power:{symbol.name}", symbol, f"#PWR{self._power_count:03d}", 1, place, angle, fields)

    def add_flag(self, flag: Symbol, supply: Supply, place: Point) -> None:
        """Tell that a net is supplied: its name and a flag on one wire."""
        self._flag_count += 1
        end = (round(place[0] + 2 * GRID_MM, 4), place[1])
        self._items.append(["wire", ["pts", _xy(place), _xy(end)], _STROKE, self._uuid(f"wire {place} {end}")])
        if supply.symbol is not None:
            self.add_power(supply.symbol, place, 180)
        else:
            self.add_label(supply.net, place, 180)
        reference = f"#FLG{self._flag_count:03d}"
        fields = [
            _field("Reference", reference, end, 0, hidden=True),
            _field("Value", flag.name, (end[0], round(end[1] - 3.81, 4)), 0, hidden=True),
        ]
        self._symbol(f"power:{flag.name}", flag, reference, 1, end, 0, fields)

    def text(self) -> str:
        """Return the file."""
        library: Node = ["lib_symbols", *self._embedded.values()]
        root: Node = [
            "kicad_sch", ["version", str(NEWEST_VERSION)], ["generator", Quoted("metaforge")],
            ["generator_version", Quoted("9.0")], ["uuid", Quoted(self._root)], ["paper", Quoted(self._paper)],
            ["title_block", ["title", Quoted(self._title)]], library, *self._items,
            ["sheet_instances", ["path", Quoted("/"), ["page", Quoted("1")]]], ["embedded_fonts", "no"],
        ]  # fmt: skip
        return write(root) + "\n"

    def _symbol(
        self,
        library_id: str,
        symbol: Symbol,
        reference: str,
        unit: int,
        place: Point,
        angle: int,
        fields: Sequence[Node],
    ) -> None:
        if library_id not in self._embedded:
            self._embedded[library_id] = ["symbol", Quoted(library_id), *symbol.node[2:]]
        key = f"{reference} {unit}"
        pins: list[Node] = [
            ["pin", Quoted(pin.number), self._uuid(f"pin {key} {pin.number}")] for pin in symbol.of_unit(unit)
        ]
        path: Node = ["path", Quoted(f"/{self._root}"), ["reference", Quoted(reference)], ["unit", str(unit)]]
        instance: Node = ["instances", ["project", Quoted(self.project), path]]
        self._items.append(
            ["symbol", ["lib_id", Quoted(library_id)], ["at", *_numbers(place), str(angle)], ["unit", str(unit)],
             ["exclude_from_sim", "no"], ["in_bom", "yes"], ["on_board", "yes"], ["dnp", "no"],
             self._uuid(f"symbol {key}"), *fields, *pins, instance]
        )  # fmt: skip

    def _uuid(self, what: str) -> Node:
        return ["uuid", Quoted(self._id(what))]


_STROKE: Node = ["stroke", ["width", "0"], ["type", "default"]]


def _field(name: str, text: str, place: Point, angle: int, *, hidden: bool = False, left: bool = False) -> Node:
    # A field turns with its symbol: turned back it reads along the sheet.
    hide: list[Node] = [["hide", "yes"]] if hidden else []
    justify: list[Node] = [["justify", "left"]] if left else []
    font: Node = [*_FONT, *justify, *hide]
    return ["property", Quoted(name), Quoted(text), ["at", *_numbers(place), "90" if angle in (90, 270) else "0"], font]


def _numbers(place: Point) -> list[str]:
    return [f"{round(value, 4):g}" for value in place]


def _xy(place: Point) -> Node:
    return ["xy", *_numbers(place)]

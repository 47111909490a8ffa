"""Text of small KiCad files: a divider as a schematic, boards with tracks, pads and rules."""

from collections.abc import Sequence

ROOT = "11111111-0000-4000-8000-000000000000"
HEAD = f'(kicad_sch (version 20250114) (generator "test") (generator_version "9.0") (uuid "{ROOT}") (paper "A4")'


def pin(kind: str, x: float, y: float, turn: int, length: float, name: str, number: str) -> str:
    font = "(effects (font (size 1.27 1.27)))"
    return f'(pin {kind} line (at {x} {y} {turn}) (length {length}) (name "{name}" {font}) (number "{number}" {font}))'


def symbol(name: str, letter: str, *pins: str) -> str:
    return (
        f'(symbol "test:{name}" (in_bom yes) (on_board yes) (property "Reference" "{letter}" (at 0 6 0)) '
        f'(property "Value" "{name}" (at 0 -6 0)) (symbol "{name}_1_1" {" ".join(pins)}))'
    )


RESISTOR_PINS = (pin("passive", 0, 3.81, 270, 1.27, "", "1"), pin("passive", 0, -3.81, 90, 1.27, "", "2"))
RESISTOR = symbol("R", "R", *RESISTOR_PINS)
CHIP_PINS = (pin("power_in", -7.62, 0, 0, 2.54, "VCC", "1"), pin("output", 7.62, 0, 180, 2.54, "OUT", "2"))
CHIP = symbol("CHIP", "U", *CHIP_PINS)


def uid(number: int) -> str:
    return f"22222222-0000-4000-8000-{number:012d}"


def part(number: int, kind: str, reference: str, value: str, x: float, y: float, more: str = "") -> str:
    """Place a symbol."""
    return (
        f'(symbol (lib_id "test:{kind}") (at {x} {y} 0) (unit 1) (in_bom yes) (on_board yes) (dnp no) '
        f'(uuid "{uid(number)}") (property "Reference" "{reference}" (at {x} {y} 0)) '
        f'(property "Value" "{value}" (at {x} {y} 0)) {more} '
        f'(pin "1" (uuid "{uid(number + 1)}")) (pin "2" (uuid "{uid(number + 2)}")) '
        f'(instances (project "" (path "/{ROOT}" (reference "{reference}") (unit 1)))))'
    )


def wire(number: int, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'(wire (pts (xy {x1} {y1}) (xy {x2} {y2})) (stroke (width 0) (type default)) (uuid "{uid(number)}"))'


def label(number: int, name: str, x: float, y: float, kind: str = "label") -> str:
    shape = "(shape passive) " if kind == "global_label" else ""
    return f'({kind} "{name}" {shape}(at {x} {y} 0) (effects (font (size 1.27 1.27))) (uuid "{uid(number)}"))'


def sheet(number: int, name: str, file: str) -> str:
    return (
        f'(sheet (at 200 50) (size 20 20) (uuid "{uid(number)}") (property "Sheetname" "{name}" (at 200 49 0)) '
        f'(property "Sheetfile" "{file}" (at 200 71 0)))'
    )


def schematic(*items: str, symbols: str = RESISTOR + CHIP) -> str:
    return f'{HEAD} (lib_symbols {symbols}) {" ".join(items)} (sheet_instances (path "/" (page "1"))))\n'


def divider(*more: str, upper: str = "10k", lower: str = "10k") -> str:
    """R1 and R2 in series between IN and GND, OUT between them, R3 across both. OUT is at (101.6, 66.04)."""
    return schematic(
        part(10, "R", "R1", upper, 101.6, 62.23),
        part(20, "R", "R2", lower, 101.6, 69.85),
        part(40, "R", "R3", "100k", 88.9, 66.04),
        wire(30, 101.6, 58.42, 88.9, 58.42),
        label(31, "IN", 95.25, 58.42),
        wire(32, 101.6, 66.04, 114.3, 66.04),
        label(33, "OUT", 114.3, 66.04),
        wire(34, 101.6, 73.66, 88.9, 73.66),
        label(35, "GND", 95.25, 73.66, "global_label"),
        wire(36, 88.9, 58.42, 88.9, 62.23),
        wire(37, 88.9, 69.85, 88.9, 73.66),
        *more,
    )


BOARD = """(kicad_pcb (version 20241229) (generator "test") (generator_version "9.0")
  (general (thickness 1.6)) (paper "A4")
  (layers (0 "F.Cu" signal) (2 "B.Cu" signal) (5 "F.SilkS" user) (1 "F.Mask" user) (3 "B.Mask" user)
    (19 "Cmts.User" user) (25 "Edge.Cuts" user))
  (net 0 "") (net 1 "GND") (net 2 "VCC")
"""


def outline(width: float = 30, height: float = 20) -> str:
    return (
        f"(gr_rect (start 0 0) (end {width} {height}) (stroke (width 0.1) (type solid)) (fill no) "
        f'(layer "Edge.Cuts") (uuid "{uid(900)}"))'
    )


def track(number: int, start: Sequence[float], end: Sequence[float], net: int, layer: str = "F.Cu") -> str:
    return (
        f"(segment (start {start[0]} {start[1]}) (end {end[0]} {end[1]}) (width 0.25) "
        f'(layer "{layer}") (net {net}) (uuid "{uid(number)}"))'
    )


def via(number: int, x: float, y: float, net: int) -> str:
    return f'(via (at {x} {y}) (size 0.8) (drill 0.4) (layers "F.Cu" "B.Cu") (net {net}) (uuid "{uid(number)}"))'


def footprint(number: int, reference: str, x: float, y: float, nets: Sequence[tuple[int, str]], turn: float = 0) -> str:
    """Pads of 1.6 x 1.2 mm, 5 mm apart along the part."""
    pads = " ".join(
        f'(pad "{index + 1}" smd roundrect (at {5 * index} 0 {turn}) (size 1.6 1.2) (layers "F.Cu" "F.Mask") '
        f'(roundrect_rratio 0.25) (net {net} "{name}") (uuid "{uid(number + index + 1)}"))'
        for index, (net, name) in enumerate(nets)
    )
    return (
        f'(footprint "test:F" (layer "F.Cu") (uuid "{uid(number)}") (at {x} {y} {turn}) '
        f'(property "Reference" "{reference}" (at 0 -2 0) (layer "F.SilkS") (uuid "{uid(number + 50)}") '
        f"(effects (font (size 1 1) (thickness 0.15)))) (attr smd) {pads})"
    )


def board(*items: str) -> str:
    return BOARD + "\n".join(items) + "\n)\n"


def text(number: int, words: str, x: float, y: float) -> str:
    """Text on a sheet; KiCad takes SPICE directives from it."""
    font = "(effects (font (size 1.27 1.27)))"
    return f'(text "{words}" (exclude_from_sim no) (at {x} {y} 0) {font} (uuid "{uid(number)}"))'

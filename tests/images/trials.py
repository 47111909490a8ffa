"""One call for each adapter whose true answer is known, with the files that it reads."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

# A bar of 100 x 10 x 10 mm as one element, pulled by 10 kN at its end nodes: 100 MPa, and F L / (E A) = 0.05 mm.
BAR = """*NODE, NSET=ALL
1, 0, 0, 0
2, 100, 0, 0
3, 100, 10, 0
4, 0, 10, 0
5, 0, 0, 10
6, 100, 0, 10
7, 100, 10, 10
8, 0, 10, 10
*ELEMENT, TYPE=C3D8, ELSET=BAR
1, 1, 2, 3, 4, 5, 6, 7, 8
*NSET, NSET=LEFT
1, 4, 5, 8
*NSET, NSET=FLOOR
1, 2
*MATERIAL, NAME=STEEL
*ELASTIC
200000, 0.3
*SOLID SECTION, ELSET=BAR, MATERIAL=STEEL
*BOUNDARY
LEFT, 1, 1
1, 2, 3
5, 2, 2
4, 3, 3
*STEP
*STATIC
*CLOAD
2, 1, 2500
3, 1, 2500
6, 1, 2500
7, 1, 2500
*NODE FILE
U, RF
*EL FILE
S
*END STEP
"""
PART = ((0, "power_in", "VCC", -7.62, 0), (1, "output", "OUT", 7.62, 180))


@dataclass(frozen=True)
class Trial:
    """A tool, its arguments, the files of its workspace, and whether its answer is true."""

    tool_id: str
    arguments: dict[str, Any]
    is_true: Callable[[dict[str, Any]], bool]
    files: dict[str, str]
    program: str

    def lay_out(self, workspace: Path) -> None:
        for name, text in self.files.items():
            (workspace / name).write_text(text)


def _schematic() -> str:
    """Return a sheet with one chip: its power pin is driven by nothing, and no pin is connected."""
    font = "(effects (font (size 1.27 1.27)))"
    pins = " ".join(
        f'(pin {kind} line (at {x} 0 {turn}) (length 2.54) (name "{name}" {font}) (number "{number + 1}" {font}))'
        for number, kind, name, x, turn in PART
    )
    root, ids = "11111111-0000-4000-8000-000000000000", "22222222-0000-4000-8000-00000000000"
    properties = '(property "Reference" "U1" (at 0 6 0)) (property "Value" "CHIP" (at 0 -6 0))'
    return (
        f'(kicad_sch (version 20250114) (generator "test") (generator_version "9.0") (uuid "{root}") (paper "A4") '
        f'(lib_symbols (symbol "test:CHIP" (in_bom yes) (on_board yes) {properties} (symbol "CHIP_1_1" {pins}))) '
        f'(symbol (lib_id "test:CHIP") (at 101.6 101.6 0) (unit 1) (in_bom yes) (on_board yes) (dnp no) '
        f'(uuid "{ids}0") {properties} (pin "1" (uuid "{ids}1")) (pin "2" (uuid "{ids}2")) '
        f'(instances (project "" (path "/{root}" (reference "U1") (unit 1))))) '
        '(sheet_instances (path "/" (page "1"))))\n'
    )


def _near(value: float, ratio: float = 1e-6) -> Any:
    return pytest.approx(value, rel=ratio)


TRIALS = {
    "spice": Trial(
        "spice.run_simulation",
        {"netlist": "* divider\nV1 in 0 DC 5\nR1 in out 1k\nR2 out 0 3k\n.end\n", "analysis_type": "op"},
        lambda data: data["results"]["v(out)"]["final"] == _near(3.75),
        {}, "ngspice",
    ),
    "cadquery": Trial(
        "cadquery.create_parametric",
        {"shape_type": "cylinder", "parameters": {"radius_mm": 5, "height_mm": 20}, "output_path": "pin.step"},
        lambda data: data["volume_mm3"] == _near(math.pi * 500),
        {}, "CadQuery",
    ),
    "calculix": Trial(
        "calculix.run_fea",
        {"analysis_type": "static_stress", "mesh_file": "bar.inp", "output_path": "bar.frd"},
        lambda data: data["peak"]["von_mises_mpa"] == _near(100, 1e-4),
        {"bar.inp": BAR}, "ccx",
    ),
    "freecad": Trial(
        "freecad.create_parametric",
        {
            "shape_type": "plate", "output_path": "plate.step",
            "parameters": {"width_mm": 50, "length_mm": 30, "thickness_mm": 4},
        },
        lambda data: data["volume_mm3"] == _near(6000),
        {}, "FreeCAD",
    ),
    "kicad": Trial(
        "kicad.run_erc", {"schematic_file": "chip.kicad_sch"},
        lambda data: not data["passed"] and "power_pin_not_driven" in {each["type"] for each in data["violations"]},
        {"chip.kicad_sch": _schematic()}, "KiCad",
    ),
}  # fmt: skip

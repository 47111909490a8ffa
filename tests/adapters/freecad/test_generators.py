"""Common parts in one step, against volumes in closed form."""

from math import pi
from typing import Any

import pytest

pytestmark = pytest.mark.program("freecadcmd")


def test_an_enclosure_is_open_at_the_top(bench: Any) -> None:
    told = bench.data("generate_enclosure", length=50, width=40, height=20, wall_thickness=2)
    assert told["volume_mm3"] == pytest.approx(40000 - 46 * 36 * 18, rel=1e-9)
    assert bench.refused("generate_enclosure", length=5, width=4, height=20)["data"]["kind"] == "shell_too_thick"


def test_a_counterbored_hole_and_a_threaded_boss(bench: Any) -> None:
    body = bench.block(40, 20, 12)
    told = bench.data(
        "fastener_hole", body_id=body, x=10, y=10, diameter=4, counterbore_diameter=8, counterbore_depth=3
    )
    assert told["volume_change_mm3"] == pytest.approx(-pi * (4 * 12 + 12 * 3), rel=1e-7)
    told = bench.data(
        "thread_insert",
        body_id=told["obj_id"],
        x=30,
        y=10,
        boss_diameter=8,
        boss_height=5,
        hole_diameter=4,
        hole_depth=7,
    )
    assert told["volume_change_mm3"] == pytest.approx(pi * (16 * 5 - 4 * 7), rel=1e-7)
    assert bench.refused("fastener_hole", body_id=body, x=1, y=1, diameter=4, counterbore_diameter=8)


def test_a_lattice_counts_its_holes(bench: Any) -> None:
    body = bench.block(40, 20, 3)
    told = bench.data("lattice_perforation", body_id=body, cell_size=5, hole_diameter=3, margin=2)
    assert told["cell_count"] == 7 * 3
    assert told["volume_change_mm3"] == pytest.approx(-21 * 2.25 * pi * 3, rel=1e-7)
    assert bench.refused("lattice_perforation", body_id=body, cell_size=5, hole_diameter=6)
    assert bench.refused("lattice_perforation", body_id=body, cell_size=9, hole_diameter=8, margin=9)


@pytest.mark.parametrize("teeth", [12, 20, 60])
def test_a_gear_has_its_diameters_and_fills_half_of_its_teeth(bench: Any, teeth: int) -> None:
    told = bench.data("generate_gear", module=2, teeth=teeth, thickness=5)
    assert told["pitch_diameter_mm"] == 2 * teeth
    assert told["addendum_diameter_mm"] == 2 * teeth + 4
    size = told["bounding_box_mm"]["size_mm"]
    assert size[0] == pytest.approx(2 * teeth + 4, rel=0.02)
    assert size[2] == 5
    low, high = pi * (teeth - 2.5) ** 2 * 5, pi * (teeth + 2) ** 2 * 5
    assert low < told["volume_mm3"] < high
    assert told["volume_mm3"] == pytest.approx(pi * teeth**2 * 5, rel=0.06), "tooth and gap balance at the pitch circle"


def test_profiles_are_turned_and_extruded(bench: Any) -> None:
    outline = [[5, 0], [9, 0], [9, 4], [5, 4]]
    told = bench.data("generate_profile_part", profile=outline)
    assert told["volume_mm3"] == pytest.approx(4 * pi * (81 - 25), rel=1e-9)
    assert told["bounding_box_mm"]["size_mm"] == pytest.approx([18, 18, 4], abs=1e-5)
    told = bench.data("generate_profile_part", profile=outline, operation="extrude", depth=10)
    assert told["volume_mm3"] == pytest.approx(160, rel=1e-9)
    assert bench.refused("generate_profile_part", profile=outline, operation="extrude")
    crossing = [[-1, 0], [9, 0], [9, 4]]
    assert bench.refused("generate_profile_part", profile=crossing)["data"]["kind"] == "crosses_axis"


@pytest.mark.parametrize(("kind", "leads"), [("soic", 8), ("qfp", 32), ("qfn", 32), ("sot23", 6)])
def test_a_package_is_its_body_and_its_leads(bench: Any, kind: str, leads: int) -> None:
    told = bench.data("generate_ic_package", package_type=kind)
    assert told["part_count"] == leads + 1
    assert told["solids_count"] == leads + 1
    assert told["bounding_box_mm"]["min_mm"][2] == 0
    wrong = bench.refused("generate_ic_package", package_type=kind, params={"lead_count": 7, "colour": 1})
    assert set(wrong["data"]["fields"]) == {"params.lead_count", "params.colour"}

"""Enclosures: sizes, free volume, bosses and cutouts against arithmetic."""

import math
from typing import Any

import pytest

pytestmark = pytest.mark.program("cadquery")

BOARD = {"pcb_length_mm": 80, "pcb_width_mm": 50, "pcb_thickness_mm": 1.6, "component_max_height_mm": 10}


def opening(side: str, center: float, width: float, height: float) -> dict[str, Any]:
    return {"connector_cutouts": [{"side": side, "center_mm": center, "width_mm": width, "height_mm": height}]}


def test_the_box_is_the_board_plus_gap_wall_standoff_and_lid(bench: Any) -> None:
    made = bench.data(
        "generate_enclosure", **BOARD, wall_thickness_mm=2, clearance_mm=1, standoff_height_mm=4, lid_lip_mm=2
    )
    inside = [82, 52, 4 + 1.6 + 10 + 2]
    assert made["internal_dimensions_mm"] == pytest.approx(inside)
    assert made["external_dimensions_mm"] == pytest.approx([86, 56, inside[2] + 4])
    lip = 2 * (81.6 * 51.6 - 77.6 * 47.6)
    assert made["internal_volume_mm3"] == pytest.approx(82 * 52 * inside[2] - lip, rel=1e-9)
    assert [part["name"] for part in made["parts"]] == ["body", "lid"]
    assert made["mounting_info"]["board_underside_z_mm"] == 6


def test_documented_names_without_unit_mean_millimetres(bench: Any) -> None:
    plain = bench.data("generate_enclosure", pcb_length=80, pcb_width=50, wall_thickness=3)
    named = bench.data("generate_enclosure", pcb_length_mm=80, pcb_width_mm=50, wall_thickness_mm=3)
    assert plain["external_dimensions_mm"] == named["external_dimensions_mm"]


def test_bosses_stand_under_the_holes_of_the_board(bench: Any) -> None:
    holes = [{"x_mm": 4, "y_mm": 4}, {"x_mm": 76, "y_mm": 46}]
    bare = bench.data("generate_enclosure", **BOARD)
    made = bench.data("generate_enclosure", **BOARD, mounting_holes=holes)
    boss = math.pi / 4 * (5.5**2 - 2.5**2) * 4
    assert made["volume_mm3"] - bare["volume_mm3"] == pytest.approx(2 * boss, rel=1e-6)
    assert bare["internal_volume_mm3"] - made["internal_volume_mm3"] == pytest.approx(2 * boss, rel=1e-6)
    bosses = made["mounting_info"]["bosses"]
    assert [(b["x_mm"], b["y_mm"]) for b in bosses] == [(-36, -21), (36, 21)]
    faces = bench.data("get_properties", input_file=made["cad_file"], properties=["faces"])["properties"]["faces"]
    pilots = {(round(f["centroid_mm"][0]), round(f["centroid_mm"][1])) for f in faces if f.get("radius_mm") == 1.25}
    assert pilots == {(-36, -21), (36, 21)}


@pytest.mark.parametrize(("side", "centre"), [("front", 40), ("back", 40), ("left", 25), ("right", 25)])
def test_a_cutout_opens_its_wall_and_no_other(bench: Any, side: str, centre: float) -> None:
    bare = bench.data("generate_enclosure", **BOARD, output_path="bare.step")
    cutout = {"side": side, "center_mm": centre, "width_mm": 9, "height_mm": 4, "z_mm": 1}
    made = bench.data("generate_enclosure", **BOARD, connector_cutouts=[cutout], output_path="open.step")
    assert bare["volume_mm3"] - made["volume_mm3"] == pytest.approx(9 * 4 * 2)
    bench.call(
        "boolean_operation",
        input_file_a="bare.step",
        input_file_b="open.step",
        operation="subtract",
        output_path="gone.step",
    )
    gone = bench.data("get_properties", input_file="gone.step")["properties"]
    x, y, z = gone["center_of_mass_mm"]
    wall = {"front": (0, -27), "back": (0, 27), "left": (-42, 0), "right": (42, 0)}[side]
    assert (x, y) == pytest.approx(wall, abs=1e-6)
    assert z == pytest.approx(2 + 4 + 1.6 + 1 + 2)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (opening("front", 79, 9, 3), "between 3.5 and 76.5 mm"),
        (opening("left", 25, 60, 3), "wider than the wall inside, 52 mm"),
        (opening("left", 25, 6, 30), "leaves the wall"),
        ({"mounting_holes": [{"x_mm": 90, "y_mm": 4}]}, "between 1.6 and 78.4 mm"),
        ({"corner_radius_mm": 12}, "the largest is 5.414 mm at a clearance of 1 mm"),
        ({"mounting_holes": [{"x_mm": 9, "y_mm": 4}], "standoff_height_mm": 0}, "above 0 mm"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_the_limit(bench: Any, arguments: dict[str, Any], said: str) -> None:
    error = bench.refused("generate_enclosure", **BOARD, **arguments)
    assert error["code"] == -32602
    assert said in error["message"]


def test_a_missing_board_size_is_named(bench: Any) -> None:
    error = bench.refused("generate_enclosure", pcb_length_mm=80)
    assert error["data"]["fields"] == {"pcb_width_mm": "is required, in mm"}

"""Parametric shapes against closed forms, and what is said when values do not fit."""

import math
from typing import Any

import pytest

pytestmark = pytest.mark.program("cadquery")

CLOSED_FORMS = [
    ("box", {"width_mm": 50, "length_mm": 30, "height_mm": 10}, 15000, 4600, (50, 30, 10)),
    ("cylinder", {"radius_mm": 5, "height_mm": 20}, math.pi * 500, math.pi * 250, (10, 10, 20)),
    ("sphere", {"radius_mm": 5}, 4 / 3 * math.pi * 125, 4 * math.pi * 25, (10, 10, 10)),
    (
        "cone", {"bottom_radius_mm": 6, "top_radius_mm": 3, "height_mm": 4},
        math.pi * 4 / 3 * (36 + 18 + 9), math.pi * (36 + 9 + 9 * 5), (12, 12, 4),
    ),
    (
        "bracket", {"width_mm": 60, "length_mm": 40, "height_mm": 50, "thickness_mm": 6},
        40 * 6 * (60 + 44), 2 * 6 * (60 + 44) + 40 * 2 * (60 + 50), (60, 40, 50),
    ),
    (
        "plate",
        {"width_mm": 100, "length_mm": 50, "thickness_mm": 5, "corner_radius_mm": 10,
         "holes": [{"x_mm": 40, "y_mm": 0, "diameter_mm": 8}]},
        5 * (5000 - (4 - math.pi) * 100 - math.pi * 16), None, (100, 50, 5),
    ),
    (
        "enclosure", {"width_mm": 80, "length_mm": 60, "height_mm": 30, "wall_mm": 2},
        80 * 60 * 30 - 76 * 56 * 26, None, (80, 60, 30),
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "parameters", "volume", "area", "size"), CLOSED_FORMS, ids=[c[0] for c in CLOSED_FORMS]
)
def test_a_shape_has_the_volume_area_and_size_of_its_closed_form(
    bench: Any, shape: str, parameters: dict[str, Any], volume: float, area: float | None, size: tuple[float, ...]
) -> None:
    made = bench.shape(shape, "part.step", **parameters)
    assert made["volume_mm3"] == pytest.approx(volume, rel=1e-9)
    if area is not None:
        assert made["surface_area_mm2"] == pytest.approx(area, rel=1e-9)
    assert made["bounding_box_mm"]["size_mm"] == pytest.approx(size, abs=1e-5)
    lowest = -size[2] / 2 if shape == "sphere" else 0
    assert made["bounding_box_mm"]["min_mm"] == pytest.approx([-size[0] / 2, -size[1] / 2, lowest], abs=1e-5)


def test_names_without_unit_are_millimetres_and_come_back_with_it(bench: Any) -> None:
    made = bench.shape("box", "out/bracket.step", width=50, length=30, height=10)
    assert made["parameters_used"] == {"width_mm": 50, "length_mm": 30, "height_mm": 10, "fillet_radius_mm": 0}
    assert made["bounding_box_mm"]["size_mm"] == [50, 30, 10]
    assert made["cad_file"] == "out/bracket.step"
    assert (bench.workspace / "out/bracket.step").is_file()


def test_a_diameter_is_twice_a_radius(bench: Any) -> None:
    assert bench.shape("cylinder", "c.step", diameter=10, height=20)["parameters_used"]["radius_mm"] == 5


def test_a_material_gives_the_mass(bench: Any) -> None:
    made = bench.data(
        "create_parametric", shape_type="box", parameters={"width": 100, "length": 100, "height": 100},
        output_path="b.step", material="steel-316",
    )  # fmt: skip
    assert made["mass_kg"] == pytest.approx(8.0)
    assert made["density_kg_m3"] == 8000


def test_the_same_call_twice_writes_the_same_bytes(bench: Any) -> None:
    bench.shape("enclosure", "a.step", width=40, length=30, height=20)
    first = (bench.workspace / "a.step").read_bytes()
    bench.shape("box", "other.step", width=1, length=1, height=1)
    bench.shape("enclosure", "a.step", width=40, length=30, height=20)
    assert (bench.workspace / "a.step").read_bytes() == first
    assert b"1970-01-01T00:00:00" in first


def test_every_wrong_value_is_named_at_once(bench: Any) -> None:
    error = bench.refused(
        "create_parametric", shape_type="box", parameters={"width": -5, "lenght": 3}, output_path="b.step"
    )
    assert error["code"] == -32602
    fields = error["data"]["fields"]
    assert fields["parameters.width_mm"] == "-5 is not allowed, it must be greater than 0 mm"
    assert "did you mean length_mm?" in fields["parameters.lenght"]
    assert fields["parameters.height_mm"] == "is required"
    assert not (bench.workspace / "b.step").exists()


@pytest.mark.parametrize(
    ("shape", "parameters", "said"),
    [
        ("box", {"width": 10, "length": 20, "height": 5, "fillet_radius_mm": 5}, "below 5 mm"),
        ("bracket", {"width": 20, "length": 20, "height": 30, "thickness": 20}, "below width_mm, which is 20 mm"),
        ("bracket", {"width": 20, "length": 20, "height": 30, "thickness": 5, "fillet_radius": 15}, "below 15 mm"),
        ("plate", {"width": 20, "length": 10, "thickness": 2, "corner_radius": 6}, "the largest is 5 mm"),
        ("plate", {"width": 20, "length": 10, "thickness": 2, "holes": [{"x": 9, "y": 0, "diameter": 4}]}, "-8 and 8"),
        ("enclosure", {"width": 20, "length": 10, "height": 9, "wall": 5}, "below 5 mm"),
        ("enclosure", {"width": 20, "length": 20, "height": 9, "wall": 4.5}, "below 4.5 mm"),
        ("cone", {"radius1": 0, "radius2": 0, "height": 9}, "above 0 mm"),
        ("sphere", {"radius": "wide"}, "'wide' is not allowed"),
    ],
)  # fmt: skip
def test_values_that_do_not_fit_each_other_are_refused_with_the_limit(
    bench: Any, shape: str, parameters: dict[str, Any], said: str
) -> None:
    error = bench.refused("create_parametric", shape_type=shape, parameters=parameters, output_path="p.step")
    assert error["code"] == -32602
    assert said in error["message"]


def test_holes_that_run_into_each_other_are_refused_with_the_distance(bench: Any) -> None:
    holes = [{"x": 0, "y": 0, "diameter": 6}, {"x": 5, "y": 0, "diameter": 6}]
    error = bench.refused(
        "create_parametric", shape_type="plate", output_path="p.step",
        parameters={"width": 50, "length": 50, "thickness": 2, "holes": holes},
    )  # fmt: skip
    assert "5 mm apart, more than 6 mm are needed" in error["message"]


def test_a_full_round_plate_is_made(bench: Any) -> None:
    made = bench.shape("plate", "p.step", width=40, length=20, thickness=2, corner_radius=10)
    assert made["volume_mm3"] == pytest.approx(2 * (800 - (4 - math.pi) * 100), rel=1e-5)


def test_a_bracket_has_its_inner_corner_filled_and_its_holes_drilled(bench: Any) -> None:
    made = bench.shape(
        "bracket", "b.step", width=60, length=40, height=50, thickness=6, fillet_radius=5,
        base_holes=[{"x": 15, "y": 10, "diameter": 6}], wall_holes=[{"y": 0, "z": 30, "diameter": 8}],
    )  # fmt: skip
    corner, holes = 25 * (1 - math.pi / 4) * 40, math.pi * 6 * (9 + 16)
    assert made["volume_mm3"] == pytest.approx(40 * 6 * 104 + corner - holes, rel=1e-9)


def test_an_output_that_is_not_step_is_refused_with_the_tool_that_writes_it(bench: Any) -> None:
    error = bench.refused("create_parametric", shape_type="sphere", parameters={"radius": 5}, output_path="ball.stl")
    assert "cadquery.export_geometry" in error["message"]

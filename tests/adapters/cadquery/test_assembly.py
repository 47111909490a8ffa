"""Assemblies: constraints solved, what is left of them, and interference found by boolean operation."""

import math
from typing import Any

import pytest

pytestmark = pytest.mark.program("cadquery")


@pytest.fixture
def parts(bench: Any) -> Any:
    bench.shape("box", "base.step", width=50, length=30, height=10)
    bench.shape("cylinder", "pin.step", radius=5, height=20)
    return bench


def two(**pin: Any) -> list[dict[str, Any]]:
    return [{"name": "base", "file": "base.step", "colour": "#808080"}, {"name": "pin", "file": "pin.step", **pin}]


def between(kind: str, base: str, pin: str, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "part_a": "base", "feature_a": base, "part_b": "pin", "feature_b": pin, **more}


def test_parts_that_overlap_are_named_with_the_volume(parts: Any) -> None:
    made = parts.call("create_assembly", parts=two(position_mm=[0, 0, 5]))
    assert made["data"]["interference_check_passed"] is False
    assert made["data"]["interferences"] == [
        {"part_a": "base", "part_b": "pin", "volume_mm3": pytest.approx(math.pi * 25 * 5)}
    ]
    assert any("base and pin overlap" in warning for warning in made["warnings"])


@pytest.mark.parametrize("height", [10, 10.5])
def test_parts_that_touch_or_stand_apart_do_not_interfere(parts: Any, height: float) -> None:
    made = parts.data("create_assembly", parts=two(position_mm=[0, 0, height]), output_path="a.step")
    assert made["interference_check_passed"] is True
    assert made["pairs_checked_count"] == 1
    assert made["total_volume_mm3"] == pytest.approx(15000 + math.pi * 500)
    assert made["part_count"] == 2


def test_a_plane_constraint_puts_one_face_on_the_other(parts: Any) -> None:
    made = parts.data(
        "create_assembly", parts=two(position_mm=[30, 4, 50], rotation_deg=[30, 20, 0]),
        constraints=[
            {"kind": "fixed", "part_a": "base"},
            between("plane", "top", "bottom"),
        ],
    )  # fmt: skip
    assert made["bounding_box_mm"]["max_mm"][2] == pytest.approx(30, abs=1e-4)
    assert made["largest_residual_mm"] < 1e-4
    assert made["largest_residual_deg"] < 1e-3
    assert made["interference_check_passed"] is True
    pin = next(place for place in made["placements"] if place["name"] == "pin")
    assert pin["position_mm"] == pytest.approx([0, 0, 10], abs=1e-4)


def test_distances_and_angles_are_held(parts: Any) -> None:
    made = parts.data(
        "create_assembly", parts=two(position_mm=[3, 2, 20]),
        constraints=[
            {"kind": "fixed", "part_a": "base"},
            between("point", "top", "bottom", distance_mm=7),
            between("axis", "faces@>X", "top", angle_deg=90),
        ],
    )  # fmt: skip
    pin = next(place for place in made["placements"] if place["name"] == "pin")
    assert math.dist(pin["position_mm"], (0, 0, 10)) == pytest.approx(7, abs=1e-2)


def test_constraints_that_contradict_each_other_are_an_error_with_what_is_left(parts: Any) -> None:
    error = parts.refused(
        "create_assembly", parts=two(), output_path="a.step",
        constraints=[
            {"kind": "fixed", "part_a": "base"},
            between("plane", "top", "bottom"),
            between("point", "bottom", "bottom"),
        ],
    )  # fmt: skip
    assert error["data"]["kind"] == "constraints_conflict"
    assert "plane base.top - pin.bottom: 5 mm" in error["message"]
    assert not (parts.workspace / "a.step").exists()


def test_names_and_colours_reach_the_file(parts: Any) -> None:
    parts.call("create_assembly", parts=two(colour=[0.1, 0.3, 0.9], position_mm=[0, 0, 10]), output_path="a.step")
    found = parts.data("get_properties", input_file="a.step", properties=["parts"])["properties"]["parts"]
    assert [part["name"] for part in found] == ["base", "pin"]
    assert found[1]["colour_srgb"] == pytest.approx([0.1, 0.3, 0.9], abs=1e-6)


def test_one_file_may_be_used_many_times(parts: Any) -> None:
    many = [{"name": f"pin{n}", "file": "pin.step", "position_mm": [20 * n, 0, 0]} for n in range(5)]
    made = parts.data("create_assembly", parts=many)
    assert made["pairs_checked_count"] == 10
    assert made["total_volume_mm3"] == pytest.approx(5 * math.pi * 500)


@pytest.mark.parametrize(
    ("constraint", "said"),
    [
        ({"kind": "fixed", "part_a": "bse"}, "no part is called 'bse'; there are: base, pin"),
        (between("plane", "face_9", "top"), "base has face_1 to face_6, not face_9"),
        (between("plane", "edges@|Z", "top"), "matches 4 of base; exactly one is needed"),
        ({"kind": "plane", "part_a": "base", "feature_a": "lid", "part_b": "pin"}, "neither a side, face_N"),
        (between("plane", "faces@>>>", "top"), "is not a CadQuery selector"),
        (between("plane", "faces@>Z[7]", "top"), "is not a CadQuery selector"),
        ({"kind": "point", "part_a": "base", "part_b": "base"}, "must be another part"),
        (between("plane", "top", "right"), "0 flat faces"),
    ],
)
def test_a_feature_that_is_not_there_is_told_with_what_is(parts: Any, constraint: dict[str, Any], said: str) -> None:
    error = parts.refused("create_assembly", parts=two(), constraints=[constraint])
    assert error["code"] == -32602
    assert said in error["message"]


def test_a_name_used_twice_and_an_unknown_colour_are_refused(parts: Any) -> None:
    assert "used twice" in parts.refused("create_assembly", parts=[*two(), *two()])["message"]
    assert "'#rrggbb'" in parts.refused("create_assembly", parts=two(colour="mauvish"))["message"]

"""Boolean operations against set algebra."""

import math
from typing import Any

import pytest

pytestmark = pytest.mark.program("cadquery")

PIN = math.pi * 25


@pytest.fixture
def two(bench: Any) -> Any:
    bench.shape("box", "block.step", width=50, length=30, height=10)
    bench.shape("cylinder", "pin.step", radius=5, height=20)
    return bench


@pytest.mark.parametrize(
    ("operation", "volume"),
    [("union", 15000 + 10 * PIN), ("subtract", 15000 - 10 * PIN), ("intersect", 10 * PIN)],
)
def test_the_volume_is_what_set_algebra_gives(two: Any, operation: str, volume: float) -> None:
    made = two.data("boolean_operation", input_file_a="block.step", input_file_b="pin.step", operation=operation)
    assert made["result_volume_mm3"] == pytest.approx(volume, rel=1e-9)
    assert made["solids_count"] == 1
    assert (two.workspace / made["output_file"]).is_file()


def test_a_cut_that_leaves_nothing_is_an_error_in_words(two: Any) -> None:
    two.shape("box", "large.step", width=99, length=99, height=99)
    error = two.refused(
        "boolean_operation", input_file_a="block.step", input_file_b="large.step", operation="subtract",
        output_path="gone.step",
    )  # fmt: skip
    assert "result is empty: the cut removed all material" in error["message"]
    assert error["data"]["kind"] == "empty_result"
    assert not (two.workspace / "gone.step").exists()


def test_an_intersection_of_parts_apart_tells_the_distance(two: Any) -> None:
    two.call(
        "execute_script", script="result = cq.Workplane().box(2, 2, 2).translate((100, 0, 5))", output_path="far.step"
    )
    error = two.refused("boolean_operation", input_file_a="block.step", input_file_b="far.step", operation="intersect")
    assert "distance 74 mm" in error["message"]


def test_a_union_of_parts_apart_warns_with_the_gap(two: Any) -> None:
    two.call(
        "execute_script", script="result = cq.Workplane().box(2, 2, 2).translate((26.5, 0, 5))", output_path="far.step"
    )
    made = two.call("boolean_operation", input_file_a="block.step", input_file_b="far.step", operation="union")
    assert made["data"]["solids_count"] == 2
    assert made["warnings"] == ["union: solids_count=2, expected 1; gap 0.5 mm"]


def test_a_tool_that_misses_the_part_is_said(two: Any) -> None:
    two.call(
        "execute_script", script="result = cq.Workplane().box(2, 2, 2).translate((99, 0, 5))", output_path="far.step"
    )
    made = two.call("boolean_operation", input_file_a="block.step", input_file_b="far.step", operation="subtract")
    assert any("volume did not change" in warning for warning in made["warnings"])


def test_the_part_keeps_its_colour(two: Any) -> None:
    two.call(
        "execute_script", output_path="red.step",
        script="result = cq.Assembly().add(cq.Workplane().box(9, 9, 9), name='cube', color=cq.Color(0.8, 0.1, 0.1))",
    )  # fmt: skip
    two.call(
        "boolean_operation",
        input_file_a="red.step",
        input_file_b="pin.step",
        operation="subtract",
        output_path="cut.step",
    )
    found = two.data("get_properties", input_file="cut.step", properties=["parts"])
    assert found["properties"]["parts"][0]["colour_srgb"] == pytest.approx([0.8, 0.1, 0.1], abs=1e-6)

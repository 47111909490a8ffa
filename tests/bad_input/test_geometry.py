"""Geometry that cannot be: refused in the designer's words, with the number that would work."""

import re
from typing import Any

import pytest

pytestmark = pytest.mark.program("cadquery")


def test_a_fillet_too_large_names_the_largest_that_fits(server: Any) -> None:
    script = "result = cq.Workplane('XY').box(10, 10, 10).edges().fillet(6)"
    text = server.refusal("cadquery.execute_script", script=script)
    assert "6" in text
    numbers = [float(number) for number in re.findall(r"\d+\.\d+", text)]
    # All edges of a 10 mm cube can be rounded by anything below 5 mm.
    assert any(4.5 <= number < 5 for number in numbers), text


def test_a_fillet_too_large_in_a_parametric_shape_names_the_limit_too(server: Any) -> None:
    parameters = {"width_mm": 10, "length_mm": 10, "height_mm": 10, "fillet_radius_mm": 6}
    text = server.refusal(
        "cadquery.create_parametric", shape_type="box", parameters=parameters, output_path="out/round.step"
    )
    assert "6" in text
    assert re.search(r"\b(4\.\d+|5)\b", text), text


def test_parts_that_do_not_meet_have_no_intersection(server: Any, cube: str) -> None:
    script = "result = cq.Workplane('XY').box(10, 10, 10).translate((100, 0, 0))"
    moved = server.call("cadquery.execute_script", script=script, output_path="parts/far.step")
    assert not moved.refused, moved.text
    text = server.refusal(
        "cadquery.boolean_operation", input_file_a=cube, input_file_b="parts/far.step", operation="intersect"
    )
    assert re.search("empty|nothing|no solid|do not", text, re.IGNORECASE), text


def test_a_script_that_leaves_no_part_is_told_how_to_leave_one(server: Any) -> None:
    text = server.refusal("cadquery.execute_script", script="part = cq.Workplane('XY').box(1, 1, 1)")
    assert "result" in text


def test_a_truncated_step_file_is_called_what_it_is(server: Any, cube: str) -> None:
    whole = (server.workspace / cube).read_bytes()
    (server.workspace / "half.step").write_bytes(whole[: len(whole) // 2])
    text = server.refusal("cadquery.get_properties", input_file="half.step")
    assert "half.step" in text
    assert re.search("truncated|incomplete|ends|END", text), text


def test_a_file_that_is_no_step_file_is_called_what_it_is(server: Any) -> None:
    (server.workspace / "not.step").write_text("solid nothing\nendsolid nothing\n")
    text = server.refusal("cadquery.get_properties", input_file="not.step")
    assert "not.step" in text
    assert "STEP" in text

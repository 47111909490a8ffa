"""Features of a body, against volumes in closed form."""

from math import cos, pi, sin, sqrt
from typing import Any

import pytest

pytestmark = pytest.mark.program("freecadcmd")


def test_a_pad_tells_volume_area_box_and_faces(bench: Any) -> None:
    bench.block(40, 20, 12)
    told = bench.data("measure", obj_id="Block")
    assert told["volume_mm3"] == pytest.approx(40 * 20 * 12, rel=1e-9)
    assert told["surface_area_mm2"] == pytest.approx(2 * (800 + 480 + 240), rel=1e-9)
    assert told["bounding_box_mm"]["size_mm"] == [40, 20, 12]
    assert told["center_of_mass_mm"] == [20, 10, 6]
    assert told["is_valid"] is True
    assert (told["faces_count"], told["edges_count"], told["solids_count"]) == (6, 12, 1)


def test_inner_outlines_of_a_sketch_are_holes(bench: Any) -> None:
    body = bench.data("create_body", name="Plate")["obj_id"]
    sketch = bench.data(
        "create_sketch", body_id=body,
        elements=[
            {"type": "rectangle", "corner_mm": [-20, -10], "width_mm": 40, "height_mm": 20},
            {"type": "circle", "center_mm": [5, 0], "radius_mm": 3},
        ],
    )  # fmt: skip
    assert sketch["area_mm2"] == pytest.approx(800 - 9 * pi, rel=1e-8)
    padded = bench.data("pad_sketch", body_id=body, sketch_id=sketch["obj_id"], length_mm=5)
    assert padded["volume_mm3"] == pytest.approx(5 * (800 - 9 * pi), rel=1e-8)
    assert padded["faces_count"] == 7


def test_the_sketch_of_each_plane_pads_along_the_normal_it_tells(bench: Any) -> None:
    for plane, axis, sign in (("XY", 2, 1), ("XZ", 1, -1), ("YZ", 0, 1)):
        body = bench.data("create_body", name=f"On{plane}")["obj_id"]
        rectangle = {"type": "rectangle", "corner_mm": [1, 1], "width_mm": 2, "height_mm": 3}
        sketch = bench.data("create_sketch", body_id=body, plane=plane, offset_mm=10, elements=[rectangle])
        normal = [0.0, 0.0, 0.0]
        normal[axis] = float(sign)
        assert sketch["normal"] == normal
        box = bench.data("pad_sketch", body_id=body, sketch_id=sketch["obj_id"], length_mm=4)["bounding_box_mm"]
        ends = sorted((10 * sign, 14 * sign))
        assert [box["min_mm"][axis], box["max_mm"][axis]] == ends


def test_a_reversed_and_a_midplane_pad_go_the_other_way_and_both_ways(bench: Any) -> None:
    body = bench.data("create_body")["obj_id"]
    sketch = bench.sketch(body, {"type": "circle", "center_mm": [0, 0], "radius_mm": 2})
    box = bench.data("pad_sketch", body_id=body, sketch_id=sketch, length_mm=6, reversed=True)["bounding_box_mm"]
    assert (box["min_mm"][2], box["max_mm"][2]) == (-6, 0)
    other = bench.data("create_body")["obj_id"]
    sketch = bench.sketch(other, {"type": "circle", "center_mm": [0, 0], "radius_mm": 2})
    box = bench.data("pad_sketch", body_id=other, sketch_id=sketch, length_mm=6, midplane=True)["bounding_box_mm"]
    assert (box["min_mm"][2], box["max_mm"][2]) == (-3, 3)


def test_a_pocket_cuts_what_its_sketch_and_depth_say(bench: Any) -> None:
    body = bench.block(40, 20, 12)
    sketch = bench.sketch(body, {"type": "circle", "center_mm": [20, 10], "radius_mm": 4}, offset_mm=12)
    told = bench.data("pocket_sketch", body_id=body, sketch_id=sketch, depth_mm=5)
    assert told["volume_change_mm3"] == pytest.approx(-5 * 16 * pi, rel=1e-8)
    assert told["faces_change_count"] == 2
    through = bench.sketch(body, {"type": "circle", "center_mm": [8, 10], "radius_mm": 2}, offset_mm=12)
    told = bench.data("pocket_sketch", body_id=body, sketch_id=through, through_all=True)
    assert told["volume_change_mm3"] == pytest.approx(-12 * 4 * pi, rel=1e-8)


def test_a_pocket_that_goes_away_from_the_solid_is_refused_with_the_way_out(bench: Any) -> None:
    body = bench.block()
    sketch = bench.sketch(body, {"type": "circle", "center_mm": [20, 10], "radius_mm": 4})
    fault = bench.refused("pocket_sketch", body_id=body, sketch_id=sketch, depth_mm=5)
    assert "reversed: true" in fault["data"]["fix"]
    assert bench.data("measure", obj_id=body)["volume_mm3"] == pytest.approx(9600, rel=1e-9)
    assert bench.data("pocket_sketch", body_id=body, sketch_id=sketch, depth_mm=5, reversed=True)["is_valid"]


def test_a_revolved_profile_has_the_volume_of_pappus(bench: Any) -> None:
    body = bench.data("create_body")["obj_id"]
    sketch = bench.sketch(body, {"type": "rectangle", "corner_mm": [10, 0], "width_mm": 4, "height_mm": 6}, plane="XZ")
    told = bench.data("revolve_sketch", body_id=body, sketch_id=sketch, angle_deg=270)
    assert told["volume_mm3"] == pytest.approx(24 * 2 * pi * 12 * 0.75, rel=1e-8)


def test_a_loft_between_squares_is_a_frustum(bench: Any) -> None:
    body = bench.data("create_body")["obj_id"]
    low = bench.sketch(body, {"type": "rectangle", "corner_mm": [-10, -10], "width_mm": 20, "height_mm": 20})
    high = bench.sketch(
        body, {"type": "rectangle", "corner_mm": [-5, -5], "width_mm": 10, "height_mm": 10}, offset_mm=30
    )
    told = bench.data("loft_sketches", body_id=body, profile_id=low, section_ids=[high])
    assert told["volume_mm3"] == pytest.approx(30 / 3 * (400 + 100 + 200), rel=1e-6)


def test_a_sweep_along_a_line_is_a_cylinder(bench: Any) -> None:
    body = bench.data("create_body")["obj_id"]
    profile = bench.sketch(body, {"type": "circle", "center_mm": [0, 0], "radius_mm": 3})
    path = bench.data(
        "create_sketch", body_id=body, plane="XZ",
        elements=[{"type": "line", "start_mm": [0, 0], "end_mm": [0, 25]}],
    )  # fmt: skip
    assert path["is_closed"] is False
    told = bench.data("sweep_sketch", body_id=body, profile_id=profile, path_id=path["obj_id"])
    assert told["volume_mm3"] == pytest.approx(25 * 9 * pi, rel=1e-6)


def test_a_fillet_of_upright_edges_takes_what_the_corner_leaves(bench: Any) -> None:
    body = bench.block(40, 20, 12)
    told = bench.data("fillet", obj_id=body, radius_mm=3, edges=["|z"])
    assert told["volume_change_mm3"] == pytest.approx(-(4 - pi) * 9 * 12, rel=1e-6)
    assert len(told["edges"]) == 4
    assert told["bounding_box_mm"]["size_mm"] == [40, 20, 12]


def test_a_chamfer_of_the_top_takes_prisms(bench: Any) -> None:
    bench.data("create_primitive", kind="box", name="Box", parameters={"length": 30, "width": 20, "height": 10})
    told = bench.data("chamfer", obj_id="Box", distance_mm=2, edges=[">z"])
    # Prisms of 2 mm2 along 100 mm, less what overlaps at four mitred corners.
    assert told["volume_change_mm3"] == pytest.approx(-(2 * 100 - 4 * 8 / 3), rel=1e-6)


@pytest.mark.parametrize(("tool", "word"), [("fillet", "radius_mm"), ("chamfer", "distance_mm")])
def test_too_large_a_blend_is_refused_with_the_largest_that_works(bench: Any, tool: str, word: str) -> None:
    bench.data("create_primitive", kind="box", name="Cube", parameters={"length": 10, "width": 10, "height": 10})
    fault = bench.refused(tool, obj_id="Cube", **{word: 6.0})
    assert fault["data"]["kind"] == f"{tool}_too_large"
    largest = float(fault["data"]["fix"].split(f"{word} ")[1].split()[0])
    assert 4.9 < largest < 5.0
    assert [each["obj_id"] for each in bench.data("describe_session")["objects"]] == ["Cube"]
    assert bench.data(tool, obj_id="Cube", **{word: largest})["is_valid"]


def test_a_shell_leaves_a_wall_and_an_open_top(bench: Any) -> None:
    body = bench.block(40, 20, 12)
    told = bench.data("shell_solid", body_id=body, thickness_mm=2)
    assert told["volume_mm3"] == pytest.approx(40 * 20 * 12 - 36 * 16 * 10, rel=1e-9)
    assert told["bounding_box_mm"]["size_mm"] == [40, 20, 12]
    fault = bench.refused("shell_solid", body_id=bench.block(40, 20, 12), thickness_mm=11)
    assert fault["data"]["kind"] in ("shell_too_thick", "not_computable", "invalid_solid")


def test_patterns_and_mirrors_repeat_a_feature(bench: Any) -> None:
    body = bench.block(60, 20, 10)
    sketch = bench.sketch(body, {"type": "circle", "center_mm": [10, 10], "radius_mm": 2}, offset_mm=10)
    pocket = bench.data("pocket_sketch", body_id=body, sketch_id=sketch, through_all=True)["obj_id"]
    hole = 10 * 4 * pi
    told = bench.data("linear_pattern", body_id=body, feature_id=pocket, count=4, spacing_mm=12)
    assert told["volume_mm3"] == pytest.approx(12000 - 4 * hole, rel=1e-8)
    disc = bench.data("create_body", name="Disc")["obj_id"]
    outline = bench.sketch(disc, {"type": "circle", "center_mm": [0, 0], "radius_mm": 20})
    bench.data("pad_sketch", body_id=disc, sketch_id=outline, length_mm=5)
    sketch = bench.sketch(disc, {"type": "circle", "center_mm": [14, 0], "radius_mm": 2}, offset_mm=5)
    pocket = bench.data("pocket_sketch", body_id=disc, sketch_id=sketch, through_all=True)["obj_id"]
    told = bench.data("polar_pattern", body_id=disc, feature_id=pocket, count=6)
    assert told["volume_mm3"] == pytest.approx(5 * pi * (400 - 6 * 4), rel=1e-8)
    one = bench.data("create_body", name="One")["obj_id"]
    outline = bench.sketch(one, {"type": "rectangle", "corner_mm": [-10, -5], "width_mm": 20, "height_mm": 10})
    bench.data("pad_sketch", body_id=one, sketch_id=outline, length_mm=5)
    sketch = bench.sketch(one, {"type": "circle", "center_mm": [6, 0], "radius_mm": 1}, offset_mm=5)
    pocket = bench.data("pocket_sketch", body_id=one, sketch_id=sketch, through_all=True)["obj_id"]
    told = bench.data("mirror_feature", body_id=one, feature_id=pocket, plane="YZ")
    assert told["volume_mm3"] == pytest.approx(1000 - 2 * 5 * pi, rel=1e-8)


def test_a_hexagon_of_lines_closes_and_an_open_outline_is_refused(bench: Any) -> None:
    body = bench.data("create_body")["obj_id"]
    corners = [[10 * cos(k * pi / 3), 10 * sin(k * pi / 3)] for k in range(6)]
    sketch = bench.sketch(body, {"type": "polyline", "points_mm": corners})
    told = bench.data("pad_sketch", body_id=body, sketch_id=sketch, length=2)
    assert told["volume_mm3"] == pytest.approx(2 * 1.5 * sqrt(3) * 100, rel=1e-8)
    other = bench.data("create_body")["obj_id"]
    sketch = bench.sketch(other, {"type": "polyline", "points_mm": corners, "closed": False})
    fault = bench.refused("pad_sketch", body_id=other, sketch_id=sketch, length=2)
    assert fault["data"]["kind"] == "open_profile"


def test_lines_and_arcs_that_meet_make_a_slot(bench: Any) -> None:
    body = bench.data("create_body")["obj_id"]
    sketch = bench.sketch(
        body,
        {"type": "line", "start_mm": [0, -3], "end_mm": [20, -3]},
        {"type": "arc", "center_mm": [20, 0], "radius_mm": 3, "start_deg": -90, "end_deg": 90},
        {"type": "line", "start_mm": [20, 3], "end_mm": [0, 3]},
        {"type": "arc", "center_mm": [0, 0], "radius_mm": 3, "start_deg": 90, "end_deg": 270},
    )
    told = bench.data("pad_sketch", body_id=body, sketch_id=sketch, length_mm=1)
    assert told["volume_mm3"] == pytest.approx(120 + 9 * pi, rel=1e-8)


def test_a_dimension_follows_a_variable(bench: Any) -> None:
    body = bench.block(40, 20, 12)
    bench.data("create_variable_set", variables={"width": 55, "tall": 7})
    told = bench.data(
        "set_expression", obj_id="Sketch", property="Constraints.rectangle1_width", expression="Variables.width"
    )
    assert told["volume_mm3"] == pytest.approx(55 * 20 * 12, rel=1e-9)
    told = bench.data("set_expression", obj_id="Pad", property="Length", expression="Variables.tall * 2")
    assert told["value"] == 14
    assert bench.data("measure", obj_id=body)["volume_mm3"] == pytest.approx(55 * 20 * 14, rel=1e-9)
    fault = bench.refused("set_expression", obj_id="Pad", property="Length", expression="Variables.nothing")
    assert fault["data"]["kind"] in ("bad_expression", "not_computable")
    fault = bench.refused("set_expression", obj_id="Pad", property="Length", expression="1 +* 2")
    assert fault["message"] == "'1 +* 2' cannot be set on Pad.Length: Failed to parse expression."
    assert bench.data("measure", obj_id=body)["volume_mm3"] == pytest.approx(55 * 20 * 14, rel=1e-9)


@pytest.mark.parametrize(
    ("kind", "parameters", "volume"),
    [
        ("box", {"length_mm": 2, "width_mm": 3, "height_mm": 4}, 24),
        ("cylinder", {"radius": 3, "height": 5}, 45 * pi),
        ("cylinder", {"radius_mm": 3, "height_mm": 5, "angle_deg": 90}, 45 * pi / 4),
        ("sphere", {"radius": 3}, 36 * pi),
        ("cone", {"radius1": 4, "radius2": 2, "height": 6}, pi * 6 / 3 * (16 + 8 + 4)),
        ("cone", {"radius1": 4, "height": 6}, pi * 6 / 3 * 16),
        ("torus", {"radius1": 10, "radius2": 2}, 2 * pi**2 * 10 * 4),
    ],
)
def test_primitives_have_their_volume(bench: Any, kind: str, parameters: dict[str, float], volume: float) -> None:
    told = bench.data("create_primitive", kind=kind, parameters=parameters)
    assert told["volume_mm3"] == pytest.approx(volume, rel=1e-7)
    assert told["kind"] == kind


def test_a_primitive_without_its_dimensions_is_told_each_of_them(bench: Any) -> None:
    fault = bench.refused("create_primitive", kind="cylinder", parameters={"radius": -1, "lenght": 4})
    assert set(fault["data"]["fields"]) == {"parameters.radius_mm", "parameters.lenght", "parameters.height_mm"}


def test_booleans_are_exact_and_a_tool_that_misses_is_told(bench: Any) -> None:
    bench.data("create_primitive", kind="box", name="A", parameters={"length": 50, "width": 30, "height": 10})
    bench.data("create_primitive", kind="cylinder", name="B", parameters={"radius": 5, "height": 10})
    bench.data("transform_object", obj_id="B", position=[25, 15, 0])
    told = bench.data("boolean", obj_a="A", obj_b="B", operation="subtract", name="Drilled")
    assert told["volume_mm3"] == pytest.approx(15000 - 250 * pi, rel=1e-8)
    assert told["volume_change_mm3"] == pytest.approx(-250 * pi, rel=1e-7)
    bench.data("create_primitive", kind="sphere", name="Far", parameters={"radius": 1})
    bench.data("transform_object", obj_id="Far", position=[200, 0, 0])
    told = bench.call("boolean", obj_a="Drilled", obj_b="Far", operation="subtract")
    assert any("volume did not change" in each for each in told["warnings"])
    assert (
        bench.refused("boolean", obj_a="Drilled", obj_b="Far", operation="intersect")["data"]["kind"] == "empty_result"
    )


def test_names_are_found_by_id_or_label_and_near_misses_are_named(bench: Any) -> None:
    bench.data("create_primitive", kind="sphere", name="Grosse Kugel", parameters={"radius": 2})
    assert bench.data("measure", obj_id="Grosse Kugel")["obj_id"] == "Grosse_Kugel"
    fault = bench.refused("measure", obj_id="Grosse_Kugle")
    assert "did you mean Grosse_Kugel?" in fault["message"]

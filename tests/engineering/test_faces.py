"""Choosing faces by where they are, on boxes described by hand."""

import numpy as np
import pytest

from metaforge.core.errors import InvalidArguments
from metaforge.engineering.faces import FaceNear, FacesInBox, positions, select
from metaforge.engineering.mesh import Surface

Box = tuple[float, float, float, float, float, float]
NO_FACES = np.empty((0, 2), dtype=np.int64)


def surface(box: Box, normal: tuple[float, float, float], kind: str = "plane") -> Surface:
    centre = tuple((box[k] + box[k + 3]) / 2 for k in range(3))
    return Surface(NO_FACES, box, (centre[0], centre[1], centre[2]), 1.0, normal, kind)


BLOCK = {
    "face_1": surface((0, 0, 0, 0, 30, 10), (-1, 0, 0)),
    "face_2": surface((50, 0, 0, 50, 30, 10), (1, 0, 0)),
    "face_3": surface((0, 0, 0, 50, 0, 10), (0, -1, 0)),
    "face_4": surface((0, 30, 0, 50, 30, 10), (0, 1, 0)),
    "face_5": surface((0, 0, 0, 50, 30, 0), (0, 0, -1)),
    "face_6": surface((0, 0, 10, 20, 30, 10), (0, 0, 1)),
    "face_7": surface((30, 0, 10, 50, 30, 10), (0, 0, 1)),
    "face_8": surface((20, 0, 5, 30, 30, 5), (0, 0, 1)),
    "face_9": surface((10, 10, 0, 14, 14, 10), (0, 0, 0), "cylinder"),
}
"""A 50 x 30 x 10 mm block with a groove along y in its top, and a hole."""


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("top", ["face_6", "face_7"]),
        ("+z", ["face_6", "face_7"]),
        ("bottom", ["face_5"]),
        ("left", ["face_1"]),
        ("right", ["face_2"]),
        ("front", ["face_3"]),
        ("back", ["face_4"]),
        (" +X ", ["face_2"]),
        ("FACE_9", ["face_9"]),
        ({"box_mm": [19, -1, 4, 31, 31, 6]}, ["face_8"]),
        (FacesInBox(box_mm=(-1, -1, 9, 51, 31, 11)), ["face_6", "face_7"]),
        ({"near_mm": [25, 15, 5.2]}, ["face_8"]),
        (FaceNear(near_mm=(60, 15, 5)), ["face_2"]),
    ],
)
def test_a_selector_means_these_faces(selector: object, expected: list[str]) -> None:
    assert select(BLOCK, selector) == expected


def test_the_floor_of_a_groove_is_not_the_top() -> None:
    assert "face_8" not in select(BLOCK, "top")


def test_a_face_a_few_degrees_off_counts_and_a_slope_does_not() -> None:
    def with_tilt(degrees: float) -> dict[str, Surface]:
        angle = np.radians(degrees)
        tilted = surface((0, 0, 9.999, 50, 30, 10), (0, float(np.sin(angle)), float(np.cos(angle))))
        return {"face_5": BLOCK["face_5"], "face_6": tilted}

    assert select(with_tilt(4), "top") == ["face_6"]
    with pytest.raises(InvalidArguments, match="normal within 5 deg"):
        select(with_tilt(6), "top")


def test_a_round_top_is_refused_with_the_faces_nearest_first() -> None:
    dome = {**BLOCK, "face_10": surface((0, 0, 10, 50, 30, 25), (0, 0, 1), "sphere")}
    with pytest.raises(InvalidArguments) as refused:
        select(dome, "top")
    text = refused.value.message
    assert "z = 25 mm" in text
    listed = text.split("Faces:\n")[1].splitlines()
    assert listed[0].startswith("  face_10: sphere, centroid [25, 15, 17.5] mm")
    assert len(listed) == len(dome)


def test_a_mistyped_name_gets_the_nearest_one() -> None:
    with pytest.raises(InvalidArguments, match="did you mean 'bottom'"):
        select(BLOCK, "botom")
    with pytest.raises(InvalidArguments, match="did you mean 'face_9'"):
        select(BLOCK, "fase_9")


def test_a_point_on_an_edge_is_ambiguous_and_both_faces_are_named() -> None:
    with pytest.raises(InvalidArguments, match="equally near to 2 faces") as refused:
        select(BLOCK, {"near_mm": [50, 15, 0]})
    assert set(refused.value.data["faces"]) == {"face_2", "face_5"}


def test_an_empty_box_lists_faces_nearest_to_its_middle_first() -> None:
    with pytest.raises(InvalidArguments, match="holds no whole face") as refused:
        select(BLOCK, {"box_mm": [49, 10, 2, 51, 20, 8]})
    assert refused.value.message.split("Faces:\n")[1].startswith("  face_2:")


def test_a_box_upside_down_is_told_which_axis() -> None:
    with pytest.raises(InvalidArguments, match="z runs from 10 to 0"):
        select(BLOCK, {"box_mm": [0, 0, 10, 50, 30, 0]})


@pytest.mark.parametrize("selector", [{}, {"box": [0, 0, 0, 1, 1, 1]}, {"box_mm": [0, 0, 0]}, {"near_mm": "top"}])
def test_a_selector_of_another_shape_is_told_the_right_ones(selector: dict[str, object]) -> None:
    with pytest.raises(InvalidArguments, match=r"a name, \{box_mm: \[6 numbers\]\} or \{near_mm: \[3 numbers\]\}"):
        select(BLOCK, selector)


def test_at_most_twelve_faces_are_listed() -> None:
    many = {f"face_{k}": surface((k, 0, 0, k + 1, 1, 1), (0, 0, 0), "cylinder") for k in range(1, 31)}
    with pytest.raises(InvalidArguments) as refused:
        select(many, "top")
    listed = refused.value.message.split("Faces:\n")[1].splitlines()
    assert len(listed) == 13
    assert listed[-1] == "... and 18 more"


def test_positions_name_every_outermost_flat_face_and_leave_out_what_is_missing() -> None:
    assert positions(BLOCK)["top"] == ["face_6", "face_7"]
    without = {name: s for name, s in BLOCK.items() if name != "face_1"}
    without["face_10"] = surface((-5, 0, 0, 0, 30, 10), (-1, 0, 0), "cylinder")
    assert "left" not in positions(without)


def test_gathered_sets_beside_faces_are_not_chosen_twice() -> None:
    gathered = {**BLOCK, "top": surface((0, 0, 10, 50, 30, 10), (0, 0, 1))}
    assert select(gathered, "top") == ["top"]
    assert select(gathered, "+z") == ["face_6", "face_7"]
    assert select(gathered, {"box_mm": [-1, -1, 9, 51, 31, 11]}) == ["face_6", "face_7"]


def test_a_mesh_without_surfaces_says_how_to_get_them() -> None:
    with pytest.raises(InvalidArguments, match=r"mesh a STEP file, or define \*SURFACE"):
        select({}, "top")

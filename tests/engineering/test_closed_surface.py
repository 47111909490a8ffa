"""Whether triangles close a volume."""

import numpy as np
import pytest
from numpy.typing import NDArray

from metaforge.core.errors import ToolError
from metaforge.engineering.closed_surface import close_surface

POINTS = np.array([(0.0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)])
OUTWARD = [(0, 2, 1), (0, 1, 3), (1, 2, 3), (2, 0, 3)]


def tetrahedron(faces: list[tuple[int, int, int]]) -> NDArray[np.float64]:
    return POINTS[np.array(faces)]


def test_a_tetrahedron_closes_a_sixth() -> None:
    surface = close_surface(tetrahedron(OUTWARD), "t.stl")
    assert surface.volume_mm3 == pytest.approx(1 / 6)
    assert surface.area_mm2 == pytest.approx(1.5 + np.sqrt(3) / 2)


def test_a_surface_turned_inside_is_turned_back() -> None:
    surface = close_surface(tetrahedron(OUTWARD)[:, ::-1], "t.stl")
    assert surface.volume_mm3 == pytest.approx(1 / 6)
    assert np.allclose(surface.triangles, tetrahedron(OUTWARD))


def test_a_missing_facet_leaves_three_open_edges() -> None:
    with pytest.raises(ToolError, match=r"the surface is not closed \(3 open edges among 6\)"):
        close_surface(tetrahedron(OUTWARD[:3]), "t.stl")


def test_one_facet_the_wrong_way_is_told() -> None:
    with pytest.raises(ToolError, match="face both ways"):
        close_surface(tetrahedron([*OUTWARD[:3], OUTWARD[3][::-1]]), "t.stl")


def test_two_bodies_are_counted() -> None:
    both = np.concatenate([tetrahedron(OUTWARD), tetrahedron(OUTWARD) + 5])
    with pytest.raises(ToolError, match="2 separate closed surfaces"):
        close_surface(both, "t.stl")


def test_corners_apart_by_rounding_are_one() -> None:
    nudged = tetrahedron(OUTWARD) + np.random.default_rng(1).uniform(-1, 1, (4, 3, 3)) * 1e-9
    assert close_surface(nudged, "t.stl").volume_mm3 == pytest.approx(1 / 6)

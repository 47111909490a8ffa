"""Skins, re-entrant corners, separate bodies, consistent loads and free rigid-body motions."""

import numpy as np
import pytest

from metaforge.engineering.boundary import boundary_faces, components, feature_edges, reentrant_nodes, within
from metaforge.engineering.consistent_loads import area_shares, mass_shares, pressure_forces
from metaforge.engineering.mesh import ElementBlock, Mesh
from metaforge.engineering.restraint import Held, loose_bodies

CORNERS = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)]


def cells(*places: tuple[int, int, int], size_mm: float = 10.0) -> Mesh:
    """A mesh of cubes at grid places that share nodes."""
    number: dict[tuple[int, int, int], int] = {}
    rows = [[number.setdefault((i + a, j + b, k + c), len(number) + 1) for a, b, c in CORNERS] for i, j, k in places]
    points = np.array(list(number), dtype=float) * size_mm
    block = ElementBlock("C3D8", np.arange(1, len(rows) + 1), np.array(rows), "BODY")
    return Mesh(np.arange(1, len(number) + 1), points, (block,))


BAR = cells((0, 0, 0), (1, 0, 0))
ELL = cells((0, 0, 0), (1, 0, 0), (0, 0, 1))
TET10 = Mesh(
    np.arange(1, 11),
    np.array(
        [[0, 0, 0], [6, 0, 0], [0, 6, 0], [0, 0, 6], [3, 0, 0], [3, 3, 0], [0, 3, 0], [0, 0, 3], [3, 0, 3], [0, 3, 3]],
        float,
    ),
    (ElementBlock("C3D10", np.array([1]), np.arange(1, 11)[None, :], "BODY"),),
)  # fmt: skip


def test_the_skin_leaves_out_shared_faces() -> None:
    assert len(boundary_faces(BAR)) == 10
    assert len(boundary_faces(ELL)) == 14


def test_only_the_inner_corner_is_re_entrant() -> None:
    inner = reentrant_nodes(ELL, boundary_faces(ELL))
    assert {tuple(point) for point in ELL.points_mm(inner)} == {(10, 0, 10), (10, 10, 10)}
    assert len(reentrant_nodes(BAR, boundary_faces(BAR))) == 0


def test_the_edges_of_a_box_are_its_feature_edges() -> None:
    box = cells((0, 0, 0))
    assert len(feature_edges(box, boundary_faces(box))) == 12
    assert len(feature_edges(TET10, boundary_faces(TET10))) == 12


def test_bodies_hang_together_by_nodes_or_links() -> None:
    apart = cells((0, 0, 0), (5, 0, 0))
    assert int(components(apart).max()) == 1
    assert int(components(apart, [np.array([1, 9])]).max()) == 0


def test_points_within_a_radius_are_those_a_full_search_finds() -> None:
    random = np.random.default_rng(3)
    points, sources = random.uniform(0, 50, (800, 3)), random.uniform(0, 50, (40, 3))
    gaps = np.linalg.norm(points[:, None] - sources[None], axis=2).min(axis=1)
    assert (within(points, sources, 6.0) == (gaps <= 6.0)).all()
    assert not within(points, sources[:0], 6.0).any()


def test_uniform_traction_on_a_six_node_triangle_loads_only_its_middles() -> None:
    nodes, shares = area_shares(TET10, np.array([[1, 1]]))
    by_node = dict(zip(nodes.tolist(), shares, strict=True))
    assert [by_node[n] for n in (1, 2, 3)] == pytest.approx([0, 0, 0], abs=1e-12)
    assert [by_node[n] for n in (5, 6, 7)] == pytest.approx([6, 6, 6])


def test_pressure_presses_inward_and_sums_to_pressure_times_area() -> None:
    top = np.array([[1, 2], [2, 2]])
    _, forces = pressure_forces(BAR, top, 2.0)
    assert forces.sum(axis=0) == pytest.approx([0, 0, -2.0 * 200])
    _, all_round = pressure_forces(BAR, boundary_faces(BAR), 2.0)
    assert all_round.sum(axis=0) == pytest.approx([0, 0, 0], abs=1e-9)


def test_mass_shares_sum_to_the_mass() -> None:
    _, shares = mass_shares(BAR, {"BODY": 7.85e-9})
    assert shares.sum() == pytest.approx(7.85e-9 * 2000)


def nodes_where(mesh: Mesh, axis: int, value: float) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.asarray(mesh.node_ids[mesh.coordinates_mm[:, axis] == value])


@pytest.mark.parametrize(
    ("held", "free"),
    [
        ([], 6),
        ([Held(nodes_where(BAR, 0, 0), (1, 2, 3))], 0),
        ([Held(nodes_where(BAR, 0, 0), (1,))], 3),
        ([Held(np.array([1]), (1, 2, 3))], 3),
        ([Held(np.array([1, 2]), (1, 2, 3))], 1),
        ([Held(np.array([1]), (1, 2, 3, 4, 5, 6))], 0),
        (
            [
                Held(nodes_where(BAR, 0, 0), (1,)),
                Held(nodes_where(BAR, 1, 0), (2,)),
                Held(nodes_where(BAR, 2, 0), (3,)),
            ],
            0,
        ),
    ],
)
def test_free_rigid_body_motions_are_counted(held: list[Held], free: int) -> None:
    assert sum(len(body.motions) for body in loose_bodies(BAR, held)) == free


def test_a_slider_is_said_to_slide() -> None:
    held = [Held(nodes_where(BAR, 1, 0), (2, 3)), Held(nodes_where(BAR, 2, 0), (3,))]
    assert loose_bodies(BAR, held)[0].motions == ("translation along x",)


def test_units_do_not_change_the_count() -> None:
    for scale in (1e-3, 1.0, 1e4):
        mesh = cells((0, 0, 0), (1, 0, 0), size_mm=10.0 * scale)
        assert loose_bodies(mesh, [Held(np.array([1]), (1, 2, 3, 4, 5, 6))]) == []


def test_each_body_needs_its_own_supports() -> None:
    apart = cells((0, 0, 0), (5, 0, 0))
    loose = loose_bodies(apart, [Held(np.arange(1, 9), (1, 2, 3))])
    assert len(loose) == 1
    assert loose[0].centroid_mm == pytest.approx((55, 5, 5))

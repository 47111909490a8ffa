"""Quality measures against shapes whose measures are known in closed form."""

import math

import numpy as np
import pytest

from metaforge.engineering.element_types import ELEMENT_TYPES, quadrature, shape_gradients, shape_values, solver_points
from metaforge.engineering.mesh import ElementBlock, Mesh
from metaforge.engineering.mesh_quality import measure
from metaforge.engineering.surface_geometry import face_vectors

REGULAR_TET = [(1, 1, 1), (-1, 1, -1), (1, -1, -1), (-1, -1, 1)]
TYPES = sorted(ELEMENT_TYPES)
SOLIDS = [name for name in TYPES if ELEMENT_TYPES[name].use == "solid"]


def one_element(type_name: str, points: object, element_id: int = 7) -> Mesh:
    coordinates = np.array(points, dtype=np.float64)
    if coordinates.shape[1] == 2:
        coordinates = np.column_stack([coordinates, np.zeros(len(coordinates))])
    ids = np.arange(1, len(coordinates) + 1)
    return Mesh(ids, coordinates, (ElementBlock(type_name, np.array([element_id]), ids[None]),))


def with_middles(type_name: str, corners: list[tuple[float, ...]]) -> np.ndarray:
    points = np.array(corners, dtype=np.float64)
    edges = ELEMENT_TYPES[type_name].family.edges
    return np.vstack([points, [(points[a] + points[b]) / 2 for a, b in edges]])


@pytest.mark.parametrize("name", TYPES)
def test_shape_functions_are_one_at_their_node_and_add_up_to_one_everywhere(name: str) -> None:
    family = ELEMENT_TYPES[name].family
    nodes = tuple(map(tuple, family.natural_nodes().tolist()))
    assert np.allclose(shape_values(family, nodes), np.eye(family.node_count))
    inside = solver_points(name)
    assert np.allclose(shape_values(family, inside).sum(axis=1), 1)
    assert np.allclose(shape_gradients(family, inside).sum(axis=1), 0)


@pytest.mark.parametrize(("shape", "content"), [("tri", 1 / 2), ("quad", 4), ("tet", 1 / 6), ("wedge", 1), ("hex", 8)])
def test_rules_of_three_points_integrate_cubic_polynomials_exactly(shape: str, content: float) -> None:
    points, weights = quadrature(shape, 3)
    assert math.isclose(sum(weights), content)
    first = sum(w * p[0] ** 3 for p, w in zip(points, weights, strict=True))
    # The integral of x^3 over each reference shape.
    assert math.isclose(
        first, {"tri": 1 / 20, "quad": 0, "tet": 1 / 120, "wedge": 1 / 10, "hex": 0}[shape], abs_tol=1e-12
    )


@pytest.mark.parametrize("name", ["C3D4", "C3D10"])
def test_a_regular_tetrahedron_is_ideal(name: str) -> None:
    corners: list[tuple[float, ...]] = [tuple(map(float, p)) for p in REGULAR_TET]
    points = corners if name == "C3D4" else with_middles(name, corners)
    quality = measure(one_element(name, points))
    assert quality.min_scaled_jacobian_ratio == pytest.approx(1)
    assert quality.max_aspect_ratio == pytest.approx(1)
    assert quality.volume_mm3 == pytest.approx(8 / 3)
    assert quality.min_edge_mm[0] == quality.max_edge_mm[0] == pytest.approx(2 * math.sqrt(2))


@pytest.mark.parametrize("name", ["C3D8", "C3D8I", "C3D8R", "C3D20", "C3D20R"])
def test_a_cube_is_ideal_and_a_bar_has_the_ratio_of_its_sides(name: str) -> None:
    cube = ELEMENT_TYPES[name].family.natural_nodes()
    assert measure(one_element(name, cube)).min_scaled_jacobian_ratio == pytest.approx(1)
    bar = measure(one_element(name, cube * [5, 1, 1]))
    assert bar.max_aspect_ratio == pytest.approx(5)
    assert bar.min_scaled_jacobian_ratio == pytest.approx(1)
    assert bar.volume_mm3 == pytest.approx(40)


@pytest.mark.parametrize("name", ["C3D6", "C3D15"])
def test_a_wedge_on_an_equilateral_triangle_is_ideal(name: str) -> None:
    triangle = [(0.0, 0.0), (1.0, 0.0), (0.5, math.sqrt(3) / 2)]
    corners: list[tuple[float, ...]] = [(*p, z) for z in (0.0, 1.0) for p in triangle]
    quality = measure(one_element(name, corners if name == "C3D6" else with_middles(name, corners)))
    assert quality.min_scaled_jacobian_ratio == pytest.approx(1)
    assert quality.volume_mm3 == pytest.approx(math.sqrt(3) / 4)


@pytest.mark.parametrize("name", ["S3", "CPS3", "CPE6", "CAX6", "S6"])
def test_an_equilateral_triangle_is_ideal(name: str) -> None:
    corners: list[tuple[float, ...]] = [(0.0, 0.0), (1.0, 0.0), (0.5, math.sqrt(3) / 2)]
    quality = measure(one_element(name, corners if name.endswith("3") else with_middles(name, corners)))
    assert quality.min_scaled_jacobian_ratio == pytest.approx(1)
    assert quality.max_aspect_ratio == pytest.approx(1)
    assert quality.size_mm[0] == pytest.approx(math.sqrt(3) / 4)
    assert quality.volume_mm3 == 0


def test_a_square_shell_is_ideal_and_a_rhombus_has_the_sine_of_its_angle() -> None:
    assert measure(one_element("S4", [(0, 0), (1, 0), (1, 1), (0, 1)])).min_scaled_jacobian_ratio == pytest.approx(1)
    angle = math.radians(30)
    side = (math.cos(angle), math.sin(angle))
    rhombus = [(0, 0), (1, 0), (1 + side[0], side[1]), side]
    assert measure(one_element("S4", rhombus)).min_scaled_jacobian_ratio == pytest.approx(math.sin(angle))


@pytest.mark.parametrize(("name", "is_bad"), [("CPS4", True), ("CAX4", True), ("S4", False), ("M3D4", False)])
def test_clockwise_order_is_wrong_for_plane_elements_and_free_for_shells(name: str, is_bad: bool) -> None:
    quality = measure(one_element(name, [(0, 1), (1, 1), (1, 0), (0, 0)]))
    assert bool(len(quality.negative_ids)) is is_bad
    assert bool(quality.refused[0]) is is_bad


@pytest.mark.parametrize("name", SOLIDS)
def test_a_mirrored_solid_is_inside_out_and_is_named_with_its_centroid(name: str) -> None:
    family = ELEMENT_TYPES[name].family
    mirrored = family.natural_nodes() * [1, 1, -1] + np.array([10, 0, 0])
    quality = measure(one_element(name, mirrored, element_id=42))
    assert quality.negative_ids.tolist() == [42]
    assert quality.refused.all()
    bad = quality.bad_elements()[0]
    assert (bad.element_id, bad.type) == (42, name)
    assert bad.centroid_mm == pytest.approx(mirrored[: len(family.corners)].mean(axis=0), abs=1e-6)
    assert bad.scaled_jacobian_ratio < 0


def test_a_mid_side_node_pulled_past_the_quarter_point_turns_the_corner_inside_out() -> None:
    # On a straight edge from 0 to 1, the tangent at the corner is 4 m - 1 for a middle node at m: zero at a quarter.
    points = with_middles("C3D10", [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)])
    points[4] = (0.26, 0, 0)
    assert not len(measure(one_element("C3D10", points)).negative_ids)
    points[4] = (0.24, 0, 0)
    quality = measure(one_element("C3D10", points))
    assert len(quality.negative_ids) == 1
    # The solver looks at inner points only, where it is still the right way round.
    assert not quality.refused.any()


def test_beams_are_counted_and_not_measured() -> None:
    quality = measure(one_element("B32", [(0, 0, 0), (1, 0, 0), (2, 0, 0)]))
    assert quality.types == quality.unmeasured == {"B32": 1}
    assert len(quality.element_ids) == 0
    assert math.isnan(quality.max_aspect_ratio)


@pytest.mark.parametrize("name", SOLIDS)
def test_the_outward_areas_of_a_solids_faces_close_and_hold_its_volume(name: str) -> None:
    family = ELEMENT_TYPES[name].family
    skewed = family.natural_nodes() @ np.array([[2.0, 0.3, 0], [0, 1.5, 0.4], [0.2, 0, 1]])
    mesh = one_element(name, skewed)
    faces = np.array([(7, number) for number in range(1, len(family.faces) + 1)])
    vectors, centroids = face_vectors(mesh, faces)
    assert np.allclose(vectors.sum(axis=0), 0)
    # Divergence theorem: the volume is a third of the flux of position.
    assert (vectors * centroids).sum() / 3 == pytest.approx(measure(mesh).volume_mm3)

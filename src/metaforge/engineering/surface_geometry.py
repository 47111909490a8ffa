"""Geometry of sets of element faces: area, centroid, outward normal, bounding box."""

import numpy as np
from numpy.typing import NDArray

from metaforge.engineering.element_types import (
    ELEMENT_TYPES,
    QUAD4,
    QUAD8,
    TRI3,
    TRI6,
    Array,
    Family,
    quadrature,
    shape_gradients,
    shape_values,
)
from metaforge.engineering.mesh import Floats, Ids, Mesh, Surface

_FACE_FAMILIES: dict[int, Family] = {3: TRI3, 6: TRI6, 4: QUAD4, 8: QUAD8}


def face_nodes(mesh: Mesh, faces: Ids) -> list[tuple[NDArray[np.intp], Ids]]:
    """Return the nodes of faces of solid elements, grouped by nodes per face.

    Args:
        faces: element id and CalculiX face number per row.

    Returns:
        Pairs of rows into `faces` and node ids of shape (rows, nodes per face): corners, then mid-side nodes.

    Raises:
        KeyError: an element that is not a solid of the mesh.
    """
    found = np.zeros(len(faces), dtype=np.bool_)
    groups: list[tuple[NDArray[np.intp], Ids]] = []
    for block in mesh.blocks:
        kind = ELEMENT_TYPES.get(block.type.upper())
        if kind is None or kind.use != "solid" or not len(block.ids):
            continue
        order = np.argsort(block.ids, kind="stable")
        at = np.clip(np.searchsorted(block.ids, faces[:, 0], sorter=order), 0, len(order) - 1)
        rows = order[at]
        here = block.ids[rows] == faces[:, 0]
        for number in range(1, len(kind.family.faces) + 1):
            mine = np.flatnonzero(here & (faces[:, 1] == number))
            if len(mine):
                positions = list(kind.family.face_nodes(number))
                groups.append((mine, block.nodes[rows[mine]][:, positions]))
                found[mine] = True
    if not found.all():
        element, number = faces[np.flatnonzero(~found)[0]]
        raise KeyError(f"face {number} of element {element}")
    return groups


def face_vectors(mesh: Mesh, faces: Ids) -> tuple[Floats, Floats]:
    """Return outward area vectors (mm2) and centroids (mm) of faces of solid elements, each of shape (f, 3)."""
    vectors = np.zeros((len(faces), 3))
    centroids = np.zeros((len(faces), 3))
    inside = _element_centroids(mesh, faces[:, 0])
    for rows, nodes in face_nodes(mesh, faces):
        points = mesh.points_mm(nodes)
        vector, area, moment = _integrate(points)
        centroids[rows] = moment / area[:, None]
        corners = points[:, : 3 if nodes.shape[1] in (3, 6) else 4].mean(axis=1)
        inward = ((corners - inside[rows]) * vector).sum(axis=1) < 0
        vectors[rows] = np.where(inward[:, None], -vector, vector)
    return vectors, centroids


def face_areas_mm2(mesh: Mesh, faces: Ids) -> Floats:
    """Return the area of each face, curved sides included."""
    areas = np.zeros(len(faces))
    for rows, nodes in face_nodes(mesh, faces):
        areas[rows] = _integrate(mesh.points_mm(nodes))[1]
    return areas


def measure_surface(mesh: Mesh, faces: Ids, kind: str = "") -> Surface:
    """Measure a set of faces of solid elements.

    Args:
        kind: what the CAD file calls it; guessed as `plane` or `other` when empty.
    """
    vectors, centroids = face_vectors(mesh, faces)
    areas = face_areas_mm2(mesh, faces)
    total = float(areas.sum())
    nodes = np.unique(np.concatenate([group.ravel() for _, group in face_nodes(mesh, faces)]))
    points = mesh.points_mm(nodes)
    sum_vector = vectors.sum(axis=0)
    length = float(np.linalg.norm(sum_vector))
    flat = length > 0.9999 * total
    normal = sum_vector / length if length > 0.01 * total else np.zeros(3)
    middle = (centroids * areas[:, None]).sum(axis=0) / total
    low, high = points.min(axis=0), points.max(axis=0)
    return Surface(
        faces=faces,
        bbox_mm=(float(low[0]), float(low[1]), float(low[2]), float(high[0]), float(high[1]), float(high[2])),
        centroid_mm=(float(middle[0]), float(middle[1]), float(middle[2])),
        area_mm2=total,
        normal=(float(normal[0]), float(normal[1]), float(normal[2])),
        kind=kind or ("plane" if flat else "other"),
    )


def _integrate(points: Floats) -> tuple[Array, Array, Array]:
    """Return area vectors, areas and first moments of faces given as (f, nodes, 3)."""
    family = _FACE_FAMILIES[points.shape[1]]
    where, weights = quadrature(family.shape, 3)
    gradients = shape_gradients(family, where)
    tangents = np.moveaxis(np.tensordot(points, gradients, axes=([1], [1])), 1, 3)
    normals = np.cross(tangents[:, :, 0], tangents[:, :, 1])
    weight = np.array(weights)
    lengths = np.linalg.norm(normals, axis=2) * weight
    values = shape_values(family, where)
    spots = np.einsum("pn,fnx->fpx", values, points)
    return (
        np.asarray(np.einsum("fpx,p->fx", normals, weight)),
        np.asarray(lengths.sum(axis=1)),
        np.asarray(np.einsum("fp,fpx->fx", lengths, spots)),
    )


def _element_centroids(mesh: Mesh, ids: Ids) -> Floats:
    middles = np.zeros((len(ids), 3))
    for block in mesh.blocks:
        kind = ELEMENT_TYPES.get(block.type.upper())
        if kind is None or not len(block.ids):
            continue
        order = np.argsort(block.ids, kind="stable")
        at = np.clip(np.searchsorted(block.ids, ids, sorter=order), 0, len(order) - 1)
        rows = order[at]
        here = block.ids[rows] == ids
        middles[here] = mesh.points_mm(block.nodes[rows[here]][:, : len(kind.family.corners)]).mean(axis=1)
    return middles


def distance_mm(mesh: Mesh, faces: Ids, point: tuple[float, float, float]) -> float:
    """Return the distance from a point to a set of faces, curved ones taken as triangles between all their nodes."""
    target = np.array(point)
    best = np.inf
    for _, nodes in face_nodes(mesh, faces):
        points = mesh.points_mm(nodes)[:, _TRIANGLES[nodes.shape[1]]].reshape(-1, 3, 3)
        best = min(best, float(_triangle_distances(points, target).min()))
    return best


_TRIANGLES: dict[int, list[list[int]]] = {
    3: [[0, 1, 2]],
    6: [[0, 3, 5], [3, 1, 4], [5, 4, 2], [3, 4, 5]],
    4: [[0, 1, 2], [0, 2, 3]],
    8: [[0, 4, 7], [4, 1, 5], [5, 2, 6], [6, 3, 7], [4, 5, 6], [4, 6, 7]],
}


def _triangle_distances(triangles: Floats, point: Floats) -> Array:
    """Return distances from a point to triangles: to the plane where it projects inside, else to the nearest edge."""
    a, b, c = triangles[:, 0], triangles[:, 1], triangles[:, 2]
    normal = np.cross(b - a, c - a)
    length = np.maximum(np.linalg.norm(normal, axis=1), 1e-300)
    height = ((point - a) * normal).sum(axis=1) / length
    foot = point - height[:, None] * normal / length[:, None]
    inside = np.ones(len(triangles), dtype=np.bool_)
    edges = np.full(len(triangles), np.inf)
    for start, end in ((a, b), (b, c), (c, a)):
        side = end - start
        inside &= (np.cross(side, foot - start) * normal).sum(axis=1) >= 0
        share = ((point - start) * side).sum(axis=1) / np.maximum((side * side).sum(axis=1), 1e-300)
        nearest = start + np.clip(share, 0, 1)[:, None] * side
        edges = np.minimum(edges, np.linalg.norm(point - nearest, axis=1))
    return np.asarray(np.where(inside, np.abs(height), edges))


def outward_triangles(mesh: Mesh, faces: Ids) -> Floats:
    """Return faces of solid elements as flat triangles facing outward, shape (t, 3, 3); mid-side nodes are corners."""
    outward, _ = face_vectors(mesh, faces)
    found: list[Floats] = []
    for rows, nodes in face_nodes(mesh, faces):
        triangles = mesh.points_mm(nodes)[:, _TRIANGLES[nodes.shape[1]]]
        first = np.cross(triangles[:, 0, 1] - triangles[:, 0, 0], triangles[:, 0, 2] - triangles[:, 0, 0])
        inward = (first * outward[rows]).sum(axis=1) < 0
        triangles[inward] = triangles[inward][:, :, ::-1]
        found.append(triangles.reshape(-1, 3, 3))
    return np.concatenate(found)

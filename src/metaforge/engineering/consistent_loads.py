"""Surface and volume loads as nodal loads that do the same work: shape functions integrated over faces and elements.

The total is exact by construction, so that reactions can be held against it.
"""

from collections.abc import Mapping

import numpy as np

from metaforge.engineering.element_types import (
    ELEMENT_TYPES,
    QUAD4,
    QUAD8,
    TRI3,
    TRI6,
    Family,
    quadrature,
    shape_gradients,
    shape_values,
)
from metaforge.engineering.mesh import Floats, Ids, Mesh
from metaforge.engineering.surface_geometry import face_nodes, face_vectors

_SHAPES: dict[int, Family] = {3: TRI3, 6: TRI6, 4: QUAD4, 8: QUAD8}
_POINTS = 3


def area_shares(mesh: Mesh, faces: Ids) -> tuple[Ids, Floats]:
    """Return nodes and their share of the faces' area in mm2: the nodal loads of a unit traction.

    On a flat six-node triangle the corners get nothing and each mid-side node a third.
    """
    gathered = _Gathered(1)
    for _, nodes in face_nodes(mesh, faces):
        family = _SHAPES[nodes.shape[1]]
        where, weights = quadrature(family.shape, _POINTS)
        normals = _normals(mesh.points_mm(nodes), family, where)
        area = np.linalg.norm(normals, axis=2) * np.array(weights)
        gathered.add(nodes, (area @ shape_values(family, where))[:, :, None])
    ids, values = gathered.sums()
    return ids, values[:, 0]


def pressure_forces(mesh: Mesh, faces: Ids, pressure_mpa: float) -> tuple[Ids, Floats]:
    """Return nodes and forces (N) of a pressure; positive presses against the face."""
    gathered = _Gathered(3)
    outward, _ = face_vectors(mesh, faces)
    for rows, nodes in face_nodes(mesh, faces):
        family = _SHAPES[nodes.shape[1]]
        where, weights = quadrature(family.shape, _POINTS)
        normals = _normals(mesh.points_mm(nodes), family, where)
        flipped = (normals.mean(axis=1) * outward[rows]).sum(axis=1) < 0
        normals = np.where(flipped[:, None, None], -normals, normals)
        forces = np.einsum("fpx,p,pn->fnx", normals, np.array(weights), shape_values(family, where))
        gathered.add(nodes, -pressure_mpa * forces)
    return gathered.sums()


def mass_shares(mesh: Mesh, density_t_mm3: Mapping[str, float]) -> tuple[Ids, Floats]:
    """Return nodes and their share of the solid elements' mass in t: the nodal loads of a unit acceleration.

    Args:
        density_t_mm3: by element section.
    """
    gathered = _Gathered(1)
    for block in mesh.blocks:
        kind = ELEMENT_TYPES.get(block.type.upper())
        if kind is None or kind.use != "solid":
            continue
        where, weights = quadrature(kind.family.shape, _POINTS)
        gradients, values = shape_gradients(kind.family, where), shape_values(kind.family, where)
        density = density_t_mm3[block.section]
        for start in range(0, len(block.ids), 20_000):
            nodes = block.nodes[start : start + 20_000]
            tangents = np.moveaxis(np.tensordot(mesh.points_mm(nodes), gradients, axes=([1], [1])), 1, 3)
            mass = density * np.linalg.det(tangents) * np.array(weights)
            gathered.add(nodes, (mass @ values)[:, :, None])
    ids, shares = gathered.sums()
    return ids, shares[:, 0]


def _normals(points: Floats, family: Family, where: tuple[tuple[float, ...], ...]) -> Floats:
    tangents = np.moveaxis(np.tensordot(points, shape_gradients(family, where), axes=([1], [1])), 1, 3)
    return np.asarray(np.cross(tangents[:, :, 0], tangents[:, :, 1]), dtype=np.float64)


class _Gathered:
    """Sums values given per element and node into values per node."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.nodes: list[Ids] = []
        self.values: list[Floats] = []

    def add(self, nodes: Ids, values: Floats) -> None:
        self.nodes.append(nodes.ravel())
        self.values.append(values.reshape(-1, self.width))

    def sums(self) -> tuple[Ids, Floats]:
        if not self.nodes:
            return np.empty(0, np.int64), np.empty((0, self.width))
        ids, inverse = np.unique(np.concatenate(self.nodes), return_inverse=True)
        values = np.concatenate(self.values)
        total: Floats = np.column_stack(
            [np.bincount(inverse, weights=values[:, column], minlength=len(ids)) for column in range(self.width)]
        )
        return ids, total

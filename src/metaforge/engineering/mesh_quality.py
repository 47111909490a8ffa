"""How good each element is, before a solver is asked to believe it.

Definitions follow Verdict (Stimpson et al., The Verdict Library Reference Manual, Sandia 2007):

- scaled Jacobian: the Jacobian determinant divided by the lengths of the tangents that span it, scaled so that the
  ideal element (regular tetrahedron, cube ...) has 1. Verdict looks at the corners; here every node and the points of
  a Gauss rule are looked at as well, so that a bent quadratic element is judged where it is worst. At or below 0 the
  element is turned inside out there.
- aspect ratio: triangle h_max (a+b+c) / (4 sqrt 3 A); tetrahedron h_max / (2 sqrt 6 r_in); quadrilateral
  L_max (L0+L1+L2+L3) / (4 A); hexahedron and wedge: longest over shortest edge. 1 is ideal. Corners only.
- plane and axisymmetric elements must run anticlockwise seen from +z; shells and membranes may face either way.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from metaforge.engineering.element_types import (
    ELEMENT_TYPES,
    Array,
    ElementType,
    Family,
    quadrature,
    shape_gradients,
    solver_points,
)
from metaforge.engineering.mesh import ElementBlock, Floats, Ids, Mesh

CHUNK = 20_000
"""Elements measured at once: bounds memory to about 100 MB."""

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class BadElement:
    """An element that is turned inside out somewhere."""

    element_id: int
    type: str
    centroid_mm: tuple[float, float, float]
    scaled_jacobian_ratio: float


@dataclass(frozen=True)
class Quality:
    """Measures of every element that has a shape; beams, springs and masses are in `unmeasured`.

    Attributes:
        element_ids: shape (m,); the arrays below follow it.
        type_names: type of each measured element.
        scaled_jacobian_ratio: worst point of each element; at or below 0 it is inside out there.
        aspect_ratio: 1 is ideal.
        min_edge_mm, max_edge_mm: corner to corner.
        size_mm: volume of solids in mm3, area of flat elements in mm2.
        refused: whether CalculiX would stop on it: its Jacobian is not positive where the solver integrates.
        is_solid: whether `size_mm` is a volume.
        centroids_mm: mean of the corners, shape (m, 3).
        types: element count by type, everything included.
        unmeasured: element count by type of those without a shape.
    """

    element_ids: Ids
    type_names: NDArray[np.str_]
    scaled_jacobian_ratio: Floats
    aspect_ratio: Floats
    min_edge_mm: Floats
    max_edge_mm: Floats
    size_mm: Floats
    refused: Flags
    is_solid: Flags
    centroids_mm: Floats
    types: dict[str, int]
    unmeasured: dict[str, int]

    @property
    def min_scaled_jacobian_ratio(self) -> float:
        return float(self.scaled_jacobian_ratio.min()) if len(self.element_ids) else float("nan")

    @property
    def max_aspect_ratio(self) -> float:
        return float(self.aspect_ratio.max()) if len(self.element_ids) else float("nan")

    @property
    def volume_mm3(self) -> float:
        return float(self.size_mm[self.is_solid].sum())

    @property
    def worst_element_id(self) -> int:
        """The element with the lowest scaled Jacobian; 0 when nothing was measured."""
        return int(self.element_ids[self.scaled_jacobian_ratio.argmin()]) if len(self.element_ids) else 0

    @property
    def negative_ids(self) -> Ids:
        """Ids of elements that are inside out somewhere."""
        return np.asarray(self.element_ids[~(self.scaled_jacobian_ratio > 0)])

    def bad_elements(self, most: int = 10) -> tuple[BadElement, ...]:
        """Return elements that are inside out somewhere, the worst first."""
        rows = np.flatnonzero(~(self.scaled_jacobian_ratio > 0))
        rows = rows[np.argsort(self.scaled_jacobian_ratio[rows], kind="stable")][:most]
        return tuple(self._bad(int(row)) for row in rows)

    def _bad(self, row: int) -> BadElement:
        x, y, z = (round(float(v), 6) for v in self.centroids_mm[row])
        return BadElement(
            int(self.element_ids[row]),
            str(self.type_names[row]),
            (x, y, z),
            round(float(self.scaled_jacobian_ratio[row]), 6),
        )


def measure(mesh: Mesh) -> Quality:
    """Measure every element of a mesh.

    Returns:
        Per-element arrays; nothing is judged yet.

    Raises:
        KeyError: an element names a node that the mesh does not have.
    """
    types: dict[str, int] = {}
    unmeasured: dict[str, int] = {}
    parts: list[tuple[ElementBlock, Floats, Flags]] = []
    for block in mesh.blocks:
        name = block.type.upper()
        types[name] = types.get(name, 0) + len(block.ids)
        kind = ELEMENT_TYPES.get(name)
        if kind is None:
            unmeasured[name] = unmeasured.get(name, 0) + len(block.ids)
        elif len(block.ids):
            parts.extend(_measure_block(mesh, block, kind))
    values = np.vstack([part[1] for part in parts]) if parts else np.empty((0, 8))
    refused = np.concatenate([part[2] for part in parts]) if parts else np.empty(0, dtype=np.bool_)
    blocks = [part[0] for part in parts]
    ids = np.concatenate([block.ids for block in blocks]) if blocks else np.empty(0, dtype=np.int64)
    names = [np.full(len(block.ids), block.type.upper()) for block in blocks]
    solid = [np.full(len(b.ids), ELEMENT_TYPES[b.type.upper()].use == "solid") for b in blocks]
    return Quality(
        element_ids=ids,
        type_names=np.concatenate(names) if names else np.empty(0, dtype=np.str_),
        scaled_jacobian_ratio=values[:, 0],
        aspect_ratio=values[:, 1],
        min_edge_mm=values[:, 2],
        max_edge_mm=values[:, 3],
        size_mm=values[:, 4],
        refused=refused,
        is_solid=np.concatenate(solid) if solid else np.empty(0, dtype=np.bool_),
        centroids_mm=values[:, 5:8],
        types=types,
        unmeasured=unmeasured,
    )


def _measure_block(mesh: Mesh, block: ElementBlock, kind: ElementType) -> Iterator[tuple[ElementBlock, Floats, Flags]]:
    for start in range(0, len(block.ids), CHUNK):
        part = ElementBlock(block.type, block.ids[start : start + CHUNK], block.nodes[start : start + CHUNK])
        points = mesh.points_mm(part.nodes)
        corners = points[:, : len(kind.family.corners)]
        with np.errstate(divide="ignore", invalid="ignore"):
            scaled, size, refused = _jacobians(points, kind)
            lengths = _edge_lengths(corners, kind.family)
            columns = [scaled, _aspect(corners, lengths, kind.family), lengths.min(axis=1), lengths.max(axis=1), size]
        yield part, np.column_stack([*columns, corners.mean(axis=1)]), refused


@cache
def _samples(type_name: str) -> tuple[tuple[tuple[float, ...], ...], int, int]:
    """Return where an element is looked at (solver's points, nodes, Gauss points) and where those parts begin."""
    family = ELEMENT_TYPES[type_name].family
    solver = solver_points(type_name)
    nodes = tuple(tuple(map(float, row)) for row in family.natural_nodes())
    return (*solver, *nodes, *quadrature(family.shape, 3)[0]), len(solver), len(solver) + len(nodes)


def _jacobians(points: Floats, kind: ElementType) -> tuple[Array, Array, Flags]:
    """Return each element's worst scaled Jacobian, its size, and whether the solver would refuse it."""
    where, solver_end, gauss_start = _samples(kind.name)
    gradients = shape_gradients(kind.family, where)
    # (element, sample, natural axis, xyz)
    tangents = np.moveaxis(np.tensordot(points, gradients, axes=([1], [1])), 1, 3)
    solid = kind.family.dimension == 3
    determinants = _triple_products(tangents) if solid else _flat_determinants(tangents, kind)
    spans = _spans(tangents, kind.family)
    scaled = determinants / np.where(spans > 0, spans, np.nan)
    scaled = np.where(np.isfinite(scaled), scaled, 0.0)
    weights = np.array(quadrature(kind.family.shape, 3)[1])
    size = determinants[:, gauss_start:] @ weights
    refused: Flags = np.asarray((determinants[:, :solver_end] <= 0).any(axis=1))
    return scaled.min(axis=1), size, refused


def _triple_products(tangents: Array) -> Array:
    # Many times faster than np.linalg.det on small matrices.
    return np.asarray((tangents[:, :, 0] * np.cross(tangents[:, :, 1], tangents[:, :, 2])).sum(axis=2))


def _flat_determinants(tangents: Array, kind: ElementType) -> Array:
    normals = np.cross(tangents[:, :, 0], tangents[:, :, 1])
    if kind.use in ("shell", "membrane"):
        mean = normals.mean(axis=1, keepdims=True)
        up = mean / np.linalg.norm(mean, axis=2, keepdims=True)
    else:
        up = np.array([0.0, 0.0, 1.0])
    return np.asarray((normals * up).sum(axis=2))


def _spans(tangents: Array, family: Family) -> Array:
    """Return the product of tangent lengths that makes the ideal element's scaled Jacobian 1.

    At a corner of a triangle, wedge or tetrahedron any of its corners' edge pairs may be the longest: Verdict divides
    by the largest product.
    """
    length = np.linalg.norm(tangents, axis=3)
    if family.shape in ("quad", "hex"):
        return np.asarray(length.prod(axis=2))
    a, b = tangents[:, :, 0], tangents[:, :, 1]
    la, lb = length[:, :, 0], length[:, :, 1]
    lab = np.linalg.norm(b - a, axis=2)
    if family.shape in ("tri", "wedge"):
        flat = np.maximum(np.maximum(la * lb, la * lab), lb * lab) * (np.sqrt(3) / 2)
        return np.asarray(flat * length[:, :, 2] if family.shape == "wedge" else flat)
    c, lc = tangents[:, :, 2], length[:, :, 2]
    lac, lbc = np.linalg.norm(c - a, axis=2), np.linalg.norm(c - b, axis=2)
    products = np.stack([la * lb * lc, la * lab * lac, lb * lab * lbc, lc * lac * lbc])
    return np.asarray(products.max(axis=0) / np.sqrt(2))


def _edge_lengths(corners: Floats, family: Family) -> Array:
    first, second = np.array(family.edges).T
    return np.asarray(np.linalg.norm(corners[:, first] - corners[:, second], axis=2))


def _aspect(corners: Floats, lengths: Array, family: Family) -> Array:
    longest = lengths.max(axis=1)
    if family.shape in ("hex", "wedge"):
        return np.asarray(longest / lengths.min(axis=1))
    first = corners[:, 1] - corners[:, 0]
    if family.shape == "tet":
        faces = np.array(family.faces)
        sides = corners[:, faces]
        areas = np.linalg.norm(np.cross(sides[:, :, 1] - sides[:, :, 0], sides[:, :, 2] - sides[:, :, 0]), axis=2) / 2
        cross = np.cross(corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 0])
        volume = np.abs((first * cross).sum(axis=1)) / 6
        return np.asarray(longest * areas.sum(axis=1) / (3 * volume) / (2 * np.sqrt(6)))
    if family.shape == "tri":
        area = np.linalg.norm(np.cross(first, corners[:, 2] - corners[:, 0]), axis=1) / 2
        return np.asarray(longest * lengths.sum(axis=1) / (4 * np.sqrt(3) * area))
    diagonals = np.cross(corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1])
    area = np.linalg.norm(diagonals, axis=1) / 2
    return np.asarray(longest * lengths.sum(axis=1) / (4 * area))

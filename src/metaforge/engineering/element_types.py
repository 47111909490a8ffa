"""CalculiX element types: their nodes, edges, faces and shape functions, in the deck's own order.

Faces are numbered the way `*SURFACE, TYPE=ELEMENT` and `*DLOAD` number them; node positions here count from 0.
"""

from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_TRIANGLE_EDGES = ((0, 1), (1, 2), (2, 0))
_QUAD_EDGES = ((0, 1), (1, 2), (2, 3), (3, 0))
_TET_EDGES = (*_TRIANGLE_EDGES, (0, 3), (1, 3), (2, 3))
_WEDGE_EDGES = (*_TRIANGLE_EDGES, (3, 4), (4, 5), (5, 3), (0, 3), (1, 4), (2, 5))
_HEX_EDGES = (*_QUAD_EDGES, (4, 5), (5, 6), (6, 7), (7, 4), (0, 4), (1, 5), (2, 6), (3, 7))

_TET_FACES = ((0, 1, 2), (0, 3, 1), (1, 3, 2), (2, 3, 0))
_WEDGE_FACES = ((0, 1, 2), (3, 4, 5), (0, 1, 4, 3), (1, 2, 5, 4), (2, 0, 3, 5))
_HEX_FACES = ((0, 1, 2, 3), (4, 7, 6, 5), (0, 4, 5, 1), (1, 5, 6, 2), (2, 6, 7, 3), (3, 7, 4, 0))

_TRIANGLE = ((0, 0), (1, 0), (0, 1))
_QUAD = ((-1, -1), (1, -1), (1, 1), (-1, 1))
_TET = ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))
_WEDGE = tuple((x, y, z) for z in (-1, 1) for x, y in _TRIANGLE)
_HEX = tuple((x, y, z) for z in (-1, 1) for x, y in _QUAD)


def _up_to(degree: int, dimension: int) -> tuple[tuple[int, ...], ...]:
    return tuple(e for e in product(range(degree + 1), repeat=dimension) if sum(e) <= degree)


_LINEAR_BOX2 = tuple(product((0, 1), repeat=2))
_LINEAR_BOX3 = tuple(product((0, 1), repeat=3))
# Serendipity bases: every monomial whose quadratic factors stand alone.
_QUAD8 = tuple(e for e in product(range(3), repeat=2) if e.count(2) <= 1)
_HEX20 = tuple(e for e in product(range(3), repeat=3) if e.count(2) <= 1)
_WEDGE6 = tuple((*e, z) for e in _up_to(1, 2) for z in (0, 1))
_WEDGE15 = (*((*e, z) for e in _up_to(2, 2) for z in (0, 1)), *((*e, 2) for e in _up_to(1, 2)))


@dataclass(frozen=True)
class Family:
    """One element shape.

    Attributes:
        shape: `tri`, `quad`, `tet`, `wedge` or `hex`.
        corners: natural coordinates of the corner nodes.
        edges: corner pairs; a quadratic element's node `len(corners) + k` lies on edge k.
        faces: corners of each face in CalculiX's numbering; for plane shapes the edges are the faces.
        exponents: monomials that span the shape functions.
    """

    shape: str
    corners: tuple[tuple[int, ...], ...]
    edges: tuple[tuple[int, int], ...]
    faces: tuple[tuple[int, ...], ...]
    exponents: tuple[tuple[int, ...], ...]
    quadratic: bool

    @property
    def dimension(self) -> int:
        return len(self.corners[0])

    @property
    def node_count(self) -> int:
        return len(self.exponents)

    def natural_nodes(self) -> Array:
        """Return natural coordinates of every node, shape (nodes, dimension)."""
        corners = np.array(self.corners, dtype=np.float64)
        if not self.quadratic:
            return corners
        return np.vstack([corners, [(corners[a] + corners[b]) / 2 for a, b in self.edges]])

    def face_nodes(self, number: int) -> tuple[int, ...]:
        """Return node positions of face `number` (from 1): its corners, then the nodes between them."""
        corners = self.faces[number - 1]
        if not self.quadratic:
            return corners
        middle = {frozenset(edge): len(self.corners) + k for k, edge in enumerate(self.edges)}
        pairs = zip(corners, (*corners[1:], corners[0]), strict=True) if len(corners) > 2 else [corners]
        return (*corners, *(middle[frozenset(pair)] for pair in pairs))


TRI3 = Family("tri", _TRIANGLE, _TRIANGLE_EDGES, _TRIANGLE_EDGES, _up_to(1, 2), False)
TRI6 = Family("tri", _TRIANGLE, _TRIANGLE_EDGES, _TRIANGLE_EDGES, _up_to(2, 2), True)
QUAD4 = Family("quad", _QUAD, _QUAD_EDGES, _QUAD_EDGES, _LINEAR_BOX2, False)
QUAD8 = Family("quad", _QUAD, _QUAD_EDGES, _QUAD_EDGES, _QUAD8, True)
TET4 = Family("tet", _TET, _TET_EDGES, _TET_FACES, _up_to(1, 3), False)
TET10 = Family("tet", _TET, _TET_EDGES, _TET_FACES, _up_to(2, 3), True)
WEDGE6 = Family("wedge", _WEDGE, _WEDGE_EDGES, _WEDGE_FACES, _WEDGE6, False)
WEDGE15 = Family("wedge", _WEDGE, _WEDGE_EDGES, _WEDGE_FACES, _WEDGE15, True)
HEX8 = Family("hex", _HEX, _HEX_EDGES, _HEX_FACES, _LINEAR_BOX3, False)
HEX20 = Family("hex", _HEX, _HEX_EDGES, _HEX_FACES, _HEX20, True)


@dataclass(frozen=True)
class ElementType:
    """What CalculiX means by a type's name.

    Attributes:
        name: such as `C3D20R`.
        family: its shape.
        use: `solid`, `shell`, `membrane`, `plane_stress`, `plane_strain` or `axisymmetric`.
        points_per_edge: Gauss points along one edge of a hexahedron or quadrilateral that the solver integrates with;
            for other shapes the degree of its rule (1: one point).
    """

    name: str
    family: Family
    use: str
    points_per_edge: int


_SOLIDS = {
    "C3D4": (TET4, 1), "C3D10": (TET10, 2), "C3D10T": (TET10, 2), "C3D6": (WEDGE6, 1), "C3D15": (WEDGE15, 2),
    "C3D8": (HEX8, 2), "C3D8I": (HEX8, 2), "C3D8R": (HEX8, 1), "C3D20": (HEX20, 3), "C3D20R": (HEX20, 2),
    "DC3D4": (TET4, 1), "DC3D6": (WEDGE6, 1), "DC3D8": (HEX8, 2), "DC3D10": (TET10, 2), "DC3D15": (WEDGE15, 2),
    "DC3D20": (HEX20, 3),
}  # fmt: skip
_FLAT = {
    "3": (TRI3, 1), "4": (QUAD4, 2), "4R": (QUAD4, 1), "6": (TRI6, 2), "8": (QUAD8, 3), "8R": (QUAD8, 2),
}  # fmt: skip
_FLAT_USES = {
    "S": "shell", "M3D": "membrane", "CPS": "plane_stress", "CPE": "plane_strain", "CAX": "axisymmetric",
    "DCAX": "axisymmetric",
}  # fmt: skip

ELEMENT_TYPES: dict[str, ElementType] = {
    **{name: ElementType(name, family, "solid", points) for name, (family, points) in _SOLIDS.items()},
    **{
        prefix + suffix: ElementType(prefix + suffix, family, use, points)
        for prefix, use in _FLAT_USES.items()
        for suffix, (family, points) in _FLAT.items()
    },
}
"""Every type whose shape can be measured, by name. Beams, trusses, springs and masses are not here."""


Points = tuple[tuple[float, ...], ...]


@cache
def _coefficients(family: Family) -> Array:
    exponents = np.array(family.exponents)
    return np.linalg.inv(np.prod(family.natural_nodes()[:, None, :] ** exponents[None], axis=2))


@cache
def shape_values(family: Family, points: Points) -> Array:
    """Return shape functions at natural points, shape (points, nodes)."""
    terms = np.prod(np.array(points, dtype=np.float64)[:, None, :] ** np.array(family.exponents)[None], axis=2)
    return np.asarray(terms @ _coefficients(family))


@cache
def shape_gradients(family: Family, points: Points) -> Array:
    """Return shape function derivatives, shape (points, nodes, dimension)."""
    exponents = np.array(family.exponents)
    where = np.array(points, dtype=np.float64)[:, None, :]
    gradients = np.empty((len(points), family.node_count, family.dimension))
    for axis in range(family.dimension):
        lowered = exponents.copy()
        lowered[:, axis] = np.maximum(lowered[:, axis] - 1, 0)
        terms = exponents[:, axis] * np.prod(where ** lowered[None], axis=2)
        gradients[:, :, axis] = terms @ _coefficients(family)
    return gradients


@cache
def quadrature(shape: str, count: int) -> tuple[Points, tuple[float, ...]]:
    """Return points and weights of a Gauss rule with `count` points along each natural axis.

    Triangles, tetrahedra and wedges use a square or cube collapsed onto them; the rule is exact for polynomials of
    degree 2 count - 3 at least.
    """
    line, weights = np.polynomial.legendre.leggauss(count)
    unit, half = (line + 1) / 2, weights / 2
    points: list[tuple[float, ...]] = []
    factors: list[float] = []
    if shape in ("tri", "quad"):
        for (x, a), (y, b) in product(zip(unit, half, strict=True), repeat=2):
            points.append((x, y * (1 - x)) if shape == "tri" else (2 * x - 1, 2 * y - 1))
            factors.append(a * b * (1 - x) if shape == "tri" else 4 * a * b)
    else:
        for (x, a), (y, b), (z, c) in product(zip(unit, half, strict=True), repeat=3):
            if shape == "tet":
                points.append((x, y * (1 - x), z * (1 - x) * (1 - y)))
                factors.append(a * b * c * (1 - x) ** 2 * (1 - y))
            elif shape == "wedge":
                points.append((x, y * (1 - x), 2 * z - 1))
                factors.append(2 * a * b * c * (1 - x))
            else:
                points.append((2 * x - 1, 2 * y - 1, 2 * z - 1))
                factors.append(8 * a * b * c)
    return tuple(tuple(map(float, p)) for p in points), tuple(map(float, factors))


@cache
def solver_points(type_name: str) -> Points:
    """Return the natural points at which CalculiX integrates an element type, and so judges its Jacobian."""
    kind = ELEMENT_TYPES[type_name]
    shape, count = kind.family.shape, kind.points_per_edge
    if shape in ("quad", "hex"):
        return quadrature(shape, count)[0]
    if count == 1:
        middle = {"tri": ((1 / 3, 1 / 3),), "tet": ((0.25, 0.25, 0.25),)}
        return middle.get(shape) or tuple((1 / 3, 1 / 3, z) for z in (-(3**-0.5), 3**-0.5))
    if shape == "tet":
        near, far = (5 - 5**0.5) / 20, (5 + 3 * 5**0.5) / 20
        return tuple(tuple(far if axis == k else near for axis in range(3)) for k in range(4))
    inside = ((1 / 6, 1 / 6), (2 / 3, 1 / 6), (1 / 6, 2 / 3))
    return inside if shape == "tri" else tuple((*p, z) for p in inside for z in (-(0.6**0.5), 0.0, 0.6**0.5))

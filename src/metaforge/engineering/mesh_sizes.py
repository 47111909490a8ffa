"""How fine to mesh: element size, wall thickness, and how many elements that makes."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from metaforge.core.errors import FailureMode, ToolError
from metaforge.engineering.mesh import Floats, Ids

FEWEST_ELEMENTS = 3_000
"""A default size is made fine enough for this many: the solve stays well under a second."""
DEFAULT_MOST_ELEMENTS = 60_000
"""A default size is kept coarse enough for this many: about a minute and 1 GB with a direct solver on one core."""
MOST_ELEMENTS = 400_000
"""More than this is refused: it would need tens of gigabytes to solve."""
SIDES_PER_PART = 10
ELEMENTS_PER_WALL = 2
TETRAHEDRA_PER_TRIANGLE = 1.5
"""The fewest that a surface mesh leads to: a one-layer sheet holds three per pair of opposite triangles."""
WALL_SHARE = 0.1
"""The wall estimate is the thickness that a tenth of the surface, by area, falls below."""

COARSE_WALLS = 3.0
"""The mean wall (2 V / A) is the wall of a sheet, and a third of the edge of a cube."""

GIVEN = "given"

Triangles = Callable[[float], Floats]
"""Mesh the surfaces with a size in mm: corners of triangles, shape (t, 3, 3)."""


@dataclass(frozen=True)
class CadFace:
    """One face of the CAD model: the mesher's tag, type and area."""

    tag: int
    type: str
    area_mm2: float


@dataclass(frozen=True)
class Geometry:
    """What the mesher read.

    Attributes:
        bbox_mm: of the CAD model; may be larger than the part where faces are splines.
        faces: outer faces; those between two touching solids are left out.
    """

    solids: int
    volume_mm3: float
    area_mm2: float
    bbox_mm: tuple[float, float, float, float, float, float]
    faces: tuple[CadFace, ...]
    warnings: tuple[str, ...] = ()

    @property
    def all_planes(self) -> bool:
        return all(face.type == "Plane" for face in self.faces)

    @property
    def longest_mm(self) -> float:
        return max(self.bbox_mm[k + 3] - self.bbox_mm[k] for k in range(3))

    @property
    def mean_wall_mm(self) -> float:
        """Twice the volume over the area: the wall of a thin sheet, less than it for a chunky part."""
        return 2 * self.volume_mm3 / self.area_mm2


@dataclass(frozen=True)
class Size:
    """An element size and where it comes from.

    Attributes:
        wall_mm: estimated wall thickness; 0 where the size was given.
        fits_mm: the size that follows the walls of the part.
    """

    size_mm: float
    reason: str
    wall_mm: float
    fits_mm: float
    warnings: tuple[str, ...] = field(default=())

    @property
    def is_default(self) -> bool:
        return self.reason != GIVEN

    def warn(self, text: str) -> "Size":
        return replace(self, warnings=(*self.warnings, text))


def most_elements(geometry: Geometry, size_mm: float) -> int:
    """Estimate the number of tetrahedra: space filled with regular ones, or a thin sheet covered once.

    Measured: meshes of boxes, brackets and spheres hold 5 to 6 V / s3 (edges inside are longer than the size asked).
    A triangle of edge s covers sqrt 3 / 4 s2, and a one-layer sheet holds three tetrahedra per triangle of its middle
    surface.
    """
    filled = 6 * geometry.volume_mm3 / size_mm**3
    covered = 3 * (geometry.area_mm2 / 2) / (math.sqrt(3) / 4 * size_mm**2)
    return int(max(filled, covered))


def size_for(geometry: Geometry, count: int) -> float:
    """Return the element size in mm that makes about `count` elements."""
    low, high = geometry.longest_mm * 1e-5, geometry.longest_mm
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if most_elements(geometry, middle) > count else (low, middle)
    return high


def choose_size(geometry: Geometry, size_mm: float | None, triangles: Triangles) -> Size:
    """Choose the element size: what was asked, else min(longest side / 10, wall / 2) within bounds of count."""
    if size_mm is not None:
        return _given_size(geometry, size_mm)
    by_part = geometry.longest_mm / SIDES_PER_PART
    wall = wall_thickness_mm(triangles(min(by_part, 4 * geometry.mean_wall_mm))) or geometry.mean_wall_mm
    by_wall = wall / ELEMENTS_PER_WALL
    wanted, reason = (by_part, "longest side / 10") if by_part < by_wall else (by_wall, "wall / 2")
    finest, coarsest = size_for(geometry, DEFAULT_MOST_ELEMENTS), size_for(geometry, FEWEST_ELEMENTS)
    if wanted > coarsest:
        return Size(_round(coarsest), f"at least {FEWEST_ELEMENTS} elements", wall, _round(wall))
    if wanted >= finest:
        return Size(_round(wanted), reason, wall, _round(wall))
    warning = (
        f"element size {finest:.3g} mm keeps the mesh near {DEFAULT_MOST_ELEMENTS} elements; {reason} would be "
        f"{wanted:.3g} mm and about {most_elements(geometry, wanted)} elements: the wall of about {wall:.3g} mm has "
        f"{max(1, round(wall / finest))} element(s) through it. Set element_size_mm to go finer"
    )
    return Size(_round(finest), f"at most {DEFAULT_MOST_ELEMENTS} elements", wall, _round(wall), (warning,))


def _given_size(geometry: Geometry, size_mm: float) -> Size:
    fits = _round(geometry.mean_wall_mm)
    size = Size(size_mm, GIVEN, 0.0, fits)
    if size_mm <= COARSE_WALLS * geometry.mean_wall_mm:
        return size
    return size.warn(
        f"element_size_mm {size_mm:g} is coarser than the part is thick: one element or less through it, and stresses "
        f"can be far off; use element_size_mm {fits:g} or less, or leave it out"
    )


def refuse_too_many(geometry: Geometry, size: Size, count: int) -> None:
    """Refuse a mesh that is too large to be solved.

    Raises:
        ToolError: above 400,000 elements, with the number and the size that would fit.
    """
    if count <= MOST_ELEMENTS:
        return
    fits = _round(max(size_for(geometry, MOST_ELEMENTS // 2), size.size_mm * (count / (MOST_ELEMENTS / 2)) ** (1 / 3)))
    raise ToolError(
        f"An element size of {size.size_mm:.4g} mm makes about {count} elements; the limit is {MOST_ELEMENTS}",
        kind="too_many_elements",
        fix=f"use element_size_mm {fits:.3g} or more (about {MOST_ELEMENTS // 2} elements)",
        failure_mode=FailureMode.LIMIT,
        element_count=count,
        suggested_size_mm=fits,
    )


def wall_thickness_mm(triangles: Floats) -> float:
    """Estimate the wall thickness of a closed surface; 0 where no two faces stand opposite.

    From inside up to 400 triangles a ray goes straight into the part; where it leaves through a face within 45 degrees
    of parallel, its length is the thickness there. The estimate is the thickness that a tenth of the surface falls
    below, by area.

    Args:
        triangles: corners of the surface's triangles in any orientation, shape (t, 3, 3).
    """
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    doubled = np.linalg.norm(normals, axis=1)
    kept = doubled > 0
    triangles, normals, doubled = triangles[kept], normals[kept] / doubled[kept, None], doubled[kept]
    count = len(triangles)
    if not count:
        return 0.0
    samples = np.unique(np.linspace(0, count - 1, int(np.clip(4_000_000 // count, 60, 400))).astype(int))
    found = np.array([_thickness_mm(triangles, normals, int(row)) for row in samples])
    hit = np.isfinite(found)
    if not hit.any():
        return 0.0
    # Sorted by thickness, weighted by the triangle's own area.
    order = np.argsort(found[hit])
    share = np.cumsum(doubled[samples][hit][order])
    return float(found[hit][order][np.searchsorted(share, WALL_SHARE * share[-1])])


# Off centre, so that a ray does not run along an edge of a regular mesh on the other side.
_START = np.array([0.29, 0.34, 0.37])


def _thickness_mm(triangles: Floats, normals: Floats, row: int) -> float:
    """Return how far it is through the part from inside one triangle; infinity where that says nothing."""
    origin = _START @ triangles[row]
    rows, distances = _crossings(triangles, origin, normals[row])
    elsewhere = rows != row
    rows, distances = rows[elsewhere], distances[elsewhere]
    ahead = distances > 0
    # From a closed surface, the side with an odd number of crossings is the inside.
    odd_ahead, odd_behind = ahead.sum() % 2 == 1, (~ahead).sum() % 2 == 1
    if odd_ahead == odd_behind:
        return math.inf
    inside = ahead if odd_ahead else ~ahead
    nearest = np.flatnonzero(inside)[np.abs(distances[inside]).argmin()]
    parallel = abs(float(normals[rows[nearest]] @ normals[row])) > math.cos(math.pi / 4)
    return float(abs(distances[nearest])) if parallel else math.inf


def _crossings(triangles: Floats, origin: Floats, direction: Floats) -> tuple[Ids, Floats]:
    """Return which triangles a line crosses and how far from its origin (Moeller and Trumbore)."""
    a = triangles[:, 0]
    edge1, edge2 = triangles[:, 1] - a, triangles[:, 2] - a
    cross = np.cross(direction, edge2)
    determinant = (edge1 * cross).sum(axis=1)
    offset = origin - a
    turned = np.cross(offset, edge1)
    with np.errstate(divide="ignore", invalid="ignore"):
        u = (offset * cross).sum(axis=1) / determinant
        v = (turned @ direction) / determinant
        distance = (edge2 * turned).sum(axis=1) / determinant
        through = (u >= 0) & (v >= 0) & (u + v <= 1) & np.isfinite(distance)
    rows = np.flatnonzero(through)
    return rows, distance[rows]


def _round(value: float) -> float:
    """Keep three figures: a size is an estimate."""
    return float(f"{value:.3g}")

"""Drive gmsh: geometry in, raw tetrahedra out.

One session at a time in one process; gmsh keeps global state and reports every fault as a bare Exception.
"""

from dataclasses import dataclass
from types import TracebackType
from typing import Any

import gmsh
import numpy as np
from numpy.typing import NDArray

from metaforge.core.errors import ToolError
from metaforge.engineering.heartbeat import Progress, heartbeat
from metaforge.engineering.mesh import Floats, Ids
from metaforge.engineering.mesh_sizes import Geometry
from metaforge.engineering.meshing_geometry import faults, read_geometry
from metaforge.engineering.meshing_input import Source
from metaforge.engineering.raw_mesh import RawMesh

ALGORITHMS = {"delaunay": 1, "frontal": 4, "hxt": 10}


@dataclass(frozen=True)
class Curves:
    """How closely curved faces are followed.

    Attributes:
        around: elements around a full circle.
        shrink_ratio: element size over the smallest size they may take for it.
        spread: whether small elements on edges keep the faces and the volume beside them small.
    """

    around: int
    shrink_ratio: float
    spread: bool


FINE_CURVES = Curves(12, 8.0, True)
COARSE_CURVES = Curves(8, 4.0, False)
SLIVER_RATIO = 0.05
"""Inscribed over circumscribed radius, times three: below this, elements are rearranged."""

# gmsh lists the last two mid-edge nodes of a tetrahedron the other way round.
_TET10_TO_C3D10 = [0, 1, 2, 3, 4, 5, 6, 7, 9, 8]


class Session:
    """A gmsh model from import to mesh. Use it as a context."""

    def __init__(self, algorithm: str = "delaunay") -> None:
        if algorithm not in ALGORITHMS:
            raise ToolError(f"algorithm is one of {', '.join(ALGORITHMS)}, not {algorithm!r}", kind="bad_algorithm")
        self._algorithm = ALGORITHMS[algorithm]
        self.version = str(gmsh.__version__)
        self._mm = 1.0
        """One length unit of gmsh's model."""

    def __enter__(self) -> "Session":
        # Without a user's own option files: the same call must make the same mesh anywhere.
        gmsh.initialize(readConfigFiles=False, interruptible=False)
        for name, value in (
            ("General.Terminal", 0),
            ("General.NumThreads", 1),
            ("Geometry.OCCImportLabels", 0),
            ("Mesh.Algorithm3D", self._algorithm),
            ("Mesh.Optimize", 1),
        ):
            gmsh.option.setNumber(name, value)
        gmsh.option.setString("Geometry.OCCTargetUnit", "MM")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        gmsh.finalize()

    def load(self, source: Source) -> Geometry:
        """Read the geometry.

        Raises:
            ToolError: unreadable, without geometry, or without a closed solid.
        """
        geometry, self._mm = read_geometry(source)
        return geometry

    def surface_triangles(self, size_mm: float) -> Floats:
        """Mesh the outer faces coarsely; return corners of triangles, shape (t, 3, 3)."""
        self.mesh_surfaces(size_mm, COARSE_CURVES)
        tags, flat, _ = gmsh.model.mesh.getNodes()
        points = flat.reshape(-1, 3)[np.argsort(tags)]
        ids = np.sort(tags)
        outer = [tag for _, tag in gmsh.model.getEntities(2) if len(gmsh.model.getAdjacencies(2, tag)[0]) == 1]
        found = [points[np.searchsorted(ids, _triangles(tag))] for tag in outer]
        return np.asarray(np.concatenate(found) * self._mm, dtype=np.float64)

    def mesh_surfaces(self, size_mm: float, curves: Curves = FINE_CURVES) -> int:
        """Mesh edges and faces; return the number of triangles."""
        gmsh.model.mesh.clear()
        for name, value in (
            ("Mesh.MeshSizeMax", size_mm / self._mm),
            ("Mesh.MeshSizeMin", size_mm / self._mm / curves.shrink_ratio),
            ("Mesh.MeshSizeFromCurvature", curves.around),
            ("Mesh.MeshSizeExtendFromBoundary", int(curves.spread)),
            ("Mesh.ElementOrder", 1),
        ):
            gmsh.option.setNumber(name, value)
        with faults(f"The faces cannot be meshed at {size_mm:.4g} mm", "meshing_failed", _SMALLER):
            gmsh.model.mesh.generate(2)
        return sum(len(_triangles(tag)) for _, tag in gmsh.model.getEntities(2))

    def mesh_volumes(self, order: int, progress: Progress) -> RawMesh:
        """Fill the meshed surfaces with tetrahedra."""
        with (
            heartbeat(progress, 0.3, 0.8, "filling the volume"),
            faults("The volume cannot be meshed", "meshing_failed", _SMALLER),
        ):
            gmsh.model.mesh.generate(3)
            tags = gmsh.model.mesh.getElementsByType(4)[0]
            if len(tags) and gmsh.model.mesh.getElementQualities(tags, "gamma").min() < SLIVER_RATIO:
                gmsh.model.mesh.optimize("Netgen")
            if order == 2:
                gmsh.model.mesh.setOrder(2)
        return _extract(order, self._mm)

    def untangle(self, order: int, progress: Progress) -> RawMesh:
        """Move mid-edge nodes until elements are no longer inside out, where that is possible."""
        with (
            heartbeat(progress, 0.85, 0.95, "untangling curved elements"),
            faults("Curved elements cannot be untangled", "meshing_failed", _SMALLER),
        ):
            gmsh.model.mesh.optimize("HighOrder")
        return _extract(order, self._mm)


_SMALLER = (
    "try a smaller element_size_mm or another algorithm; if it fails again the faces of the part cross or overlap: "
    "repair it in the CAD system"
)


def _triangles(tag: int) -> Ids:
    """Return corner node tags of the triangles of a CAD face."""
    kinds, _, nodes = gmsh.model.mesh.getElements(2, tag)
    for kind, flat in zip(kinds, nodes, strict=True):
        if kind in (2, 9):
            return np.asarray(flat.reshape(-1, 3 if kind == 2 else 6)[:, :3], dtype=np.int64)
    return np.empty((0, 3), dtype=np.int64)


def _extract(order: int, mm: float) -> RawMesh:
    kind, width = (11, 10) if order == 2 else (4, 4)
    parts: list[Ids] = []
    solids: dict[str, Ids] = {}
    first = 1
    for number, (_, volume) in enumerate(gmsh.model.getEntities(3), start=1):
        _, flat = gmsh.model.mesh.getElementsByType(kind, volume)
        part = np.asarray(flat, dtype=np.int64).reshape(-1, width)
        if not len(part):
            raise ToolError(
                f"solid {number} got no elements: its surface is not closed (open edges)",
                kind="surface_not_closed",
                fix="repair the solid in the CAD system",
            )
        parts.append(part)
        solids[f"solid_{number}"] = np.arange(first, first + len(part), dtype=np.int64)
        first += len(part)
    tets = np.concatenate(parts)
    if order == 2:
        tets = tets[:, _TET10_TO_C3D10]
    tags, flat_points, _ = gmsh.model.mesh.getNodes()
    used = np.unique(tets)
    sort = np.argsort(tags)
    rows = sort[np.searchsorted(tags, used, sorter=sort)]

    def renumber(nodes: NDArray[Any]) -> Ids:
        return np.asarray(np.searchsorted(used, nodes) + 1, dtype=np.int64)

    return RawMesh(
        node_ids=np.arange(1, len(used) + 1, dtype=np.int64),
        coordinates_mm=np.asarray(flat_points.reshape(-1, 3)[rows], dtype=np.float64) * mm,
        tetrahedra=renumber(tets),
        solids=solids,
        triangles={tag: renumber(_triangles(tag)) for _, tag in gmsh.model.getEntities(2)},
    )

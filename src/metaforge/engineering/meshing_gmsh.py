"""Drive gmsh: geometry in, raw tetrahedra out. The only module that imports it.

One session at a time in one process; gmsh keeps global state and reports every fault as a bare Exception.
"""

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import gmsh
import numpy as np
from numpy.typing import NDArray

from metaforge.core.errors import FailureMode, ToolError
from metaforge.engineering.heartbeat import Progress, heartbeat
from metaforge.engineering.mesh import Floats, Ids
from metaforge.engineering.mesh_sizes import CadFace, Geometry
from metaforge.engineering.meshing_input import Source
from metaforge.engineering.raw_mesh import RawMesh
from metaforge.formats.step_header import size_warning

Bounds = tuple[float, float, float, float, float, float]
"""Least x, y, z and greatest x, y, z."""
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
SEWING_MM = 1e-5
"""Gap below which edges of loose faces count as one."""
LONGEST_MM = 131072.0
"""Longest side that is meshed as it is. gmsh compares points with a tolerance of its own, in absolute length: on a
part of a kilometre it loses the curve under a node, and ends with an error or a crash. Larger parts are meshed smaller.
"""

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
        self._import(source)
        warnings: list[str] = []
        if not gmsh.model.getEntities(3):
            warnings.append(_sew(source.name, SEWING_MM / self._mm))
        solids = gmsh.model.getEntities(3)
        total = self._volume_mm3(solids)
        if len(solids) > 1:
            solids = self._fragment(solids, total, warnings)
        faces = [tag for _, tag in gmsh.model.getEntities(2)]
        outer = [tag for tag in faces if len(gmsh.model.getAdjacencies(2, tag)[0]) == 1]
        shared = sum(len(gmsh.model.getAdjacencies(2, tag)[0]) > 1 for tag in faces)
        if shared:
            warnings.append(f"{len(solids)} solids touch at {shared} faces and are meshed as bonded (shared nodes)")
        cad = tuple(
            CadFace(tag, str(gmsh.model.getType(2, tag)), float(gmsh.model.occ.getMass(2, tag)) * self._mm**2)
            for tag in outer
        )
        volume = self._volume_mm3(solids)
        if not volume > 0:
            raise ToolError(
                f"{source.name}: the solid's volume is {volume:g} mm3: its faces point inward or it is degenerate",
                kind="bad_solid",
                fix="repair the solid in the CAD system and export it again",
            )
        box = self._bounds_mm()
        warnings += filter(None, [size_warning(source.header, _longest(box))])
        return Geometry(
            solids=len(solids),
            volume_mm3=volume,
            area_mm2=sum(face.area_mm2 for face in cad),
            bbox_mm=box,
            faces=cad,
            warnings=tuple(warnings),
        )

    def _import(self, source: Source) -> None:
        """Read a file; a very large part is read smaller, by a power of two, which changes no digit."""
        with _faults(f"{source.name} cannot be read", "unreadable_geometry", "export the part again as AP214 or AP242"):
            _import_step(source)
            gmsh.model.occ.synchronize()
            if not gmsh.model.getEntities() or (longest := _longest(self._bounds_mm())) <= LONGEST_MM:
                return
            gmsh.model.occ.remove(gmsh.model.occ.getEntities(), recursive=True)
            gmsh.model.occ.synchronize()
            self._mm = 2.0 ** math.ceil(math.log2(longest / LONGEST_MM))
            gmsh.option.setNumber("Geometry.OCCScaling", 1 / self._mm)
            _import_step(source)
            gmsh.model.occ.synchronize()

    def _bounds_mm(self) -> Bounds:
        x, y, z, far_x, far_y, far_z = (value * self._mm for value in gmsh.model.getBoundingBox(-1, -1))
        return (x, y, z, far_x, far_y, far_z)

    def _volume_mm3(self, solids: list[tuple[int, int]]) -> float:
        return float(sum(gmsh.model.occ.getMass(3, tag) for _, tag in solids)) * self._mm**3

    def _fragment(self, solids: list[tuple[int, int]], total: float, warnings: list[str]) -> list[tuple[int, int]]:
        with _faults("The solids cannot be cut against each other", "solids_not_mergeable", "mesh them one by one"):
            gmsh.model.occ.fragment(solids[:1], solids[1:])
            gmsh.model.occ.synchronize()
        pieces: list[tuple[int, int]] = gmsh.model.getEntities(3)
        overlap = total - self._volume_mm3(pieces)
        if overlap > 1e-6 * total:
            warnings.append(
                f"solids overlap by {overlap:.4g} mm3 of {total:.6g} mm3: the {len(solids)} solids became "
                f"{len(pieces)} pieces; overlapping space is meshed once"
            )
        return pieces

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
        with _faults(f"The faces cannot be meshed at {size_mm:.4g} mm", "meshing_failed", _SMALLER):
            gmsh.model.mesh.generate(2)
        return sum(len(_triangles(tag)) for _, tag in gmsh.model.getEntities(2))

    def mesh_volumes(self, order: int, progress: Progress) -> RawMesh:
        """Fill the meshed surfaces with tetrahedra."""
        with (
            heartbeat(progress, 0.3, 0.8, "filling the volume"),
            _faults("The volume cannot be meshed", "meshing_failed", _SMALLER),
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
            _faults("Curved elements cannot be untangled", "meshing_failed", _SMALLER),
        ):
            gmsh.model.mesh.optimize("HighOrder")
        return _extract(order, self._mm)


_SMALLER = (
    "try a smaller element_size_mm or another algorithm; if it fails again the faces of the part cross or overlap: "
    "repair it in the CAD system"
)


def _import_step(source: Source) -> None:
    if source.data is None:
        # The suffix chooses the reader; a caller's may be in capitals or .p21.
        gmsh.model.occ.importShapes(str(source.path), format="step")
        return
    with tempfile.NamedTemporaryFile(suffix=".step") as copy:
        copy.write(source.data)
        copy.flush()
        gmsh.model.occ.importShapes(copy.name, format="step")


_SEW = "make the faces a solid in the CAD system and export it again"


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


def _longest(box: Bounds) -> float:
    return max(box[axis + 3] - box[axis] for axis in range(3))


def _sew(name: str, gap: float) -> str:
    """Sew loose faces into solids and return what to tell.

    Args:
        name: of the file.
        gap: below which edges count as one, in the model's length unit.

    Raises:
        ToolError: no geometry, or faces that do not close a volume.
    """
    count = len(gmsh.model.getEntities(2))
    if not count:
        raise ToolError(
            f"{name} has no geometry: it parses, but holds no solid and no face",
            kind="no_geometry",
            fix="export the part itself, not only its product structure",
        )
    with _faults("The faces cannot be sewn", "surface_not_closed", _SEW):
        gmsh.model.occ.healShapes([], gap, False, False, False, sewFaces=True, makeSolids=True)
        gmsh.model.occ.synchronize()
    faces, solids = gmsh.model.getEntities(2), len(gmsh.model.getEntities(3))
    if solids and all(len(gmsh.model.getAdjacencies(2, tag)[0]) for _, tag in faces):
        return f"{name} holds {count} loose faces and no solid: they were sewn into {solids} solid(s), check the volume"
    open_edges = sum(len(gmsh.model.getAdjacencies(1, tag)[0]) == 1 for _, tag in gmsh.model.getEntities(1))
    state = f"is not closed ({open_edges} open edges)" if open_edges else "does not close one volume when sewn"
    raise ToolError(
        f"{name} has {count} faces and no solid: its surface {state}, so it has no volume to mesh",
        kind="surface_not_closed",
        fix=_SEW,
        open_edges=open_edges,
    )


@contextmanager
def _faults(what: str, kind: str, fix: str) -> Iterator[None]:
    try:
        yield
    except MemoryError:
        raise
    except Exception as fault:
        # gmsh raises nothing narrower than Exception.
        raise ToolError(f"{what}: {fault}", kind=kind, fix=fix, failure_mode=FailureMode.INPUT) from fault

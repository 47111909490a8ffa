"""Read a STEP file into gmsh: solids, sewn where they came as faces, cut against each other where they touch.

A session of `meshing_gmsh` must be open.
"""

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import gmsh

from metaforge.core.errors import FailureMode, ToolError
from metaforge.engineering.mesh_sizes import CadFace, Geometry
from metaforge.engineering.meshing_input import Source
from metaforge.formats.step_header import size_warning

Bounds = tuple[float, float, float, float, float, float]
"""Least x, y, z and greatest x, y, z."""
SEWING_MM = 1e-5
"""Gap below which edges of loose faces count as one."""
LONGEST_MM = 131072.0
"""Longest side that is meshed as it is. gmsh compares points with a tolerance of its own, in absolute length: on a
part of a kilometre it loses the curve under a node, and ends with an error or a crash. Larger parts are meshed smaller.
"""


def read_geometry(source: Source) -> tuple[Geometry, float]:
    """Read the geometry; return it, and the length in mm of one unit of gmsh's model.

    Raises:
        ToolError: unreadable, without geometry, or without a closed solid.
    """
    model = _Model(source)
    return model.load(), model.mm


class _Model:
    """What gmsh holds, in its own unit."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.mm = 1.0

    def load(self) -> Geometry:
        source = self._source
        self._import(source)
        warnings: list[str] = []
        if not gmsh.model.getEntities(3):
            warnings.append(_sew(source.name, SEWING_MM / self.mm))
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
            CadFace(tag, str(gmsh.model.getType(2, tag)), float(gmsh.model.occ.getMass(2, tag)) * self.mm**2)
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
        with faults(f"{source.name} cannot be read", "unreadable_geometry", "export the part again as AP214 or AP242"):
            _import_step(source)
            gmsh.model.occ.synchronize()
            if not gmsh.model.getEntities() or (longest := _longest(self._bounds_mm())) <= LONGEST_MM:
                return
            gmsh.model.occ.remove(gmsh.model.occ.getEntities(), recursive=True)
            gmsh.model.occ.synchronize()
            self.mm = 2.0 ** math.ceil(math.log2(longest / LONGEST_MM))
            gmsh.option.setNumber("Geometry.OCCScaling", 1 / self.mm)
            _import_step(source)
            gmsh.model.occ.synchronize()

    def _bounds_mm(self) -> Bounds:
        x, y, z, far_x, far_y, far_z = (value * self.mm for value in gmsh.model.getBoundingBox(-1, -1))
        return (x, y, z, far_x, far_y, far_z)

    def _volume_mm3(self, solids: list[tuple[int, int]]) -> float:
        return float(sum(gmsh.model.occ.getMass(3, tag) for _, tag in solids)) * self.mm**3

    def _fragment(self, solids: list[tuple[int, int]], total: float, warnings: list[str]) -> list[tuple[int, int]]:
        with faults("The solids cannot be cut against each other", "solids_not_mergeable", "mesh them one by one"):
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
    with faults("The faces cannot be sewn", "surface_not_closed", _SEW):
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
def faults(what: str, kind: str, fix: str) -> Iterator[None]:
    """Tell gmsh's bare exceptions as errors of one kind."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as fault:
        # gmsh raises nothing narrower than Exception.
        raise ToolError(f"{what}: {fault}", kind=kind, fix=fix, failure_mode=FailureMode.INPUT) from fault

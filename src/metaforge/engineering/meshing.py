"""Turn a STEP file into a mesh that can be trusted: sized, checked against the CAD volume, its faces named.

Only an adapter's own process may call this: gmsh can crash, print and hang.
"""

import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from metaforge.core.errors import FailureMode, InvalidArguments, ToolError
from metaforge.engineering import faces, meshing_gmsh
from metaforge.engineering.heartbeat import Progress, heartbeat, no_progress
from metaforge.engineering.mesh import Ids, Mesh, Surface
from metaforge.engineering.mesh_quality import Quality, measure
from metaforge.engineering.mesh_sizes import (
    DEFAULT_MOST_ELEMENTS,
    MOST_ELEMENTS,
    TETRAHEDRA_PER_TRIANGLE,
    Geometry,
    Size,
    choose_size,
    most_elements,
    refuse_too_many,
)
from metaforge.engineering.meshing_input import read_input
from metaforge.engineering.raw_mesh import RawMesh
from metaforge.engineering.surface_geometry import face_nodes, measure_surface, outward_triangles
from metaforge.formats.stl import write_stl

PLANE_VOLUME_TOLERANCE_RATIO = 1e-3
"""A part with flat faces only has exactly the CAD volume once meshed; anything else is a broken mesh."""
CURVED_VOLUME_WARNING_RATIO = 5e-3
CURVED_VOLUME_LIMIT_RATIO = 0.1

_KINDS = {"Plane": "plane", "Cylinder": "cylinder", "Cone": "cone", "Sphere": "sphere", "Torus": "torus"}


@dataclass(frozen=True)
class MeshResult:
    """A mesh and what was found out on the way.

    Attributes:
        mesh: node coordinates in the frame of the STEP file with every assembly placement applied; surfaces
            `face_1` ..., node sets `N_face_1` ..., element sets `solid_1` ...; every block has section `EALL`.
        size_mm: element size that was used.
        size_reason: where it comes from.
        wall_mm: wall thickness estimate behind a default size; 0 when the size was given.
        quality: measures of every element.
        volume_mm3: of the mesh.
        cad_volume_mm3, cad_area_mm2: of the CAD model; shared faces of touching solids are not part of the area.
        solids: number of solids.
        bodies: number of parts that share no node with each other.
        placement_baked: whether the file places its parts by a transform, which is part of the coordinates here.
        warnings: sentences with numbers.
        program: name and version of the mesher.
    """

    mesh: Mesh
    size_mm: float
    size_reason: str
    wall_mm: float
    quality: Quality
    volume_mm3: float
    cad_volume_mm3: float
    cad_area_mm2: float
    solids: int
    bodies: int
    placement_baked: bool
    warnings: tuple[str, ...]
    program: tuple[str, str]


def mesh_step(
    path: Path,
    *,
    size_mm: float | None = None,
    order: int = 2,
    algorithm: str = "delaunay",
    progress: Progress = no_progress,
) -> MeshResult:
    """Mesh the solids of a STEP file with tetrahedra.

    Several solids are cut against each other, so that touching ones share nodes: they are bonded.

    Args:
        size_mm: element edge length; by default min(longest side / 10, wall / 2), within 3,000 to 60,000 elements.
        order: 2 for C3D10, 1 for C3D4.
        algorithm: `delaunay`, `frontal` or `hxt`.

    Raises:
        InvalidArguments: no STEP file, or a size or order that cannot be.
        ToolError: no closed solid, too many elements, or elements that no solver can use.
    """
    if order not in (1, 2):
        raise InvalidArguments(f"order is 1 (C3D4) or 2 (C3D10), not {order}", fields={"order": "1 or 2"})
    if size_mm is not None and not 0 < size_mm < math.inf:
        raise InvalidArguments(f"element_size_mm must be above 0, not {size_mm:g}", fields={"element_size_mm": "> 0"})
    source = read_input(path)
    with meshing_gmsh.Session(algorithm) as session:
        with heartbeat(progress, 0.02, 0.06, f"reading {path.name}"):
            geometry = session.load(source)
        with heartbeat(progress, 0.06, 0.1, "choosing the element size"):
            size = choose_size(geometry, size_mm, session.surface_triangles)
        refuse_too_many(geometry, size, most_elements(geometry, size.size_mm))
        size = _mesh_surfaces(session, geometry, size, progress)
        raw = session.mesh_volumes(order, progress)
        refuse_too_many(geometry, size, len(raw.tetrahedra))
        progress(0.85, f"checking {len(raw.tetrahedra)} elements")
        mesh = _mesh_of(raw, geometry, order)
        quality = measure(mesh)
        if len(quality.negative_ids):
            raw = session.untangle(order, progress)
            mesh = _mesh_of(raw, geometry, order)
            quality = measure(mesh)
    _refuse_inside_out(quality, size, order)
    warnings = [*source.warnings, *geometry.warnings, *size.warnings, *_volume_warnings(geometry, quality, size)]
    bodies = _bodies(mesh)
    if bodies > 1:
        warnings.append(f"{bodies} bodies share no node: each needs its own supports")
    return MeshResult(
        mesh=mesh,
        size_mm=size.size_mm,
        size_reason=size.reason,
        wall_mm=size.wall_mm,
        quality=quality,
        volume_mm3=quality.volume_mm3,
        cad_volume_mm3=geometry.volume_mm3,
        cad_area_mm2=geometry.area_mm2,
        solids=geometry.solids,
        bodies=bodies,
        placement_baked=source.placed,
        warnings=tuple(warnings),
        program=("gmsh", session.version),
    )


def _mesh_surfaces(session: meshing_gmsh.Session, geometry: Geometry, size: Size, progress: Progress) -> Size:
    """Mesh the faces; where small curves would make too many elements, follow them less closely."""
    most = 2 * DEFAULT_MOST_ELEMENTS if size.is_default else MOST_ELEMENTS / 2
    with heartbeat(progress, 0.1, 0.3, f"meshing {len(geometry.faces)} faces at {size.size_mm:.4g} mm"):
        count = session.mesh_surfaces(size.size_mm)
        if count * TETRAHEDRA_PER_TRIANGLE > most:
            coarse = meshing_gmsh.COARSE_CURVES
            count = session.mesh_surfaces(size.size_mm, coarse)
            size = size.warn(
                f"the part has many small curved faces: they are followed with {coarse.around} instead of "
                f"{meshing_gmsh.FINE_CURVES.around} elements around a circle; stresses in them are less exact"
            )
    refuse_too_many(geometry, size, int(count * TETRAHEDRA_PER_TRIANGLE))
    return size


def add_position_sets(mesh: Mesh) -> Mesh:
    """Return the mesh with the surfaces and node sets `top`, `bottom`, `left` ... beside its faces."""
    surfaces, nodes = dict(mesh.surfaces), dict(mesh.node_sets)
    for name, members in faces.positions(mesh.surfaces).items():
        joined = np.vstack([mesh.surfaces[member].faces for member in members])
        surfaces[name] = measure_surface(mesh, joined, "plane")
        nodes[f"N_{name}"] = np.unique(np.concatenate([mesh.node_sets[f"N_{member}"] for member in members]))
    return replace(mesh, surfaces=surfaces, node_sets=nodes)


def stl_bytes(mesh: Mesh) -> bytes:
    """Return the faces of the part as binary STL, curved ones in four flat triangles per element face."""
    members = np.vstack([surface.faces for name, surface in mesh.surfaces.items() if name.startswith("face_")])
    return write_stl(outward_triangles(mesh, members))


def _mesh_of(raw: RawMesh, geometry: Geometry, order: int) -> Mesh:
    mesh = Mesh(
        node_ids=raw.node_ids,
        coordinates_mm=raw.coordinates_mm,
        blocks=raw.blocks("C3D10" if order == 2 else "C3D4"),
        element_sets=raw.solids,
    )
    surfaces: dict[str, Surface] = {}
    node_sets: dict[str, Ids] = {}
    for number, (face, members) in enumerate(raw.match_faces(geometry.faces), start=1):
        surface = measure_surface(mesh, members)
        kind = _KINDS.get(face.type, surface.kind)
        surfaces[f"face_{number}"] = replace(
            surface, kind=kind, area_mm2=face.area_mm2 or surface.area_mm2, centroid_mm=surface.centroid_mm
        )
        found = [nodes.ravel() for _, nodes in face_nodes(mesh, members)]
        node_sets[f"N_face_{number}"] = np.unique(np.concatenate(found))
    return replace(mesh, surfaces=surfaces, node_sets=node_sets)


def _refuse_inside_out(quality: Quality, size: Size, order: int) -> None:
    count = len(quality.negative_ids)
    if not count:
        return
    worst = quality.bad_elements(1)[0]
    centre = ", ".join(f"{v:.4g}" for v in worst.centroid_mm)
    fits = size.fits_mm
    linear = ", or order 1 (linear elements, stiffer: expect stresses too low)" if order == 2 else ""
    raise ToolError(
        f"{count} of {len(quality.element_ids)} elements are turned inside out (scaled Jacobian at or below 0, worst "
        f"{worst.scaled_jacobian_ratio:.3g}): at {size.size_mm:.4g} mm they are too coarse for the curved thin walls "
        "of this part; nothing was solved",
        kind="bad_elements",
        where=f"element {worst.element_id} at [{centre}] mm",
        fix=f"mesh with element_size_mm {fits:.3g} or less (the wall is about {fits:.3g} mm){linear}",
        failure_mode=FailureMode.INPUT,
        bad_elements=count,
        element_count=len(quality.element_ids),
        min_scaled_jacobian_ratio=worst.scaled_jacobian_ratio,
        suggested_size_mm=fits,
    )


def _volume_warnings(geometry: Geometry, quality: Quality, size: Size) -> list[str]:
    off = quality.volume_mm3 / geometry.volume_mm3 - 1
    text = (
        f"the mesh holds {quality.volume_mm3:.6g} mm3, the CAD model {geometry.volume_mm3:.6g} mm3 ({off:+.2%}) at an "
        f"element size of {size.size_mm:.4g} mm"
    )
    limit = PLANE_VOLUME_TOLERANCE_RATIO if geometry.all_planes else CURVED_VOLUME_LIMIT_RATIO
    if abs(off) > limit:
        raise ToolError(
            f"The mesh is not the part: {text}",
            kind="mesh_volume_wrong",
            fix=f"mesh with element_size_mm {size.size_mm / 2:.3g}",
            failure_mode=FailureMode.INPUT,
        )
    return [text[0].upper() + text[1:]] if abs(off) > CURVED_VOLUME_WARNING_RATIO else []


def _bodies(mesh: Mesh) -> int:
    """Count the groups of solids that share nodes."""
    groups: list[set[int]] = []
    block = mesh.blocks[0]
    for ids in mesh.element_sets.values():
        nodes = set(np.unique(block.nodes[np.isin(block.ids, ids)]).tolist())
        touching = [group for group in groups if group & nodes]
        groups = [group for group in groups if not group & nodes]
        groups.append(nodes.union(*touching))
    return len(groups)

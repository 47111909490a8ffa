"""`freecad.generate_mesh`: mesh a STEP file and write it."""

from pathlib import PurePosixPath

from metaforge.adapters.freecad.answers import Box, MeshAnswer, QualityMetrics, SurfaceSet, Vector
from metaforge.core.errors import InvalidArguments
from metaforge.engineering import faces
from metaforge.engineering.mesh import Surface
from metaforge.engineering.meshing import MeshResult, add_position_sets, mesh_step, stl_bytes
from metaforge.formats.inp_mesh import write_mesh
from metaforge.formats.unv_mesh import write_unv
from metaforge.tools.context import Answer, OutputFile, Picture, ToolContext

MEDIA_TYPES = {"inp": "text/plain", "unv": "text/plain", "stl": "model/stl"}
LISTED_SURFACES = 40
"""More surface sets than this are in the file, the smallest of them not in the answer."""


def choose_output(input_file: str, output_path: str | None, output_format: str | None) -> tuple[str, str]:
    """Return path and format of the mesh file.

    Raises:
        InvalidArguments: a suffix that is no mesh format, or another one than `output_format`.
    """
    if output_path is None:
        chosen = output_format or "inp"
        return str(PurePosixPath(input_file).with_suffix(f".{chosen}")), chosen
    suffix = PurePosixPath(output_path).suffix.lower().lstrip(".")
    expected = [output_format] if output_format else list(MEDIA_TYPES)
    if suffix not in expected:
        allowed = ", ".join(f".{each}" for each in expected)
        raise InvalidArguments(
            f"output_path {output_path} must end in {allowed}", fields={"output_path": f"ends in {allowed}"}
        )
    return output_path, suffix


def generate(
    ctx: ToolContext,
    input_file: str,
    size_mm: float | None,
    algorithm: str,
    order: int,
    output: tuple[str, str],
    picture: bool,
) -> Answer[MeshAnswer]:
    """Mesh, write and describe."""
    made = mesh_step(ctx.input_file(input_file), size_mm=size_mm, order=order, progress=ctx.progress)
    path, chosen = output
    ctx.progress(0.95, f"writing {path}")
    answer = _describe(made, path)
    _write(ctx, made, path, chosen, answer)
    warnings = list(made.warnings)
    if algorithm != "gmsh":
        warnings.append(f"{algorithm} is not installed: gmsh meshed the part (Delaunay)")
    if answer.surface_set_count > len(answer.surface_sets):
        warnings.append(
            f"{answer.surface_set_count} surface sets are in the file; the {LISTED_SURFACES} largest are listed here"
        )
    pictures = [_draw(ctx, made, path, answer)] if picture else []
    return Answer(
        data=answer,
        summary=_summary(answer, made),
        warnings=tuple(warnings),
        next_step=_next_step(path) if chosen == "inp" else "",
        files=(OutputFile(path, MEDIA_TYPES[chosen], "mesh"),),
        pictures=tuple(pictures),
        programs=dict([made.program]),
    )


def _next_step(path: str) -> str:
    return (
        f"calculix.run_fea with mesh_file {path}, supports and loads on surface sets (force_n in the same axes), "
        "or calculix.validate_mesh"
    )


def _describe(made: MeshResult, path: str) -> MeshAnswer:
    mesh, quality = add_position_sets(made.mesh), made.quality
    largest = sorted(mesh.surfaces, key=lambda name: -mesh.surfaces[name].area_mm2)[:LISTED_SURFACES]
    listed = [name for name in mesh.surfaces if name in set(largest)]
    return MeshAnswer(
        mesh_file=path,
        num_nodes=mesh.node_count,
        num_elements=mesh.element_count,
        element_types=quality.types,
        quality_metrics=QualityMetrics(
            min_scaled_jacobian_ratio=_figures(quality.min_scaled_jacobian_ratio, 4),
            max_aspect_ratio=_figures(quality.max_aspect_ratio, 4),
            mean_aspect_ratio=_figures(float(quality.aspect_ratio.mean()), 4),
            worst_element_id=quality.worst_element_id,
            min_edge_mm=_figures(float(quality.min_edge_mm.min()), 4),
            max_edge_mm=_figures(float(quality.max_edge_mm.max()), 4),
            volume_error_ratio=_figures(made.volume_mm3 / made.cad_volume_mm3 - 1, 2),
        ),
        surface_sets={name: _surface(mesh.surfaces[name]) for name in listed},
        surface_set_count=len(mesh.surfaces),
        element_sets={name: len(ids) for name, ids in mesh.element_sets.items()},
        mesh_bbox_mm=_box(mesh.bbox_mm()),
        coordinate_frame="twin",
        placement_baked=made.placement_baked,
        element_size_mm=made.size_mm,
        element_size_from=made.size_reason,
        volume_mm3=_figures(made.volume_mm3, 9),
        mesher=f"{made.program[0]} {made.program[1]}, Delaunay",
    )


def _write(ctx: ToolContext, made: MeshResult, path: str, chosen: str, answer: MeshAnswer) -> None:
    target = ctx.output_file(path)
    if chosen == "stl":
        target.write_bytes(stl_bytes(made.mesh))
        return
    mesh = add_position_sets(made.mesh)
    if chosen == "unv":
        target.write_text(write_unv(mesh), encoding="ascii")
        return
    comments = [
        f"{answer.num_elements} {', '.join(answer.element_types)} elements, {answer.num_nodes} nodes, by "
        f"{answer.mesher}, element size {made.size_mm:g} mm; lengths in mm",
        "surfaces, each with a node set N_<name>:",
        *faces.describe(mesh.surfaces).splitlines(),
    ]
    text = write_mesh(mesh, {name: surface.faces for name, surface in mesh.surfaces.items()}, comments)
    target.write_text(text, encoding="ascii")


def _draw(ctx: ToolContext, made: MeshResult, path: str, answer: MeshAnswer) -> Picture:
    from metaforge.engineering.pictures_mesh import draw_mesh

    drawn = str(PurePosixPath(path).with_suffix(".png"))
    title = f"{PurePosixPath(path).stem}: {answer.num_elements} elements"
    quality = answer.quality_metrics
    subtitle = (
        f"{', '.join(answer.element_types)}, element size {made.size_mm:g} mm, worst scaled Jacobian "
        f"{quality.min_scaled_jacobian_ratio:.2g}, max aspect ratio {quality.max_aspect_ratio:.3g}"
    )
    draw_mesh(made.mesh, ctx.output_file(drawn), title, subtitle)
    return Picture(drawn, f"Mesh of {title}; {subtitle}")


def _summary(answer: MeshAnswer, made: MeshResult) -> str:
    types = ", ".join(f"{count} {name}" for name, count in answer.element_types.items())
    quality = answer.quality_metrics
    return (
        f"{answer.mesh_file}: {types}, {answer.num_nodes} nodes, element size {made.size_mm:g} mm "
        f"({made.size_reason}); {answer.volume_mm3:.6g} mm3 ({quality.volume_error_ratio:+.1e} of CAD); worst scaled "
        f"Jacobian {quality.min_scaled_jacobian_ratio:.2g}, max aspect ratio {quality.max_aspect_ratio:.3g}; "
        f"{answer.surface_set_count} surface sets."
    )


def _surface(surface: Surface) -> SurfaceSet:
    return SurfaceSet(
        bbox_mm=_box(surface.bbox_mm),
        centroid_mm=_vector(surface.centroid_mm),
        area_mm2=_figures(surface.area_mm2, 6),
        normal=_vector(surface.normal),
        kind=surface.kind,
    )


def _figures(value: float, count: int) -> float:
    return float(f"{value:.{count}g}")


def _box(box: Box) -> Box:
    low, high = _vector(box[:3]), _vector(box[3:])
    return (*low, *high)


def _vector(values: Vector) -> Vector:
    # Rounded to a nanometre; adding 0 turns -0 into 0.
    x, y, z = (round(value, 6) + 0.0 for value in values)
    return (x, y, z)

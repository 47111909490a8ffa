"""`create_parametric`: build, guard, measure, write, show."""

from pathlib import PurePosixPath
from typing import Any

from metaforge.adapters.cadquery import results, shapes
from metaforge.adapters.cadquery.kernel_errors import tells_kernel_errors
from metaforge.adapters.cadquery.material import density_of
from metaforge.adapters.cadquery.measure import facts
from metaforge.adapters.cadquery.model import model_of
from metaforge.adapters.cadquery.parameters import parse_parameters
from metaforge.adapters.cadquery.show import draw
from metaforge.adapters.cadquery.versions import programs
from metaforge.adapters.cadquery.write import write_step
from metaforge.core.errors import FailureMode, ToolError
from metaforge.engineering.solid_guard import SolidFacts, check_solid
from metaforge.tools.context import Answer, ToolContext


@tells_kernel_errors
def create(
    ctx: ToolContext,
    shape_type: str,
    parameters: dict[str, Any],
    output_path: str,
    material: str | None,
    picture: bool,
) -> Answer[results.ShapeResult]:
    """Make one parametric shape and its STEP file."""
    parsed = parse_parameters(shape_type, parameters)
    density = density_of(material)
    name = PurePosixPath(output_path).stem
    parts = shapes.build(shape_type, parsed, name)
    model = model_of(parts, name)
    measured = facts(model.shape)
    warnings = check_solid(measured, shape_type, expected_solids_count=len(parts))
    _check_size(shape_type, parsed, measured)
    files = [write_step(ctx, model, output_path)]
    mass_kg = measured.volume_mm3 * density * 1e-9 if density else None
    weight = f", mass {mass_kg:.4g} kg" if mass_kg else ""
    summary = (
        f"{shape_type} {output_path}: {results.size_words(measured)}, volume {measured.volume_mm3:.6g} mm3, "
        f"area {measured.area_mm2:.6g} mm2{weight}, {measured.solids_count} valid solid(s). {shapes.AXES[shape_type]}."
    )
    pictures = draw(ctx, model, output_path, measured, files) if picture else ()
    return Answer(
        results.ShapeResult(
            cad_file=output_path,
            volume_mm3=measured.volume_mm3,
            surface_area_mm2=measured.area_mm2,
            bounding_box_mm=results.bounding_box(measured),
            solids_count=measured.solids_count,
            parameters_used=parsed.model_dump(mode="json"),
            axes=shapes.AXES[shape_type],
            material=material,
            density_kg_m3=density,
            mass_kg=mass_kg,
        ),
        summary=summary,
        warnings=tuple(warnings),
        next_step=f"cadquery.get_properties input_file={output_path} lists its faces; calculix.run_fea loads them",
        files=tuple(files),
        pictures=pictures,
        programs=programs(),
    )


def _check_size(shape_type: str, parameters: Any, measured: SolidFacts) -> None:
    """Hold the result to the size that was asked for."""
    asked = _asked_size(shape_type, parameters)
    for axis, wanted, found in zip("xyz", asked, measured.size_mm, strict=True):
        if abs(wanted - found) > 1e-5 * max(wanted, 1e-3):
            raise ToolError(
                f"{shape_type}: the result is {found:.6g} mm along {axis}, {wanted:.6g} mm were asked for; "
                "the kernel failed",
                kind="wrong_size", where=shape_type, failure_mode=FailureMode.DESIGN,
                fix="make holes or radii smaller",
            )  # fmt: skip


def _asked_size(shape_type: str, p: Any) -> tuple[float, float, float]:
    if shape_type == "sphere":
        return (2 * p.radius_mm,) * 3
    if shape_type == "cylinder":
        return (2 * p.radius_mm, 2 * p.radius_mm, p.height_mm)
    if shape_type == "cone":
        widest = 2 * max(p.bottom_radius_mm, p.top_radius_mm)
        return (widest, widest, p.height_mm)
    return (p.width_mm, p.length_mm, p.thickness_mm if shape_type == "plate" else p.height_mm)

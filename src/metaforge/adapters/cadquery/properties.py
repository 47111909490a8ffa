"""`get_properties`: what a file holds, measured in mm."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from OCP.TopAbs import TopAbs_SOLID

from metaforge.adapters.cadquery import results
from metaforge.adapters.cadquery.kernel_errors import tells_kernel_errors
from metaforge.adapters.cadquery.load import load
from metaforge.adapters.cadquery.material import density_of
from metaforge.adapters.cadquery.measure import FaceFacts, children, faces, facts, mass_properties, side_of, volume
from metaforge.adapters.cadquery.model import Model, Part
from metaforge.adapters.cadquery.pieces import Property
from metaforge.adapters.cadquery.show import draw
from metaforge.adapters.cadquery.versions import programs
from metaforge.core.errors import InvalidArguments
from metaforge.engineering.solid_guard import SolidFacts
from metaforge.tools.context import Answer, OutputFile, Picture, ToolContext

LISTED_FACES, LISTED_PARTS = 24, 60
LISTED_FACES_ON_REQUEST = 400

_FIELDS: dict[str, tuple[str, ...]] = {
    "volume": ("volume_mm3",),
    "area": ("surface_area_mm2",),
    "surface_area": ("surface_area_mm2",),
    "center_of_mass": ("center_of_mass_mm",),
    "bounding_box": ("bounding_box_mm",),
    "inertia": ("inertia_mm5", "inertia_kg_mm2", "principal_inertia_mm5"),
    "mass": ("mass_kg", "density_kg_m3"),
    "validity": ("is_valid", "solids_count", "shells_count", "faces_count"),
    "faces": ("faces", "faces_count"),
    "parts": ("parts", "parts_count", "distinct_parts_count"),
    "colours": ("colours_srgb",),
    "units": ("source_unit",),
}


@tells_kernel_errors
def describe(
    ctx: ToolContext,
    path: str,
    wanted: Sequence[Property] | None,
    material: str | None,
    density_kg_m3: float | None,
    picture: bool,
) -> Answer[results.PropertiesResult]:
    """Measure a STEP or BREP file."""
    density = density_kg_m3 or density_of(material)
    if wanted and "mass" in wanted and density is None:
        raise InvalidArguments(
            "cadquery.get_properties: mass needs a material or density_kg_m3",
            fields={"material": "a name such as steel-316, or density_kg_m3"},
        )
    model = load(ctx, path)
    measured = facts(model.shape)
    warnings = [*model.warnings, *_doubts(measured, path)]
    found = _measure(model, measured, density, warnings, wanted)
    if wanted:
        kept = {name for each in wanted for name in _FIELDS[each]}
        found = replace(found, **{name: None for name in vars(found) if name not in kept})
    pictures = _look(ctx, model, path, measured) if picture else ()
    return Answer(
        results.PropertiesResult(file=path, properties=found),
        summary=_summary(path, model, measured, density),
        warnings=tuple(warnings),
        next_step=f"calculix.run_fea with supports and loads on faces of {path} (side top, bottom, +x ... or near_mm)",
        pictures=pictures,
        programs=programs(),
    )


def _look(ctx: ToolContext, model: Model, path: str, measured: SolidFacts) -> tuple[Picture, ...]:
    """Draw a file that is only read: the picture is named by content, so it never stands in another's way."""
    digest = hashlib.sha256(ctx.input_file(path).read_bytes()).hexdigest()[:10]
    drawn: list[OutputFile] = []
    return draw(ctx, model, path, measured, drawn, target=f"pictures/{PurePosixPath(path).stem}-{digest}.png")


def part_info(parts: Iterable[Part]) -> list[results.PartInfo]:
    """Describe parts: name, solids, volume, colour."""
    described = []
    for part in parts:
        solids = children(part.shape, TopAbs_SOLID)
        total = sum(volume(solid) for solid in solids)
        described.append(results.PartInfo(_plain(part.name), len(solids), total, part.colour))
    return described


def _plain(name: str) -> str:
    """Keep what a name of a stranger's file shows: no control characters, not thousands of letters."""
    return "".join(each for each in name if each.isprintable())[:120]


def _measure(
    model: Model, measured: SolidFacts, density: float | None, warnings: list[str], wanted: Sequence[Property] | None
) -> results.Properties:
    has_solids = measured.solids_count > 0
    mass = mass_properties(model.shape) if has_solids else None
    scale = density * 1e-9 if density else None
    listed = faces(model.shape) if not wanted or "faces" in wanted else []
    shown = _shown_faces(listed, measured, LISTED_FACES_ON_REQUEST if wanted else LISTED_FACES, warnings)
    if len(model.parts) > LISTED_PARTS:
        warnings.append(f"{len(model.parts)} parts; the first {LISTED_PARTS} are listed")
    return results.Properties(
        volume_mm3=measured.volume_mm3 if has_solids else None,
        surface_area_mm2=measured.area_mm2,
        center_of_mass_mm=mass.centre_mm if mass else None,
        bounding_box_mm=results.bounding_box(measured),
        inertia_mm5=mass.inertia_mm5 if mass else None,
        inertia_kg_mm2=_scaled(mass.inertia_mm5, scale) if mass and scale else None,
        principal_inertia_mm5=mass.principal_mm5 if mass else None,
        mass_kg=measured.volume_mm3 * scale if scale and has_solids else None,
        density_kg_m3=density,
        solids_count=measured.solids_count,
        shells_count=measured.shells_count,
        faces_count=measured.faces_count,
        is_valid=measured.is_valid,
        source_unit=model.source_unit,
        parts=part_info(model.parts[:LISTED_PARTS]),
        parts_count=len(model.parts),
        distinct_parts_count=len({part.shape.TShape() for part in model.parts}),
        colours_srgb=list(model.colours),
        faces=shown if listed else None,
    )


def _scaled(rows: tuple[results.Vector, ...], factor: float) -> tuple[results.Vector, results.Vector, results.Vector]:
    a, b, c = ((x * factor, y * factor, z * factor) for x, y, z in rows)
    return (a, b, c)


def _shown_faces(listed: list[FaceFacts], measured: SolidFacts, limit: int, warnings: list[str]) -> list[results.Face]:
    kept = listed
    if len(listed) > limit:
        largest = {face.number for face in sorted(listed, key=lambda face: -face.area_mm2)[:limit]}
        kept = [face for face in listed if face.number in largest]
        warnings.append(f"{len(listed)} faces; the {limit} largest are listed")
    return [
        results.Face(
            name=f"face_{face.number}",
            type=face.kind,
            area_mm2=face.area_mm2,
            centroid_mm=face.centroid_mm,
            normal=face.normal,
            radius_mm=face.radius_mm,
            side=side_of(face, measured),
        )
        for face in kept
    ]


def _doubts(measured: SolidFacts, path: str) -> list[str]:
    doubts = []
    if measured.solids_count == 0:
        doubts.append(
            f"{path} holds no solid, only {measured.shells_count} shells with {measured.faces_count} faces: "
            "its volume and mass are undefined"
        )
    if not measured.is_valid:
        doubts.append(f"{path} is not valid: faces cross or do not meet, so volume and mesh may be wrong")
    return doubts


def _summary(path: str, model: Model, measured: SolidFacts, density: float | None) -> str:
    solid = measured.solids_count > 0
    amount = f"volume {measured.volume_mm3:.6g} mm3, " if solid else "no solid, "
    mass = f"mass {measured.volume_mm3 * density * 1e-9:.4g} kg, " if density and solid else ""
    state = "valid" if measured.is_valid else "NOT valid"
    return (
        f"{path}: {results.size_words(measured)}, {amount}area {measured.area_mm2:.6g} mm2, {mass}"
        f"{measured.solids_count} solid(s) in {len(model.parts)} part(s), {measured.faces_count} faces, {state}; "
        f"source unit {model.source_unit}."
    )

"""`create_assembly`: named parts from files, placed, constrained, checked for interference by boolean operation."""

import hashlib
import math
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

import cadquery as cq

from metaforge.adapters.cadquery import results
from metaforge.adapters.cadquery.boolean import common_volume_mm3
from metaforge.adapters.cadquery.kernel_errors import tells_kernel_errors
from metaforge.adapters.cadquery.load import load
from metaforge.adapters.cadquery.measure import bounds, facts
from metaforge.adapters.cadquery.model import Colour, Model, Part, model_of
from metaforge.adapters.cadquery.pieces import AssemblyPart, Constraint
from metaforge.adapters.cadquery.placing import solve
from metaforge.adapters.cadquery.properties import part_info
from metaforge.adapters.cadquery.show import draw
from metaforge.adapters.cadquery.versions import programs
from metaforge.adapters.cadquery.write import write_step
from metaforge.core.errors import InvalidArguments, ToolError
from metaforge.engineering.solid_guard import check_solid
from metaforge.tools.context import Answer, ToolContext

LEAST_SHARED_RATIO = 1e-6
"""Common volume below this share of the smaller part is the kernel's noise at touching faces."""


@tells_kernel_errors
def assemble(
    ctx: ToolContext,
    parts: Sequence[AssemblyPart],
    constraints: Sequence[Constraint],
    output_path: str | None,
    picture: bool,
) -> Answer[results.AssemblyResult]:
    """Put parts together."""
    _check_names(parts)
    colours = [_colour(part, number) for number, part in enumerate(parts)]
    loaded: dict[str, Model] = {}
    warnings: list[str] = []
    for part in parts:
        if part.file not in loaded:
            loaded[part.file] = load(ctx, part.file)
            warnings.extend(loaded[part.file].warnings)
            check_solid(facts(loaded[part.file].shape), part.file, expected_solids_count=None)
    shapes = {part.name: cq.Shape.cast(loaded[part.file].shape) for part in parts}
    places = {part.name: cq.Location(part.position_mm, part.rotation_deg) for part in parts}
    residuals: list[results.Residual] = []
    if constraints:
        places, residuals = solve(shapes, places, constraints)
    placed = [
        leaf
        for part, colour in zip(parts, colours, strict=True)
        for leaf in _leaves(part.name, loaded[part.file], places[part.name], colour)
    ]
    found, checked, unchecked = _interferences(
        ctx, {name: shape.moved(places[name]).wrapped for name, shape in shapes.items()}
    )
    warnings += [f"{each.part_a} and {each.part_b} overlap by {each.volume_mm3:.4g} mm3" for each in found]
    warnings += [f"interference of {pair} could not be checked: the kernel failed" for pair in unchecked]
    path = output_path or f"out/assembly-{_digest(parts, constraints)}.step"
    model = model_of(placed, PurePosixPath(path).stem)
    measured = facts(model.shape)
    files = [write_step(ctx, model, path)]
    passed = not found and not unchecked
    worst_mm = max((each.distance_mm for each in residuals), default=None)
    worst_deg = max((each.angle_deg for each in residuals), default=None)
    left = f"; constraints met within {worst_mm:.3g} mm, {worst_deg:.3g} deg" if residuals else ""
    verdict = f"no interference in {checked} pair(s)" if passed else f"{len(found)} interference(s)"
    return Answer(
        results.AssemblyResult(
            assembly_file=path,
            part_count=len(parts),
            total_volume_mm3=measured.volume_mm3,
            bounding_box_mm=results.bounding_box(measured),
            interference_check_passed=passed,
            interferences=found,
            placements=[_placement(name, place) for name, place in places.items()],
            parts=part_info(placed[:60]),
            residuals=residuals,
            largest_residual_mm=worst_mm,
            largest_residual_deg=worst_deg,
            pairs_checked_count=checked,
        ),
        summary=f"{path}: {len(parts)} parts, {results.size_words(measured)}, total volume "
        f"{measured.volume_mm3:.6g} mm3, {verdict}{left}.",
        warnings=tuple(warnings),
        next_step="move or resize the overlapping parts, then call cadquery.create_assembly again" if found else "",
        pictures=draw(ctx, model, path, measured, files) if picture else (),
        files=tuple(files),
        programs=programs(),
    )


def _check_names(parts: Sequence[AssemblyPart]) -> None:
    names = [part.name for part in parts]
    for number, name in enumerate(names):
        if name in names[:number]:
            text = f"{name!r} is used twice; every part needs a name of its own"
            raise InvalidArguments(
                f"cadquery.create_assembly: parts.{number}.name: {text}", fields={f"parts.{number}.name": text}
            )


def _colour(part: AssemblyPart, number: int) -> Colour | None:
    if part.colour is None or isinstance(part.colour, tuple):
        return part.colour
    try:
        red, green, blue = cq.Color(part.colour).toTuple()[:3]
    except ValueError:
        text = f"{part.colour!r} is no colour; give '#rrggbb', a name such as 'red', or [r, g, b]"
        raise InvalidArguments(
            f"cadquery.create_assembly: parts.{number}.colour: {text}", fields={f"parts.{number}.colour": text}
        ) from None
    return (round(red, 6), round(green, 6), round(blue, 6))


def _leaves(name: str, model: Model, place: Any, colour: Colour | None) -> list[Part]:
    """Place the parts of one file; a file of several keeps their names below its own."""
    single = len(model.parts) == 1
    return [
        Part(name if single else f"{name}/{part.name}", part.shape.Moved(place.wrapped), colour or part.colour)
        for part in model.parts
    ]


def _interferences(ctx: ToolContext, shapes: dict[str, Any]) -> tuple[list[results.Interference], int, list[str]]:
    """Intersect every pair whose boxes overlap; pairs that the kernel cannot do are named, not passed."""
    boxes = {name: bounds(shape) for name, shape in shapes.items()}
    volumes = {name: facts(shape).volume_mm3 for name, shape in shapes.items()}
    names = list(shapes)
    pairs = [(a, b) for n, a in enumerate(names) for b in names[n + 1 :]]
    near = [(a, b) for a, b in pairs if _overlap(boxes[a], boxes[b])]
    found: list[results.Interference] = []
    unchecked: list[str] = []
    for number, (a, b) in enumerate(near):
        ctx.progress(number / len(near), f"checking {a} against {b}")
        try:
            shared = common_volume_mm3(shapes[a], shapes[b])
        except ToolError:
            unchecked.append(f"{a} and {b}")
            continue
        if shared > LEAST_SHARED_RATIO * min(volumes[a], volumes[b]):
            found.append(results.Interference(a, b, shared))
    return found, len(pairs), unchecked


def _overlap(a: Any, b: Any) -> bool:
    return all(a[axis] < b[axis + 3] and b[axis] < a[axis + 3] for axis in range(3))


def _placement(name: str, place: Any) -> results.Placement:
    transformation = place.wrapped.Transformation()
    shift, rotation = transformation.TranslationPart(), transformation.GetRotation()
    w, x, y, z = rotation.W(), rotation.X(), rotation.Y(), rotation.Z()
    if w < 0:
        w, x, y, z = -w, -x, -y, -z
    length = math.sqrt(x * x + y * y + z * z)
    axis = (x / length, y / length, z / length) if length > 1e-9 else (0.0, 0.0, 1.0)
    return results.Placement(
        name,
        (_clean(shift.X()), _clean(shift.Y()), _clean(shift.Z())),
        (_clean(axis[0]), _clean(axis[1]), _clean(axis[2])),
        _clean(math.degrees(2 * math.atan2(length, w))),
    )


def _clean(value: float) -> float:
    return round(value, 7) + 0.0


def _digest(parts: Sequence[AssemblyPart], constraints: Sequence[Constraint]) -> str:
    written = "\n".join(each.model_dump_json() for each in (*parts, *constraints))
    return hashlib.sha256(written.encode()).hexdigest()[:10]

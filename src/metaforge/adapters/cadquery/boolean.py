"""`boolean_operation`: union, subtract, intersect two files under guard."""

from pathlib import PurePosixPath
from typing import Any

from OCP.BRepAlgoAPI import BRepAlgoAPI_BooleanOperation, BRepAlgoAPI_Common, BRepAlgoAPI_Cut, BRepAlgoAPI_Fuse
from OCP.BRepExtrema import BRepExtrema_DistShapeShape
from OCP.ShapeUpgrade import ShapeUpgrade_UnifySameDomain
from OCP.TopAbs import TopAbs_SOLID
from OCP.TopTools import TopTools_ListOfShape

from metaforge.adapters.cadquery import results
from metaforge.adapters.cadquery.kernel_errors import tells_kernel_errors
from metaforge.adapters.cadquery.load import load
from metaforge.adapters.cadquery.measure import bounds, children, facts
from metaforge.adapters.cadquery.model import Model, Part, compound, model_of
from metaforge.adapters.cadquery.show import draw
from metaforge.adapters.cadquery.versions import programs
from metaforge.adapters.cadquery.write import write_step
from metaforge.core.errors import FailureMode, ToolError
from metaforge.engineering.solid_guard import Change, SolidFacts, check_change, check_solid
from metaforge.tools.context import Answer, ToolContext

_CHANGES = {"union": Change.ADD, "subtract": Change.REMOVE, "intersect": Change.REMOVE}


@tells_kernel_errors
def combine(
    ctx: ToolContext, path_a: str, path_b: str, operation: str, output_path: str | None, picture: bool
) -> Answer[results.BooleanResult]:
    """Combine the solids of two files."""
    a, b = load(ctx, path_a), load(ctx, path_b)
    before = _solid_facts(a, path_a)
    other = _solid_facts(b, path_b)
    made = _operate(operation, a, b)
    measured = facts(made)
    if measured.bounds_mm is None or measured.faces_count == 0:
        raise _empty(operation, a, b, path_a, path_b)
    expected = before.solids_count if operation == "subtract" else 1
    warnings = [*a.warnings, *b.warnings, *check_solid(measured, operation, expected_solids_count=expected)]
    if operation != "union" or before.solids_count == 1:
        # Solids of one file may overlap, so their sum says nothing about a union.
        warnings += check_change(before, measured, _CHANGES[operation], operation)
    _check_volumes(operation, before, other, measured)
    if operation == "union" and measured.solids_count > 1:
        warnings = [each for each in warnings if "solids_count" not in each] + [solids_warning(made, operation)]
    stem = f"{PurePosixPath(path_a).stem}-{operation}-{PurePosixPath(path_b).stem}"
    path = output_path or str(PurePosixPath(path_a).with_name(f"{stem}.step"))
    colour = a.parts[0].colour if len(a.parts) == 1 else None
    model = model_of([Part(PurePosixPath(path).stem, made, colour)], PurePosixPath(path).stem)
    files = [write_step(ctx, model, path)]
    change = measured.volume_mm3 - before.volume_mm3
    return Answer(
        results.BooleanResult(
            output_file=path,
            operation=operation,
            result_volume_mm3=measured.volume_mm3,
            result_area_mm2=measured.area_mm2,
            bounding_box_mm=results.bounding_box(measured),
            solids_count=measured.solids_count,
            volume_change_mm3=change,
        ),
        summary=f"{operation} {path}: volume {measured.volume_mm3:.6g} mm3 ({change:+.6g} against {path_a}), "
        f"area {measured.area_mm2:.6g} mm2, {results.size_words(measured)}, {measured.solids_count} solid(s), valid.",
        warnings=tuple(warnings),
        next_step=f"cadquery.get_properties input_file={path}",
        pictures=draw(ctx, model, path, measured, files) if picture else (),
        files=tuple(files),
        programs=programs(),
    )


def common_volume_mm3(first: Any, second: Any) -> float:
    """Return the volume that two shapes share."""
    return facts(_run(BRepAlgoAPI_Common(), [first], [second])).volume_mm3


def solids_warning(shape: Any, operation: str) -> str:
    """Say that a result is in pieces, and how far they are apart."""
    solids = children(shape, TopAbs_SOLID)
    gap = min(distance_mm(first, second) for n, first in enumerate(solids[:12]) for second in solids[n + 1 : 12])
    apart = f"gap {gap:.4g} mm" if gap > 1e-7 else "they touch without sharing volume"
    return f"{operation}: solids_count={len(solids)}, expected 1; {apart}"


def distance_mm(first: Any, second: Any) -> float:
    """Return the shortest distance between two shapes."""
    return float(BRepExtrema_DistShapeShape(first, second).Value())


def _operate(operation: str, a: Model, b: Model) -> Any:
    solids_a = [solid for part in a.parts for solid in children(part.shape, TopAbs_SOLID)]
    solids_b = [solid for part in b.parts for solid in children(part.shape, TopAbs_SOLID)]
    if operation == "union":
        first, *others = solids_a + solids_b
        made = _run(BRepAlgoAPI_Fuse(), [first], others)
    elif operation == "subtract":
        made = _run(BRepAlgoAPI_Cut(), solids_a, solids_b)
    else:
        # Whole parts, so that a part in pieces is still one operand.
        made = _run(BRepAlgoAPI_Common(), solids_a, solids_b)
    tidy = ShapeUpgrade_UnifySameDomain(made, True, True, False)
    tidy.Build()
    solids = children(tidy.Shape(), TopAbs_SOLID)
    return solids[0] if len(solids) == 1 else compound(solids) if solids else made


def _run(algorithm: BRepAlgoAPI_BooleanOperation, objects: list[Any], tools: list[Any]) -> Any:
    arguments, others = TopTools_ListOfShape(), TopTools_ListOfShape()
    for each in objects:
        arguments.Append(each)
    for each in tools:
        others.Append(each)
    algorithm.SetArguments(arguments)
    algorithm.SetTools(others)
    algorithm.SetRunParallel(False)
    algorithm.Build()
    if not algorithm.IsDone() or algorithm.Shape().IsNull():
        raise ToolError(
            "The kernel could not combine the parts: their faces cross in a way it cannot resolve",
            kind="boolean_failed", failure_mode=FailureMode.DESIGN,
            fix="move one part by 0.01 mm, or avoid faces that nearly coincide",
        )  # fmt: skip
    return algorithm.Shape()


def _solid_facts(model: Model, path: str) -> SolidFacts:
    measured = facts(model.shape)
    check_solid(measured, path, expected_solids_count=None)
    return measured


def _empty(operation: str, a: Model, b: Model, path_a: str, path_b: str) -> ToolError:
    if operation == "subtract":
        return ToolError(
            f"subtract: result is empty: the cut removed all material ({path_b} covers {path_a})",
            kind="empty_result", where=operation, failure_mode=FailureMode.DESIGN,
            fix="swap the two files, or make the tool smaller",
        )  # fmt: skip
    gap = distance_mm(a.shape, b.shape)
    return ToolError(
        f"{operation}: result is empty: {path_a} and {path_b} share no volume (distance {gap:.4g} mm; "
        f"{path_a} spans {_span(a)}, {path_b} spans {_span(b)})",
        kind="empty_result", where=operation, failure_mode=FailureMode.DESIGN, fix="move one part into the other",
    )  # fmt: skip


def _span(model: Model) -> str:
    box = bounds(model.shape) or (0.0,) * 6
    return ", ".join(f"{axis} {box[n]:.4g}..{box[n + 3]:.4g}" for n, axis in enumerate("xyz"))


def _check_volumes(operation: str, a: SolidFacts, b: SolidFacts, result: SolidFacts) -> None:
    """Hold the result between the bounds that set algebra gives."""
    low, high = {
        "union": (max(a.volume_mm3 / a.solids_count, b.volume_mm3 / b.solids_count), a.volume_mm3 + b.volume_mm3),
        "subtract": (a.volume_mm3 - b.volume_mm3, a.volume_mm3),
        "intersect": (0.0, min(a.volume_mm3, b.volume_mm3)),
    }[operation]
    slack = 1e-6 * (a.volume_mm3 + b.volume_mm3)
    if not low - slack <= result.volume_mm3 <= high + slack:
        raise ToolError(
            f"{operation}: a volume of {result.volume_mm3:.6g} mm3 is impossible: it must lie between "
            f"{max(low, 0):.6g} and {high:.6g} mm3; the kernel failed",
            kind="wrong_volume", where=operation, failure_mode=FailureMode.DESIGN,
            fix="move one part by 0.01 mm, or avoid faces that nearly coincide",
        )  # fmt: skip

"""Solve assembly constraints with CadQuery's solver and measure what is left of them."""

import math
import re
from collections.abc import Sequence
from typing import Any

import cadquery as cq
from pyparsing import ParseBaseException

from metaforge.adapters.cadquery.measure import faces, facts, side_of
from metaforge.adapters.cadquery.pieces import Constraint
from metaforge.adapters.cadquery.results import Residual
from metaforge.core.errors import FailureMode, InvalidArguments, ToolError

DISTANCE_TOLERANCE_MM, ANGLE_TOLERANCE_DEG = 0.01, 0.1

_KINDS = {
    "plane": "Plane", "point": "Point", "axis": "Axis", "point_in_plane": "PointInPlane",
    "point_on_line": "PointOnLine", "fixed": "Fixed",
}  # fmt: skip
_SIDES = ("top", "bottom", "right", "left", "back", "front", "+z", "-z", "+x", "-x", "+y", "-y")


def solve(
    shapes: dict[str, Any], starts: dict[str, Any], constraints: Sequence[Constraint]
) -> tuple[dict[str, Any], list[Residual]]:
    """Return solved locations by part name, and what is left of each constraint.

    Args:
        shapes: CadQuery shapes in their own frames.
        starts: their `Location`s to start from.
        constraints: at least one; the part of the first is held where it is unless one is fixed.

    Raises:
        InvalidArguments: a name or feature that does not exist.
        ToolError: constraints that cannot be met together (`constraints_conflict`).
    """
    assembly = cq.Assembly(name="assembly of parts")
    for name, shape in shapes.items():
        assembly.add(shape, name=name, loc=starts[name])
    for number, each in enumerate(constraints):
        _constrain(assembly, shapes, each, number)
    moving = {name for spec in assembly.constraints for name in spec.objects}
    if len(moving) > 1:
        assembly.solve()
    places = {name: assembly.objects[name].loc for name in shapes}
    residuals = [
        _residual(spec, places, _title(number, each))
        for number, (spec, each) in enumerate(zip(assembly.constraints, constraints, strict=True))
    ]
    unmet = [r for r in residuals if r.distance_mm > DISTANCE_TOLERANCE_MM or r.angle_deg > ANGLE_TOLERANCE_DEG]
    if unmet:
        listed = "; ".join(f"{r.constraint}: {r.distance_mm:.4g} mm, {r.angle_deg:.4g} deg off" for r in unmet[:6])
        raise ToolError(
            f"The constraints cannot be met together. {listed}",
            kind="constraints_conflict", where="constraints", failure_mode=FailureMode.DESIGN,
            fix="leave out or loosen one of these, or start the parts nearer to their places",
        )  # fmt: skip
    return places, residuals


def _constrain(assembly: Any, shapes: dict[str, Any], each: Constraint, number: int) -> None:
    first = _feature(shapes, each.part_a, each.feature_a, f"constraints.{number}.part_a")
    parameter = each.angle_deg if each.kind in ("axis", "plane") else each.distance_mm
    if each.angle_deg is not None and not 0 <= each.angle_deg <= 180:
        raise _wrong(f"constraints.{number}.angle_deg", f"{each.angle_deg:g} is not between 0 and 180 deg")
    if each.kind == "point_on_line" and parameter:
        raise _wrong(f"constraints.{number}.distance_mm", "point_on_line takes none")
    try:
        if each.kind == "fixed":
            _add(assembly, "Fixed", (each.part_a,), (first,), None)
            return
        if each.part_a == each.part_b:
            raise _wrong(f"constraints.{number}.part_b", f"must be another part than {each.part_a}")
        second = _feature(shapes, each.part_b, each.feature_b, f"constraints.{number}.part_b")
        _add(assembly, _KINDS[each.kind], (each.part_a, each.part_b), (first, second), parameter)
    except ValueError as fault:
        raise _wrong(f"constraints.{number}", f"{each.kind} cannot use these features: {fault}") from None


def _add(assembly: Any, kind: str, names: tuple[str, ...], features: tuple[Any, ...], parameter: float | None) -> None:
    """Add a constraint; the assembly's own method takes a shape for a query when there is one part alone."""
    places = tuple(cq.Location() for _ in names)
    assembly.constraints.append(cq.Constraint(names, features, places, kind, parameter))


def _feature(shapes: dict[str, Any], part: str, feature: str, field: str) -> Any:
    if part not in shapes:
        raise _wrong(field, f"no part is called {part!r}; there are: {', '.join(shapes)}")
    shape, found = shapes[part], ()
    field = field.replace("part_", "feature_")
    if not feature:
        return shape
    if feature in _SIDES:
        return _outermost(shape, feature, field)
    if feature.startswith("face_") and feature[5:].isdigit():
        every = cq.Workplane(shape).faces().vals()
        number = int(feature[5:])
        if not 1 <= number <= len(every):
            raise _wrong(field, f"{part} has face_1 to face_{len(every)}, not {feature}")
        return every[number - 1]
    kind, _, selector = feature.partition("@")
    if kind not in ("faces", "edges", "vertices", "wires") or not selector:
        raise _wrong(field, f"{feature!r} is neither a side, face_N, nor like faces@>Z")
    try:
        found = getattr(cq.Workplane(shape), kind)(selector).vals()
    except (ParseBaseException, ValueError, IndexError) as fault:
        raise _wrong(field, f"{selector!r} is not a CadQuery selector: {fault}") from None
    if len(found) != 1:
        raise _wrong(field, f"{feature} matches {len(found)} of {part}; exactly one is needed")
    return found[0]


def _outermost(shape: Any, side: str, field: str) -> Any:
    """Return the one flat outermost face of a side; cylinders and the like have none."""
    whole, listed = facts(shape.wrapped), faces(shape.wrapped)
    numbers = [face.number for face in listed if side in re.findall(r"[-+\w]+", side_of(face, whole) or "")]
    if len(numbers) != 1:
        raise _wrong(field, f"{len(numbers)} flat faces are outermost on side {side}; name one as face_N or faces@...")
    return cq.Workplane(shape).faces().vals()[numbers[0] - 1]


def _residual(spec: Any, places: dict[str, Any], title: str) -> Residual:
    distance, angle = 0.0, 0.0
    for markers, kind, parameter in spec.toPODs():
        if kind == "Fixed":
            continue
        moved: list[Any] = [
            marker.Transformed(places[name].wrapped.Transformation())
            for marker, name in zip(markers, spec.objects, strict=True)
        ]
        if kind == "Axis":
            wanted = math.pi if parameter is None else parameter
            angle = max(angle, abs(math.degrees(moved[0].Angle(moved[1]) - wanted)))
        elif kind == "Point":
            distance = max(distance, abs(moved[0].Distance(moved[1]) - (parameter or 0.0)))
        elif kind == "PointInPlane":
            plane = moved[1]
            normal, origin, point = plane.Axis().Direction(), plane.Location(), moved[0]
            reach = sum(
                n * (p - o)
                for n, p, o in (
                    (normal.X(), point.X(), origin.X()),
                    (normal.Y(), point.Y(), origin.Y()),
                    (normal.Z(), point.Z(), origin.Z()),
                )
            )
            distance = max(distance, abs(reach - (parameter or 0.0)))
        elif kind == "PointOnLine":
            distance = max(distance, moved[1].Distance(moved[0]))
    return Residual(title, float(f"{distance:.3g}"), float(f"{angle:.3g}"))


def _title(number: int, each: Constraint) -> str:
    first = f"{each.part_a}.{each.feature_a}" if each.feature_a else each.part_a
    if each.kind == "fixed":
        return f"{number}: fixed {first}"
    second = f"{each.part_b}.{each.feature_b}" if each.feature_b else each.part_b
    return f"{number}: {each.kind} {first} - {second}"


def _wrong(field: str, text: str) -> InvalidArguments:
    return InvalidArguments(f"cadquery.create_assembly: {field}: {text}", fields={field: text})

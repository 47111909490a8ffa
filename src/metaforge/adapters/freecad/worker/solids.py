"""Simple solids, bodies, booleans, placements."""

from math import isclose
from typing import Any

from .document import CONTAINERS
from .edits import Edit
from .measuring import placement_of
from .refusals import Refusal

PROPERTIES = {
    "box": {"length_mm": "Length", "width_mm": "Width", "height_mm": "Height"},
    "cylinder": {"radius_mm": "Radius", "height_mm": "Height", "angle_deg": "Angle"},
    "sphere": {"radius_mm": "Radius"},
    "cone": {"radius1_mm": "Radius1", "radius2_mm": "Radius2", "height_mm": "Height"},
    "torus": {"radius1_mm": "Radius1", "radius2_mm": "Radius2"},
}
BOOLEANS = {"subtract": "Part::Cut", "union": "Part::Fuse", "intersect": "Part::Common"}


def create_primitive(edit: Edit, given: dict[str, Any]) -> None:
    kind = given["kind"]
    made = edit.document.add(f"Part::{kind.capitalize()}", given["name"] or kind.capitalize())
    for name, value in given["parameters"].items():
        setattr(made, PROPERTIES[kind][name], value)
    edit.document.recompute()
    edit.result(made)


def create_body(edit: Edit, given: dict[str, Any]) -> None:
    made = edit.document.add("PartDesign::Body", given["name"] or "Body")
    edit.document.recompute()
    edit.result(made)


def boolean(edit: Edit, given: dict[str, Any]) -> None:
    document = edit.document
    first, second = document.find(given["obj_a"]), document.find(given["obj_b"])
    if first.Name == second.Name:
        raise Refusal(f"{first.Name} cannot be combined with itself", "same_object", "name two objects", first.Name)
    for each in (first, second):
        if each.TypeId in CONTAINERS:
            raise Refusal(f"{each.Name} is an assembly: name two of its parts", "wrong_kind", where=each.Name)
    if not _same(
        first.getGlobalPlacement() * first.Placement.inverse(), second.getGlobalPlacement() * second.Placement.inverse()
    ):
        raise Refusal(
            f"{first.Name} and {second.Name} lie in differently placed parts: FreeCAD would combine them elsewhere",
            "other_frame", "move one of them into the same assembly first", second.Name,
        )  # fmt: skip
    edit.before(first, second)
    made = document.add(BOOLEANS[given["operation"]], given["name"] or given["operation"].capitalize())
    made.Base, made.Tool = first, second
    container = first.getParentGeoFeatureGroup()
    if container is not None and container.TypeId in CONTAINERS:
        container.addObject(made)
    if "Refine" in made.PropertiesList:
        made.Refine = False
    document.recompute()
    edit.result(made)


def transform(edit: Edit, given: dict[str, Any]) -> None:
    import FreeCAD

    document = edit.document
    thing = document.find(given["obj_id"])
    body = document.body_of(thing)
    if body is not None and body.Name != thing.Name:
        raise Refusal(
            f"{thing.Name} is a feature of {body.Name} and moves with it", "feature_in_body",
            f"transform {body.Name}", thing.Name,
        )  # fmt: skip
    if "Placement" not in thing.PropertiesList:
        raise Refusal(f"{thing.Name} ({thing.TypeId}) has no placement", "no_placement", where=thing.Name)
    edit.before(thing)
    base = thing.Placement.Base if given["position"] is None else FreeCAD.Vector(*given["position"])
    rotation = thing.Placement.Rotation
    if given["rotation"] is not None:
        rotation = FreeCAD.Rotation(FreeCAD.Vector(*given["rotation"]["axis"]), given["rotation"]["angle"])
    wanted = FreeCAD.Placement(base, rotation)
    thing.Placement = wanted
    if getattr(thing, "MapMode", "Deactivated") != "Deactivated":
        # Where it is attached shows only when that is computed again.
        thing.touch()
    document.recompute()
    if not _same(thing.Placement, wanted):
        there = placement_of(thing.Placement)["position"]
        raise Refusal(
            f"The placement of {thing.Name} did not stick: it is at {there} mm. It is attached to another object or "
            "driven by an expression",
            "placement_not_kept", "move what it is attached to", thing.Name, "design",
        )  # fmt: skip
    edit.result(
        thing, placement=placement_of(thing.Placement), global_placement=placement_of(thing.getGlobalPlacement())
    )


def _same(a: Any, b: Any) -> bool:
    matrix_a, matrix_b = a.toMatrix().A, b.toMatrix().A
    return all(isclose(x, y, rel_tol=1e-9, abs_tol=1e-7) for x, y in zip(matrix_a, matrix_b, strict=True))

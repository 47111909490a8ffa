"""Assemblies: containers of parts, and joints that say how two parts may move against each other."""

from typing import Any

from .document import CONTAINERS, Document
from .edits import Edit
from .measuring import leaves, shape_of, user_of
from .refusals import Refusal


def create_assembly(edit: Edit, given: dict[str, Any]) -> None:
    made = edit.document.add("App::Part", given["name"] or "Assembly")
    edit.document.recompute()
    edit.result(made)


def _assembly(document: Document, assembly_id: str) -> Any:
    found = document.find(assembly_id)
    if found.TypeId not in CONTAINERS:
        there = ", ".join(each.Name for each in document.listed() if each.TypeId in CONTAINERS) or "none yet"
        raise Refusal(f"{found.Name} is no assembly", "wrong_kind", f"there are: {there}", found.Name)
    return found


def add_part(edit: Edit, given: dict[str, Any]) -> None:
    import FreeCAD

    document = edit.document
    assembly, part = _assembly(document, given["assembly_id"]), document.find(given["part_id"])
    body = document.body_of(part)
    if body is not None and body.Name != part.Name:
        raise Refusal(f"{part.Name} is a feature of {body.Name}", "feature_in_body", f"add {body.Name}", part.Name)
    if part.Name == assembly.Name or assembly in getattr(part, "OutListRecursive", []):
        raise Refusal(f"{part.Name} cannot hold itself", "same_object", where=part.Name)
    if (user := user_of(part)) is not None:
        raise Refusal(f"{user.Name} was made of {part.Name}", "used_elsewhere", f"add {user.Name}", part.Name)
    shape_of(part)
    edit.before(assembly)
    assembly.addObject(part)
    if given["position"] is not None:
        part.Placement.Base = FreeCAD.Vector(*given["position"])
    document.recompute()
    if part not in assembly.Group:
        raise Refusal(f"{part.Name} could not be moved into {assembly.Name}", "not_added", where=part.Name)
    edit.result(assembly, part_id=part.Name, parts=len(leaves(assembly)))


def add_joint(edit: Edit, given: dict[str, Any]) -> None:
    import FreeCAD

    document = edit.document
    assembly = _assembly(document, given["assembly_id"])
    inside = {part.Name for part, _ in leaves(assembly)} | {each.Name for each in assembly.Group}
    base, follower = document.find(given["base_id"]), document.find(given["follower_id"])
    for each in (base, follower):
        if each.Name not in inside:
            there = ", ".join(sorted(inside)) or "none yet"
            raise Refusal(
                f"{each.Name} is no part of {assembly.Name}", "no_such_object", f"there are: {there}", each.Name
            )
    if base.Name == follower.Name:
        raise Refusal(f"{base.Name} cannot be joined to itself", "same_object", where=base.Name)
    joint = document.add("App::FeaturePython", f"{given['type'].capitalize()}Joint")
    for kind, name, value in (
        ("String", "JointType", given["type"]),
        ("String", "BasePart", base.Name),
        ("String", "FollowerPart", follower.Name),
        ("Vector", "JointAxis", FreeCAD.Vector(*given["axis"])),
        ("Vector", "Anchor", FreeCAD.Vector(*given["anchor"])),
    ):
        joint.addProperty(f"App::Property{kind}", name, "Joint")
        setattr(joint, name, value)
    assembly.addObject(joint)
    document.recompute()
    edit.result(joint, assembly, joint=_told(document, joint))
    edit.more |= {"distance": _distance(given["anchor"], base), "other": _distance(given["anchor"], follower)}


def _distance(anchor: list[float], part: Any) -> float:
    import FreeCAD
    import Part

    return float(shape_of(part).distToShape(Part.Vertex(FreeCAD.Vector(*anchor)))[0])


def _told(document: Document, joint: Any) -> dict[str, Any]:
    return {
        "obj_id": joint.Name, "type": joint.JointType, "base_id": joint.BasePart, "follower_id": joint.FollowerPart,
        "axis": list(joint.JointAxis), "anchor": list(joint.Anchor),
    }  # fmt: skip


def list_joints(document: Document, given: dict[str, Any]) -> dict[str, Any]:
    """List the joints of every assembly."""
    joints = [
        each for each in document.doc.Objects if "JointType" in each.PropertiesList and "Anchor" in each.PropertiesList
    ]
    return {"joints": [_told(document, each) for each in joints]}

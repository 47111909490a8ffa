"""Fillets, chamfers and shells, of a body's last feature or of any other solid."""

from typing import Any

from .edits import Edit
from .measuring import SIDES, normal_of, shape_of
from .refusals import Refusal

SIDES_BY_SIGN = {">x": "right", "<x": "left", ">y": "back", "<y": "front", ">z": "top", "<z": "bottom"}
PARALLEL = {"|x": 0, "|y": 1, "|z": 2}


def fillet(edit: Edit, given: dict[str, Any]) -> None:
    _blend(edit, given, "Fillet", given["radius"])


def chamfer(edit: Edit, given: dict[str, Any]) -> None:
    _blend(edit, given, "Chamfer", given["distance"])


def _blend(edit: Edit, given: dict[str, Any], kind: str, size: float) -> None:
    document = edit.document
    thing = document.find(given["obj_id"])
    body = document.body_of(thing)
    base = thing if body is None else _tip(body)
    edges = select_edges(base.Shape, thing, given["edges"])
    edit.before(body or base)
    if body is not None:
        made = body.newObject(f"PartDesign::{kind}", kind)
        made.Base = (base, edges)
        setattr(made, "Radius" if kind == "Fillet" else "Size", size)
        body.Tip = made
        document.recompute()
        edit.result(made, body, edges=edges)
        return
    made = document.add(f"Part::{kind}", given["name"] or kind)
    made.Base = base
    made.Edges = [(int(name[4:]), size, size) for name in edges]
    container = base.getParentGeoFeatureGroup()
    if container is not None:
        container.addObject(made)
    document.recompute()
    edit.result(made, edges=edges)


def try_blend(document: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Say what a blend of one size would give, without making it."""
    from .measuring import facts_of

    thing = document.find(given["obj_id"])
    body = document.body_of(thing)
    shape = (thing if body is None else _tip(body)).Shape
    edges = [shape.getElement(name) for name in select_edges(shape, thing, given["edges"])]
    try:
        made = shape.makeFillet(given["size"], edges) if given["fillet"] else shape.makeChamfer(given["size"], edges)
    except Exception:  # noqa: BLE001 - the kernel's way to say that it does not work
        return {"after": None, "before": facts_of(shape)}
    return {"after": facts_of(made), "before": facts_of(shape), "shortest": min(edge.Length for edge in edges)}


def _tip(body: Any) -> Any:
    tip = body.Tip
    if tip is None or tip.isDerivedFrom("Sketcher::SketchObject"):
        raise Refusal(f"{body.Name} has no solid yet", "no_shape", "pad a sketch of it first", body.Name)
    return tip


def select_edges(shape: Any, thing: Any, wanted: list[str]) -> list[str]:
    """Return the names of the edges that selectors mean: `Edge3`, `|z` (parallel), `>z` (of the top face), `all`."""
    names: dict[str, None] = {}
    for word in wanted or ["all"]:
        found = _matching(shape, word)
        if not found:
            raise Refusal(
                f"{word!r} names no edge of {thing.Name}, which has Edge1 to Edge{len(shape.Edges)}", "no_such_edge",
                "take names of freecad.describe_model, or all, |x |y |z, >x <x >y <y >z <z", thing.Name,
            )  # fmt: skip
        names |= dict.fromkeys(found)
    return list(names)


def _matching(shape: Any, word: str) -> list[str]:
    edges = shape.Edges
    if word.startswith("Edge") and word[4:].isdigit():
        return [word] if 1 <= int(word[4:]) <= len(edges) else []
    if word == "all":
        seams = {edge.hashCode() for face in shape.Faces for edge in face.Edges if edge.isSeam(face)}
        chosen = [not edge.Degenerated and edge.hashCode() not in seams for edge in edges]
    elif word.lower() in PARALLEL:
        axis = PARALLEL[word.lower()]
        chosen = [_is_parallel(edge, axis) for edge in edges]
    elif word.lower() in SIDES_BY_SIGN:
        keep = {each.hashCode() for face in side_faces(shape, SIDES_BY_SIGN[word.lower()]) for each in face.Edges}
        chosen = [edge.hashCode() in keep for edge in edges]
    else:
        chosen = [False] * len(edges)
    return [f"Edge{number}" for number, take in enumerate(chosen, 1) if take]


def _is_parallel(edge: Any, axis: int) -> bool:
    if edge.Degenerated or edge.Curve.TypeId != "Part::GeomLine":
        return False
    return bool(abs(abs(edge.tangentAt(edge.FirstParameter)[axis]) - 1) < 1e-9)


def side_faces(shape: Any, side: str) -> list[Any]:
    """Return the flat faces that lie outermost on a side."""
    axis, sign = SIDES[side]
    flat = [face for face in shape.Faces if face.Surface.TypeId == "Part::GeomPlane"]
    flat = [face for face in flat if normal_of(face)[axis] * sign > 0.999999]
    if not flat:
        return []
    end = max(face.CenterOfMass[axis] * sign for face in flat)
    return [face for face in flat if abs(face.CenterOfMass[axis] * sign - end) < 1e-6]


def shell_solid(edit: Edit, given: dict[str, Any]) -> None:
    document = edit.document
    body = document.body(given["body_id"])
    tip = _tip(body)
    faces = _faces(tip.Shape, body, given["faces"])
    edit.before(body)
    made = body.newObject("PartDesign::Thickness", "Thickness")
    made.Base = (tip, faces)
    made.Value = given["thickness"]
    made.Reversed = not given["outward"]
    made.Join = "Intersection"
    body.Tip = made
    document.recompute()
    edit.result(made, body, faces=faces)


def _faces(shape: Any, body: Any, wanted: list[str]) -> list[str]:
    names: dict[str, None] = {}
    for word in wanted or ["top"]:
        found = _faces_of(shape, word)
        if not found:
            raise Refusal(
                f"{word!r} names no face of {body.Name}, which has Face1 to Face{len(shape.Faces)}", "no_such_face",
                "take names of freecad.list_named_faces, or top, bottom, left, right, front, back", body.Name,
            )  # fmt: skip
        names |= dict.fromkeys(found)
    return list(names)


def _faces_of(shape: Any, word: str) -> list[str]:
    if word.startswith("Face") and word[4:].isdigit():
        return [word] if 1 <= int(word[4:]) <= len(shape.Faces) else []
    if word not in SIDES:
        return []
    hashes = {face.hashCode() for face in side_faces(shape, word)}
    return [f"Face{number}" for number, face in enumerate(shape.Faces, 1) if face.hashCode() in hashes]


def named_faces(document: Any, given: dict[str, Any]) -> dict[str, Any]:
    """List an object's faces in the global frame."""
    from .measuring import describe_faces

    thing = document.find(given["obj_id"])
    shape = shape_of(thing)
    return {"obj_id": thing.Name, "faces": describe_faces(shape, given["limit"]), "count": len(shape.Faces)}

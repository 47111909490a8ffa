"""Say what is in the document."""

from typing import Any

from .document import Document
from .measuring import describe_edges, describe_faces, facts_at, is_container, placement_of, shape_of


def describe_session(document: Document, given: dict[str, Any]) -> dict[str, Any]:
    """List the objects."""
    return {"objects": [_object(document, each) for each in document.listed()]}


def _object(document: Document, thing: Any) -> dict[str, Any]:
    told: dict[str, Any] = {"obj_id": thing.Name, "label": thing.Label, "kind": thing.TypeId}
    parent = thing.getParentGeoFeatureGroup()
    if parent is not None:
        told["parent_id"] = parent.Name
    facts = facts_at(document, thing)
    if facts is not None:
        told["facts"] = facts
    if thing.Name in document.pinned:
        told["pinned"] = True
    if is_container(thing):
        told["children"] = len(thing.Group)
    return told


def describe_model(document: Document, given: dict[str, Any]) -> dict[str, Any]:
    """Tell an object's faces and edges in the global frame."""
    thing = document.find(given["obj_id"])
    shape = shape_of(thing)
    return {
        "obj_id": thing.Name, "label": thing.Label, "kind": thing.TypeId, "facts": facts_at(document, thing),
        "placement": placement_of(thing.getGlobalPlacement()),
        "faces": describe_faces(shape, given["limit"]), "edges": describe_edges(shape, given["limit"]),
        "expressions": [list(each) for each in getattr(thing, "ExpressionEngine", [])],
    }  # fmt: skip

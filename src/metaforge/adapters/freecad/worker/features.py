"""Features of a body, made of its sketches and of features before them."""

from typing import Any

from .edits import Edit
from .refusals import Refusal
from .seam import set_midplane

AXES = {"X": 0, "Y": 1, "Z": 2}
PLANES = {"XY": 3, "XZ": 4, "YZ": 5}


def _new(edit: Edit, given: dict[str, Any], kind: str, name: str) -> tuple[Any, Any]:
    body = edit.document.body(given["body_id"])
    edit.before(body)
    return body, body.newObject(f"PartDesign::{kind}", name)


def _finish(edit: Edit, body: Any, feature: Any) -> None:
    body.Tip = feature
    edit.document.recompute()
    edit.result(feature, body)


def _profile(edit: Edit, given: dict[str, Any]) -> Any:
    document = edit.document
    sketch = document.sketch_of(document.body(given["body_id"]), given["sketch_id"])
    wires = sketch.Shape.Wires
    if not wires or not all(wire.isClosed() for wire in wires):
        raise Refusal(
            f"{sketch.Name} has no closed outline: {len(wires)} wires, not all closed", "open_profile",
            "let each element begin where the one before ends, and close the last to the first", sketch.Name, "design",
        )  # fmt: skip
    return sketch


def pad_sketch(edit: Edit, given: dict[str, Any]) -> None:
    sketch = _profile(edit, given)
    body, pad = _new(edit, given, "Pad", "Pad")
    pad.Profile = sketch
    pad.Length = given["length"]
    pad.Reversed = given["reversed"]
    set_midplane(pad, given["midplane"])
    _finish(edit, body, pad)


def pocket_sketch(edit: Edit, given: dict[str, Any]) -> None:
    sketch = _profile(edit, given)
    body, pocket = _new(edit, given, "Pocket", "Pocket")
    pocket.Profile = sketch
    if given["depth"] is None:
        pocket.Type = "ThroughAll"
    else:
        pocket.Length = given["depth"]
    pocket.Reversed = given["reversed"]
    _finish(edit, body, pocket)


def revolve_sketch(edit: Edit, given: dict[str, Any]) -> None:
    sketch = _profile(edit, given)
    body, turned = _new(edit, given, "Revolution", "Revolution")
    turned.Profile = sketch
    turned.ReferenceAxis = (sketch, [f"{given['axis']}_Axis"])
    turned.Angle = given["angle"]
    turned.Reversed = given["reversed"]
    _finish(edit, body, turned)


def loft_sketches(edit: Edit, given: dict[str, Any]) -> None:
    profile = _profile(edit, given | {"sketch_id": given["profile_id"]})
    sections = [_profile(edit, given | {"sketch_id": each}) for each in given["section_ids"]]
    if profile in sections or len({each.Name for each in sections}) < len(sections):
        raise Refusal("A sketch is named twice: each section of a loft is another sketch", "same_object")
    body, loft = _new(edit, given, "AdditiveLoft", "Loft")
    loft.Profile = profile
    loft.Sections = sections
    _finish(edit, body, loft)


def sweep_sketch(edit: Edit, given: dict[str, Any]) -> None:
    document = edit.document
    profile = _profile(edit, given | {"sketch_id": given["profile_id"]})
    path = document.sketch_of(document.body(given["body_id"]), given["path_id"])
    if path.Name == profile.Name or not path.Shape.Edges:
        raise Refusal(f"{path.Name} is no path: it is the profile, or empty", "no_path", where=path.Name, mode="design")
    body, sweep = _new(edit, given, "AdditivePipe", "Sweep")
    sweep.Profile = profile
    sweep.Spine = (path, [f"Edge{number}" for number in range(1, len(path.Shape.Edges) + 1)])
    _finish(edit, body, sweep)


def linear_pattern(edit: Edit, given: dict[str, Any]) -> None:
    body, pattern = _pattern(edit, given, "LinearPattern")
    pattern.Direction = (body.Origin.OriginFeatures[AXES[given["axis"]]], [""])
    pattern.Length = given["spacing"] * (given["count"] - 1)
    pattern.Occurrences = given["count"]
    pattern.Reversed = given["reversed"]
    _finish(edit, body, pattern)


def polar_pattern(edit: Edit, given: dict[str, Any]) -> None:
    body, pattern = _pattern(edit, given, "PolarPattern")
    pattern.Axis = (body.Origin.OriginFeatures[AXES[given["axis"]]], [""])
    pattern.Angle = given["angle"]
    pattern.Occurrences = given["count"]
    _finish(edit, body, pattern)


def mirror_feature(edit: Edit, given: dict[str, Any]) -> None:
    body, mirror = _pattern(edit, given, "Mirrored")
    mirror.MirrorPlane = (body.Origin.OriginFeatures[PLANES[given["plane"]]], [""])
    _finish(edit, body, mirror)


def _pattern(edit: Edit, given: dict[str, Any], kind: str) -> tuple[Any, Any]:
    document = edit.document
    feature = document.feature_of(document.body(given["body_id"]), given["feature_id"])
    body, pattern = _new(edit, given, kind, kind)
    pattern.Originals = [feature]
    return body, pattern

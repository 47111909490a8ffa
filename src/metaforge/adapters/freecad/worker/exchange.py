"""Files in and out. Parts leave with their placement in the geometry: every reader finds them where they are."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .document import HIDDEN, Document
from .edits import Edit
from .measuring import centre_of, children, facts_at, facts_of, is_container, leaves, shape_of
from .refusals import Refusal


def export_step(document: Document, given: dict[str, Any]) -> dict[str, Any]:
    """Write an object as STEP with every placement baked into the geometry."""
    thing = document.find(given["obj_id"])
    live = facts_at(document, thing) or facts_of(shape_of(thing))
    moved, parts = _write(document, thing, given["path"])
    return {
        "obj_id": thing.Name, "label": thing.Label, "kind": thing.TypeId, "live": live, "baked": moved, "parts": parts,
    }  # fmt: skip


def _write(document: Document, thing: Any, path: str) -> tuple[bool, list[dict[str, Any]]]:
    import FreeCAD
    import Import

    copy = FreeCAD.newDocument("Export")
    try:
        parts: list[dict[str, Any]] = []
        root = _copied(copy, thing, parts)
        copy.recompute()
        Import.export([root], path)
    finally:
        FreeCAD.closeDocument("Export")
        FreeCAD.setActiveDocument(document.doc.Name)
    return any(part["baked"] for part in parts), parts


def _copied(copy: Any, thing: Any, parts: list[dict[str, Any]]) -> Any:
    if is_container(thing):
        made = copy.addObject("App::Part", "Part")
        made.Label = thing.Label
        for child in children(thing):
            if leaves(child):
                made.addObject(_copied(copy, child, parts))
        return made
    shape, moved = baked(shape_of(thing))
    made = copy.addObject("Part::Feature", "Part")
    made.Label = thing.Label
    made.Shape = shape
    parts.append({"obj_id": thing.Name, "label": thing.Label, "baked": moved})
    return made


def baked(shape: Any) -> tuple[Any, bool]:
    """Return a shape whose geometry is where its placement says, and whether that moved anything."""
    import FreeCAD

    if shape.ShapeType == "Compound" and len(shape.Solids) == 1 and len(shape.childShapes()) == 1:
        shape = shape.childShapes()[0]
    matrix = shape.Placement.toMatrix()
    if shape.Placement.isIdentity() and not any(not each.Placement.isIdentity() for each in shape.childShapes()):
        return shape, False
    plain = shape.copy()
    plain.Placement = FreeCAD.Placement()
    return plain.transformed(matrix, True), True


def measure_file(document: Document, given: dict[str, Any]) -> dict[str, Any]:
    """Measure a STEP file as a reader finds it that knows of no assembly transforms."""
    import Part

    shape = Part.Shape()
    shape.read(given["path"])
    return {"facts": facts_of(shape), "centre": centre_of(shape)}


def write_shape(document: Document, given: dict[str, Any]) -> dict[str, Any]:
    """Write an object in a format that holds one shape: BREP, STL or OBJ."""
    thing = document.find(given["obj_id"])
    shape, _ = baked(shape_of(thing))
    if given["format"] == "brep":
        shape.exportBrep(given["path"])
        return {"triangles": None}
    import Mesh
    import MeshPart

    mesh = MeshPart.meshFromShape(
        Shape=shape, LinearDeflection=given["deflection"], AngularDeflection=0.3, Relative=False
    )
    mesh.write(given["path"], given["format"].upper()) if given["format"] == "obj" else mesh.write(given["path"])
    assert Mesh is not None
    return {"triangles": mesh.CountFacets}


def import_step(edit: Edit, given: dict[str, Any]) -> None:
    """Bring the parts of a STEP file into the document."""
    document = edit.document
    roots = read_apart(given["path"], given["scratch"], given["shown"])
    told: list[dict[str, Any]] = []
    if len(roots) > 1:
        roots = [{"label": given["name"], "children": roots}]
    root = _rebuilt(document, roots[0], told)
    if given["named"]:
        root.Label = given["name"]
    document.recompute()
    edit.result(root, parts=told)


def _rebuilt(document: Document, node: dict[str, Any], told: list[dict[str, Any]]) -> Any:
    import Part

    if "children" in node:
        made = document.add("App::Part", node["label"])
        for child in node["children"]:
            made.addObject(_rebuilt(document, child, told))
        return made
    made = document.add("Part::Feature", node["label"])
    shape = Part.Shape()
    shape.importBinary(node["file"])
    made.Shape = shape
    # Labels are unique in a document: the one in the file is told beside.
    told.append({"obj_id": made.Name, "label": made.Label, "product": node["label"], "facts": facts_of(shape)})
    return made


def read_apart(path: str, scratch: str, shown: str) -> list[dict[str, Any]]:
    """Read a STEP file in a process of its own: some files end the one that reads them.

    Raises:
        Refusal: the file ended it, or holds no geometry.
    """
    child = os.fork()
    if child == 0:
        code = 1
        try:
            _read(path, Path(scratch))
            code = 0
        except BaseException as fault:  # noqa: BLE001 - the child has nobody above it
            print(f"{type(fault).__name__}: {fault}", file=sys.stderr)
        finally:
            sys.stderr.flush()
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status < 0:
        raise Refusal(
            f"{shown} crashes FreeCAD's STEP reader ({signal.Signals(-status).name}); the session is unharmed",
            "step_crashes_kernel", "export it again from the CAD system with one length unit, as AP214 or AP242", shown,
        )  # fmt: skip
    listing = Path(scratch) / "parts.json"
    if status != 0 or not listing.is_file():
        raise Refusal(f"{shown} could not be read as STEP", "step_unreadable", "export the part again", shown)
    parts: list[dict[str, Any]] = json.loads(listing.read_text())
    if not parts:
        raise Refusal(f"{shown} holds no geometry", "no_geometry", "export it again with the parts' geometry", shown)
    return parts


def _read(path: str, scratch: Path) -> None:
    import FreeCAD
    import Import

    document = FreeCAD.newDocument("Reading")
    # Without these FreeCAD 0.20 crashes on every assembly where it has no window.
    Import.insert(path, "Reading", useLinkGroup=False, merge=False)
    count = iter(range(1_000_000))
    roots = [_saved(each, scratch, count) for each in document.RootObjects if each.TypeId not in HIDDEN]
    (scratch / "parts.json").write_text(json.dumps([each for each in roots if each is not None]))


def _saved(thing: Any, scratch: Path, count: Iterator[int]) -> dict[str, Any] | None:
    if is_container(thing):
        inside = [_saved(child, scratch, count) for child in children(thing)]
        kept = [each for each in inside if each is not None]
        return {"label": thing.Label, "children": kept} if kept else None
    found = leaves(thing)
    if not found or not found[0][1].Faces:
        return None
    name = str(scratch / f"part{next(count)}.bin")
    found[0][1].exportBinary(name)
    return {"label": thing.Label, "file": name}


def tessellate(document: Document, given: dict[str, Any]) -> dict[str, Any]:
    """Write an object's triangles and edges for a picture: float64 points, int32 corners."""
    from array import array

    thing = document.find(given["obj_id"])
    parts = []
    for number, (part, shape) in enumerate(leaves(thing)):
        facts = shape.BoundBox
        deflection = max(facts.DiagonalLength / 800, 1e-6)
        points, corners = shape.tessellate(deflection)
        lines = [edge.discretize(QuasiDeflection=deflection) for edge in shape.Edges if not edge.Degenerated]
        base = Path(given["scratch"]) / f"mesh{number}"
        base.with_suffix(".points").write_bytes(array("d", [c for p in points for c in p]).tobytes())
        base.with_suffix(".corners").write_bytes(array("i", [c for t in corners for c in t]).tobytes())
        base.with_suffix(".lines").write_bytes(array("d", [c for line in lines for p in line for c in p]).tobytes())
        parts.append({"obj_id": part.Name, "label": part.Label, "base": str(base), "lengths": [len(x) for x in lines]})
    return {"parts": parts}


def import_brep(edit: Edit, given: dict[str, Any]) -> None:
    """Bring the shape of a BREP file into the document."""
    import Part

    shape = Part.Shape()
    try:
        shape.importBrep(given["path"])
    except Exception as fault:
        raise Refusal(f"{given['shown']} could not be read as BREP", "brep_unreadable", "export it again") from fault
    if shape.isNull() or not shape.Faces:
        raise Refusal(f"{given['shown']} holds no geometry", "no_geometry", "export the part again", given["shown"])
    made = edit.document.add("Part::Feature", given["name"])
    made.Shape = shape
    edit.document.recompute()
    edit.result(
        made, parts=[{"obj_id": made.Name, "label": made.Label, "product": made.Label, "facts": facts_of(shape)}]
    )

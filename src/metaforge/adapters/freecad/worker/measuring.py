"""Measure shapes where they are: an object's own placement and those of the parts it lies in are applied."""

from typing import Any

from .document import CONTAINERS, HIDDEN, Document
from .refusals import Refusal
from .seam import compound

TIGHT_MM = 1e-6
SIDES = {"right": (0, 1), "left": (0, -1), "back": (1, 1), "front": (1, -1), "top": (2, 1), "bottom": (2, -1)}


def is_container(thing: Any) -> bool:
    return thing.TypeId in CONTAINERS


def shape_of(thing: Any) -> Any:
    """Return an object's shape in the global frame; a container's is a compound of what it holds.

    Raises:
        Refusal: the object has no shape.
    """
    if is_container(thing):
        shapes = [shape for _, shape in leaves(thing)]
        if not shapes:
            raise Refusal(f"{thing.Name} is empty", "empty", "add a part to it first", thing.Name)
        return compound(shapes)
    found = _placed(thing)
    if found is None:
        raise Refusal(
            f"{thing.Name} ({thing.TypeId}) has no shape yet", "no_shape", "give it a solid first", thing.Name
        )
    return found


def leaves(thing: Any) -> list[tuple[Any, Any]]:
    """Return the parts below an object, each with its shape in the global frame."""
    if not is_container(thing):
        shape = _placed(thing)
        return [] if shape is None else [(thing, shape)]
    return [leaf for child in children(thing) for leaf in leaves(child)]


def children(container: Any) -> list[Any]:
    """Return what a container holds, without what only served to make another object of it."""
    return [each for each in container.Group if each.TypeId not in HIDDEN and user_of(each) is None]


def user_of(thing: Any) -> Any | None:
    """Return the object that was made of this one, as a cut is of its base and tool, or None."""
    for user in thing.InList:
        if user.isDerivedFrom("Part::Feature") and not user.isDerivedFrom("PartDesign::Feature"):
            named = (getattr(user, name, None) for name in ("Base", "Tool", "Source", "Shapes"))
            flat = [each for found in named for each in (found if isinstance(found, list | tuple) else [found])]
            if any(getattr(each, "Name", "") == thing.Name for each in flat) and not user.isDerivedFrom(
                "PartDesign::Body"
            ):
                return user
    return None


def _placed(thing: Any) -> Any | None:
    import Part

    shape = getattr(thing, "Shape", None)
    if shape is None or shape.isNull() or thing.isDerivedFrom("Sketcher::SketchObject"):
        return None
    # A handle of its own, not a copy: the geometry is shared, and stays recognisable as the same.
    placed = Part.Shape(shape)
    placed.Placement = thing.getGlobalPlacement()
    return placed


def facts_of(shape: Any) -> dict[str, Any]:
    """Return what is measured of a shape; mm, mm2, mm3."""
    solids = shape.Solids
    volume = sum(solid.Volume for solid in solids)
    return {
        "volume": volume,
        "area": shape.Area,
        "solids": len(solids),
        "shells": len(shape.Shells),
        "faces": len(shape.Faces),
        "edges": len(shape.Edges),
        "valid": shape.isValid(),
        "bounds": bounds_of(shape),
    }


def bounds_of(shape: Any) -> list[float] | None:
    """Return the smallest box around a shape: xmin, ymin, zmin, xmax, ymax, zmax; None for an empty shape.

    The quick box may be too large, and the exact one takes seconds on a part with many blends. So the quick one is held
    to points that surely belong to the shape; only where these do not reach it the exact one is computed.
    """
    points = [vertex.Point for vertex in shape.Vertexes]
    if not points:
        return None
    quick = _numbers(shape.BoundBox)
    reached = [min(p[i] for p in points) for i in range(3)] + [max(p[i] for p in points) for i in range(3)]
    if not _agree(quick, reached):
        for edge in shape.Edges:
            if not edge.Degenerated and edge.Curve.TypeId == "Part::GeomCircle":
                box = _numbers(edge.BoundBox)
                reached = [*map(min, reached[:3], box[:3]), *map(max, reached[3:], box[3:])]
    return reached if _agree(quick, reached) else _numbers(shape.optimalBoundingBox(False))


def _numbers(box: Any) -> list[float]:
    return [box.XMin, box.YMin, box.ZMin, box.XMax, box.YMax, box.ZMax]


def _agree(quick: list[float], reached: list[float]) -> bool:
    return all(abs(a - b) <= TIGHT_MM for a, b in zip(quick, reached, strict=True))


def facts_at(document: Document, thing: Any) -> dict[str, Any] | None:
    """Return what is measured of an object where it is, or None when it has no shape."""
    try:
        shape = shape_of(thing)
    except Refusal:
        return None
    if is_container(thing):
        return facts_of(shape)
    # The facts are kept with the shape itself, so that its memory cannot become another one's meanwhile.
    kept = document.known_facts.get(thing.Name)
    if kept is not None and kept[0].isPartner(shape) and kept[0].Placement.toMatrix() == shape.Placement.toMatrix():
        return kept[1]
    facts = facts_of(shape)
    document.known_facts[thing.Name] = (shape, facts)
    return facts


def centre_of(shape: Any) -> list[float] | None:
    """Return the centre of mass of a shape's solids."""
    solids = shape.Solids
    if len(solids) == 1:
        return list(solids[0].CenterOfMass)
    volume = sum(solid.Volume for solid in solids)
    if volume <= 0:
        return None
    return [sum(solid.Volume * solid.CenterOfMass[i] for solid in solids) / volume for i in range(3)]


def measure(document: Document, obj_id: str) -> dict[str, Any]:
    """Measure an object in the global frame."""
    thing = document.find(obj_id)
    shape = shape_of(thing)
    told = {"obj_id": thing.Name, "label": thing.Label, "kind": thing.TypeId}
    told["facts"] = facts_at(document, thing)
    told["centre"] = centre_of(shape)
    told["placement"] = placement_of(thing.getGlobalPlacement())
    if is_container(thing):
        told["parts"] = [
            {"obj_id": part.Name, "label": part.Label, "facts": facts_of(each)} for part, each in leaves(thing)
        ]
    solids = shape.Solids
    if len(solids) == 1:
        matrix = solids[0].MatrixOfInertia
        told["inertia"] = [[matrix.A[4 * row + column] for column in range(3)] for row in range(3)]
    return told


def placement_of(placement: Any) -> dict[str, Any]:
    """Return a placement as position in mm, axis and angle in degrees."""
    from math import degrees

    rotation = placement.Rotation
    angle = degrees(rotation.Angle)
    axis = list(rotation.Axis) if abs(angle) > 1e-9 else [0.0, 0.0, 1.0]
    return {"position": list(placement.Base), "axis": axis, "angle": angle}


def describe_faces(shape: Any, limit: int) -> list[dict[str, Any]]:
    """Return a shape's faces, largest first: name, kind, area, centre, normal where flat."""
    box = bounds_of(shape) or [0.0] * 6
    low, high = box[:3], box[3:]
    faces = []
    for number, face in enumerate(shape.Faces, 1):
        told: dict[str, Any] = {
            "name": f"Face{number}", "kind": face.Surface.TypeId.replace("Part::Geom", "").lower(),
            "area": face.Area, "centre": list(face.CenterOfMass),
        }  # fmt: skip
        if told["kind"] == "plane":
            told["normal"] = list(normal_of(face))
            told["side"] = _side(told["normal"], told["centre"], low, high)
        elif hasattr(face.Surface, "Radius"):
            told["radius"] = face.Surface.Radius
        faces.append(told)
    faces.sort(key=lambda each: -each["area"])
    return faces[:limit]


def normal_of(face: Any) -> Any:
    """Return the outward normal of a flat face."""
    first, last, low, high = face.ParameterRange
    return face.normalAt((first + last) / 2, (low + high) / 2)


def _side(normal: list[float], centre: list[float], low: Any, high: Any) -> str | None:
    for name, (axis, sign) in SIDES.items():
        end = high[axis] if sign > 0 else low[axis]
        if normal[axis] * sign > 0.999999 and abs(centre[axis] - end) < 1e-6 * max(1.0, abs(end)):
            return name
    return None


def describe_edges(shape: Any, limit: int) -> list[dict[str, Any]]:
    """Return a shape's edges: name, kind, length, middle, direction where straight, radius where round."""
    edges = []
    for number, edge in enumerate(shape.Edges, 1):
        if edge.Degenerated:
            continue
        curve = edge.Curve
        middle = edge.valueAt((edge.FirstParameter + edge.LastParameter) / 2)
        told: dict[str, Any] = {
            "name": f"Edge{number}", "kind": curve.TypeId.replace("Part::Geom", "").lower(),
            "length": edge.Length, "middle": list(middle),
        }  # fmt: skip
        if told["kind"] == "line":
            told["direction"] = list(edge.tangentAt(edge.FirstParameter))
        elif hasattr(curve, "Radius"):
            told["radius"] = curve.Radius
        edges.append(told)
    return edges[:limit]

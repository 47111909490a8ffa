"""Common parts in one step: holes, bosses, gears, grids of holes, packages, turned and extruded profiles."""

from collections.abc import Iterable
from math import atan, cos, pi, radians, sin, sqrt, tan
from typing import Any

from .document import Document
from .edits import Edit
from .refusals import Refusal
from .seam import compound

INVOLUTE_POINTS = 8


def _vector(x: float, y: float, z: float = 0.0) -> Any:
    import FreeCAD

    return FreeCAD.Vector(x, y, z)


def _cylinder(diameter: float, height: float, x: float, y: float, z: float) -> Any:
    import Part

    return Part.makeCylinder(diameter / 2, height, _vector(x, y, z))


def _solid(edit: Edit, name: str, shape: Any) -> Any:
    made = edit.document.add("Part::Feature", name)
    made.Shape = shape
    return made


def _changed(edit: Edit, obj_id: str, added: Any, removed: Any, name: str) -> None:
    """Add to a solid and cut from it, as objects that stay linked to it."""
    document = edit.document
    thing = document.find(obj_id)
    edit.before(thing)
    made = thing
    for kind, shape in (("Part::Fuse", added), ("Part::Cut", removed)):
        if shape is not None:
            base, made = made, document.add(kind, name)
            made.Base, made.Tool = base, _solid(edit, f"{name}Tool", shape)
            made.Refine = True
    document.recompute()
    edit.result(made, body_id=thing.Name)


def _top(document: Document, obj_id: str) -> tuple[float, float]:
    """Return the lowest and the highest z of an object in its own frame."""
    box = document.find(obj_id).Shape.BoundBox
    return box.ZMin, box.ZMax


def enclosure(edit: Edit, given: dict[str, Any]) -> None:
    """A box that is open at the top."""
    import Part

    length, width, height, wall = (given[name] for name in ("length", "width", "height", "wall"))
    if 2 * wall >= min(length, width) or wall >= height:
        raise Refusal(
            f"A wall of {wall:g} mm leaves no room inside", "shell_too_thick", "take a thinner wall", mode="design"
        )
    outer = Part.makeBox(length, width, height)
    made = outer.cut(Part.makeBox(length - 2 * wall, width - 2 * wall, height, _vector(wall, wall, wall)))
    edit.result(_solid(edit, given["name"] or "Enclosure", made.Solids[0]))
    edit.document.recompute()


def fastener_hole(edit: Edit, given: dict[str, Any]) -> None:
    """A hole from the top, with a counterbore where one is asked for."""
    low, high = _top(edit.document, given["body_id"])
    depth = high - low if given["depth"] is None else given["depth"]
    cut = _cylinder(given["diameter"], depth, given["x"], given["y"], high - depth)
    if given["bore"] is not None:
        bore = _cylinder(given["bore"], given["bore_depth"], given["x"], given["y"], high - given["bore_depth"])
        cut = cut.fuse(bore)
    _changed(edit, given["body_id"], None, cut, "Hole")


def thread_insert(edit: Edit, given: dict[str, Any]) -> None:
    """A boss on the top with a blind hole for a threaded insert."""
    _, high = _top(edit.document, given["body_id"])
    top = high + given["boss_height"]
    boss = _cylinder(given["boss_diameter"], given["boss_height"], given["x"], given["y"], high)
    hole = _cylinder(given["hole_diameter"], given["hole_depth"], given["x"], given["y"], top - given["hole_depth"])
    _changed(edit, given["body_id"], boss, hole, "Insert")


def lattice(edit: Edit, given: dict[str, Any]) -> None:
    """A grid of through holes over the top, within a margin."""
    box = edit.document.find(given["body_id"]).Shape.BoundBox
    reach = given["margin"] + given["hole_diameter"] / 2
    columns = _places(box.XMin + reach, box.XMax - reach, given["cell"])
    rows = _places(box.YMin + reach, box.YMax - reach, given["cell"])
    if not columns or not rows:
        raise Refusal(
            f"No hole of {given['hole_diameter']:g} mm fits within a margin of {given['margin']:g} mm", "no_change",
            "take a smaller hole or margin", mode="design",
        )  # fmt: skip
    if len(columns) * len(rows) > given["most"]:
        raise Refusal(
            f"{len(columns) * len(rows)} holes are more than {given['most']}", "too_many", "take a larger cell_size_mm"
        )
    cut = compound([_cylinder(given["hole_diameter"], box.ZLength, x, y, box.ZMin) for x in columns for y in rows])
    _changed(edit, given["body_id"], None, cut, "Lattice")
    edit.more["cells"] = len(columns) * len(rows)


def _places(low: float, high: float, cell: float) -> list[float]:
    if high < low:
        return []
    count = int((high - low) / cell + 1e-9) + 1
    first = (low + high - (count - 1) * cell) / 2
    return [first + number * cell for number in range(count)]


def gear(edit: Edit, given: dict[str, Any]) -> None:
    """A spur gear with involute flanks, addendum 1 and dedendum 1.25 modules."""
    import Part

    module, teeth, angle = given["module"], given["teeth"], radians(given["pressure_angle"])
    pitch, outer, root = module * teeth / 2, module * (teeth / 2 + 1), module * (teeth / 2 - 1.25)
    base = pitch * cos(angle)
    half = pi / (2 * teeth) + tan(angle) - angle
    begins = max(base, root)
    edges: list[Any] = []
    for number in range(teeth):
        turn = 2 * pi * number / teeth
        right = [_involute(base, begins + (outer - begins) * k / INVOLUTE_POINTS, half, turn, 1) for k in _steps()]
        left = [_involute(base, begins + (outer - begins) * k / INVOLUTE_POINTS, half, turn, -1) for k in _steps()]
        following = 2 * pi * (number + 1) / teeth
        next_right = _involute(base, begins, half, following, 1)
        if begins > root:
            right.insert(0, _polar(root, turn - half))
            left.insert(0, _polar(root, turn + half))
            next_right = _polar(root, following - half)
        edges += _flank(right, begins > root)
        edges.append(Part.Arc(right[-1], _polar(outer, turn), left[-1]).toShape())
        edges += _flank(left, begins > root)[::-1]
        foot = left[0]
        edges.append(Part.Arc(foot, _polar(root if begins > root else begins, turn + pi / teeth), next_right).toShape())
    wire = Part.Wire(Part.__sortEdges__(edges))
    solid = Part.Face(wire).extrude(_vector(0, 0, given["thickness"]))
    edit.result(_solid(edit, given["name"] or "Gear", solid), pitch_diameter=2 * pitch, addendum_diameter=2 * outer)
    edit.document.recompute()


def _steps() -> Iterable[int]:
    return range(INVOLUTE_POINTS + 1)


def _polar(radius: float, angle: float) -> Any:
    return _vector(radius * cos(angle), radius * sin(angle))


def _involute(base: float, radius: float, half: float, turn: float, side: int) -> Any:
    """Return a point of a flank: side 1 is the one that comes first, counter-clockwise."""
    roll = sqrt(max(radius * radius / (base * base) - 1, 0.0))
    along = half - (roll - atan(roll))
    return _polar(radius, turn - side * along)


def _flank(points: list[Any], has_foot: bool) -> list[Any]:
    import Part

    edges = [Part.LineSegment(points[0], points[1]).toShape()] if has_foot else []
    curve = Part.BSplineCurve()
    curve.interpolate(points[1:] if has_foot else points)
    return [*edges, curve.toShape()]


def profile_part(edit: Edit, given: dict[str, Any]) -> None:
    """Turn or extrude a closed outline: x is the radius and y the axis for a turned part."""
    import Part

    points = [_vector(x, y) for x, y in given["profile"]]
    if given["operation"] == "revolve" and min(point.x for point in points) < 0:
        raise Refusal(
            "The outline crosses the axis: x is the radius and may not be negative", "crosses_axis", mode="design"
        )
    face = Part.Face(Part.makePolygon([*points, points[0]]))
    if given["operation"] == "extrude":
        solid = face.extrude(_vector(0, 0, given["depth"]))
    else:
        solid = face.revolve(_vector(0, 0), _vector(0, 1), given["angle"])
        solid.rotate(_vector(0, 0), _vector(1, 0), 90)
    edit.result(_solid(edit, given["name"] or "Part", solid), operation=given["operation"])
    edit.document.recompute()


def ic_package(edit: Edit, given: dict[str, Any]) -> None:
    """A body with leads on two or four sides, as an assembly of parts."""
    import Part

    document, size = edit.document, given["sizes"]
    length, width, height, standoff = (size[name] for name in ("length_mm", "width_mm", "height_mm", "standoff_mm"))
    root = document.add("App::Part", given["name"])
    body = _solid(edit, "Body", Part.makeBox(length, width, height, _vector(-length / 2, -width / 2, standoff)))
    root.addObject(body)
    made = [body.Name]
    for number, (x, y, along_x, along_y) in enumerate(given["leads"], 1):
        shape = Part.makeBox(along_x, along_y, size["lead_thickness_mm"], _vector(x - along_x / 2, y - along_y / 2, 0))
        lead = _solid(edit, f"Lead{number}", shape)
        root.addObject(lead)
        made.append(lead.Name)
    document.recompute()
    edit.result(root, obj_ids=made)

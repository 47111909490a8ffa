"""Sketches on the origin planes of a body. Ends that meet are joined; rectangles and circles are fully constrained."""

from math import cos, hypot, radians, sin
from typing import Any

from .edits import Edit
from .refusals import Refusal
from .seam import attach

PLANES = {"XY": 3, "XZ": 4, "YZ": 5}
TOGETHER_MM = 1e-6


def create_sketch(edit: Edit, given: dict[str, Any]) -> None:
    document = edit.document
    body = document.body(given["body_id"])
    sketch = body.newObject("Sketcher::SketchObject", "Sketch")
    attach(sketch, body.Origin.OriginFeatures[PLANES[given["plane"]]], given["offset"])
    drawing = _Drawing(sketch)
    for number, element in enumerate(given["elements"], 1):
        drawing.add(element, number)
    drawing.finish()
    document.recompute()
    solved = sketch.solve()
    if solved != 0:
        raise Refusal(
            f"The sketch cannot be solved (FreeCAD says {solved}): its elements contradict each other", "not_solvable",
            "give each line once, and rectangles and circles of a size above 0", mode="design",
        )  # fmt: skip
    wires, closed = _wires(sketch)
    normal = sketch.getGlobalPlacement().Rotation.multVec(_vector(0, 0, 1))
    edit.result(
        sketch, wires=wires, closed=closed, normal=list(normal), dimensions=drawing.dimensions,
        origin=list(sketch.getGlobalPlacement().Base), label_of_body=body.Name, area=_area(sketch) if closed else None,
    )  # fmt: skip


def _wires(sketch: Any) -> tuple[int, bool]:
    wires = sketch.Shape.Wires
    return len(wires), bool(wires) and all(wire.isClosed() for wire in wires)


def _area(sketch: Any) -> float | None:
    import Part

    try:
        made = Part.makeFace(sketch.Shape.Wires, "Part::FaceMakerBullseye")
    except Exception:  # noqa: BLE001 - wires that cross: the feature made of them says so
        return None
    return float(made.Area)


def _vector(x: float, y: float, z: float = 0.0) -> Any:
    import FreeCAD

    return FreeCAD.Vector(x, y, z)


class _Drawing:
    """Adds elements to a sketch."""

    def __init__(self, sketch: Any) -> None:
        self._sketch = sketch
        self._ends: list[tuple[float, float, int, int]] = []
        self._constraints: list[Any] = []
        self._names: dict[int, str] = {}
        self.dimensions: list[str] = []

    def add(self, element: dict[str, Any], number: int) -> None:
        getattr(self, f"_{element['type']}")(element, number)

    def _line(self, element: dict[str, Any], number: int) -> None:
        self._segment(element["start_mm"], element["end_mm"], number)

    def _polyline(self, element: dict[str, Any], number: int) -> None:
        points = element["points_mm"]
        follows = [*points[1:], points[0]] if element.get("closed", True) else points[1:]
        for start, end in zip(points, follows, strict=False):
            self._segment(start, end, number)

    def _segment(self, start: list[float], end: list[float], number: int) -> None:
        import Part

        if hypot(end[0] - start[0], end[1] - start[1]) < TOGETHER_MM:
            raise Refusal(f"Element {number}: a line from {start} to {end} has no length", "no_length", mode="design")
        index = self._sketch.addGeometry(Part.LineSegment(_vector(*start), _vector(*end)), False)
        self._end(start, index, 1)
        self._end(end, index, 2)

    def _arc(self, element: dict[str, Any], number: int) -> None:
        import Part

        (x, y), radius = element["center_mm"], element["radius_mm"]
        start, end = radians(element["start_deg"]), radians(element["end_deg"])
        circle = Part.Circle(_vector(x, y), _vector(0, 0, 1), radius)
        index = self._sketch.addGeometry(Part.ArcOfCircle(circle, start, end), False)
        self._end([x + radius * cos(start), y + radius * sin(start)], index, 1)
        self._end([x + radius * cos(end), y + radius * sin(end)], index, 2)

    def _circle(self, element: dict[str, Any], number: int) -> None:
        import Part

        (x, y), radius = element["center_mm"], element["radius_mm"]
        index = self._sketch.addGeometry(Part.Circle(_vector(x, y), _vector(0, 0, 1), radius), False)
        self._dimension(f"circle{number}_radius", "Radius", index, radius)
        self._place(f"circle{number}", index, 3, x, y)

    def _rectangle(self, element: dict[str, Any], number: int) -> None:
        x, y = element["corner_mm"]
        width, height = element["width_mm"], element["height_mm"]
        corners = [[x, y], [x + width, y], [x + width, y + height], [x, y + height]]
        first = self._sketch.GeometryCount
        for start, end in zip(corners, [*corners[1:], corners[0]], strict=True):
            self._segment(start, end, number)
        for side, kind in enumerate(("Horizontal", "Vertical", "Horizontal", "Vertical")):
            self._constrain(kind, first + side)
        self._dimension(f"rectangle{number}_width", "DistanceX", first, 1, first, 2, width)
        self._dimension(f"rectangle{number}_height", "DistanceY", first + 1, 1, first + 1, 2, height)
        self._place(f"rectangle{number}", first, 1, x, y)

    def _place(self, name: str, index: int, point: int, x: float, y: float) -> None:
        # A distance of zero is a constraint of another kind to the solver.
        if abs(x) < TOGETHER_MM and abs(y) < TOGETHER_MM:
            self._constrain("Coincident", index, point, -1, 1)
            return
        for axis, value in (("x", x), ("y", y)):
            if abs(value) < TOGETHER_MM:
                self._constrain("PointOnObject", index, point, -2 if axis == "x" else -1)
            else:
                self._dimension(f"{name}_{axis}", f"Distance{axis.upper()}", -1, 1, index, point, value)

    def _constrain(self, *words: Any) -> int:
        import Sketcher

        self._constraints.append(Sketcher.Constraint(*words))
        return len(self._constraints) - 1

    def _dimension(self, name: str, *words: Any) -> None:
        self._names[self._constrain(*words)] = name
        self.dimensions.append(name)

    def _end(self, point: list[float], index: int, which: int) -> None:
        self._ends.append((point[0], point[1], index, which))

    def finish(self) -> None:
        """Make ends at the same place one point, and constrain everything at once: each time is a solve."""
        seen: list[tuple[float, float, int, int]] = []
        for x, y, index, which in self._ends:
            for other_x, other_y, other, end in seen:
                if hypot(x - other_x, y - other_y) < TOGETHER_MM and other != index:
                    self._constrain("Coincident", other, end, index, which)
                    break
            else:
                seen.append((x, y, index, which))
        self._sketch.addConstraint(self._constraints)
        for number, name in self._names.items():
            self._sketch.renameConstraint(number, name)

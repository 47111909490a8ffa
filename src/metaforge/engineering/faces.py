"""Choose faces of a part by where they are: the one vocabulary of supports, loads and temperatures.

Imported by adapters for their schemas, so nothing heavy is imported here.
"""

import difflib
import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from metaforge.core.errors import InvalidArguments

if TYPE_CHECKING:
    from metaforge.engineering.mesh import Mesh, Surface

DIRECTIONS: dict[str, tuple[int, float]] = {
    "+x": (0, 1.0), "-x": (0, -1.0), "+y": (1, 1.0), "-y": (1, -1.0), "+z": (2, 1.0), "-z": (2, -1.0),
}  # fmt: skip
POSITIONS: dict[str, str] = {
    "top": "+z", "bottom": "-z", "right": "+x", "left": "-x", "back": "+y", "front": "-y",
}  # fmt: skip
ANGLE_TOLERANCE_DEG = 5.0
"""A face counts as facing a direction when its outward normal is within this angle of it."""
REACH_TOLERANCE_RATIO = 1e-3
"""A face lies at the extreme when all of it is within this share of the part's diagonal of the outermost point."""
LISTED_FACES = 12

Box = tuple[float, float, float, float, float, float]
Point = tuple[float, float, float]


class FacesInBox(BaseModel):
    """Every face inside a box."""

    model_config = ConfigDict(extra="forbid")

    box_mm: Annotated[Box, Field(description="xmin, ymin, zmin, xmax, ymax, zmax")]


class FaceNear(BaseModel):
    """The face nearest to a point."""

    model_config = ConfigDict(extra="forbid")

    near_mm: Annotated[Point, Field(description="x, y, z, away from edges")]


FaceSelector = Annotated[
    str | FacesInBox | FaceNear,
    Field(
        description="top|bottom|right|left|back|front or +z|-z|+x|-x|+y|-y: the outermost flat face; a surface set "
        "such as face_3; {box_mm: [xmin, ymin, zmin, xmax, ymax, zmax]}: all inside; {near_mm: [x, y, z]}: the nearest"
    ),
]


def select(surfaces: "Mapping[str, Surface]", selector: Any, *, mesh: "Mesh | None" = None) -> list[str]:
    """Return the names of the surface sets that a selector means.

    Args:
        surfaces: the part's surface sets by name.
        selector: a `FaceSelector`, or the same as plain data.
        mesh: where given, `near_mm` measures the distance to the face itself, not to its box.

    Raises:
        InvalidArguments: nothing matches, or more than one face is equally near; the message lists the faces.
    """
    if not surfaces:
        raise InvalidArguments("The mesh has no surface sets to choose from: mesh a STEP file, or define *SURFACE sets")
    if isinstance(selector, FacesInBox):
        return _in_box(surfaces, selector.box_mm)
    if isinstance(selector, FaceNear):
        return _nearest(surfaces, selector.near_mm, mesh)
    if isinstance(selector, dict):
        return select(surfaces, _parse(selector), mesh=mesh)
    return _by_name(surfaces, str(selector).strip())


def _parse(selector: dict[str, Any]) -> FacesInBox | FaceNear:
    try:
        return FacesInBox.model_validate(selector) if "box_mm" in selector else FaceNear.model_validate(selector)
    except ValidationError as fault:
        text = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in fault.errors())
        expected = "a name, {box_mm: [6 numbers]} or {near_mm: [3 numbers]}"
        raise InvalidArguments(
            f"A face is chosen by {expected}, not {selector}: {text}", fields={"face": expected}
        ) from None


def positions(surfaces: "Mapping[str, Surface]") -> dict[str, list[str]]:
    """Return which sets `top`, `bottom`, `left` ... mean; a position without a flat outermost face is left out."""
    found = {name: _outermost(_basic(surfaces), *DIRECTIONS[direction]) for name, direction in POSITIONS.items()}
    return {name: names for name, names in found.items() if names}


def describe(surfaces: "Mapping[str, Surface]", order: "Callable[[Surface], float] | None" = None) -> str:
    """Return one line per face with centroid, area and normal, at most 12, the nearest by `order` first."""
    names = list(surfaces)
    if order is not None:
        names.sort(key=lambda name: order(surfaces[name]))
    lines = [_line(name, surfaces[name]) for name in names[:LISTED_FACES]]
    if len(names) > LISTED_FACES:
        lines.append(f"... and {len(names) - LISTED_FACES} more")
    return "\n".join(lines)


def _line(name: str, surface: "Surface") -> str:
    # Rounded to a nanometre first, so that a face on the axis plane is at 0 and not at 1e-17.
    centre = ", ".join(f"{round(v, 6) + 0.0:.4g}" for v in surface.centroid_mm)
    normal = ", ".join(f"{round(v, 4) + 0.0:.2g}" for v in surface.normal) if any(surface.normal) else "none (closed)"
    return f"  {name}: {surface.kind}, centroid [{centre}] mm, {surface.area_mm2:.5g} mm2, normal [{normal}]"


def _by_name(surfaces: "Mapping[str, Surface]", name: str) -> list[str]:
    # CalculiX writes set names in capitals.
    known = {each.lower(): each for each in surfaces}
    wanted = name.lower()
    if wanted in known:
        return [known[wanted]]
    direction = POSITIONS.get(wanted, wanted)
    if direction in DIRECTIONS:
        axis, sign = DIRECTIONS[direction]
        basic = _basic(surfaces)
        if found := _outermost(basic, axis, sign):
            return found
        extreme = _extreme(basic, axis, sign)
        raise _no_match(
            f"{name!r} names no face: no flat face with its normal within {ANGLE_TOLERANCE_DEG:g} deg of {direction} "
            f"lies at the outermost {'xyz'[axis]} = {extreme:.6g} mm. Choose a set by name, box_mm or near_mm",
            basic,
            lambda s: abs(extreme - s.centroid_mm[axis]),
        )
    choices = [*POSITIONS, *DIRECTIONS, *surfaces]
    close = difflib.get_close_matches(wanted, [c.lower() for c in choices], n=1)
    hint = f"; did you mean {known.get(close[0], close[0])!r}?" if close else f"; directions: {', '.join(choices[:12])}"
    raise _no_match(f"{name!r} is no surface set and no direction{hint}", _basic(surfaces), None)


def _basic(surfaces: "Mapping[str, Surface]") -> "dict[str, Surface]":
    """Leave out sets that only gather others: `top` beside `face_3`."""
    faces = {name: s for name, s in surfaces.items() if re.fullmatch(r"face_\d+", name, re.IGNORECASE)}
    named = {name: s for name, s in surfaces.items() if name.lower() not in POSITIONS}
    return faces or named or dict(surfaces)


def _bounds(surfaces: "Mapping[str, Surface]") -> Box:
    boxes = [surface.bbox_mm for surface in surfaces.values()]
    low = [min(box[k] for box in boxes) for k in range(3)]
    high = [max(box[k] for box in boxes) for k in range(3, 6)]
    return (low[0], low[1], low[2], high[0], high[1], high[2])


def _tolerance_mm(surfaces: "Mapping[str, Surface]") -> float:
    box = _bounds(surfaces)
    return REACH_TOLERANCE_RATIO * math.dist(box[:3], box[3:])


def _extreme(surfaces: "Mapping[str, Surface]", axis: int, sign: float) -> float:
    return _bounds(surfaces)[axis + 3 if sign > 0 else axis]


def _outermost(surfaces: "Mapping[str, Surface]", axis: int, sign: float) -> list[str]:
    extreme, tolerance = _extreme(surfaces, axis, sign), _tolerance_mm(surfaces)
    least = math.cos(math.radians(ANGLE_TOLERANCE_DEG))
    return [
        name
        for name, s in surfaces.items()
        if s.kind == "plane"
        and sign * s.normal[axis] >= least
        and max(abs(s.bbox_mm[axis] - extreme), abs(s.bbox_mm[axis + 3] - extreme)) <= tolerance
    ]


def _in_box(surfaces: "Mapping[str, Surface]", box: Box) -> list[str]:
    for k, axis in enumerate("xyz"):
        if box[k] > box[k + 3]:
            raise InvalidArguments(
                f"box_mm: {axis} runs from {box[k]:g} to {box[k + 3]:g}; give the lower corner first",
                fields={"box_mm": "[xmin, ymin, zmin, xmax, ymax, zmax]"},
            )
    basic = _basic(surfaces)
    slack = 1e-3 * _tolerance_mm(basic) + 1e-6
    found = [
        name
        for name, s in basic.items()
        if all(s.bbox_mm[k] >= box[k] - slack and s.bbox_mm[k + 3] <= box[k + 3] + slack for k in range(3))
    ]
    if found:
        return found
    centre = [(box[k] + box[k + 3]) / 2 for k in range(3)]
    text = ", ".join(f"{v:g}" for v in box)
    raise _no_match(
        f"box_mm [{text}] holds no whole face: a face counts when all of it is inside",
        basic,
        lambda s: math.dist(s.centroid_mm, centre),
    )


def _nearest(surfaces: "Mapping[str, Surface]", point: Point, mesh: "Mesh | None") -> list[str]:
    basic = _basic(surfaces)

    def distance(surface: "Surface") -> float:
        if mesh is None:
            return _box_distance(surface.bbox_mm, point)
        from metaforge.engineering.surface_geometry import distance_mm

        return distance_mm(mesh, surface.faces, point)

    distances = sorted((distance(s), name) for name, s in basic.items())
    margin = _tolerance_mm(basic)
    near = [name for d, name in distances if d <= distances[0][0] + margin]
    if len(near) == 1:
        return near
    text = ", ".join(f"{v:g}" for v in point)
    raise _no_match(
        f"near_mm [{text}] is equally near to {len(near)} faces ({', '.join(near)}), all {distances[0][0]:.3g} mm "
        "away: give a point inside one face, away from its edges, or the set's name",
        {name: basic[name] for name in near},
        lambda s: math.dist(s.centroid_mm, point),
    )


def _box_distance(box: Box, point: Point) -> float:
    gaps = [max(box[k] - point[k], 0.0, point[k] - box[k + 3]) for k in range(3)]
    return math.hypot(*gaps)


def _no_match(
    text: str, surfaces: "Mapping[str, Surface]", order: "Callable[[Surface], float] | None"
) -> InvalidArguments:
    listed = describe(surfaces, order)
    return InvalidArguments(f"{text}. Faces:\n{listed}", fields={"face": text}, faces=list(surfaces)[:LISTED_FACES])

"""Build the parametric shapes. x is width, y length, z height; centred in x and y, standing on z = 0."""

from collections.abc import Callable, Sequence
from typing import Any

import cadquery as cq

from metaforge.adapters.cadquery import blend
from metaforge.adapters.cadquery.model import Part
from metaforge.adapters.cadquery.parameters import (
    Box,
    Bracket,
    Cone,
    Cylinder,
    Enclosure,
    Hole,
    Plate,
    Sphere,
    WallHole,
    refuse,
)

AXES = {
    "box": "width along x, length along y, height along z; centred in x and y, standing on z = 0",
    "cylinder": "axis along z; centred in x and y, standing on z = 0",
    "sphere": "centred at the origin",
    "cone": "axis along z; centred in x and y, standing on z = 0",
    "bracket": "base leg on z = 0 along x, wall leg at its -x end up z, length along y; centred in x and y",
    "plate": "width along x, length along y, thickness along z; centred in x and y, standing on z = 0",
    "enclosure": "width along x, length along y, height along z; centred in x and y, standing on z = 0, lid on top",
}


def build(shape_type: str, parameters: Any, name: str) -> list[Part]:
    """Return the parts of a shape: one, or body and lid.

    Args:
        shape_type: a key of `AXES`.
        parameters: its own model, already judged value by value.
        name: what to call a single part.

    Raises:
        InvalidArguments: values that do not fit each other; the message gives the limit.
        ToolError: a blend that the kernel cannot do; the message gives the largest radius that works.
    """
    made = _BUILDERS[shape_type](parameters)
    if isinstance(made, dict):
        return [Part(part_name, shape.wrapped) for part_name, shape in made.items()]
    return [Part(name, made.wrapped)]


def block(width: float, length: float, height: float, z: float = 0.0) -> Any:
    """Return a box centred in x and y whose bottom is at `z`; lengths in mm."""
    return cq.Solid.makeBox(width, length, height, cq.Vector(-width / 2, -length / 2, z))


def rounded_block(width: float, length: float, height: float, radius: float, z: float = 0.0) -> Any:
    """Return a block whose upright edges are rounded."""
    made = block(width, length, height, z)
    if radius <= 0:
        return made
    if radius >= min(width, length) / 2:
        # Half a side is a full round: the kernel needs a hair less to leave a flat face.
        radius = min(width, length) / 2 * (1 - 1e-6)
    upright = [edge.wrapped for edge in made.edges("|Z")]
    return cq.Shape.cast(blend.fillet(made.wrapped, upright, radius))


def drill(radius: float, depth: float, start: tuple[float, float, float], direction: tuple[float, float, float]) -> Any:
    """Return the cylinder that a drill removes."""
    return cq.Solid.makeCylinder(radius, depth, cq.Vector(*start), cq.Vector(*direction))


def _box(p: Box) -> Any:
    limit = min(p.width_mm, p.length_mm) / 2
    if p.fillet_radius_mm >= limit:
        raise refuse(
            "box", "fillet_radius_mm", f"{p.fillet_radius_mm:g} mm is too large, it must be below {limit:g} mm"
        )
    return rounded_block(p.width_mm, p.length_mm, p.height_mm, p.fillet_radius_mm)


def _cylinder(p: Cylinder) -> Any:
    return cq.Solid.makeCylinder(p.radius_mm, p.height_mm)


def _sphere(p: Sphere) -> Any:
    return cq.Solid.makeSphere(p.radius_mm, angleDegrees1=-90)


def _cone(p: Cone) -> Any:
    if p.bottom_radius_mm == p.top_radius_mm:
        if p.bottom_radius_mm == 0:
            raise refuse(
                "cone", "bottom_radius_mm", "0 together with top_radius_mm 0 leaves nothing; give one above 0 mm"
            )
        return cq.Solid.makeCylinder(p.bottom_radius_mm, p.height_mm)
    return cq.Solid.makeCone(p.bottom_radius_mm, p.top_radius_mm, p.height_mm)


def _bracket(p: Bracket) -> Any:
    for name, outside in (("width_mm", p.width_mm), ("height_mm", p.height_mm)):
        if p.thickness_mm >= outside:
            raise refuse(
                "bracket", "thickness_mm", f"{p.thickness_mm:g} mm must be below {name}, which is {outside:g} mm"
            )
    free_base, free_wall = p.width_mm - p.thickness_mm, p.height_mm - p.thickness_mm
    if p.fillet_radius_mm >= min(free_base, free_wall):
        raise refuse(
            "bracket", "fillet_radius_mm",
            f"{p.fillet_radius_mm:g} mm is too large, it must be below {min(free_base, free_wall):g} mm, "
            "the free length of the shorter leg",
        )  # fmt: skip
    left = -p.width_mm / 2
    corners = [
        (left, 0), (p.width_mm / 2, 0), (p.width_mm / 2, p.thickness_mm), (left + p.thickness_mm, p.thickness_mm),
        (left + p.thickness_mm, p.height_mm), (left, p.height_mm),
    ]  # fmt: skip
    # The XZ plane of the kernel looks along -y, so the profile starts at the far side.
    made = cq.Workplane("XZ", origin=(0, p.length_mm / 2, 0)).polyline(corners).close().extrude(p.length_mm).val()
    if p.fillet_radius_mm > 0:
        inner = [
            edge.wrapped for edge in made.edges("|Y")
            if abs(edge.Center().x - left - p.thickness_mm) < 1e-9 and abs(edge.Center().z - p.thickness_mm) < 1e-9
        ]  # fmt: skip
        made = cq.Shape.cast(blend.fillet(made.wrapped, inner, p.fillet_radius_mm))
    base_start = left + p.thickness_mm + p.fillet_radius_mm
    _check_holes(
        "bracket", "base_holes", [(h.x_mm, h.y_mm, h.diameter_mm) for h in p.base_holes], ("x_mm", "y_mm"),
        (base_start, p.width_mm / 2), (-p.length_mm / 2, p.length_mm / 2),
    )  # fmt: skip
    _check_holes(
        "bracket", "wall_holes", [(h.y_mm, h.z_mm, h.diameter_mm) for h in p.wall_holes], ("y_mm", "z_mm"),
        (-p.length_mm / 2, p.length_mm / 2), (p.thickness_mm + p.fillet_radius_mm, p.height_mm),
    )  # fmt: skip
    drills = [_down(hole, p.thickness_mm) for hole in p.base_holes]
    drills += [_through_wall(hole, left, p.thickness_mm) for hole in p.wall_holes]
    return _cut(made, drills)


def _plate(p: Plate) -> Any:
    limit = min(p.width_mm, p.length_mm) / 2
    if p.corner_radius_mm > limit:
        raise refuse(
            "plate", "corner_radius_mm", f"{p.corner_radius_mm:g} mm is too large, the largest is {limit:g} mm"
        )
    _check_holes(
        "plate", "holes", [(h.x_mm, h.y_mm, h.diameter_mm) for h in p.holes], ("x_mm", "y_mm"),
        (-p.width_mm / 2, p.width_mm / 2), (-p.length_mm / 2, p.length_mm / 2),
    )  # fmt: skip
    made = rounded_block(p.width_mm, p.length_mm, p.thickness_mm, p.corner_radius_mm)
    return _cut(made, [_down(hole, p.thickness_mm) for hole in p.holes])


def _enclosure(p: Enclosure) -> Any:
    room = min(p.width_mm, p.length_mm) / 2
    if p.wall_mm >= room:
        raise refuse("enclosure", "wall_mm", f"{p.wall_mm:g} mm leaves no room inside, it must be below {room:g} mm")
    closed = 2 if p.lid else 1
    if closed * p.wall_mm >= p.height_mm:
        limit = p.height_mm / closed
        raise refuse(
            "enclosure", "wall_mm",
            f"{p.wall_mm:g} mm leaves no room inside a height of {p.height_mm:g} mm, it must be below {limit:g} mm",
        )  # fmt: skip
    if p.corner_radius_mm > room:
        raise refuse(
            "enclosure", "corner_radius_mm", f"{p.corner_radius_mm:g} mm is too large, the largest is {room:g} mm"
        )
    return hollow_box(p.width_mm, p.length_mm, p.height_mm, p.wall_mm, p.corner_radius_mm, lid=p.lid)


def hollow_box(
    width: float, length: float, height: float, wall: float, corner_radius: float, *, lid: bool
) -> dict[str, Any]:
    """Return a box open at the top, and the lid that closes it; outside lengths in mm."""
    body_height = height - wall if lid else height
    outer = rounded_block(width, length, body_height, corner_radius)
    inner = rounded_block(
        width - 2 * wall, length - 2 * wall, body_height - wall, max(corner_radius - wall, 0.0), z=wall
    )  # fmt: skip
    parts = {"body": outer.cut(inner)}
    if lid:
        parts["lid"] = rounded_block(width, length, wall, corner_radius, z=body_height)
    return parts


def _down(hole: Hole, thickness: float) -> Any:
    return drill(hole.diameter_mm / 2, thickness * 2, (hole.x_mm, hole.y_mm, -thickness / 2), (0, 0, 1))


def _through_wall(hole: WallHole, left: float, thickness: float) -> Any:
    return drill(hole.diameter_mm / 2, thickness * 2, (left - thickness / 2, hole.y_mm, hole.z_mm), (1, 0, 0))


def _cut(solid: Any, drills: Sequence[Any]) -> Any:
    if not drills:
        return solid
    made = solid.cut(*drills)
    solids = made.Solids()
    return solids[0] if len(solids) == 1 else made


def _check_holes(
    shape_type: str,
    field: str,
    holes: Sequence[tuple[float, float, float]],
    names: tuple[str, str],
    across: tuple[float, float],
    along: tuple[float, float],
) -> None:
    """Refuse a hole that breaks an edge of its face or runs into another; positions in mm."""
    for number, (u, v, diameter) in enumerate(holes):
        radius = diameter / 2
        for name, value, (low, high) in ((names[0], u, across), (names[1], v, along)):
            if high - low <= diameter:
                raise refuse(
                    shape_type, f"{field}.{number}.diameter_mm",
                    f"{diameter:g} mm does not fit, the face is {high - low:g} mm wide there",
                )  # fmt: skip
            if not low + radius < value < high - radius:
                raise refuse(
                    shape_type, f"{field}.{number}.{name}",
                    f"{value:g} mm breaks the edge, it must lie between {low + radius:g} and {high - radius:g} mm",
                )  # fmt: skip
        for other, (ou, ov, odiameter) in enumerate(holes[:number]):
            apart = ((u - ou) ** 2 + (v - ov) ** 2) ** 0.5
            if apart <= radius + odiameter / 2:
                raise refuse(
                    shape_type, f"{field}.{number}",
                    f"runs into hole {other}: {apart:.4g} mm apart, more than {radius + odiameter / 2:g} mm are needed",
                )  # fmt: skip


_BUILDERS: dict[str, Callable[[Any], Any]] = {
    "box": _box, "cylinder": _cylinder, "sphere": _sphere, "cone": _cone, "bracket": _bracket, "plate": _plate,
    "enclosure": _enclosure,
}  # fmt: skip

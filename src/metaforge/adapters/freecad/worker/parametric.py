"""Parts made from a handful of dimensions."""

from typing import Any

from .edits import Edit


def create_parametric(edit: Edit, given: dict[str, Any]) -> None:
    """Make one solid: width along x, length along y, height along z; centred in x and y, standing on z = 0."""
    made = edit.document.add("Part::Feature", given["name"])
    made.Shape = _SHAPES[given["shape"]](given["sizes"])
    edit.document.recompute()
    edit.result(made)


def _box(width: float, length: float, height: float, z: float = 0.0) -> Any:
    import FreeCAD
    import Part

    return Part.makeBox(width, length, height, FreeCAD.Vector(-width / 2, -length / 2, z))


def _cylinder(radius: float, height: float, x: float = 0.0, y: float = 0.0, z: float = 0.0) -> Any:
    import FreeCAD
    import Part

    return Part.makeCylinder(radius, height, FreeCAD.Vector(x, y, z))


def _plate(sizes: dict[str, float]) -> Any:
    width, length, thickness = sizes["width_mm"], sizes["length_mm"], sizes["thickness_mm"]
    made = _box(width, length, thickness)
    diameter = sizes["hole_diameter_mm"]
    if diameter > 0:
        x, y = width / 2 - sizes["hole_margin_mm"], length / 2 - sizes["hole_margin_mm"]
        corners = [(x, y), (x, -y), (-x, y), (-x, -y)]
        made = made.cut([_cylinder(diameter / 2, thickness, *corner) for corner in corners])
    return made


def _bracket(sizes: dict[str, float]) -> Any:
    import FreeCAD
    import Part

    width, length, height, thickness = (sizes[f"{name}_mm"] for name in ("width", "length", "height", "thickness"))
    base = _box(width, length, thickness)
    wall = Part.makeBox(thickness, length, height, FreeCAD.Vector(-width / 2, -length / 2, 0))
    made = base.fuse(wall).removeSplitter()
    radius = sizes["fillet_radius_mm"]
    if radius > 0:
        inner = [edge for edge in made.Edges if _is_inner(edge, -width / 2 + thickness, thickness)]
        made = made.makeFillet(radius, inner)
    diameter = sizes["hole_diameter_mm"]
    if diameter > 0:
        x = (-width / 2 + thickness + width / 2) / 2
        made = made.cut(_cylinder(diameter / 2, thickness, x))
    return made.Solids[0] if len(made.Solids) == 1 else made


def _is_inner(edge: Any, x: float, z: float) -> bool:
    box = edge.BoundBox
    return bool(abs(box.XMin - x) + abs(box.XMax - x) + abs(box.ZMin - z) + abs(box.ZMax - z) < 1e-6)


def _enclosure(sizes: dict[str, float]) -> Any:
    wall = sizes["wall_thickness_mm"]
    width, length, height = sizes["width_mm"], sizes["length_mm"], sizes["height_mm"]
    return _box(width, length, height).cut(_box(width - 2 * wall, length - 2 * wall, height, wall))


def _round(sizes: dict[str, float]) -> Any:
    made = _cylinder(sizes["radius_mm"], sizes["height_mm"])
    if sizes["bore_diameter_mm"] > 0:
        made = made.cut(_cylinder(sizes["bore_diameter_mm"] / 2, sizes["height_mm"]))
    return made


_SHAPES = {"plate": _plate, "bracket": _bracket, "enclosure": _enclosure, "cylinder": _round}

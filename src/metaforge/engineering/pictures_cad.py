"""A part as one PNG sheet: front, top, right and 3/4 view in one scale, with dimensions, scale bar and axes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metaforge.engineering.picture_scene import (
    FAINT,
    FRONT,
    OBLIQUE,
    RIGHT,
    SHEET_PX,
    STEEL,
    TOP,
    Colour,
    Direction,
    Lines,
    Rectangle,
    Surface,
    Thing,
    fitting_scale,
    projected_size,
    quantity,
    shortened,
)
from metaforge.engineering.pictures import Sheet

HEADER_PX, FOOTER_PX = 58, 40
MARGIN_PX = 54
TITLE_CHARACTERS = 64

Point = tuple[float, float, float]
Triangle = tuple[int, int, int]


@dataclass(frozen=True)
class Part:
    """A shape of the kernel (`TopoDS_Shape`), its colour, and how far it hides what is behind it."""

    shape: Any
    colour: Colour | None = None
    opacity: float = 1.0


def draw_parts(parts: Sequence[Part], path: Path, title: str, subtitle: str = "") -> None:
    """Write the sheet.

    Args:
        parts: what to draw; a part without a colour is steel grey.
        path: the PNG.
        title: name of the part.
        subtitle: what to say under it, such as volume and mass.

    Raises:
        ToolError: this machine has no software renderer.
    """
    bounds = _bounds(parts)
    size = bounds[1] - bounds[0]
    things: list[Thing] = []
    for part in parts:
        surface = triangulate(part.shape, part.colour or STEEL, deflection_mm=float(np.linalg.norm(size)) / 800)
        if surface is not None:
            things.append(replace(surface, opacity=part.opacity))
    things.append(Lines([line for part in parts for line in edge_lines(part.shape, float(np.linalg.norm(size)) / 800)]))
    _draw(things, bounds, path, title, subtitle)


@dataclass(frozen=True)
class MeshedPart:
    """A shape that its own kernel meshed: points in mm, corners of triangles, edges as polylines."""

    points_mm: NDArray[np.float64]
    triangles: NDArray[np.int64]
    edges_mm: Sequence[NDArray[np.float64]]
    colour: Colour | None = None


def draw_meshes(parts: Sequence[MeshedPart], path: Path, title: str, subtitle: str = "") -> None:
    """Write the sheet of parts that are meshed already; as `draw_parts` otherwise."""
    things: list[Thing] = [Surface(part.points_mm, part.triangles, part.colour or STEEL) for part in parts]
    things.append(Lines([line for part in parts for line in part.edges_mm]))
    points = np.concatenate([part.points_mm for part in parts])
    _draw(things, np.array([points.min(axis=0), points.max(axis=0)]), path, title, subtitle)


def _draw(things: list[Thing], bounds: NDArray[np.float64], path: Path, title: str, subtitle: str) -> None:
    size = bounds[1] - bounds[0]
    half = SHEET_PX // 2
    cell = (SHEET_PX - HEADER_PX - FOOTER_PX) // 2
    views: tuple[tuple[Direction, Rectangle], ...] = (
        (TOP, (0, FOOTER_PX + cell, half, cell)),
        (OBLIQUE, (half, FOOTER_PX + cell, half, cell)),
        (FRONT, (0, FOOTER_PX, half, cell)),
        (RIGHT, (half, FOOTER_PX, half, cell)),
    )
    mm_per_px = fitting_scale(bounds, views, MARGIN_PX)
    centre = (bounds[0] + bounds[1]) / 2
    sheet = Sheet()
    for direction, rectangle in views:
        sheet.view(
            things, direction, rectangle,
            centre_mm=centre.tolist(), mm_per_px=mm_per_px, depth_mm=float(np.linalg.norm(size)) or 1.0,
        )  # fmt: skip
        _annotate(sheet, direction, rectangle, bounds, mm_per_px)
    _frame(sheet, half, cell)
    x, y, z = (quantity(float(length)) for length in size)
    sheet.text(shortened(title, TITLE_CHARACTERS), 16, SHEET_PX - 20, size_px=19, bold=True)
    sheet.text(f"x {x}  y {y}  z {z} mm", SHEET_PX - 16, SHEET_PX - 43, size_px=15, align="right")
    if subtitle:
        sheet.text(subtitle, 16, SHEET_PX - 43, size_px=13, colour=FAINT)
    sheet.scale_bar(16, FOOTER_PX / 2, mm_per_px)
    sheet.text("all views in one scale, parallel projection", SHEET_PX - 16, FOOTER_PX / 2, colour=FAINT, align="right")
    sheet.write(path)


def _frame(sheet: Sheet, half: int, cell: int) -> None:
    top = FOOTER_PX + 2 * cell
    for y in (FOOTER_PX, FOOTER_PX + cell, top):
        sheet.stroke([(0, y), (SHEET_PX, y)], (0.85, 0.87, 0.90))
    sheet.stroke([(half, FOOTER_PX), (half, top)], (0.85, 0.87, 0.90))


def _annotate(
    sheet: Sheet, direction: Direction, rectangle: Rectangle, bounds: NDArray[np.float64], mm_per_px: float
) -> None:
    left, bottom, width, height = rectangle
    sheet.text(direction.name, left + 12, bottom + height - 15, size_px=13, colour=FAINT)
    if direction is OBLIQUE:
        sheet.triad(direction, left + 44, bottom + 34)
        return
    sheet.triad(direction, left + 18, bottom + 16, length_px=20)
    across, upright = (length / mm_per_px for length in projected_size(bounds, direction))
    x, y = left + width / 2, bottom + height / 2
    below, beside = y - upright / 2 - 16, x - across / 2 - 16
    across_mm, upright_mm = (quantity(length) for length in projected_size(bounds, direction))
    sheet.dimension((x - across / 2, below), (x + across / 2, below), across_mm)
    sheet.dimension((beside, y - upright / 2), (beside, y + upright / 2), upright_mm)


def triangulate(shape: Any, colour: Colour, deflection_mm: float) -> Surface | None:
    """Return the shape's faces as triangles within `deflection_mm`; None when it has no face."""
    from OCP.BRepMesh import BRepMesh_IncrementalMesh

    BRepMesh_IncrementalMesh(shape, max(deflection_mm, 1e-6), False, 0.25, False)
    points: list[Point] = []
    triangles: list[Triangle] = []
    for own_points, own_triangles in face_meshes(shape):
        first = len(points)
        points.extend(own_points)
        triangles.extend((a + first, b + first, c + first) for a, b, c in own_triangles)
    if not triangles:
        return None
    return Surface(np.array(points, np.float64), np.array(triangles, np.int64), colour)


def face_meshes(shape: Any) -> Iterator[tuple[list[Point], list[Triangle]]]:
    """Yield every meshed face: points in mm, and triangles that count them from 0, seen from outside."""
    from OCP.BRep import BRep_Tool
    from OCP.TopAbs import TopAbs_FACE, TopAbs_REVERSED
    from OCP.TopExp import TopExp_Explorer
    from OCP.TopLoc import TopLoc_Location
    from OCP.TopoDS import TopoDS

    explorer = TopExp_Explorer(shape, TopAbs_FACE)
    while explorer.More():
        face, location = TopoDS.Face_s(explorer.Current()), TopLoc_Location()
        explorer.Next()
        mesh = BRep_Tool.Triangulation_s(face, location)
        if mesh is None:
            continue
        placed = location.Transformation()
        nodes = [mesh.Node(number).Transformed(placed) for number in range(1, mesh.NbNodes() + 1)]
        flipped = face.Orientation() == TopAbs_REVERSED
        triangles = []
        for number in range(1, mesh.NbTriangles() + 1):
            a, b, c = (corner - 1 for corner in mesh.Triangle(number).Get())
            triangles.append((a, c, b) if flipped else (a, b, c))
        yield [(node.X(), node.Y(), node.Z()) for node in nodes], triangles


def edge_lines(shape: Any, deflection_mm: float) -> list[NDArray[np.float64]]:
    """Return every edge once as a polyline, the seams of closed faces left out."""
    from OCP.BRep import BRep_Tool
    from OCP.BRepAdaptor import BRepAdaptor_Curve
    from OCP.GCPnts import GCPnts_TangentialDeflection
    from OCP.TopAbs import TopAbs_EDGE, TopAbs_FACE
    from OCP.TopExp import TopExp, TopExp_Explorer
    from OCP.TopoDS import TopoDS
    from OCP.TopTools import TopTools_IndexedMapOfShape

    seams = TopTools_IndexedMapOfShape()
    faces = TopExp_Explorer(shape, TopAbs_FACE)
    while faces.More():
        face = TopoDS.Face_s(faces.Current())
        inner = TopExp_Explorer(face, TopAbs_EDGE)
        while inner.More():
            if BRep_Tool.IsClosed_s(TopoDS.Edge_s(inner.Current()), face):
                seams.Add(inner.Current())
            inner.Next()
        faces.Next()
    edges = TopTools_IndexedMapOfShape()
    TopExp.MapShapes_s(shape, TopAbs_EDGE, edges)
    lines: list[NDArray[np.float64]] = []
    for number in range(1, edges.Extent() + 1):
        edge = TopoDS.Edge_s(edges.FindKey(number))
        if BRep_Tool.Degenerated_s(edge) or seams.Contains(edge):
            continue
        found = GCPnts_TangentialDeflection(BRepAdaptor_Curve(edge), 0.15, max(deflection_mm, 1e-6))
        line = [found.Value(index) for index in range(1, found.NbPoints() + 1)]
        lines.append(np.array([(point.X(), point.Y(), point.Z()) for point in line]))
    return lines


def _bounds(parts: Sequence[Part]) -> NDArray[np.float64]:
    from OCP.Bnd import Bnd_Box
    from OCP.BRepBndLib import BRepBndLib

    box = Bnd_Box()
    for part in parts:
        BRepBndLib.AddOptimal_s(part.shape, box, False, False)
    return np.array(box.Get(), float).reshape(2, 3)

"""A mesh as one PNG sheet: the part from two sides with every element edge on its skin."""

from pathlib import Path

import numpy as np

from metaforge.engineering.boundary import boundary_faces, feature_edges
from metaforge.engineering.mesh import Ids, Mesh
from metaforge.engineering.picture_scene import (
    FAINT,
    INK,
    SHEET_PX,
    Colour,
    Direction,
    Lines,
    Rectangle,
    Surface,
    Thing,
    fitting_scale,
)
from metaforge.engineering.pictures import Sheet
from metaforge.engineering.surface_geometry import face_nodes, outward_triangles

PALE: Colour = (0.84, 0.89, 0.94)
EDGE: Colour = (0.16, 0.20, 0.26)
HEADER_PX, FOOTER_PX, MARGIN_PX = 62, 40, 28
ABOVE = Direction("3/4 view", (0.9, -1.2, 0.85), (0, 0, 1))
BELOW = Direction("from the other side, below", (-0.9, 1.2, -0.85), (0, 0, 1))


def draw_mesh(mesh: Mesh, path: Path, title: str, subtitle: str = "") -> None:
    """Write the sheet.

    Raises:
        ToolError: this machine has no software renderer.
    """
    skin = boundary_faces(mesh)
    corners = outward_triangles(mesh, skin).reshape(-1, 3)
    points, inverse = np.unique(corners, axis=0, return_inverse=True)
    things: list[Thing] = [
        Surface(points, inverse.reshape(-1, 3).astype(np.int64), colour=PALE),
        Lines([mesh.points_mm(edge) for edge in _element_edges(mesh, skin)], colour=EDGE, width_px=0.7),
        Lines([mesh.points_mm(edge) for edge in feature_edges(mesh, skin)], colour=INK, width_px=1.5),
    ]
    bounds = np.array([points.min(axis=0), points.max(axis=0)])
    height = (SHEET_PX - HEADER_PX - FOOTER_PX) // 2
    views: tuple[tuple[Direction, Rectangle], ...] = (
        (ABOVE, (0, FOOTER_PX + height, SHEET_PX, height)),
        (BELOW, (0, FOOTER_PX, SHEET_PX, height)),
    )
    mm_per_px = fitting_scale(bounds, views, MARGIN_PX)
    sheet = Sheet()
    for direction, rectangle in views:
        sheet.view(
            things, direction, rectangle, centre_mm=bounds.mean(axis=0).tolist(), mm_per_px=mm_per_px,
            depth_mm=float(np.linalg.norm(bounds[1] - bounds[0])) or 1.0,
        )  # fmt: skip
        sheet.text(direction.name, 12, rectangle[1] + height - 14, colour=FAINT)
        sheet.triad(direction, 46, rectangle[1] + 36)
    for y in (FOOTER_PX, FOOTER_PX + height, FOOTER_PX + 2 * height):
        sheet.stroke([(0, y), (SHEET_PX, y)], (0.85, 0.87, 0.90))
    sheet.text(title, 16, SHEET_PX - 20, size_px=18, bold=True)
    sheet.text(subtitle, 16, SHEET_PX - 45, size_px=13, colour=FAINT)
    sheet.scale_bar(16, FOOTER_PX / 2, mm_per_px)
    sheet.write(path)


def _element_edges(mesh: Mesh, skin: Ids) -> list[Ids]:
    """Return every edge of the skin's faces once, as node ids along it (mid-side node in the middle)."""
    found: dict[int, list[Ids]] = {}
    for _, nodes in face_nodes(mesh, skin):
        corners = 3 if nodes.shape[1] in (3, 6) else 4
        for k in range(corners):
            ends = [nodes[:, k], nodes[:, (k + 1) % corners]]
            line = np.column_stack([ends[0], nodes[:, corners + k], ends[1]] if nodes.shape[1] > corners else ends)
            found.setdefault(line.shape[1], []).append(np.where((line[:, :1] > line[:, -1:]), line[:, ::-1], line))
    return [edge for lines in found.values() for edge in np.unique(np.concatenate(lines), axis=0)]

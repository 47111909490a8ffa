"""Analysis results as one PNG sheet: the deformed part from two sides in one scale, coloured, with its largest value.

Supports are drawn as small blue triangles, loads as red arrows, the undeformed edges as thin lines.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from metaforge.engineering.boundary import boundary_faces, feature_edges
from metaforge.engineering.mesh import Floats, Ids, Mesh
from metaforge.engineering.picture_scene import (
    FAINT,
    INK,
    SHEET_PX,
    Colour,
    ColourScale,
    Direction,
    Lines,
    Rectangle,
    Surface,
    Thing,
    fitting_scale,
    quantity,
    round_length,
)
from metaforge.engineering.pictures import Sheet
from metaforge.engineering.surface_geometry import face_nodes, face_vectors

HEADER_PX, FOOTER_PX, BAR_PX = 62, 40, 132
MARGIN_PX = 28
DEFORMED_SHARE = 0.08
"""The largest displacement is drawn at about this share of the part's size."""
SUPPORT: Colour = (0.13, 0.30, 0.85)
LOAD: Colour = (0.80, 0.08, 0.25)

ABOVE = Direction("3/4 view", (0.9, -1.2, 0.85), (0, 0, 1))
BELOW = Direction("from the other side, below", (-0.9, 1.2, -0.85), (0, 0, 1))

_TRIANGLES: dict[int, list[list[int]]] = {
    3: [[0, 1, 2]],
    6: [[0, 3, 5], [3, 1, 4], [5, 4, 2], [3, 4, 5]],
    4: [[0, 1, 2], [0, 2, 3]],
    8: [[0, 4, 7], [4, 1, 5], [5, 2, 6], [6, 3, 7], [4, 5, 6], [4, 6, 7]],
}


@dataclass(frozen=True)
class Arrow:
    """A load at a point of the surface: where it acts and its direction."""

    tip_mm: tuple[float, float, float]
    direction: tuple[float, float, float]


@dataclass(frozen=True)
class Picture:
    """What to draw.

    Attributes:
        mesh: of the result file.
        values: one number per node row of the mesh; NaN where there is none.
        quantity: what the colour bar says, such as `von Mises, MPa`.
        displacement_mm: per node row; None draws the part undeformed.
        marked_row: node row of the largest value.
        supports: points that are held.
        arrows: loads.
        title, subtitle: the lines above.
    """

    mesh: Mesh
    values: Floats
    quantity: str
    title: str
    subtitle: str
    marked_row: int
    displacement_mm: Floats | None = None
    supports: Sequence[tuple[float, float, float]] = ()
    arrows: Sequence[Arrow] = ()
    is_mode: bool = False


def draw(picture: Picture, path: Path) -> float:
    """Write the sheet.

    Returns:
        The factor by which displacements are drawn larger; 0 when the part is drawn undeformed.

    Raises:
        ToolError: this machine has no software renderer.
    """
    skin = boundary_faces(picture.mesh)
    factor = _deformation_factor(picture)
    moved = picture.mesh.coordinates_mm
    if picture.displacement_mm is not None and factor:
        moved = moved + factor * picture.displacement_mm
    scale = _scale(picture)
    triangles = _skin_triangles(picture.mesh, skin)
    used = np.unique(triangles)
    values = np.nan_to_num(picture.values, nan=scale.low)
    things: list[Thing] = [
        Surface(moved[used], np.searchsorted(used, triangles), values=values[used], scale=scale, smooth=True)
    ]
    edges = picture.mesh.positions(feature_edges(picture.mesh, skin))
    things.append(Lines([moved[pair] for pair in edges], colour=INK, width_px=1.3))
    if factor:
        things.append(Lines([picture.mesh.coordinates_mm[pair] for pair in edges], colour=FAINT, width_px=0.7))
    bounds = _bounds(moved[used], picture.mesh.coordinates_mm[used])
    size = float(np.linalg.norm(bounds[1] - bounds[0])) or 1.0
    things += _marks(picture, size)
    bounds = bounds + np.array([[-0.06], [0.06]]) * size * bool(len(picture.arrows))
    _compose(picture, things, bounds, scale, factor, moved, skin, path)
    return factor


def _compose(
    picture: Picture, things: list[Thing], bounds: Floats, scale: ColourScale, factor: float, moved: Floats,
    skin: Ids, path: Path,
) -> None:  # fmt: skip
    width, height = SHEET_PX - BAR_PX, (SHEET_PX - HEADER_PX - FOOTER_PX) // 2
    views: tuple[tuple[Direction, Rectangle], ...] = (
        (ABOVE, (0, FOOTER_PX + height, width, height)),
        (BELOW, (0, FOOTER_PX, width, height)),
    )
    mm_per_px = fitting_scale(bounds, views, MARGIN_PX)
    centre = (bounds[0] + bounds[1]) / 2
    sheet = Sheet()
    marked_view = _facing(picture.mesh, skin, picture.marked_row)
    for direction, rectangle in views:
        sheet.view(
            things, direction, rectangle, centre_mm=centre.tolist(), mm_per_px=mm_per_px,
            depth_mm=float(np.linalg.norm(bounds[1] - bounds[0])) or 1.0,
        )  # fmt: skip
        sheet.text(direction.name, 12, rectangle[1] + height - 14, colour=FAINT)
        sheet.triad(direction, 46, rectangle[1] + 36)
        if direction is marked_view:
            _mark(sheet, picture, direction, rectangle, centre, mm_per_px, moved[picture.marked_row])
    sheet.stroke([(0, FOOTER_PX + height), (width, FOOTER_PX + height)], (0.85, 0.87, 0.90))
    for y in (FOOTER_PX, FOOTER_PX + 2 * height):
        sheet.stroke([(0, y), (SHEET_PX, y)], (0.85, 0.87, 0.90))
    sheet.text(picture.title, 16, SHEET_PX - 20, size_px=18, bold=True)
    sheet.text(picture.subtitle, 16, SHEET_PX - 45, size_px=13, colour=FAINT)
    sheet.scale_bar(16, FOOTER_PX / 2, mm_per_px)
    marks = [words for words, there in (("blue: held", picture.supports), ("red: load", picture.arrows)) if there]
    legend = "; ".join([_said(picture, factor), *marks])
    sheet.text(legend, SHEET_PX - 16, FOOTER_PX / 2, colour=FAINT, align="right")
    sheet.colour_bar(scale, (SHEET_PX - BAR_PX + 22, FOOTER_PX + 60, 22, 2 * height - 130))
    sheet.write(path)


def _said(picture: Picture, factor: float) -> str:
    if not factor:
        return "drawn undeformed"
    return "shape drawn at any scale" if picture.is_mode else f"displacements drawn {quantity(factor)} times"


def _scale(picture: Picture) -> ColourScale:
    finite = picture.values[np.isfinite(picture.values)]
    low, high = float(finite.min()), float(finite.max())
    if high - low < 1e-6 * max(abs(high), 1e-30):
        low, high = low - 0.5 * max(abs(low), 1e-6), high + 0.5 * max(abs(high), 1e-6)
    return ColourScale(low, high, picture.quantity)


def _deformation_factor(picture: Picture) -> float:
    if picture.displacement_mm is None:
        return 0.0
    largest = float(np.linalg.norm(picture.displacement_mm, axis=1).max())
    size = float(np.ptp(picture.mesh.coordinates_mm, axis=0).max())
    if largest <= 0 or size <= 0:
        return 0.0
    factor = round_length(DEFORMED_SHARE * size / largest)
    return factor if picture.is_mode else max(1.0, factor)


def _skin_triangles(mesh: Mesh, skin: Ids) -> NDArray[np.int64]:
    parts = [mesh.positions(nodes)[:, _TRIANGLES[nodes.shape[1]]].reshape(-1, 3) for _, nodes in face_nodes(mesh, skin)]
    return np.concatenate(parts) if parts else np.empty((0, 3), np.int64)


def _bounds(*clouds: Floats) -> Floats:
    points = np.concatenate(clouds)
    return np.array([points.min(axis=0), points.max(axis=0)])


def _marks(picture: Picture, size: float) -> list[Thing]:
    """Return arrows for loads and small triangles for supports."""
    things: list[Thing] = []
    shafts: list[Floats] = []
    for arrow in picture.arrows:
        tip, along = np.array(arrow.tip_mm), np.array(arrow.direction, float)
        along /= np.linalg.norm(along) or 1.0
        side = np.cross(along, (0.3, 0.5, 0.81))
        side /= np.linalg.norm(side) or 1.0
        tail, neck = tip - 0.12 * size * along, tip - 0.03 * size * along
        across = np.cross(along, side)
        shafts.append(np.array([tail, tip]))
        shafts += [np.array([neck + 0.012 * size * v, tip, neck - 0.012 * size * v]) for v in (side, across)]
    if shafts:
        things.append(Lines(shafts, colour=LOAD, width_px=2.2))
    feet: list[Floats] = []
    for place in picture.supports:
        point, reach = np.array(place), 0.016 * size
        across, down = reach * np.array((0.6, -0.2, 0.0)), reach * np.array((0.0, 0.0, -1.0))
        left, right = point - across + down, point + across + down
        feet.append(np.array([point, left, right, point]))
    if feet:
        things.append(Lines(feet, colour=SUPPORT, width_px=1.6))
    return things


def _facing(mesh: Mesh, skin: Ids, row: int) -> Direction:
    """Return the view that shows a node: the one its faces look towards."""
    node = mesh.node_ids[row]
    touching = np.zeros(len(skin), dtype=np.bool_)
    for rows, nodes in face_nodes(mesh, skin):
        touching[rows] = (nodes == node).any(axis=1)
    outward = face_vectors(mesh, skin[touching])[0] if touching.any() else np.array([ABOVE.towards_camera])
    seen = [float((np.clip(outward @ np.array(view.towards_camera), 0, None)).sum()) for view in (ABOVE, BELOW)]
    return ABOVE if seen[0] >= seen[1] else BELOW


def _mark(
    sheet: Sheet, picture: Picture, direction: Direction, rectangle: Rectangle, centre: Floats, mm_per_px: float,
    point: Floats,
) -> None:  # fmt: skip
    right, up = direction.basis()
    left, bottom, width, height = rectangle
    x = left + width / 2 + float(right @ (point - centre)) / mm_per_px
    y = bottom + height / 2 + float(up @ (point - centre)) / mm_per_px
    ring = [(x + 6 * np.cos(t), y + 6 * np.sin(t)) for t in np.linspace(0, 2 * np.pi, 25)]
    sheet.stroke([(float(a), float(b)) for a, b in ring], INK, 2.0)
    on_left = x > left + width * 0.6
    words = f"max {quantity(float(picture.values[picture.marked_row]))}"
    away = -1 if on_left else 1
    label_y = min(max(y + 26, bottom + 14), bottom + height - 30)
    sheet.stroke([(x + away * 4, y + 4), (x + away * 26, label_y)], INK, 1.2)
    align = "right" if on_left else "left"
    # A white halo keeps the words readable on any colour.
    for dx, dy in ((-1, -1), (-1, 1), (1, -1), (1, 1), (0, 0)):
        colour = INK if dx == dy == 0 else (1.0, 1.0, 1.0)
        sheet.text(words, x + away * 30 + dx, label_y + dy, size_px=14, bold=True, align=align, colour=colour)

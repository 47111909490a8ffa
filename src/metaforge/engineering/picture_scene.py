"""What a picture shows and from where: directions, surfaces, lines, scales, and how numbers are written beside them.

Free of VTK: this says what to draw, `pictures` draws it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Colour = tuple[float, float, float]
"""sRGB, each channel 0 to 1."""
Vector = tuple[float, float, float]
Rectangle = tuple[int, int, int, int]
"""Left, bottom, width, height in pixels; the origin is the sheet's lower left corner."""

SHEET_PX = 768
INK: Colour = (0.13, 0.15, 0.18)
FAINT: Colour = (0.45, 0.49, 0.54)
STEEL: Colour = (0.62, 0.70, 0.80)
AXES: tuple[tuple[str, Vector, Colour], ...] = (
    ("X", (1, 0, 0), (0.80, 0.15, 0.12)),
    ("Y", (0, 1, 0), (0.10, 0.55, 0.16)),
    ("Z", (0, 0, 1), (0.10, 0.30, 0.80)),
)


@dataclass(frozen=True)
class Direction:
    """Where a view looks from: the part-to-camera vector and what is up on the sheet."""

    name: str
    towards_camera: Vector
    up: Vector

    def basis(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the unit vectors that point right and up on the sheet."""
        back = np.array(self.towards_camera, float)
        right = np.cross(np.array(self.up, float), back)
        right /= np.linalg.norm(right)
        up = np.cross(back, right)
        return right, up / np.linalg.norm(up)


FRONT = Direction("Front (from -y)", (0, -1, 0), (0, 0, 1))
RIGHT = Direction("Right (from +x)", (1, 0, 0), (0, 0, 1))
TOP = Direction("Top (from +z)", (0, 0, 1), (0, 1, 0))
OBLIQUE = Direction("3/4 view", (0.9, -1.2, 0.85), (0, 0, 1))


@dataclass(frozen=True)
class ColourScale:
    """How values become colours, and what the colour bar says: `von Mises stress, MPa`."""

    low: float
    high: float
    title: str


@dataclass(frozen=True)
class Surface:
    """Triangles to shade.

    Args:
        points_mm: n x 3.
        triangles: m x 3 point numbers.
        colour: of the whole surface when it carries no values.
        values: one number per point, coloured through `scale`.
        smooth: whether neighbouring triangles that meet below 30 degrees shade as one.
    """

    points_mm: NDArray[np.float64]
    triangles: NDArray[np.int64]
    colour: Colour = STEEL
    values: NDArray[np.float64] | None = None
    scale: ColourScale | None = None
    opacity: float = 1.0
    smooth: bool = True


@dataclass(frozen=True)
class Lines:
    """Polylines to draw over surfaces, each an n x 3 array in mm."""

    polylines: Sequence[NDArray[np.float64]]
    colour: Colour = INK
    width_px: float = 1.2


Thing = Surface | Lines


def projected_size(bounds_mm: NDArray[np.float64], direction: Direction) -> tuple[float, float]:
    """Return width and height in mm of a box (2 x 3, low and high corner) seen from a direction."""
    right, up = direction.basis()
    size = bounds_mm[1] - bounds_mm[0]
    return float(np.abs(right) @ size), float(np.abs(up) @ size)


def fitting_scale(
    bounds_mm: NDArray[np.float64], views: Sequence[tuple[Direction, Rectangle]], margin_px: int
) -> float:
    """Return the mm per pixel at which every view of the box fits its rectangle."""
    worst = 1e-9
    for direction, (_, _, width, height) in views:
        across, upright = projected_size(bounds_mm, direction)
        worst = max(worst, across / (width - 2 * margin_px), upright / (height - 2 * margin_px))
    return worst


def round_length(longest: float) -> float:
    """Return the largest 1, 2 or 5 times a power of ten that is at most `longest`."""
    power = 10.0 ** np.floor(np.log10(longest))
    return float(max(step * power for step in (1, 2, 5) if step * power <= longest * 1.0000001))


def quantity(value: float) -> str:
    """Write a number for a label: at most four significant digits, no trailing zeros."""
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{float(f'{value:.4g}'):g}" if abs(value) < 1e4 else f"{value:.0f}"
    return f"{value:.3g}"


def shortened(words: str, longest: int) -> str:
    """Return printable words of at most `longest` characters; the end is what tells files apart."""
    plain = "".join(each for each in words if each.isprintable())
    return plain if len(plain) <= longest else "..." + plain[-(longest - 3) :]

"""Draw engineering pictures off screen: views in one scale, scale bar, axis triad, colour bar, title; one PNG.

Uses VTK, which comes with CadQuery. The window is software-rendered (OSMesa, else EGL), so it needs no display,
no graphics device and no privileges.
"""

import ctypes
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metaforge.core.errors import FailureMode, ToolError

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
RAINBOW: tuple[Colour, ...] = (
    (0.19, 0.27, 0.66), (0.16, 0.56, 0.80), (0.25, 0.74, 0.58), (0.62, 0.83, 0.33), (0.96, 0.84, 0.27),
    (0.95, 0.56, 0.20), (0.80, 0.17, 0.16),
)  # fmt: skip


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


class Sheet:
    """One PNG in the making."""

    def __init__(self, width_px: int = SHEET_PX, height_px: int = SHEET_PX) -> None:
        from vtkmodules.vtkRenderingCore import vtkRenderer

        self.width_px, self.height_px = width_px, height_px
        self._window = _software_window()
        self._window.SetSize(width_px, height_px)
        self._window.SetMultiSamples(8)
        self._window.SetNumberOfLayers(2)
        self._paper = vtkRenderer()
        self._paper.SetBackground(1, 1, 1)
        self._window.AddRenderer(self._paper)
        self._ink = vtkRenderer()
        self._ink.SetLayer(1)
        self._ink.InteractiveOff()
        self._window.AddRenderer(self._ink)

    def view(
        self,
        things: Sequence[Thing],
        direction: Direction,
        rectangle: Rectangle,
        *,
        centre_mm: Sequence[float],
        mm_per_px: float,
        depth_mm: float,
    ) -> None:
        """Draw things without perspective, `centre_mm` in the middle of the rectangle."""
        from vtkmodules.vtkRenderingCore import vtkRenderer

        left, bottom, width, height = rectangle
        renderer = vtkRenderer()
        renderer.SetViewport(
            left / self.width_px, bottom / self.height_px,
            (left + width) / self.width_px, (bottom + height) / self.height_px,
        )  # fmt: skip
        renderer.SetBackground(1, 1, 1)
        for thing in things:
            renderer.AddActor(_surface_actor(thing) if isinstance(thing, Surface) else _lines_actor(thing))
        camera = renderer.GetActiveCamera()
        back = np.array(direction.towards_camera, float)
        back /= np.linalg.norm(back)
        camera.ParallelProjectionOn()
        camera.SetFocalPoint(*centre_mm)
        camera.SetPosition(*(np.array(centre_mm, float) + back * depth_mm * 2))
        camera.SetViewUp(*direction.up)
        camera.SetParallelScale(mm_per_px * height / 2)
        camera.SetClippingRange(depth_mm * 0.5, depth_mm * 4)
        _light(renderer)
        self._window.AddRenderer(renderer)

    def text(
        self, words: str, x_px: float, y_px: float, *, size_px: int = 13, colour: Colour = INK,
        align: str = "left", bold: bool = False, upright: bool = False,
    ) -> None:  # fmt: skip
        """Write one line; `y_px` is its middle. `align` is left, centre or right; `upright` reads bottom to top."""
        from vtkmodules.vtkRenderingCore import vtkTextActor

        actor = vtkTextActor()
        actor.SetInput(words)
        look = actor.GetTextProperty()
        look.SetFontSize(size_px)
        look.SetColor(*colour)
        look.SetBold(bold)
        look.SetJustification({"left": 0, "centre": 1, "right": 2}[align])
        look.SetVerticalJustificationToCentered()
        if upright:
            look.SetOrientation(90)
        actor.SetPosition(x_px, y_px)
        self._ink.AddViewProp(actor)

    def stroke(self, points_px: Sequence[tuple[float, float]], colour: Colour = INK, width_px: float = 1.0) -> None:
        """Draw a polyline over everything."""
        from vtkmodules.vtkRenderingCore import vtkActor2D, vtkPolyDataMapper2D

        mapper = vtkPolyDataMapper2D()
        mapper.SetInputData(_line_data([np.array([(x, y, 0.0) for x, y in points_px])]))
        actor = vtkActor2D()
        actor.SetMapper(mapper)
        actor.GetProperty().SetColor(*colour)
        actor.GetProperty().SetLineWidth(width_px)
        self._ink.AddViewProp(actor)

    def triad(self, direction: Direction, x_px: float, y_px: float, length_px: float = 24) -> None:
        """Draw the three axes as a view sees them; an axis that points at the camera is left out."""
        right, up = direction.basis()
        for name, axis, colour in AXES:
            dx, dy = float(right @ np.array(axis)), float(up @ np.array(axis))
            if dx * dx + dy * dy < 0.02:
                continue
            self.stroke([(x_px, y_px), (x_px + dx * length_px, y_px + dy * length_px)], colour, 2.0)
            reach = length_px + 9
            self.text(name, x_px + dx * reach, y_px + dy * reach, size_px=12, colour=colour, align="centre", bold=True)

    def scale_bar(self, x_px: float, y_px: float, mm_per_px: float, longest_px: float = 160) -> None:
        """Draw a bar of a round length in mm."""
        length_mm = round_length(longest_px * mm_per_px)
        end = x_px + length_mm / mm_per_px
        self.stroke([(x_px, y_px + 5), (x_px, y_px - 5)], INK, 1.5)
        self.stroke([(end, y_px + 5), (end, y_px - 5)], INK, 1.5)
        self.stroke([(x_px, y_px), (end, y_px)], INK, 2.5)
        self.text(f"{quantity(length_mm)} mm", end + 10, y_px)

    def dimension(self, start_px: tuple[float, float], end_px: tuple[float, float], words: str) -> None:
        """Draw a horizontal or upright dimension line with its words in the middle."""
        (x0, y0), (x1, y1) = start_px, end_px
        upright = abs(x1 - x0) < abs(y1 - y0)
        self.stroke([start_px, end_px], FAINT, 1.0)
        for x, y in (start_px, end_px):
            self.stroke([(x - 4, y), (x + 4, y)] if upright else [(x, y - 4), (x, y + 4)], FAINT, 1.0)
        if upright:
            self.text(words, x0 - 11, (y0 + y1) / 2, colour=FAINT, align="centre", upright=True)
        else:
            self.text(words, (x0 + x1) / 2, y0 - 11, colour=FAINT, align="centre")

    def colour_bar(self, scale: ColourScale, rectangle: Rectangle, labels: int = 7) -> None:
        """Draw an upright colour bar with its values on the right and its title above."""
        from vtkmodules.vtkRenderingCore import vtkActor2D, vtkPolyDataMapper2D

        left, bottom, width, height = rectangle
        steps = 128
        rows = np.linspace(bottom, bottom + height, steps + 1)
        points = np.array([(x, y, 0.0) for y in rows for x in (left, left + width)])
        quads = np.array([(2 * i, 2 * i + 1, 2 * i + 3, 2 * i + 2) for i in range(steps)], np.int64)
        data = _poly_data(points, quads)
        values = np.repeat(np.linspace(scale.low, scale.high, steps + 1), 2)
        _set_values(data, values)
        mapper = vtkPolyDataMapper2D()
        mapper.SetInputData(data)
        mapper.SetLookupTable(_lookup_table(scale))
        mapper.UseLookupTableScalarRangeOn()
        bar = vtkActor2D()
        bar.SetMapper(mapper)
        self._ink.AddViewProp(bar)
        for value in np.linspace(scale.low, scale.high, labels):
            share = (value - scale.low) / (scale.high - scale.low) if scale.high > scale.low else 0.0
            y = bottom + share * height
            self.stroke([(left + width, y), (left + width + 4, y)])
            self.text(quantity(float(value)), left + width + 8, y)
        self.text(scale.title, left, bottom + height + 16)

    def write(self, path: Path) -> None:
        """Render the sheet and write it as PNG.

        Raises:
            ToolError: nothing was drawn, or the file could not be written.
        """
        from vtkmodules.vtkIOImage import vtkPNGWriter
        from vtkmodules.vtkRenderingCore import vtkWindowToImageFilter

        self._window.Render()
        grab = vtkWindowToImageFilter()
        grab.SetInput(self._window)
        grab.ReadFrontBufferOff()
        grab.Update()
        if grab.GetOutput().GetScalarRange()[0] > 250:
            raise ToolError(
                "The picture came out blank: the software renderer drew nothing",
                kind="picture_failed", failure_mode=FailureMode.ENVIRONMENT,
                fix="install libosmesa6 (apt-get install -y libosmesa6), or call again without the picture",
            )  # fmt: skip
        writer = vtkPNGWriter()
        writer.SetFileName(str(path))
        writer.SetInputData(grab.GetOutput())
        writer.Write()
        if not path.is_file():
            raise ToolError(f"The picture {path.name} could not be written", kind="picture_failed")
        self._window.Finalize()


def _software_window() -> Any:
    """Return an off-screen window that needs neither a display nor a graphics device."""
    import vtkmodules.vtkRenderingFreeType  # noqa: F401 - registers the text renderer
    from vtkmodules import vtkRenderingOpenGL2 as backend

    # VTK aborts the process when it cannot load the library, so ask the loader first.
    for library, window_class in (("libOSMesa.so.8", "vtkOSOpenGLRenderWindow"), ("libEGL.so.1", "vtkEGLRenderWindow")):
        if hasattr(backend, window_class) and _loads(library):
            window = getattr(backend, window_class)()
            window.SetOffScreenRendering(1)
            return window
    raise ToolError(
        "No picture: neither libOSMesa.so.8 nor libEGL.so.1 is on this machine",
        kind="picture_failed", failure_mode=FailureMode.ENVIRONMENT,
        fix="apt-get install -y libosmesa6, or call again without the picture",
    )  # fmt: skip


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _light(renderer: Any) -> None:
    """Light from over the viewer's left shoulder, and a weak one from the right against black faces."""
    from vtkmodules.vtkRenderingCore import vtkLight

    renderer.AutomaticLightCreationOff()
    for position, strength in (((-0.4, 0.8, 1.2), 0.72), ((0.9, -0.2, 0.8), 0.42)):
        light = vtkLight()
        light.SetLightTypeToCameraLight()
        light.SetPosition(*position)
        light.SetFocalPoint(0, 0, 0)
        light.SetIntensity(strength)
        renderer.AddLight(light)


def _surface_actor(surface: Surface) -> Any:
    from vtkmodules.vtkFiltersCore import vtkPolyDataNormals
    from vtkmodules.vtkRenderingCore import vtkActor, vtkPolyDataMapper

    data = _poly_data(surface.points_mm, surface.triangles)
    mapper = vtkPolyDataMapper()
    if surface.values is not None and surface.scale is not None:
        _set_values(data, surface.values)
        mapper.SetLookupTable(_lookup_table(surface.scale))
        mapper.UseLookupTableScalarRangeOn()
        mapper.InterpolateScalarsBeforeMappingOn()
    else:
        mapper.ScalarVisibilityOff()
    normals = vtkPolyDataNormals()
    normals.SetInputData(data)
    normals.SetFeatureAngle(30 if surface.smooth else 1)
    normals.SplittingOn()
    normals.ConsistencyOff()
    mapper.SetInputConnection(normals.GetOutputPort())
    mapper.SetResolveCoincidentTopologyToPolygonOffset()
    mapper.SetRelativeCoincidentTopologyPolygonOffsetParameters(2, 2)
    actor = vtkActor()
    actor.SetMapper(mapper)
    look = actor.GetProperty()
    look.SetColor(*surface.colour)
    look.SetOpacity(surface.opacity)
    look.SetAmbient(0.34)
    look.SetDiffuse(0.80)
    look.SetSpecular(0.06)
    return actor


def _lines_actor(lines: Lines) -> Any:
    from vtkmodules.vtkRenderingCore import vtkActor, vtkPolyDataMapper

    mapper = vtkPolyDataMapper()
    mapper.SetInputData(_line_data(lines.polylines))
    actor = vtkActor()
    actor.SetMapper(mapper)
    actor.GetProperty().SetColor(*lines.colour)
    actor.GetProperty().SetLineWidth(lines.width_px)
    actor.GetProperty().LightingOff()
    return actor


def _points(points: NDArray[np.float64]) -> Any:
    from vtkmodules.util.numpy_support import numpy_to_vtk
    from vtkmodules.vtkCommonCore import vtkPoints

    made = vtkPoints()
    made.SetData(numpy_to_vtk(np.ascontiguousarray(points, np.float64), deep=True))
    return made


def _cells(rows: Sequence[NDArray[np.int64]] | NDArray[np.int64]) -> Any:
    from vtkmodules.util.numpy_support import numpy_to_vtkIdTypeArray
    from vtkmodules.vtkCommonDataModel import vtkCellArray

    lengths = np.fromiter((len(row) for row in rows), np.int64, len(rows))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    flat = np.concatenate(list(rows)).astype(np.int64) if len(rows) else np.zeros(0, np.int64)
    cells = vtkCellArray()
    cells.SetData(numpy_to_vtkIdTypeArray(offsets, deep=True), numpy_to_vtkIdTypeArray(flat, deep=True))
    return cells


def _poly_data(points: NDArray[np.float64], polygons: NDArray[np.int64]) -> Any:
    from vtkmodules.vtkCommonDataModel import vtkPolyData

    data = vtkPolyData()
    data.SetPoints(_points(points))
    data.SetPolys(_cells(polygons))
    return data


def _line_data(polylines: Sequence[NDArray[np.float64]]) -> Any:
    from vtkmodules.vtkCommonDataModel import vtkPolyData

    data = vtkPolyData()
    starts = np.concatenate([[0], np.cumsum([len(line) for line in polylines])]).astype(np.int64)
    data.SetPoints(_points(np.concatenate(list(polylines)) if polylines else np.zeros((0, 3))))
    data.SetLines(_cells([np.arange(a, b, dtype=np.int64) for a, b in itertools.pairwise(starts)]))
    return data


def _set_values(data: Any, values: NDArray[np.float64]) -> None:
    from vtkmodules.util.numpy_support import numpy_to_vtk

    data.GetPointData().SetScalars(numpy_to_vtk(np.ascontiguousarray(values, np.float64), deep=True))


def _lookup_table(scale: ColourScale) -> Any:
    from vtkmodules.vtkCommonCore import vtkLookupTable

    table = vtkLookupTable()
    table.SetNumberOfTableValues(256)
    stops = np.linspace(0, 1, len(RAINBOW))
    colours = np.array(RAINBOW)
    for index, share in enumerate(np.linspace(0, 1, 256)):
        red, green, blue = (float(np.interp(share, stops, colours[:, channel])) for channel in range(3))
        table.SetTableValue(index, red, green, blue, 1.0)
    table.SetRange(scale.low, scale.high if scale.high > scale.low else scale.low + 1e-12)
    return table

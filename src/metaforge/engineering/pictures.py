"""Draw engineering pictures off screen: views in one scale, scale bar, axis triad, colour bar, title; one PNG.

Uses VTK, which comes with CadQuery. The window is software-rendered (OSMesa, else EGL), so it needs no display,
no graphics device and no privileges.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from metaforge.core.errors import FailureMode, ToolError
from metaforge.engineering.picture_scene import (
    AXES,
    FAINT,
    INK,
    SHEET_PX,
    Colour,
    ColourScale,
    Direction,
    Rectangle,
    Surface,
    Thing,
    quantity,
    round_length,
)
from metaforge.engineering.picture_vtk import (
    light,
    lines_actor,
    lookup_table,
    polygons,
    polylines_data,
    set_values,
    software_window,
    surface_actor,
)


class Sheet:
    """One PNG in the making."""

    def __init__(self, width_px: int = SHEET_PX, height_px: int = SHEET_PX) -> None:
        from vtkmodules.vtkRenderingCore import vtkRenderer

        self.width_px, self.height_px = width_px, height_px
        self._window = software_window()
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
            renderer.AddActor(surface_actor(thing) if isinstance(thing, Surface) else lines_actor(thing))
        camera = renderer.GetActiveCamera()
        back = np.array(direction.towards_camera, float)
        back /= np.linalg.norm(back)
        camera.ParallelProjectionOn()
        camera.SetFocalPoint(*centre_mm)
        camera.SetPosition(*(np.array(centre_mm, float) + back * depth_mm * 2))
        camera.SetViewUp(*direction.up)
        camera.SetParallelScale(mm_per_px * height / 2)
        camera.SetClippingRange(depth_mm * 0.5, depth_mm * 4)
        light(renderer)
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
        mapper.SetInputData(polylines_data([np.array([(x, y, 0.0) for x, y in points_px])]))
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
        data = polygons(points, quads)
        values = np.repeat(np.linspace(scale.low, scale.high, steps + 1), 2)
        set_values(data, values)
        mapper = vtkPolyDataMapper2D()
        mapper.SetInputData(data)
        mapper.SetLookupTable(lookup_table(scale))
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

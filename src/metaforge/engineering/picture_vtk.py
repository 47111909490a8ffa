"""The VTK side of pictures: a software-rendered window, lights, and data in VTK's own shapes."""

import ctypes
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metaforge.core.errors import FailureMode, ToolError
from metaforge.engineering.picture_scene import Colour, ColourScale, Lines, Surface

RAINBOW: tuple[Colour, ...] = (
    (0.19, 0.27, 0.66), (0.16, 0.56, 0.80), (0.25, 0.74, 0.58), (0.62, 0.83, 0.33), (0.96, 0.84, 0.27),
    (0.95, 0.56, 0.20), (0.80, 0.17, 0.16),
)  # fmt: skip


def software_window() -> Any:
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


def light(renderer: Any) -> None:
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


def surface_actor(surface: Surface) -> Any:
    """Return what draws a surface: in one colour, or by its values."""
    from vtkmodules.vtkFiltersCore import vtkPolyDataNormals
    from vtkmodules.vtkRenderingCore import vtkActor, vtkPolyDataMapper

    data = polygons(surface.points_mm, surface.triangles)
    mapper = vtkPolyDataMapper()
    if surface.values is not None and surface.scale is not None:
        set_values(data, surface.values)
        mapper.SetLookupTable(lookup_table(surface.scale))
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


def lines_actor(lines: Lines) -> Any:
    """Return what draws polylines, unlit."""
    from vtkmodules.vtkRenderingCore import vtkActor, vtkPolyDataMapper

    mapper = vtkPolyDataMapper()
    mapper.SetInputData(polylines_data(lines.polylines))
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


def polygons(points: NDArray[np.float64], polygons: NDArray[np.int64]) -> Any:
    """Return polygons, each a row of point numbers, as VTK data."""
    from vtkmodules.vtkCommonDataModel import vtkPolyData

    data = vtkPolyData()
    data.SetPoints(_points(points))
    data.SetPolys(_cells(polygons))
    return data


def polylines_data(polylines: Sequence[NDArray[np.float64]]) -> Any:
    """Return polylines as VTK data."""
    from vtkmodules.vtkCommonDataModel import vtkPolyData

    data = vtkPolyData()
    starts = np.concatenate([[0], np.cumsum([len(line) for line in polylines])]).astype(np.int64)
    data.SetPoints(_points(np.concatenate(list(polylines)) if polylines else np.zeros((0, 3))))
    data.SetLines(_cells([np.arange(a, b, dtype=np.int64) for a, b in itertools.pairwise(starts)]))
    return data


def set_values(data: Any, values: NDArray[np.float64]) -> None:
    """Give every point a number to be coloured by."""
    from vtkmodules.util.numpy_support import numpy_to_vtk

    data.GetPointData().SetScalars(numpy_to_vtk(np.ascontiguousarray(values, np.float64), deep=True))


def lookup_table(scale: ColourScale) -> Any:
    """Return what turns numbers into the colours of the bar."""
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

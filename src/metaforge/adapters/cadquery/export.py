"""`export_geometry`: STEP, STL, OBJ, BREP, AMF, SVG, GLB; names and colours kept where the format holds them."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import cadquery as cq
from OCP.BRepMesh import BRepMesh_IncrementalMesh
from OCP.BRepTools import BRepTools
from OCP.Message import Message_ProgressRange
from OCP.RWGltf import RWGltf_CafWriter
from OCP.RWMesh import RWMesh_CoordinateSystem
from OCP.StlAPI import StlAPI_Writer
from OCP.TCollection import TCollection_AsciiString
from OCP.TColStd import TColStd_IndexedDataMapOfStringString

from metaforge.adapters.cadquery import results
from metaforge.adapters.cadquery.kernel_errors import tells_kernel_errors
from metaforge.adapters.cadquery.load import load
from metaforge.adapters.cadquery.measure import facts
from metaforge.adapters.cadquery.model import Colour, Model
from metaforge.adapters.cadquery.versions import programs
from metaforge.adapters.cadquery.write import write_step_file
from metaforge.core.errors import InvalidArguments, ToolError
from metaforge.engineering.pictures_cad import face_meshes
from metaforge.engineering.solid_guard import SolidFacts
from metaforge.tools.context import Answer, OutputFile, ToolContext

MEDIA_TYPES = {
    "step": "model/step", "stl": "model/stl", "obj": "model/obj", "brep": "application/octet-stream",
    "amf": "application/x-amf", "svg": "image/svg+xml", "glb": "model/gltf-binary",
}  # fmt: skip
_SUFFIXES = {"step": (".step", ".stp"), "glb": (".glb",)}
_FACETED = frozenset({"stl", "obj", "amf", "glb"})
FINEST_RATIO = 5e-7
"""Least tolerance over the diagonal of a curved part: triangles grow with its inverse, and the time faster still."""


@dataclass(frozen=True)
class Tessellation:
    """How closely triangles follow the faces."""

    tolerance_mm: float
    angle_deg: float

    def apply(self, shape: Any) -> None:
        """Triangulate afresh: what the file came with may be coarser."""
        BRepTools.Clean_s(shape, True)
        BRepMesh_IncrementalMesh(shape, self.tolerance_mm, False, math.radians(self.angle_deg), False)


@tells_kernel_errors
def export(
    ctx: ToolContext, path: str, output_format: str, output_path: str | None, tolerance_mm: float, angle_deg: float
) -> Answer[results.ExportResult]:
    """Convert a STEP or BREP file."""
    suffixes = _SUFFIXES.get(output_format, (f".{output_format}",))
    target = output_path or str(PurePosixPath(path).with_suffix(suffixes[0]))
    if not target.lower().endswith(suffixes):
        ends = " or ".join(suffixes)
        raise InvalidArguments(
            f"output_path: {target!r} must end in {ends} for output_format {output_format}",
            fields={"output_path": f"a path that ends in {ends}"},
        )
    if not output_path and target == path:
        raise InvalidArguments(
            f"output_path: {path} is {output_format} already; name another file to write",
            fields={"output_path": "a path other than the input's"},
        )
    model = load(ctx, path)
    measured = facts(model.shape)
    warnings = list(model.warnings)
    if output_format in _FACETED:
        _refuse_too_fine(model, measured, tolerance_mm)
    if measured.solids_count == 0 and output_format in _FACETED:
        warnings.append(f"{path} holds no solid: the {output_format} surface is not closed")
    finish = Tessellation(tolerance_mm, angle_deg)
    place = ctx.output_file(target)
    files = [OutputFile(target, MEDIA_TYPES[output_format], "geometry")]
    triangles = _WRITERS[output_format](model, place, finish)
    if output_format == "obj" and any(part.colour for part in model.parts):
        files.append(OutputFile(str(PurePosixPath(target).with_suffix(".mtl")), "model/mtl", "geometry"))
    size = place.stat().st_size if place.is_file() else 0
    if size == 0:
        raise ToolError(
            f"The kernel wrote nothing for {target}", kind="write_failed", where=target, fix="try another format"
        )
    shown = f", {triangles} triangles within {tolerance_mm:g} mm" if triangles else ""
    return Answer(
        results.ExportResult(target, size, output_format, triangles),
        summary=f"{output_format} {target}: {size} bytes{shown}, {len(model.parts)} part(s), "
        f"{results.size_words(measured)}.",
        warnings=tuple(warnings),
        files=tuple(files),
        programs=programs(),
    )


def _refuse_too_fine(model: Model, measured: SolidFacts, tolerance_mm: float) -> None:
    """Refuse a tolerance that would take minutes and gigabytes on a very large curved part."""
    finest = measured.diagonal_mm * FINEST_RATIO
    if tolerance_mm >= finest or all(face.geomType() == "PLANE" for face in cq.Shape.cast(model.shape).Faces()):
        return
    finest = math.ceil(finest * 100) / 100
    raise InvalidArguments(
        f"tolerance_mm: {tolerance_mm:g} mm is too fine for curved faces of a part {measured.diagonal_mm:.3g} mm "
        f"across; the smallest is {finest:g} mm",
        fields={"tolerance_mm": f"at least {finest:g}"},
    )


def _step(model: Model, target: Path, finish: Tessellation) -> None:
    write_step_file(model, target)


def _brep(model: Model, target: Path, finish: Tessellation) -> None:
    BRepTools.Clean_s(model.shape, True)
    BRepTools.Write_s(model.shape, str(target))


def _stl(model: Model, target: Path, finish: Tessellation) -> int:
    shape = model.shape
    finish.apply(shape)
    writer = StlAPI_Writer()
    writer.ASCIIMode = False
    writer.Write(shape, str(target))
    size = target.stat().st_size if target.is_file() else 0
    return max(size - 84, 0) // 50


def _amf(model: Model, target: Path, finish: Tessellation) -> int:
    shape = model.shape
    finish.apply(shape)
    cast = cq.Shape.cast(shape)
    with target.open("wb") as stream:
        tessellated = cast.tessellate(finish.tolerance_mm, math.radians(finish.angle_deg))
        cq.exporters.AmfWriter(tessellated).writeAmf(stream)
    return len(tessellated[1])


def _svg(model: Model, target: Path, finish: Tessellation) -> None:
    options = {
        "width": 768, "height": 768, "marginLeft": 60, "marginTop": 60, "showAxes": False,
        "projectionDir": (0.9, -1.2, 0.85), "showHidden": False, "fitView": True,
    }  # fmt: skip
    target.write_text(cq.exporters.getSVG(cq.Shape.cast(model.shape), options), encoding="utf-8")


def _glb(model: Model, target: Path, finish: Tessellation) -> int:
    """Write glTF: metres, y up, linear colours, as its specification wants them."""
    finish.apply(model.shape)
    writer = RWGltf_CafWriter(TCollection_AsciiString(str(target)), True)
    converter = writer.ChangeCoordinateSystemConverter()
    converter.SetInputLengthUnit(0.001)
    converter.SetInputCoordinateSystem(RWMesh_CoordinateSystem.RWMesh_CoordinateSystem_Zup)
    if not writer.Perform(model.document, TColStd_IndexedDataMapOfStringString(), Message_ProgressRange()):
        raise ToolError(f"The kernel could not write {target.name} as GLB", kind="write_failed", where=target.name)
    return sum(len(triangles) for part in model.parts for _, triangles in face_meshes(part.shape))


def _obj(model: Model, target: Path, finish: Tessellation) -> int:
    """Write one object a part, in mm, with a material a colour."""
    finish.apply(model.shape)
    palette: dict[Colour, str] = {}
    lines = ["# lengths in mm"]
    body: list[str] = []
    first, total = 1, 0
    for part in model.parts:
        body.append(f"o {_word(part.name)}")
        if part.colour is not None:
            body.append(f"usemtl {palette.setdefault(part.colour, f'colour_{len(palette) + 1}')}")
        for points, triangles in face_meshes(part.shape):
            body.extend(f"v {x:.9g} {y:.9g} {z:.9g}" for x, y, z in points)
            body.extend(f"f {a + first} {b + first} {c + first}" for a, b, c in triangles)
            first, total = first + len(points), total + len(triangles)
    if palette:
        lines.append(f"mtllib {target.with_suffix('.mtl').name}")
        materials = [f"newmtl {name}\nKd {c[0]:.6g} {c[1]:.6g} {c[2]:.6g}" for c, name in palette.items()]
        target.with_suffix(".mtl").write_text("\n".join(materials) + "\n", encoding="utf-8")
    target.write_text("\n".join(lines + body) + "\n", encoding="utf-8")
    return total


def _word(name: str) -> str:
    """Keep a part's name to one printable word."""
    return "".join(each if each.isalnum() or each in "-_." else "_" for each in name)[:80] or "part"


_WRITERS: dict[str, Callable[[Model, Path, Tessellation], int | None]] = {
    "step": _step, "stl": _stl, "obj": _obj, "brep": _brep, "amf": _amf, "svg": _svg, "glb": _glb,
}  # fmt: skip

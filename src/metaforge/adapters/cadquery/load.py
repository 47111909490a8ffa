"""Read STEP and BREP files from the workspace, judged as text before the kernel sees them."""

from pathlib import Path
from typing import Any

from OCP.BRep import BRep_Builder
from OCP.BRepTools import BRepTools
from OCP.IFSelect import IFSelect_ReturnStatus
from OCP.Interface import Interface_Static
from OCP.STEPCAFControl import STEPCAFControl_Reader
from OCP.TopoDS import TopoDS_Shape

from metaforge.adapters.cadquery.measure import bounds
from metaforge.adapters.cadquery.model import Model, Part, colours_of, model_of, new_document, parts_of
from metaforge.core.errors import ToolError
from metaforge.formats.step_header import StepHeader, read_step_header, size_warning
from metaforge.tools.context import ToolContext


def load(ctx: ToolContext, path: str) -> Model:
    """Read a STEP or BREP file.

    Raises:
        ToolError: not such a file, damaged, of mixed units, too large when unfolded, or without geometry.
    """
    source = ctx.input_file(path)
    if not source.is_file():
        raise ToolError(f"{path} does not exist in the workspace", kind="file_missing", where=path)
    data = source.read_bytes()
    if data.lstrip()[:24].startswith((b"DBRep_DrawableShape", b"CASCADE Topology")):
        return _load_brep(source, path)
    header = read_step_header(data, path)
    if header.has_byte_order_mark:
        source = ctx.scratch / "without_mark.step"
        source.write_bytes(data[3:])
    return _load_step(source, path, header)


def _load_step(source: Path, path: str, header: StepHeader) -> Model:
    Interface_Static.SetCVal_s("xstep.cascade.unit", "MM")
    reader = STEPCAFControl_Reader()
    reader.SetColorMode(True)
    reader.SetNameMode(True)
    if reader.ReadFile(str(source)) != IFSelect_ReturnStatus.IFSelect_RetDone:
        raise ToolError(
            f"{path} could not be read: the kernel found no usable STEP entities in it",
            kind="step_unreadable", where=path, fix="export the part again as STEP AP214 or AP242",
        )  # fmt: skip
    document = new_document()
    reader.Transfer(document)
    parts = tuple(part for part in parts_of(document) if not part.shape.IsNull())
    model = Model(document, parts, header.source_unit, colours_of(document))
    extent = bounds(model.shape) if parts else None
    if extent is None:
        raise _no_geometry(path, header)
    warnings = []
    if warning := size_warning(header, max(extent[3] - extent[0], extent[4] - extent[1], extent[5] - extent[2])):
        warnings.append(warning)
    if not header.is_closed:
        warnings.append(f"{path} lacks its end mark END-ISO-10303-21; its data section is complete")
    return Model(document, parts, header.source_unit, model.colours, tuple(warnings))


def _load_brep(source: Path, path: str) -> Model:
    shape: Any = TopoDS_Shape()
    if not BRepTools.Read_s(shape, str(source), BRep_Builder()) or shape.IsNull():
        raise ToolError(f"{path} could not be read as BREP", kind="brep_unreadable", where=path, fix="export it again")
    if bounds(shape) is None:
        raise ToolError(f"{path} holds no geometry", kind="no_geometry", where=path, fix="export the part again")
    made = model_of([Part(Path(path).stem, shape)], Path(path).stem)
    return Model(made.document, made.parts, "millimetre (BREP carries no unit)")


def _no_geometry(path: str, header: StepHeader) -> ToolError:
    return ToolError(
        f"{path} holds no geometry: {header.products_count} products and {header.links_count} links, "
        f"{header.solids_count} solids, no shape",
        kind="no_geometry", where=path, fix="export it again with the parts' geometry (not the structure alone)",
    )  # fmt: skip

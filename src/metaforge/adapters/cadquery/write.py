"""Write models. The same model gives the same bytes: no clock, no running numbers of the process."""

import re
from pathlib import Path

from OCP.APIHeaderSection import APIHeaderSection_MakeHeader
from OCP.IFSelect import IFSelect_ReturnStatus
from OCP.Interface import Interface_Static
from OCP.STEPCAFControl import STEPCAFControl_Writer
from OCP.STEPControl import STEPControl_StepModelType
from OCP.TCollection import TCollection_HAsciiString

from metaforge.adapters.cadquery.model import Model
from metaforge.core.errors import InvalidArguments, ToolError
from metaforge.tools.context import OutputFile, ToolContext

STEP_MEDIA_TYPE = "model/step"
_TIME = "1970-01-01T00:00:00"
_OCCURRENCE = re.compile(rb"NEXT_ASSEMBLY_USAGE_OCCURRENCE\('\d+'")


def write_step(ctx: ToolContext, model: Model, path: str) -> OutputFile:
    """Write a STEP file (AP214, mm) with names and colours.

    Raises:
        InvalidArguments: the path does not end in .step or .stp.
        ToolError: the kernel wrote nothing.
    """
    if not path.lower().endswith((".step", ".stp")):
        raise InvalidArguments(
            f"output_path: {path!r} must end in .step or .stp; cadquery.export_geometry writes other formats",
            fields={"output_path": "a path that ends in .step or .stp"},
        )
    target = ctx.output_file(path)
    write_step_file(model, target)
    return OutputFile(path, STEP_MEDIA_TYPE, "geometry")


def write_step_file(model: Model, target: Path) -> None:
    """Write a STEP file at a place in the file system."""
    Interface_Static.SetCVal_s("xstep.cascade.unit", "MM")
    Interface_Static.SetCVal_s("write.step.unit", "MM")
    writer = STEPCAFControl_Writer()
    writer.SetColorMode(True)
    writer.SetNameMode(True)
    writer.Transfer(model.document, STEPControl_StepModelType.STEPControl_AsIs)
    header = APIHeaderSection_MakeHeader(writer.ChangeWriter().Model())
    header.SetTimeStamp(TCollection_HAsciiString(_TIME))
    header.SetName(TCollection_HAsciiString(_ascii(target.name)))
    header.SetOriginatingSystem(TCollection_HAsciiString("MetaForge"))
    status = writer.Write(str(target))
    if status != IFSelect_ReturnStatus.IFSelect_RetDone or not target.is_file():
        raise ToolError(f"The kernel could not write {target.name} as STEP", kind="write_failed", where=target.name)
    _number_occurrences(target)


def _number_occurrences(target: Path) -> None:
    """Number assembly links from 1: the kernel counts on through the life of the process."""
    data = target.read_bytes()
    if b"NEXT_ASSEMBLY_USAGE_OCCURRENCE('" not in data:
        return
    numbers = iter(range(1, data.count(b"NEXT_ASSEMBLY_USAGE_OCCURRENCE(") + 1))
    renumbered = _OCCURRENCE.sub(lambda _: b"NEXT_ASSEMBLY_USAGE_OCCURRENCE('%d'" % next(numbers), data)
    target.write_bytes(renumbered)


def _ascii(text: str) -> str:
    return text.encode("ascii", "replace").decode()

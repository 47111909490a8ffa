"""Judge a geometry file before a kernel sees it."""

from dataclasses import dataclass, field
from pathlib import Path

from metaforge.core.errors import InvalidArguments, ToolError
from metaforge.engineering.closed_surface import close_surface
from metaforge.formats.step_header import StepHeader, read_step_header
from metaforge.formats.step_placement import has_placement
from metaforge.formats.stl import read_stl

STEP_SUFFIXES = (".step", ".stp", ".p21")
SCRIPT_SUFFIXES = (".geo", ".geo_unrolled", ".geo_opt", ".pos", ".msh", ".opt")


@dataclass(frozen=True)
class Source:
    """A STEP file that may be given to the mesher.

    Attributes:
        path: the file.
        name: what the caller called it.
        header: what it says of itself.
        data: its bytes where the mesher must not read the file itself (it refuses a byte order mark).
        placed: whether it places parts by a transform.
    """

    path: Path
    name: str
    header: StepHeader
    data: bytes | None = None
    placed: bool = False
    warnings: tuple[str, ...] = field(default=())


def read_input(path: Path) -> Source:
    """Look at a geometry file.

    Raises:
        InvalidArguments: missing, or not named as STEP.
        ToolError: damaged, of mixed units, or STL.
    """
    suffix = path.suffix.lower()
    if suffix in SCRIPT_SUFFIXES:
        raise InvalidArguments(
            f"{path.name} is a gmsh script or data file: scripts can run commands (SystemCall) and read other files "
            "(Merge, Include), so none is run. Give a STEP file",
            fields={"input_file": "a .step or .stp file"},
        )
    if suffix not in (*STEP_SUFFIXES, ".stl"):
        raise InvalidArguments(
            f"{path.name}: meshing takes STEP (.step, .stp), not {suffix or 'a file without suffix'}",
            fields={"input_file": "a .step or .stp file"},
        )
    if not path.is_file():
        raise InvalidArguments(f"{path.name} does not exist", fields={"input_file": "an existing STEP file"})
    data = path.read_bytes()
    if suffix == ".stl":
        raise _refuse_stl(data, path.name)
    header = read_step_header(data, path.name)
    return Source(
        path,
        path.name,
        header,
        data=data[3:] if header.has_byte_order_mark else None,
        placed=has_placement(data.decode("latin-1")),
        warnings=() if header.is_closed else (f"{path.name} lacks its end mark END-ISO-10303-21",),
    )


def _refuse_stl(data: bytes, name: str) -> ToolError:
    """Say what is wrong with an STL file; a sound one is refused too, because facets are no faces to hold or load.

    Raises:
        ToolError: damaged, or not closed.
    """
    surface = close_surface(read_stl(data, name), name)
    return ToolError(
        f"{name} is a closed surface of {len(surface.triangles)} facets ({surface.volume_mm3:.6g} mm3), but STL has no "
        "faces that a support or load could name, and no curves to follow",
        kind="stl_not_meshed",
        where=name,
        fix="export the part as STEP from the program that made it",
    )

"""Judge a geometry file before a kernel sees it."""

from dataclasses import dataclass, field
from pathlib import Path

from metaforge.core.errors import InvalidArguments, ToolError
from metaforge.engineering.mesh import Floats
from metaforge.formats.step_placement import has_placement

STEP_SUFFIXES = (".step", ".stp", ".p21")
SCRIPT_SUFFIXES = (".geo", ".geo_unrolled", ".geo_opt", ".pos", ".msh", ".opt")


@dataclass(frozen=True)
class StlSurface:
    """A closed triangle surface."""

    triangles: Floats
    volume_mm3: float
    area_mm2: float


@dataclass(frozen=True)
class Source:
    """A geometry file that may be given to the mesher.

    Attributes:
        path: what the mesher reads.
        name: what the caller called it.
        placed: whether the STEP file places parts by a transform.
    """

    path: Path
    name: str
    placed: bool = False
    stl: StlSurface | None = None
    warnings: tuple[str, ...] = field(default=())


def read_input(path: Path) -> Source:
    """Look at a geometry file.

    Raises:
        InvalidArguments: missing, or neither STEP nor STL.
        ToolError: truncated, or an STL surface that is not closed.
    """
    suffix = path.suffix.lower()
    if suffix in SCRIPT_SUFFIXES:
        raise InvalidArguments(
            f"{path.name} is a gmsh script or data file: scripts can run commands (SystemCall) and read other files "
            "(Merge, Include), so none is run. Give a STEP file",
            fields={"input_file": "a .step or .stp file"},
        )
    if not path.is_file():
        raise InvalidArguments(f"{path.name} does not exist", fields={"input_file": "an existing STEP file"})
    data = path.read_bytes()
    if suffix not in STEP_SUFFIXES:
        raise InvalidArguments(
            f"{path.name}: meshing takes STEP (.step, .stp), not {suffix or 'a file without suffix'}",
            fields={"input_file": "a .step or .stp file"},
        )
    text = data.decode("latin-1")
    if not text.lstrip("\ufeff \r\n\t").startswith("ISO-10303-21"):
        raise ToolError(
            f"{path.name} is not a STEP file (starts with {text[:20]!r})",
            kind="not_step",
            fix="export it as STEP AP214 or AP242",
        )
    if "END-ISO-10303-21" not in text[-2000:]:
        raise ToolError(f"{path.name} is cut off: its last line is missing", kind="truncated_step", fix="copy it again")
    return Source(path, path.name, placed=has_placement(text))

"""Which project file a check goes by. KiCad passes over one that it cannot read and takes its defaults."""

from pathlib import Path, PurePosixPath

from metaforge.core.errors import ToolError
from metaforge.formats.kicad_project import Project, UnreadableProject, read_project


def project_of(workspace: Path, path: str) -> tuple[Project, str | None]:
    """Return the project that a schematic or board belongs to, and its file's workspace path.

    Raises:
        ToolError: the file is there and cannot be read.
    """
    file = PurePosixPath(path).with_suffix(".kicad_pro")
    if not (workspace / file).is_file():
        return Project(), None
    try:
        return read_project((workspace / file).read_text(encoding="utf-8", errors="replace")), str(file)
    except UnreadableProject as fault:
        raise ToolError(
            f"{file} cannot be read: {fault}. KiCad would pass over it and check by its own defaults",
            kind="bad_project",
            where=f"{file}, line {fault.line}" if fault.line else str(file),
            fix="restore the project file, or move it away to check by KiCad's defaults on purpose",
        ) from None

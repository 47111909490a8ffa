"""Mark arguments that name files, so that the server can judge them before anything runs.

A tool says `Annotated[str, InputPath]`; the schema carries `format: input-path`, and the pipeline refuses
what does not resolve inside the workspace. The tool receives the path relative to the workspace.
"""

from pathlib import Path
from typing import Annotated

from pydantic import Field

INPUT_PATH = "input-path"
OUTPUT_PATH = "output-path"
OUTPUT_FOLDER = "output-folder"

InputPath = Annotated[str, Field(json_schema_extra={"format": INPUT_PATH})]
"""A file that must exist in the workspace."""
OutputPath = Annotated[str, Field(json_schema_extra={"format": OUTPUT_PATH})]
"""A file to be written into the workspace."""
OutputFolder = Annotated[str, Field(json_schema_extra={"format": OUTPUT_FOLDER})]
"""A folder of the workspace for several files; it may exist."""


def find_below(root: Path, place: Path) -> tuple[Path | None, bool]:
    """Follow a path that stands inside a file, which may name anything.

    Args:
        root: the folder it must not lead out of, resolved.
        place: where it leads, links and `..` included.

    Returns:
        The place, resolved, or None where it leads out of the folder; and whether a file is there. A name that no file
        system takes (too long, with a null character, links in a circle) is the name of no file.
    """
    try:
        target = place.resolve()
        if not target.is_relative_to(root):
            return None, False
        return target, target.is_file()
    except (OSError, ValueError, RuntimeError):
        return root, False

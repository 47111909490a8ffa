"""Show KiCad a project in a folder of the call's own.

KiCad overlooks a project's library tables where it may not write beside them, and a workspace is read-only to tools. So
what it opens is a mirror: links to the real files in a folder that it may write to.
"""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from metaforge.tools.context import ToolContext

FOLDER = "mirror"
MOST_LINKS = 5000
"""In a folder above the project's own; what is reached by `..` from a project seldom lies beside so many files."""


def mirrored(path: str, ctx: ToolContext, instead: Mapping[str, str] | None = None) -> Path:
    """Mirror the folder of a schematic or board, and the folders above it up to the workspace.

    Args:
        path: the file, relative to the workspace.
        instead: file name -> text that stands in place of the real file of this name beside it.

    Returns:
        The file in the mirror.
    """
    file = PurePosixPath(path)
    real, here = ctx.workspace, ctx.scratch / FOLDER
    if not here.exists():
        here.mkdir()
        parts = file.parent.parts
        for depth, part in enumerate((*parts, "")):
            _link(real, here, part, MOST_LINKS if depth < len(parts) else 0)
            if part:
                real, here = real / part, here / part
                here.mkdir()
    target = ctx.scratch / FOLDER / file
    for name, text in (instead or {}).items():
        (target.parent / name).unlink(missing_ok=True)
        (target.parent / name).write_text(text, encoding="utf-8")
    return target


def _link(real: Path, here: Path, but: str, most: int) -> None:
    for count, entry in enumerate(real.iterdir(), 1):
        if most and count > most:
            return
        if entry.name != but:
            (here / entry.name).symlink_to(entry)


def unmirrored(text: str, ctx: ToolContext) -> str:
    """Return a text that KiCad wrote with paths relative to the workspace instead of this machine's."""
    for root in (ctx.scratch / FOLDER, (ctx.scratch / FOLDER).resolve(), ctx.workspace, ctx.workspace.resolve()):
        text = text.replace(f"{root}/", "")
    return text

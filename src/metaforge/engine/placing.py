"""Put files into the workspace: all of them or none, owned as the workspace is, nothing replaced unasked."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from metaforge.core.errors import FailureMode, ToolError
from metaforge.tools.context import Artefact

_MIB = 1 << 20


def write_all(root: Path, wanted: list[tuple[Artefact, Path]], *, overwrite: bool) -> None:
    """Write files into the workspace, all of them or none.

    Each is written beside its place first, so that only renames are left when everything is known to fit.

    Args:
        root: the workspace, whose owner gets what is made.
        wanted: each file, and where its content is.
        overwrite: whether what is there may be replaced.

    Raises:
        ToolError: `output_exists` or `output_unwritable`.
    """
    owner = root.stat()
    staged: list[tuple[Path, Artefact]] = []
    made: list[Path] = []
    placed: list[Path] = []
    try:
        for artefact, blob in wanted:
            target = Path(artefact.absolute_path)
            made += _make_parents(target.parent, owner)
            temporary = target.with_name(f".{target.name[:200]}.{os.urandom(4).hex()}.tmp")
            staged.append((temporary, artefact))
            _copy(blob, temporary, owner)
        for temporary, artefact in staged:
            target = Path(artefact.absolute_path)
            if overwrite:
                temporary.replace(target)
            else:
                # A link fails where a rename would silently replace what someone put there meanwhile.
                _link(temporary, target, artefact)
                placed.append(target)
    except (OSError, ToolError) as fault:
        for path in [*placed, *(temporary for temporary, _ in staged)]:
            path.unlink(missing_ok=True)
        for folder in reversed(made):
            with suppress(OSError):
                folder.rmdir()
        if isinstance(fault, ToolError):
            raise
        raise ToolError(
            f"The output files could not be placed in the workspace: {fault}",
            kind="output_unwritable", fix="see that the workspace is writable and its disk not full",
            failure_mode=FailureMode.ENVIRONMENT,
        ) from fault  # fmt: skip


def _link(temporary: Path, target: Path, artefact: Artefact) -> None:
    try:
        os.link(temporary, target, follow_symlinks=False)
    except FileExistsError:
        raise occupied(artefact) from None
    except OSError:
        # A file system without hard links.
        if os.path.lexists(target):
            raise occupied(artefact) from None
        temporary.rename(target)
        return
    temporary.unlink()


def _copy(blob: Path, temporary: Path, owner: os.stat_result) -> None:
    with blob.open("rb") as source, temporary.open("xb") as target:
        shutil.copyfileobj(source, target, _MIB)
        _give(target.fileno(), owner)


def _make_parents(folder: Path, owner: os.stat_result) -> list[Path]:
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir()
        _give(each, owner)
    return missing[::-1]


def _give(what: int | Path, owner: os.stat_result) -> None:
    """Let the workspace's owner have it, when the server runs as root for someone else."""
    if os.geteuid() == 0 and owner.st_uid != 0:
        os.chown(what, owner.st_uid, owner.st_gid)


def occupied(artefact: Artefact) -> ToolError:
    """Return the error for a place that holds other content."""
    return ToolError(
        f"{artefact.path} exists with other content and was left as it is; nothing was placed in the workspace",
        kind="output_exists", where=artefact.path,
        fix="choose another output path, or pass overwrite: true to replace it", path=artefact.path,
    )  # fmt: skip

"""Put a kept file into the workspace, never over something else."""

import os
from pathlib import Path

from metaforge.core.errors import FailureMode, ResourceUnreadable, ToolError
from metaforge.core.ids import sha256_file
from metaforge.store.blobs import Blobs


def stage(blobs: Blobs, workspace: Path, sha256: str, path: str, ref: str) -> int:
    """Write a content to a workspace path and return its size in bytes.

    Args:
        blobs: where it is kept.
        workspace: the root.
        sha256: the content.
        path: relative to the root.
        ref: what it is, for messages.

    Raises:
        ToolError: `content_missing`, `content_corrupt`, `file_exists`, `workspace_unwritable`.
    """
    content = _content(blobs, sha256, ref)
    target = workspace / path
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.parent.resolve().is_relative_to(workspace):
            raise ToolError(f"{target.parent} leads outside the workspace", kind="outside_workspace", where=path)
        if target.is_symlink() or target.exists():
            return _already(target, sha256, path, len(content))
        temporary = target.with_name(f".{target.name}.{os.getpid()}-{os.urandom(4).hex()}")
        try:
            temporary.write_bytes(content)
            temporary.chmod(0o644)
            os.link(temporary, target)  # unlike a rename it never replaces what another process put there meanwhile
        except FileExistsError:
            return _already(target, sha256, path, len(content))
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as fault:
        raise ToolError(
            f"{path} cannot be written: {fault.strerror or fault}", kind="workspace_unwritable", where=str(target),
            fix="Make room, or make the workspace writable", failure_mode=FailureMode.ENVIRONMENT,
        ) from None  # fmt: skip
    return len(content)


def _content(blobs: Blobs, sha256: str, ref: str) -> bytes:
    try:
        return blobs.read(sha256)
    except KeyError:
        raise ToolError(
            f"The file of {ref} is not in the store: SHA-256 {sha256}", kind="content_missing", where=sha256,
            fix="Commit the same file again, which puts it back", failure_mode=FailureMode.ENVIRONMENT,
        ) from None  # fmt: skip
    except ResourceUnreadable as fault:
        raise ToolError(
            fault.message, kind="content_corrupt", where=sha256, failure_mode=FailureMode.ENVIRONMENT
        ) from None


def _already(target: Path, sha256: str, path: str, size_bytes: int) -> int:
    if not target.is_symlink() and target.is_file() and sha256_file(target) == sha256:
        return size_bytes
    raise ToolError(
        f"{path} exists with other content", kind="file_exists", where=path,
        fix="Move or delete that file: what is committed is never edited in place",
    )  # fmt: skip

"""Where the results of a computation go, told from the deck beside them: never over another computation's."""

import hashlib
from pathlib import PurePosixPath

from metaforge.core.errors import ToolError
from metaforge.tools.context import ToolContext


def settled(
    result: PurePosixPath, deck_path: PurePosixPath, deck: str, ctx: ToolContext, *, is_ours: bool, may_replace: bool,
    told: str,
) -> PurePosixPath:  # fmt: skip
    """Return where results may be written, before minutes are spent on computing them.

    Args:
        result: the file of results, in the workspace.
        deck_path: the deck beside it, which says what was computed.
        deck: what is to be computed.
        ctx: the call.
        is_ours: whether the name was ours to choose; where it is taken, a digest of the deck goes into it.
        may_replace: whether other results there may go.
        told: for the error, such as "the results of another job; nothing was solved".

    Raises:
        ToolError: `output_exists`: the caller's path holds the results of another deck.
    """
    written = ctx.workspace / deck_path
    is_taken = written.exists() or (ctx.workspace / result).exists()
    if may_replace or ctx.overwrite or not is_taken:
        return result
    if written.is_file() and written.read_bytes() == deck.encode():
        return result
    if is_ours:
        digest = hashlib.sha256(deck.encode()).hexdigest()[:8]
        return result.with_name(f"{result.stem}-{digest}{result.suffix}")
    raise ToolError(
        f"{result} (or {deck_path.name} beside it) holds {told}",
        kind="output_exists",
        where=str(result),
        fix="choose another output_path, or pass overwrite: true to replace it",
    )

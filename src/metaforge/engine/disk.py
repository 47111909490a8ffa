"""How much a caller's code has written so far: looked at while it runs, since no limit of a process bounds the sum."""

import os
from contextlib import suppress

MAX_FILES = 10_000
"""Files and folders below one output folder."""
MAX_DEPTH = 64

_BLOCK_BYTES = 512


def passes(folder: str, limit_bytes: int) -> str:
    """Return what below a folder passes a limit: `bytes`, `files`, or nothing. Links are not followed.

    Looking stops at the first limit that is passed, so it costs no more than MAX_FILES looks.
    """
    used, count = 0, 0
    pending = [(folder, 0)]
    while pending:
        path, depth = pending.pop()
        with suppress(OSError), os.scandir(path) as entries:
            for entry in entries:
                count += 1
                if count > MAX_FILES or depth >= MAX_DEPTH:
                    return "files"
                with suppress(OSError):
                    used += entry.stat(follow_symlinks=False).st_blocks * _BLOCK_BYTES
                    if entry.is_dir(follow_symlinks=False):
                        pending.append((entry.path, depth + 1))
                if used > limit_bytes:
                    return "bytes"
    return ""

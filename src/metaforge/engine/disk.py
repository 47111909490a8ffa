"""How much a caller's code has written so far: looked at while it runs, since no limit of a process bounds the sum.

A file that was deleted takes its room for as long as a process holds it open or mapped: it is found there.
"""

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

MAX_FILES = 10_000
"""Files and folders below one output folder."""
MAX_DEPTH = 64

_BLOCK_BYTES = 512
_LIBRARIES = ("/usr/", "/lib", sys.prefix, sys.base_prefix)
"""Nobody writes there from a box; a library that was replaced since it was loaded is deleted too."""


def passes(folder: str, limit_bytes: int, pids: Iterable[int] = ()) -> str:
    """Return what below a folder passes a limit: `bytes`, `files`, or nothing. Links are not followed.

    Looking stops at the first limit that is passed, so it costs no more than MAX_FILES looks.

    Args:
        folder: where the code may write.
        limit_bytes: what it may write in sum.
        pids: the code's processes; deleted files that they hold on the folder's device count as well.
    """
    used, count = _held_deleted_bytes(folder, pids), 0
    if used > limit_bytes:
        return "bytes"
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


def _held_deleted_bytes(folder: str, pids: Iterable[int]) -> int:
    """Return the size of deleted files on a folder's device that processes hold, each counted once."""
    held: dict[int, int] = {}
    try:
        device = os.stat(folder).st_dev
    except OSError:
        return 0
    for pid in pids:
        for inode, size in (*_open_files(pid, device), *_mapped_files(pid, device)):
            held[inode] = max(size, held.get(inode, 0))
    return sum(held.values())


def _open_files(pid: int, device: int) -> Iterator[tuple[int, int]]:
    with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
        for entry in entries:
            with suppress(OSError):
                about = entry.stat()
                if about.st_nlink == 0 and about.st_dev == device and stat.S_ISREG(about.st_mode):
                    yield about.st_ino, about.st_blocks * _BLOCK_BYTES


def _mapped_files(pid: int, device: int) -> Iterator[tuple[int, int]]:
    """Yield what stays mapped when its descriptor is closed; how much of it was written cannot be seen from here."""
    wanted = f"{os.major(device):02x}:{os.minor(device):02x}"
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines():
            if line.endswith(" (deleted)"):
                addresses, _, _, where, inode, path = line.split(maxsplit=5)
                if where == wanted and not path.startswith(_LIBRARIES):
                    start, _, end = addresses.partition("-")
                    yield int(inode), int(end, 16) - int(start, 16)

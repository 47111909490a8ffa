"""Remove whatever a tool left: however deep, however many, whatever their modes."""

import os
import stat
from collections import deque
from contextlib import suppress
from pathlib import Path


def remove_tree(folder: Path) -> None:
    """Remove a folder and everything below it; what cannot be removed stays, without an error.

    Folders can be nested deeper than Python may recurse, than a process may hold descriptors, and than the kernel
    takes path names. So nothing descends: each folder's own folders are moved up beside it, and a path never has
    more than two names below `folder`. Links are removed and never followed.
    """
    try:
        is_folder = stat.S_ISDIR(folder.lstat().st_mode)
    except OSError:
        return
    if not is_folder:
        with suppress(OSError):
            folder.unlink()
        return
    root = str(folder)
    prefix, serial = os.path.join(root, f".{os.urandom(8).hex()}-"), 0
    left = deque(_empty(root))
    while left:
        path = left.popleft()
        for inner in _empty(path):
            serial += 1
            higher = f"{prefix}{serial}"
            with suppress(OSError):
                os.rename(inner, higher)
                left.append(higher)
        with suppress(OSError):
            os.rmdir(path)
    with suppress(OSError):
        os.rmdir(root)


def _empty(path: str) -> list[str]:
    """Remove every file of a folder, and return the folders in it."""
    with suppress(OSError):
        os.chmod(path, stat.S_IRWXU)
    folders: list[str] = []
    with suppress(OSError), os.scandir(path) as entries:
        for entry in list(entries):
            if entry.is_dir(follow_symlinks=False):
                # A folder can be moved only by who may write into it: its own `..` changes.
                with suppress(OSError):
                    os.chmod(entry.path, stat.S_IRWXU)
                folders.append(entry.path)
            else:
                with suppress(OSError):
                    os.unlink(entry.path)
    return folders

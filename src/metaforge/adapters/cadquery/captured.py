"""Catch what a script prints, on Python's stream and on descriptor 1, so that it reaches its author alone."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SHOWN_CHARACTERS = 4000


@contextmanager
def captured_stdout(store: Path) -> Iterator[None]:
    """Send stdout to a file while the block runs.

    Args:
        store: an existing or new file; read it with `read_captured` afterwards.
    """
    saved = os.dup(1)
    descriptor = os.open(store, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    before = sys.stdout
    before.flush()
    os.dup2(descriptor, 1)
    stream = os.fdopen(descriptor, "w", encoding="utf-8", errors="replace", buffering=1)
    sys.stdout = stream
    try:
        yield
    finally:
        sys.stdout = before
        if not stream.closed:
            stream.close()
        os.dup2(saved, 1)
        os.close(saved)


def read_captured(store: Path) -> str:
    """Return what was printed, its middle left out when it is long."""
    if not store.is_file():
        return ""
    size, half = store.stat().st_size, SHOWN_CHARACTERS // 2
    with store.open("rb") as stream:
        if size <= SHOWN_CHARACTERS:
            return stream.read().decode("utf-8", "replace")
        head = stream.read(half)
        stream.seek(-half, os.SEEK_END)
        tail = stream.read()
    left_out = size - 2 * half
    return f"{head.decode('utf-8', 'replace')}\n... {left_out} bytes left out ...\n{tail.decode('utf-8', 'replace')}"

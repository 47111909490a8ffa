"""A process's own append-only file of call records, written before each answer and removed once they are stored.

The file stays locked while its process lives, so that a journal nobody locks is a dead process's, whatever became of
its process id. What a killed process wrote is in the page cache and survives it; a loss of power can cost the last
seconds.

Where the file system can promise room ahead, lines are copied into a mapping of the file: no system call stands
between a call and its answer, and a busy disk delays none. The room not yet used is zeros, and no line holds one.
Elsewhere lines are written.
"""

import errno
import fcntl
import mmap
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from metaforge.store.location import file_system_of

SUFFIX = ".jsonl"
READ_BYTES = 1 << 18
ROOM_BYTES = 1 << 20
"""How much room a journal takes at a time."""

_KEEPS_ITS_PROMISE = frozenset({"ext4", "ext3", "xfs", "tmpfs"})
"""File systems on which room once allocated cannot turn out missing, which would end the process on a mapping."""


@dataclass(frozen=True)
class Batch:
    """Whole lines, in order, and where in the file they end."""

    lines: tuple[bytes, ...]
    end_offset: int


class Journal:
    """One open, locked journal file. Appending must be serialised by the caller."""

    def __init__(self, path: Path, descriptor: int, *, mapped: bool = False) -> None:
        self.path = path
        self._descriptor = descriptor
        self.size_bytes = _content_bytes(descriptor)
        self._map: mmap.mmap | None = None
        if mapped:
            self._take_room(ROOM_BYTES)

    @classmethod
    def create(cls, folder: Path) -> "Journal":
        """Make and lock a new journal for this process.

        Raises:
            OSError: the folder cannot be made or written.
        """
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        while True:
            path = folder / f"{os.getpid()}-{os.urandom(4).hex()}{SUFFIX}"
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
            if _lock(descriptor) and os.fstat(descriptor).st_nlink:
                return cls(path, descriptor, mapped=_promises_room(folder))
            os.close(descriptor)  # somebody who looks for dead journals was faster, and may have removed it

    @classmethod
    def adopt(cls, path: Path) -> "Journal | None":
        """Open and lock the journal of a process that has died; None while its owner lives or it is gone."""
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
        except (FileNotFoundError, PermissionError):
            return None
        if _lock(descriptor) and os.fstat(descriptor).st_nlink:
            return cls(path, descriptor)
        os.close(descriptor)
        return None

    def append(self, line: bytes) -> None:
        """Write one line, wholly or not at all.

        Args:
            line: without its line end.

        Raises:
            OSError: there is no room, or the disk refuses.
        """
        content = line + b"\n"
        if self._map is not None:
            end = self.size_bytes + len(content)
            if end > len(self._map):
                self._take_room(end)
            self._map[self.size_bytes : end] = content
            self.size_bytes = end
            return
        written = os.write(self._descriptor, content)
        if written != len(content):
            os.ftruncate(self._descriptor, self.size_bytes)
            raise OSError(errno.ENOSPC, "no room for a whole line", str(self.path))
        self.size_bytes += written

    def _take_room(self, wanted_bytes: int) -> None:
        """Map at least so many bytes, which the file system promises to have.

        Raises:
            OSError: there is no room.
        """
        capacity = -(-wanted_bytes // ROOM_BYTES) * ROOM_BYTES
        os.posix_fallocate(self._descriptor, 0, capacity)
        self._map = mmap.mmap(self._descriptor, capacity)

    def batches(self, from_offset: int, *, at_end: bool = False) -> Iterator[Batch]:
        """Yield the whole lines after an offset, some hundred at a time.

        Args:
            from_offset: where to start, in bytes.
            at_end: whether a last line without its end is torn for good, and counts as a line.
        """
        offset, rest = from_offset, b""
        while chunk := self._read(offset + len(rest)):
            content = rest + chunk
            whole, found, rest = content.rpartition(b"\n")
            if found:
                offset += len(whole) + 1
                yield Batch(tuple(filter(None, whole.split(b"\n"))), offset)
        if at_end and rest:
            yield Batch((rest,), offset + len(rest))

    def _read(self, offset: int) -> bytes:
        return os.pread(self._descriptor, min(READ_BYTES, max(self.size_bytes - offset, 0)), offset)

    def remove(self) -> None:
        """Delete the file, which is in the database, and unlock it."""
        self.path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Unlock it as it is: whoever starts next stores what it holds."""
        if self._map is not None:
            self._map = None
            os.ftruncate(self._descriptor, self.size_bytes)
        os.close(self._descriptor)


def dead_journals(folder: Path) -> Iterator[Journal]:
    """Yield the journals that processes which are gone left behind, locked; the caller removes or closes each."""
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith(SUFFIX))
    except FileNotFoundError:
        return
    for name in names:
        if journal := Journal.adopt(folder / name):
            yield journal


def _promises_room(folder: Path) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    try:
        return file_system_of(folder.resolve(), Path("/proc/self/mountinfo").read_bytes()) in _KEEPS_ITS_PROMISE
    except OSError:
        return False


def _content_bytes(descriptor: int) -> int:
    """Return where a file's lines end: at its end, or where room that was never used begins."""
    offset = 0
    while chunk := os.pread(descriptor, READ_BYTES, offset):
        found = chunk.find(b"\0")
        if found >= 0:
            return offset + found
        offset += len(chunk)
    return offset


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

"""Exports of CAD sessions, kept until they are committed: files that outlive the process and are bounded in bytes.

An agent cannot carry a large file between two calls without damage; it names the session and the object instead.
"""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from metaforge.core.ids import sha256_bytes

MAX_BYTES = 512 << 20
_SUFFIX = ".export"


@dataclass(frozen=True)
class _Entry:
    path: Path
    used_ns: int
    size_bytes: int


class GeometryStash:
    """One file an export, shared by all processes of a METAFORGE_HOME; the longest unused go first."""

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        """Remember where exports lie; nothing is made.

        Args:
            folder: `METAFORGE_HOME/stash`.
            max_bytes: what all exports together may take. One that is larger alone is not kept.
        """
        self._folder = folder
        self.max_bytes = max_bytes

    def put(self, session_id: str, obj_id: str, content: bytes) -> bool:
        """Keep an export, in place of an earlier one of the same object.

        Returns:
            False when it is larger than the stash.

        Raises:
            OSError: the disk refuses.
        """
        path = self._path(session_id, obj_id)
        if len(content) > self.max_bytes:
            path.unlink(missing_ok=True)
            return False
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = path.with_name(f"{path.stem}-{os.getpid()}-{os.urandom(4).hex()}.part")
        try:
            with temporary.open("xb") as target:
                target.write(sha256_bytes(content).encode() + content)
                target.flush()
                os.fsync(target.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        self._shrink(path)
        return True

    def get(self, session_id: str, obj_id: str) -> bytes | None:
        """Return an export, or None where there is none or its file is damaged."""
        path = self._path(session_id, obj_id)
        try:
            stored = path.read_bytes()
            os.utime(path)
        except FileNotFoundError:
            return None
        digest, content = stored[:64], stored[64:]
        if sha256_bytes(content).encode() != digest:
            path.unlink(missing_ok=True)
            return None
        return content

    @property
    def size_bytes(self) -> int:
        """What all exports take together."""
        return sum(entry.size_bytes for entry in self._entries())

    def _path(self, session_id: str, obj_id: str) -> Path:
        name = hashlib.sha256(f"{len(session_id)}:{session_id}{obj_id}".encode()).hexdigest()
        return self._folder / f"{name[:40]}{_SUFFIX}"

    def _shrink(self, newest: Path) -> None:
        entries = sorted(self._entries(), key=lambda entry: entry.used_ns)
        total = sum(entry.size_bytes for entry in entries)
        for entry in entries:
            if total <= self.max_bytes:
                return
            if entry.path != newest:
                entry.path.unlink(missing_ok=True)
                total -= entry.size_bytes

    def _entries(self) -> Iterator[_Entry]:
        try:
            listed = list(os.scandir(self._folder))
        except FileNotFoundError:
            return
        for each in listed:
            if each.name.endswith(_SUFFIX):
                try:
                    about = each.stat()
                except FileNotFoundError:
                    continue
                yield _Entry(Path(each.path), about.st_mtime_ns, about.st_size)

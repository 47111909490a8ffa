"""File contents kept by their SHA-256, so that a record can name exactly what a call read or wrote."""

import errno
import hashlib
import os
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Protocol

from metaforge.core.errors import ResourceUnreadable

_CHUNK_BYTES = 1 << 20
_STALE_SECONDS = 24 * 3600
_DIGEST_LENGTH = 64


class Blobs(Protocol):
    """What keeps contents by their SHA-256, wherever they lie."""

    @property
    def answers_at_once(self) -> bool:
        """Whether reads wait for nothing but a local disk."""

    def put_file(self, path: Path, *, durable: bool = True) -> str:
        """Keep a copy of a regular file and return its SHA-256; it is where it belongs when a durable put returns."""

    def put_bytes(self, content: bytes) -> str:
        """Keep a content durably and return its SHA-256."""

    def has(self, sha256: str) -> bool:
        """Whether a content is known to be where it belongs, without asking anybody."""

    def settle(self, digests: Iterable[str], *, seconds: float) -> dict[str, str]:
        """See that contents are durably where they belong, for so long; return those that are not, and why."""

    def path_of(self, sha256: str) -> Path:
        """Return a local file with a content; raises KeyError where there is none."""

    def read(self, sha256: str) -> bytes:
        """Return a content, verified; raises KeyError, or ResourceUnreadable naming what is corrupt."""

    def prepare(self) -> None:
        """See that contents can be kept and read back; raises StoreUnavailable with the reason and what to do."""

    def problems(self) -> list[str]:
        """Return what a person must know: contents that wait for a store which does not answer."""

    def close(self) -> None:
        """Finish what was begun in the background, within seconds."""


def open_blobs(url: str, root: Path) -> Blobs:
    """Return what keeps contents.

    Args:
        url: METAFORGE_BLOB_URL: an object store behind the folder, or nothing.
        root: the local folder. It is all there is without a URL, and the cache with one.
    """
    folder = BlobStore(root)
    if not url:
        return folder
    from metaforge.store.mirrored import MirroredBlobs
    from metaforge.store.objects import ObjectStore

    return MirroredBlobs(folder, ObjectStore(url))


def place_of(sha256: str) -> str:
    """Return the name that a content has below any root; raises KeyError when the digest is no SHA-256."""
    if not is_digest(sha256):
        raise KeyError(sha256)
    return f"{sha256[:2]}/{sha256}"


def is_digest(text: str) -> bool:
    """Whether a text is a SHA-256 as contents are named by it."""
    return len(text) == _DIGEST_LENGTH and set(text) <= set("0123456789abcdef")


class BlobStore:
    """A folder of contents: `ab/abcdef...` holds the bytes whose SHA-256 is `abcdef...`.

    Contents are copied in, never linked: whoever wrote the original could still change it.
    """

    answers_at_once = True

    def __init__(self, root: Path) -> None:
        self.root = root
        self._swept = False

    def put_file(self, path: Path, *, durable: bool = True) -> str:
        """Keep a copy of a regular file.

        Args:
            path: the file; a symbolic link is refused.
            durable: whether it must survive a power cut. Waiting for the disk takes milliseconds; a copy that a power
                cut damaged is found by its digest, and mended by the next put of the same content.

        Returns:
            The SHA-256 of what was kept, as 64 hex digits.

        Raises:
            OSError: it cannot be read, is no regular file, or the store cannot be written.
        """
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as source:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "only regular files are kept", str(path))
            return self._put(source, durable=durable)

    def put_bytes(self, content: bytes) -> str:
        """Keep a content and return its SHA-256 as 64 hex digits."""
        digest = hashlib.sha256(content).hexdigest()
        if not self._holds(digest):
            temporary = self.new_path()
            try:
                with temporary.open("xb") as target:
                    target.write(content)
                    self._settle(target, temporary, digest)
            finally:
                temporary.unlink(missing_ok=True)
        return digest

    def has(self, sha256: str) -> bool:
        """Whether there is a content of this digest."""
        return self._place(sha256).is_file()

    def settle(self, digests: Iterable[str], *, seconds: float) -> dict[str, str]:
        """Sync contents to the disk that were kept without waiting for it.

        Returns:
            Those that are not here, by digest, and why.
        """
        missing: dict[str, str] = {}
        for sha256 in digests:
            try:
                path = self.path_of(sha256)
                _sync(path)
                _sync(path.parent)
            except KeyError:
                missing[sha256] = f"it is not below {self.root} any more"
            except OSError as fault:
                missing[sha256] = f"it cannot be read: {fault}"
        return missing

    def digests(self) -> Iterator[str]:
        """Yield the digest of every content here."""
        for folder in sorted(self.root.glob("[0-9a-f][0-9a-f]")):
            yield from sorted(each.name for each in folder.iterdir() if is_digest(each.name))

    def path_of(self, sha256: str) -> Path:
        """Return where a content lies, to be read and never written.

        Raises:
            KeyError: there is no such content, or the digest is no SHA-256.
        """
        path = self._place(sha256)
        if not path.is_file():
            raise KeyError(sha256)
        return path

    def read(self, sha256: str) -> bytes:
        """Return a content, verified against its digest.

        Raises:
            KeyError: there is no such content.
            ResourceUnreadable: the stored bytes no longer match the digest; the message names the file.
        """
        path = self.path_of(sha256)
        content = path.read_bytes()
        found = hashlib.sha256(content).hexdigest()
        if found != sha256:
            raise ResourceUnreadable(
                f"Stored content {path} is corrupt: {len(content)} bytes with SHA-256 {found}, expected {sha256}. "
                "Repeat the call that produced it: putting the same content back mends the store",
                sha256=sha256,
                path=str(path),
            )
        return content

    def prepare(self) -> None:
        """Do nothing: the folder is made by the first put."""

    def problems(self) -> list[str]:
        """Return nothing: a put fails at once or is done."""
        return []

    def close(self) -> None:
        """Do nothing: every put was finished when it returned."""

    def _put(self, source: BinaryIO, *, durable: bool) -> str:
        temporary = self.new_path()
        digest = hashlib.sha256()
        try:
            with temporary.open("xb") as target:
                while chunk := source.read(_CHUNK_BYTES):
                    digest.update(chunk)
                    target.write(chunk)
                name = digest.hexdigest()
                if not self._holds(name):
                    self._settle(target, temporary, name, durable=durable)
        finally:
            temporary.unlink(missing_ok=True)
        return name

    def _settle(self, target: BinaryIO, temporary: Path, digest: str, *, durable: bool = True) -> None:
        """Make the bytes durable before their name, and the name before the caller goes on."""
        target.flush()
        os.fchmod(target.fileno(), 0o400)
        if durable:
            os.fsync(target.fileno())
        place = self._place(digest)
        place.parent.mkdir(exist_ok=True)
        temporary.replace(place)
        if durable:
            _sync(place.parent)

    def _holds(self, digest: str) -> bool:
        """Whether an intact copy is there: a damaged one is replaced by the next put."""
        try:
            with self._place(digest).open("rb") as stream:
                return hashlib.file_digest(stream, "sha256").hexdigest() == digest
        except FileNotFoundError:
            return False

    def _place(self, sha256: str) -> Path:
        return self.root / place_of(sha256)

    def new_path(self) -> Path:
        """Return a path for a file in the making, on the same disk; what is left there is removed after a day."""
        folder = self.root / "incoming"
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)  # designs are their owner's alone
        folder.mkdir(exist_ok=True)
        if not self._swept:
            self._swept = True
            _remove_stale(folder)
        return folder / f"{os.getpid()}-{os.urandom(8).hex()}"


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_stale(folder: Path) -> None:
    """Remove what processes killed in mid-copy left behind, a day or more ago."""
    oldest = time.time() - _STALE_SECONDS
    for leftover in folder.iterdir():
        try:
            if leftover.stat().st_mtime < oldest:
                leftover.unlink()
        except FileNotFoundError:
            continue

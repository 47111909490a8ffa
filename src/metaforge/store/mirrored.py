"""Contents in an object store, with the local folder as their verified cache."""

import os
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from metaforge.core.counts import counted
from metaforge.core.errors import ResourceUnreadable
from metaforge.core.ids import sha256_file
from metaforge.store.blobs import BlobStore
from metaforge.store.location import StoreUnavailable
from metaforge.store.objects import ObjectStore
from metaforge.telemetry.logs import event

_RETRY_SECONDS = 30.0
_CLOSE_SECONDS = 10.0
_REMEMBERED_COUNT = 10_000


class MirroredBlobs:
    """Keeps contents locally and in an object store.

    A durable put returns when the object store has the content. Any other returns when the folder has it and a mark in
    `pending/` says that it is still to be sent: that happens in the background, and after a crash at the next start.

    Args:
        folder: the local copies.
        objects: the store.
        retry_seconds: how long sending rests after the store failed.
    """

    answers_at_once = False

    def __init__(self, folder: BlobStore, objects: ObjectStore, *, retry_seconds: float = _RETRY_SECONDS) -> None:
        self._folder = folder
        self._objects = objects
        self._retry_seconds = retry_seconds
        self._pending = folder.root / "pending"
        self._sent: set[str] = set()
        self._failure = ""
        self._lock = threading.Lock()
        self._again = False
        self._sender: threading.Thread | None = None
        self._closing = threading.Event()
        self._begun = False

    def put_file(self, path: Path, *, durable: bool = True) -> str:
        """Keep a copy of a regular file.

        Args:
            path: the file; a symbolic link is refused.
            durable: whether the object store must have it before this returns.

        Returns:
            The SHA-256 of what was kept, as 64 hex digits.

        Raises:
            OSError: it cannot be read, is no regular file, or the folder cannot be written.
            StoreUnavailable: the object store did not take it, and `durable` asks for that.
        """
        self._begin()
        sha256 = self._folder.put_file(path, durable=durable)
        if durable:
            self._send(sha256)
        elif sha256 not in self._sent:
            self._pending.mkdir(exist_ok=True)
            (self._pending / sha256).touch()
            self._wake()
        return sha256

    def put_bytes(self, content: bytes) -> str:
        """Keep a content in both places and return its SHA-256; raises StoreUnavailable."""
        self._begin()
        sha256 = self._folder.put_bytes(content)
        self._send(sha256)
        return sha256

    def _begin(self) -> None:
        """A folder that was empty when a store came to it holds nothing which that store will not be sent."""
        if not self._begun:
            self._begun = True
            if next(self._folder.digests(), None) is None:
                self.note_complete()

    def has(self, sha256: str) -> bool:
        """Whether this process has sent a content."""
        return sha256 in self._sent

    def settle(self, digests: Iterable[str], *, seconds: float) -> dict[str, str]:
        """Send contents that the store does not have, those from before there was one too.

        Args:
            digests: which.
            seconds: no further one is begun after so long.

        Returns:
            Those that are not in the store, by digest, and why.
        """
        missing: dict[str, str] = {}
        ends, failure = time.monotonic() + seconds, ""
        for sha256 in digests:
            if sha256 in self._sent:
                continue
            if not failure and time.monotonic() > ends:
                failure = f"it is still on its way to {self._objects.name}"
            if not failure:
                try:
                    missing |= self._settled(sha256)
                    continue
                except StoreUnavailable as fault:
                    failure = fault.message
            missing[sha256] = failure
        return missing

    def _settled(self, sha256: str) -> dict[str, str]:
        if self._objects.holds(sha256):
            self._note_sent(sha256)
            return {}
        try:
            if sha256_file(self._folder.path_of(sha256)) != sha256:
                return {sha256: f"its copy below {self._folder.root} is damaged"}
        except (KeyError, OSError):
            return {sha256: f"it is neither below {self._folder.root} nor in {self._objects.name}"}
        self._send(sha256)
        return {}

    def missing(self) -> list[str]:
        """Return the contents here that the store does not have.

        Raises:
            StoreUnavailable: the store could not be listed.
        """
        there = self._objects.digests()
        return [sha256 for sha256 in self._folder.digests() if sha256 not in there]

    @property
    def is_complete(self) -> bool:
        """Whether all that was ever kept here is known to have been sent to this store, or waits to be."""
        try:
            return self._mark.read_text() == self._objects.name
        except OSError:
            return next(self._folder.digests(), None) is None

    def note_complete(self) -> None:
        """Remember that the store has, or will be sent, all that is here."""
        self._folder.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._mark.write_text(self._objects.name)

    @property
    def _mark(self) -> Path:
        return self._folder.root / "mirrored-to"

    def path_of(self, sha256: str) -> Path:
        """Return a local file with a content, brought from the object store if need be.

        Raises:
            KeyError: neither place has it.
            ResourceUnreadable: the object is corrupt; the message names it.
            StoreUnavailable: it is not here and the object store does not answer.
        """
        try:
            return self._folder.path_of(sha256)
        except KeyError:
            self._fetch(sha256)
        return self._folder.path_of(sha256)

    def read(self, sha256: str) -> bytes:
        """Return a content, verified; a damaged local copy is replaced by the object.

        Raises:
            KeyError: neither place has it.
            ResourceUnreadable: what there is is corrupt; the message names it.
            StoreUnavailable: it is not here and the object store does not answer.
        """
        try:
            return self._folder.read(sha256)
        except KeyError:
            self._fetch(sha256)
        except ResourceUnreadable as damaged:
            try:
                self._fetch(sha256)
            except KeyError:
                raise damaged from None
            event("blob_mended", "warning", sha256=sha256, reason=damaged.message)
        return self._folder.read(sha256)

    def prepare(self) -> None:
        """Write, read and remove an object; raises StoreUnavailable."""
        self._objects.check()

    def problems(self) -> list[str]:
        """Return what waits to be sent, and why."""
        if not self._failure:
            return []
        count = len(self._waiting())
        return (
            [f"{counted(count, 'file waits', 'files wait')} to be sent to {self._objects.name}: {self._failure}"]
            if count
            else []
        )

    def close(self) -> None:
        """Send what waits, for at most 10 s; the rest is sent after the next start."""
        if self._waiting():
            self._wake()
        self._closing.set()
        if (sender := self._sender) is not None:
            sender.join(_CLOSE_SECONDS)
        if left := len(self._waiting()):
            event("blobs_not_sent", "warning", count=left, store=self._objects.name, reason=self._failure)

    def _send(self, sha256: str) -> None:
        if sha256 not in self._sent:
            self._objects.send(self._folder.path_of(sha256), sha256)
        self._note_sent(sha256)

    def _note_sent(self, sha256: str) -> None:
        if len(self._sent) >= _REMEMBERED_COUNT:
            self._sent.clear()
        self._sent.add(sha256)
        (self._pending / sha256).unlink(missing_ok=True)

    def _fetch(self, sha256: str) -> None:
        arriving = self._folder.new_path()
        try:
            self._objects.fetch(sha256, arriving)
            self._folder.put_file(arriving, durable=False)
        except ResourceUnreadable:
            self._sent.discard(sha256)  # the next put replaces it
            raise
        finally:
            arriving.unlink(missing_ok=True)

    # -- sending in the background -------------------------------------------------------------------------------

    def _waiting(self) -> list[str]:
        try:
            return sorted(os.listdir(self._pending))
        except FileNotFoundError:
            return []

    def _wake(self) -> None:
        with self._lock:
            self._again = True
            if self._sender is None or not self._sender.is_alive():
                self._sender = threading.Thread(target=self._carry, name="blob-sender", daemon=True)
                self._sender.start()

    def _carry(self) -> None:
        while True:
            with self._lock:
                self._again = False
            done = self._send_waiting()
            if not done and not self._closing.wait(self._retry_seconds):
                continue
            with self._lock:
                if not done or not self._again:
                    self._sender = None
                    return

    def _send_waiting(self) -> bool:
        """Send all that waits; returns whether the store took it."""
        for sha256 in self._waiting():
            try:
                if self._is_whole(sha256):
                    self._send(sha256)
            except (StoreUnavailable, OSError) as fault:
                if str(fault) != self._failure:
                    event("blob_not_sent", "warning", sha256=sha256, store=self._objects.name, reason=str(fault))
                self._failure = str(fault)
                return False
        self._failure = ""
        return True

    def _is_whole(self, sha256: str) -> bool:
        """Whether the local copy may be sent. A mark whose copy is gone or damaged is dropped, and this is told."""
        try:
            whole = sha256_file(self._folder.path_of(sha256)) == sha256
        except (KeyError, FileNotFoundError):
            whole = False
        if not whole:
            event("blob_lost", "error", sha256=sha256, folder=str(self._folder.root))
            (self._pending / sha256).unlink(missing_ok=True)
        return whole

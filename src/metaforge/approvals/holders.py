"""Which processes wait for approvals or run approved calls, and whether they still live.

A holder's file below METAFORGE_HOME stays locked while its process lives, whatever becomes of its process id. Its name
tells where the file is, so that only who sees the same folder of the same running system judges.
"""

import fcntl
import hashlib
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path

FOLDER = "holders"


class Holder:
    """This process as a holder; its file is made with the first thing it holds."""

    def __init__(self, home: Path) -> None:
        """Remember where holders keep their files.

        Args:
            home: METAFORGE_HOME.
        """
        self._folder = home / FOLDER
        self._lock = threading.Lock()
        self._id = ""
        self._descriptor = -1

    @property
    def id(self) -> str:
        """The name that the ledger keeps. Where no file can be kept nobody can judge it, and windows decide alone."""
        with self._lock:
            if not self._id:
                self._id = self._begin()
            return self._id

    def alive(self, holder: str) -> bool | None:
        """Return whether a holder's process lives; None where that cannot be seen from here."""
        if holder and holder == self._id:
            return True
        place, _, name = holder.partition("-")
        try:
            if not name or "/" in name or place != _place(self._folder):
                return None
        except OSError:
            return None
        try:
            descriptor = os.open(self._folder / name, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return False
        except OSError:
            return None
        try:
            if not _lock(descriptor):
                return True
            with suppress(OSError):
                os.unlink(self._folder / name)
            return False
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Say that this process holds nothing any more."""
        with self._lock:
            if self._descriptor >= 0:
                with suppress(OSError):
                    os.unlink(self._folder / self._id.partition("-")[2])
                os.close(self._descriptor)
            self._id, self._descriptor = "", -1

    def _begin(self) -> str:
        name = os.urandom(8).hex()
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            place = _place(self._folder)
            while True:
                path = self._folder / name
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                if _lock(descriptor) and os.fstat(descriptor).st_nlink:
                    self._descriptor = descriptor
                    return f"{place}-{name}"
                os.close(descriptor)  # somebody looked between the two calls and took it for a dead one's
                name = os.urandom(8).hex()
        except OSError:
            return f"unseen-{name}"


def _place(folder: Path) -> str:
    """Return what tells a folder of a running system from every other."""
    found = folder.stat()
    boot = ""
    if sys.platform.startswith("linux"):
        with suppress(OSError):
            boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return hashlib.sha256(f"{boot}:{found.st_dev}:{found.st_ino}".encode()).hexdigest()[:12]


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True

"""An object store by URL, spoken to through fsspec, which is loaded at first use."""

import os
import re
import shlex
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from metaforge.core.errors import MetaForgeError, ResourceUnreadable
from metaforge.core.ids import sha256_file
from metaforge.store.blobs import BlobStore, is_digest, place_of
from metaforge.store.location import StoreUnavailable

T = TypeVar("T")

_PAUSES_SECONDS = (0.1, 0.5)
_S3 = {"config_kwargs": {"connect_timeout": 5, "read_timeout": 30, "retries": {"max_attempts": 2}}}
_OPTIONS: dict[str, dict[str, Any]] = {"s3": _S3, "s3a": _S3}
"""What drivers are told: theirs alone would wait minutes for a store that does not answer."""

_DRIVERS = {
    "s3": "metaforge[objects]", "s3a": "metaforge[objects]", "gs": "gcsfs", "gcs": "gcsfs",
    "abfs": "adlfs", "abfss": "adlfs", "az": "adlfs",
}  # fmt: skip
_FINAL = (PermissionError, NotImplementedError)
"""Refusals that the same request would meet again."""


class ObjectStore:
    """Objects named like the files of a blob folder: `ab/abcdef...` below the URL.

    Args:
        url: METAFORGE_BLOB_URL.
        pauses_seconds: what is waited before each further attempt at a request that failed.
    """

    def __init__(self, url: str, *, pauses_seconds: Sequence[float] = _PAUSES_SECONDS) -> None:
        self.name = _shown(url)
        self._url = url
        self._pauses_seconds = pauses_seconds
        self._lock = threading.Lock()
        self._opened: tuple[Any, str] | None = None

    def send(self, source: Path, sha256: str) -> None:
        """Put a local file there under its digest, over whatever has that name; it is kept when this returns.

        Raises:
            StoreUnavailable: it could not be put; the message gives the store's reason.
        """
        name = place_of(sha256)

        def put() -> None:
            files, root = self._open()
            if _is_local(files):
                _folder(root).put_file(source)
                return
            key = f"{root}/{name}"
            files.put_file(str(source), key)
            kept_bytes, sent_bytes = files.info(key)["size"], source.stat().st_size
            if kept_bytes != sent_bytes:
                raise OSError(f"{kept_bytes} of {sent_bytes} bytes were kept")

        try:
            self._attempt(f"{name} could not be written", put)
        except FileNotFoundError as fault:
            raise self._unavailable(f"{name} could not be written", fault) from fault

    def holds(self, sha256: str) -> bool:
        """Whether there is an object of this digest; its bytes are not read.

        Raises:
            StoreUnavailable: the store did not say.
        """
        name = place_of(sha256)

        def look() -> bool:
            files, root = self._open()
            if _is_local(files):
                _folder(root)
            files.invalidate_cache()
            return bool(files.exists(f"{root}/{name}"))

        return self._attempt(f"{name} could not be looked for", look)

    def digests(self) -> set[str]:
        """Return the digest of every object.

        Raises:
            StoreUnavailable: the store could not be listed.
        """

        def look() -> set[str]:
            files, root = self._open()
            if _is_local(files):
                _folder(root)
            files.invalidate_cache()
            return {name for path in files.find(root) if is_digest(name := str(path).rpartition("/")[2])}

        try:
            return self._attempt("it could not be listed", look)
        except FileNotFoundError:
            return set()

    def fetch(self, sha256: str, target: Path) -> None:
        """Write an object into a local file.

        Raises:
            KeyError: there is no such object.
            ResourceUnreadable: its bytes do not match its digest; the message names it.
            StoreUnavailable: it could not be read; the message gives the store's reason.
        """
        name = place_of(sha256)

        def get() -> None:
            files, root = self._open()
            if _is_local(files):
                _folder(root)
            files.get_file(f"{root}/{name}", str(target))

        for _ in range(2):  # bytes damaged on the way are right the second time
            try:
                self._attempt(f"{name} could not be read", get)
            except FileNotFoundError:
                raise KeyError(sha256) from None
            found = sha256_file(target)
            if found == sha256:
                return
        raise ResourceUnreadable(
            f"Stored object {self.name}/{name} is corrupt: {target.stat().st_size} bytes with SHA-256 {found}, "
            f"expected {sha256}. Repeat the call that produced it: putting the same content back mends the store",
            sha256=sha256,
            path=f"{self.name}/{name}",
        )

    def check(self) -> None:
        """Write, read and remove an object.

        Raises:
            StoreUnavailable: one of these does not work.
        """
        content = os.urandom(16)

        def exchange() -> None:
            files, root = self._open()
            if _is_local(files):
                _folder(root)
            key = f"{root}/check-{content.hex()}"
            files.pipe_file(key, content)
            try:
                if files.cat_file(key) != content:
                    raise OSError("an object read back differs from what was written")
            finally:
                files.rm_file(key)

        try:
            self._attempt("it does not work", exchange)
        except FileNotFoundError as fault:
            raise self._unavailable("it does not work", fault) from fault

    def _open(self) -> tuple[Any, str]:
        with self._lock:
            if self._opened is None:
                self._opened = _file_system(self._url, self.name)
            return self._opened

    def _attempt(self, failure: str, work: Callable[[], T]) -> T:
        """Do something a few times; raises FileNotFoundError as it is, all else as StoreUnavailable."""
        pauses = iter(self._pauses_seconds)
        while True:
            try:
                return work()
            except (FileNotFoundError, MetaForgeError):
                raise
            except Exception as fault:  # a driver lets through whatever its client library raises
                pause_seconds = None if isinstance(fault, _FINAL) else next(pauses, None)
                if pause_seconds is None:
                    raise self._unavailable(failure, fault) from fault
            time.sleep(pause_seconds)

    def _unavailable(self, failure: str, fault: BaseException) -> StoreUnavailable:
        reason = str(fault) or type(fault).__name__
        return StoreUnavailable(
            f"The object store {self.name} (METAFORGE_BLOB_URL): {failure}: {reason}. See that it runs, that the "
            "bucket or folder exists, and that this user may write there; then repeat the call"
        )


def _file_system(url: str, name: str) -> tuple[Any, str]:
    scheme, found, rest = url.partition("://")
    if not found or not rest or (scheme == "file" and not rest.startswith("/")):
        raise StoreUnavailable(
            f"METAFORGE_BLOB_URL={name} names no store: give s3://bucket/prefix, file:///absolute/folder or another "
            "URL that fsspec knows; unset it to keep files below METAFORGE_HOME alone"
        )
    import fsspec

    try:
        fsspec.get_filesystem_class(scheme)
        files, root = fsspec.url_to_fs(url, **_OPTIONS.get(scheme, {}))
    except ImportError as fault:
        package = _DRIVERS.get(scheme, "")
        install = f"{shlex.quote(sys.executable)} -m pip install {shlex.quote(package)}" if package else ""
        raise StoreUnavailable(
            f"METAFORGE_BLOB_URL={name} needs a driver that is not installed ({fault}): {install or 'install it'}",
            install=install,
        ) from fault
    return files, str(root).rstrip("/")


def _is_local(files: Any) -> bool:
    return bool(getattr(files, "local_file", False))


def _folder(root: str) -> BlobStore:
    """Return the folder of a file:// URL: written like the local one, each file whole and on the disk.

    Raises:
        StoreUnavailable: it is not there, as when its disk is not mounted: never made, or files would go astray.
    """
    if not Path(root).is_dir():
        raise StoreUnavailable(f"METAFORGE_BLOB_URL=file://{root} is no folder: mount it, or make it with mkdir -p")
    return BlobStore(Path(root))


def _shown(url: str) -> str:
    """Return the URL without a password."""
    return re.sub(r"(?<=://)[^@]*:[^@]*@", "", url).rstrip("/")

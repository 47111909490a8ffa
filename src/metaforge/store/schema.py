"""Bring a database to the present schema with the standard library alone.

A new database gets `schema.sql` in one transaction. One of an older version is upgraded by a short process of its
own (`python -m metaforge.store.upgrade`), so that a server never loads the migration tool.
"""

import fcntl
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from metaforge.store.location import StoreUnavailable, refuse_network

HEAD = "0007"
"""The last migration in `migrations/versions`."""
KNOWN = frozenset({"0001", "0002", "0003", "0004", "0005", "0006", HEAD})
SCHEMA_FILE = Path(__file__).with_name("schema.sql")

BUSY_MS = 5000
_LOCK_SECONDS = 60.0
_UPGRADE_SECONDS = 600.0


def prepare(path: Path) -> None:
    """Make the database at `path` ready, whatever its state and however many processes do so at once.

    Raises:
        StoreUnavailable: it cannot be made or opened, is damaged, or belongs to a newer version.
    """
    try:
        if path.exists() and version_of(path) == HEAD:
            return
        refuse_network(path.parent.resolve())
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with upgrade_lock(path):
            version = version_of(path)
            if version is None:
                _create(path)
                return
        if version != HEAD:
            _upgrade(path, version)
    except sqlite3.Error as fault:
        raise explained(path, fault) from None
    except OSError as fault:
        raise StoreUnavailable(
            f"The database {path} cannot be opened: {fault.strerror or fault}. "
            "Make its folder writable, or set METAFORGE_HOME to one that is",
            path=str(path),
        ) from None


def version_of(path: Path) -> str | None:
    """Return the database's migration, an empty text before the first, or None where it has no tables at all."""
    if not path.exists() or path.stat().st_size == 0:
        return None
    with closing(sqlite3.connect(path, timeout=BUSY_MS / 1000)) as connection:
        names = {name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")}
        if "alembic_version" in names:
            row = connection.execute("select version_num from alembic_version").fetchone()
            return row[0] if row else ""
        if names:
            listed = ", ".join(sorted(names)[:5])
            raise StoreUnavailable(
                f"{path} is another program's database (tables {listed}): set METAFORGE_DATABASE_URL to a file of "
                "MetaForge's own",
                path=str(path),
            )
    return None


@contextmanager
def upgrade_lock(path: Path) -> Iterator[None]:
    """Hold the right to change the schema, among all processes that use this database."""
    descriptor = os.open(path.with_name(path.name + ".upgrade"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + _LOCK_SECONDS
        while not _locked(descriptor):
            if time.monotonic() > deadline:
                raise StoreUnavailable(
                    f"Another process has been changing {path} for {_LOCK_SECONDS:g} s; end it and try again",
                    path=str(path),
                )
            time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _create(path: Path) -> None:
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))  # what is in it is its owner's alone
    with closing(sqlite3.connect(path, timeout=BUSY_MS / 1000, isolation_level=None)) as connection:
        connection.execute("pragma journal_mode = wal")
        connection.executescript(f"begin immediate;\n{SCHEMA_FILE.read_text()}\ncommit;")


def _upgrade(path: Path, version: str) -> None:
    if version and version not in KNOWN:
        raise StoreUnavailable(
            f"{path} was written by a newer MetaForge (schema {version}, this one knows {HEAD}): "
            "pip install --upgrade metaforge",
            path=str(path),
        )
    command = [sys.executable, "-m", "metaforge.store.upgrade", str(path)]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_UPGRADE_SECONDS)
    if version_of(path) != HEAD:
        told = ended.stderr.strip().splitlines()
        raise StoreUnavailable(
            f"{path} could not be upgraded from schema {version or 'none'} to {HEAD}: "
            f"{told[-1] if told else f'exit status {ended.returncode}'}. Run: {' '.join(command)}",
            path=str(path),
        )


def explained(path: Path, fault: BaseException | None) -> StoreUnavailable:
    """Return what a database error means for its owner."""
    if isinstance(fault, sqlite3.DatabaseError) and not isinstance(fault, sqlite3.OperationalError):
        advice = (
            "Copy it with its -wal and -shm files, and restore a backup; or move all three away and an empty one is "
            "made"
        )
    elif "locked" in str(fault):
        advice = "Another process keeps it locked: repeat the call, and end that process if it goes on"
    else:
        advice = "Free disk space, make its folder writable, or set METAFORGE_HOME to one that is"
    return StoreUnavailable(f"The database {path} cannot be used: {fault}. {advice}", path=str(path))

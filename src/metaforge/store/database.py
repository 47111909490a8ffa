"""The SQL store: SQLAlchemy Core over one SQLite file, opened at first use.

Every write transaction starts `BEGIN IMMEDIATE`: a transaction that reads first and writes later meets others'
writes as lock errors. Design data is synced to disk at each commit; call records are not, a loss of power may cost
their last seconds and nothing else.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metaforge.store import schema
from metaforge.store.location import StoreUnavailable, database_path

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine


class Database:
    """One store, shared by all threads of a process."""

    def __init__(self, url: str, home: Path) -> None:
        """Remember where the store is; nothing is opened or imported.

        Args:
            url: an SQLite URL, or empty for `metaforge.db` below `home`.
            home: METAFORGE_HOME.
        """
        self._url = url
        self._home = home
        self._lock = threading.Lock()
        self._ready = False
        self._engines: dict[str, Engine] = {}

    @property
    def path(self) -> Path:
        """Return the database file; raises StoreUnavailable where the URL names none."""
        return database_path(self._url, self._home)

    def prepare(self) -> Path:
        """Create or upgrade the database once in this process, and return its file.

        Raises:
            StoreUnavailable: it cannot be used; the message says what to do.
        """
        path = self.path
        with self._lock:
            if not self._ready or not path.exists():
                schema.prepare(path)
                self._ready = True
        return path

    def record_connection(self) -> sqlite3.Connection:
        """Return a connection of the standard library for appending records: autocommit, not synced at commit."""
        path = self.prepare()
        connection = sqlite3.connect(path, timeout=0.25, isolation_level=None)
        connection.execute("pragma synchronous = normal")
        return connection

    @contextmanager
    def reading(self) -> "Iterator[Connection]":
        """Open a read transaction: one state of the store throughout, never blocked by writers."""
        engine = self._engine("deferred")
        with self._explained(), engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> "Iterator[Connection]":
        """Open a write transaction that is on disk when the block ends, or undone if it raises."""
        engine = self._engine("immediate")
        with self._explained(), engine.begin() as connection:
            yield connection

    def close(self) -> None:
        """Close every pooled connection."""
        with self._lock:
            engines, self._engines = self._engines, {}
        for engine in engines.values():
            engine.dispose()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn a refusal of the database itself into StoreUnavailable; constraint violations pass."""
        from sqlalchemy.exc import DBAPIError, IntegrityError

        try:
            yield
        except IntegrityError:
            raise
        except DBAPIError as fault:
            raise schema.explained(self.path, fault.orig) from None

    def _engine(self, begin: str) -> "Engine":
        path = self.prepare()
        with self._lock:
            if begin not in self._engines:
                self._engines[begin] = sqlite_engine(path, begin=begin)
            return self._engines[begin]


def sqlite_engine(path: Path, *, begin: str, foreign_keys: bool = True) -> "Engine":
    """Return an engine whose transactions start `BEGIN DEFERRED` or `BEGIN IMMEDIATE`, synced at each commit."""
    from sqlalchemy import URL, create_engine, event

    engine = create_engine(URL.create("sqlite", database=str(path)))

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # the driver would begin transactions of its own
        connection.execute(f"pragma busy_timeout = {schema.BUSY_MS}")
        connection.execute(f"pragma foreign_keys = {'on' if foreign_keys else 'off'}")
        connection.execute("pragma synchronous = full")

    @event.listens_for(engine, "begin")
    def _begin(connection: "Connection") -> None:
        connection.exec_driver_sql(f"begin {begin}")

    return engine


__all__ = ["Database", "StoreUnavailable", "sqlite_engine"]

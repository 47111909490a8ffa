"""The SQL store: one SQLite file, or a Postgres database by URL, opened at first use.

Every SQLite write transaction starts `BEGIN IMMEDIATE`: a transaction that reads first and writes later meets others'
writes as lock errors. Design data is synced to disk at each commit; call records are not, a loss of power may cost
their last seconds and nothing else.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from metaforge.store import postgres, schema
from metaforge.store.location import StoreUnavailable, database_path
from metaforge.store.pool import SqlitePool
from metaforge.store.postgres import PostgresPool
from metaforge.store.transaction import Transaction

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine


class Database:
    """One store, shared by all threads of a process."""

    def __init__(self, url: str, home: Path) -> None:
        """Remember where the store is; nothing is opened or imported.

        Args:
            url: an SQLite or Postgres URL, or empty for `metaforge.db` below `home`.
            home: METAFORGE_HOME.
        """
        self._url = url
        self._home = home
        self._lock = threading.Lock()
        self._ready = False
        self._pool: SqlitePool | PostgresPool | None = None
        self.is_postgres = postgres.is_postgres(url)
        """Whether the store is a Postgres database."""
        self._engines: dict[str, Engine] = {}

    @property
    def answers_at_once(self) -> bool:
        """Whether a short read needs no waiting: an SQLite file that is open, whose readers no writer holds up."""
        return self._pool is not None and not self.is_postgres

    @property
    def url(self) -> str:
        """The URL it was given, with its password: for connections, never for messages."""
        return self._url

    @property
    def path(self) -> Path:
        """Return the database file; raises StoreUnavailable where the URL names none."""
        return database_path(self._url, self._home)

    @property
    def name(self) -> str:
        """What to call it in messages: its file, or its URL without the password."""
        return postgres.shown(self._url) if self.is_postgres else str(self.path)

    def prepare(self) -> None:
        """Create or upgrade the database once in this process.

        Raises:
            StoreUnavailable: it cannot be used; the message says what to do.
        """
        if self.is_postgres:
            with self._lock:
                if not self._ready:
                    postgres.prepare(self._url)
                    self._ready = True
            return
        path = self.path
        with self._lock:
            if not self._ready or not path.exists():
                schema.prepare(path)
                self._ready = True

    def transaction(self, *, write: bool, durable: bool = True) -> AbstractContextManager[Transaction]:
        """Return a transaction in the driver's own words, without SQLAlchemy.

        Args:
            write: whether it writes; only one transaction of an SQLite store does at a time.
            durable: whether it is synced to disk before the block ends.

        Raises:
            StoreUnavailable: the database cannot be used or is kept by another writer for 15 s.
        """
        return _Opened(self, self._opened_pool().transaction(write=write, durable=durable))

    def record_connection(self) -> sqlite3.Connection:
        """Return a connection of the standard library for appending records: autocommit, not synced at commit."""
        self.prepare()
        connection = sqlite3.connect(self.path, timeout=0.25, isolation_level=None)
        connection.execute("pragma synchronous = normal")
        return connection

    @contextmanager
    def reading(self) -> "Iterator[Connection]":
        """Open a read transaction: one state of the store throughout, never blocked by writers."""
        engine = self._engine("deferred")
        with _Explained(self), engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> "Iterator[Connection]":
        """Open a write transaction that is on disk when the block ends, or undone if it raises."""
        engine = self._engine("immediate")
        with _Explained(self), engine.begin() as connection:
            yield connection

    def close(self) -> None:
        """Close every pooled connection."""
        with self._lock:
            engines, self._engines = self._engines, {}
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()
        for engine in engines.values():
            engine.dispose()

    def explanation(self, fault: BaseException) -> StoreUnavailable:
        """Return what a refusal of the driver means, and what to do."""
        return postgres.explanation(self._url, fault) if self.is_postgres else schema.explained(self.path, fault)

    def _opened_pool(self) -> SqlitePool | PostgresPool:
        """Return the pool of a store that is ready."""
        if self._pool is not None:
            return self._pool
        self.prepare()
        with self._lock:
            if self._pool is None:
                self._pool = PostgresPool(self._url) if self.is_postgres else SqlitePool(self.path, self.prepare)
            return self._pool

    def _engine(self, begin: str) -> "Engine":
        self.prepare()
        with self._lock:
            if begin not in self._engines:
                self._engines[begin] = (
                    postgres_engine(self._url, begin=begin)
                    if self.is_postgres
                    else sqlite_engine(self.path, begin=begin)
                )
            return self._engines[begin]


class _Explained:
    """Turns a refusal of the database itself into StoreUnavailable; broken constraints pass."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, fault: BaseException | None, trace: object) -> None:
        if isinstance(fault, Exception) and (inner := _of_driver(fault)) is not None:
            raise self._database.explanation(inner) from None


class _Opened:
    """A transaction whose refusals are explained. A class: entering two generators costs more than a query."""

    __slots__ = ("_explained", "_transaction")

    def __init__(self, database: Database, transaction: AbstractContextManager[Transaction]) -> None:
        self._explained = _Explained(database)
        self._transaction = transaction

    def __enter__(self) -> Transaction:
        with self._explained:
            return self._transaction.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._explained:
            self._transaction.__exit__(kind, fault, trace)
        self._explained.__exit__(kind, fault, trace)


def _of_driver(fault: Exception) -> BaseException | None:
    """Return the driver's error in a fault that is one or wraps one, unless a constraint was broken or a value bad.

    By name: asking for the classes would load SQLAlchemy and psycopg where they were not used.
    """
    original = getattr(fault, "orig", None)
    inner = original if isinstance(original, BaseException) else fault
    kinds = {(each.__module__.partition(".")[0], each.__name__) for each in type(inner).__mro__}
    if not kinds & {("sqlite3", "Error"), ("psycopg", "Error")} or {name for _, name in kinds} & {
        "IntegrityError",
        "DataError",
    }:
        return None
    return inner


def postgres_engine(url: str, *, begin: str) -> "Engine":
    """Return an engine whose transactions read one state (`deferred`), or write and are on disk at commit."""
    from sqlalchemy import create_engine

    return create_engine(
        "postgresql+psycopg://",
        creator=lambda: postgres.connect(url, autocommit=False),  # libpq reads the URL: it knows more forms of it
        pool_pre_ping=True,
        isolation_level="REPEATABLE READ" if begin == "deferred" else "READ COMMITTED",
    )


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


__all__ = ["Database", "StoreUnavailable", "postgres_engine", "sqlite_engine"]

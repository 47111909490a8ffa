"""Held connections to an SQLite file, and the transactions on them."""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from metaforge.store.transaction import Transaction

WRITE_SECONDS = 15.0
_IDLE_COUNT = 4
_MEMORY_COUNT = 128
_READ_CACHE_KB = 32 * 1024
"""At most, for each reading connection: walks along links of a large project read their pages many times."""


class SqlitePool:
    """Connections of one process to one file. Readers as many as there are threads, one writer at a time."""

    def __init__(self, path: Path, make: Callable[[], None]) -> None:
        """Remember where the file is; nothing is opened.

        Args:
            path: the file.
            make: makes it anew where it has vanished.
        """
        self._path = str(path)
        self._make = make
        self._lock = threading.Lock()
        self._idle: dict[str, list[_Held]] = {"read": [], "write": [], "unsynced": []}
        # Waiting here in turn is fairer than SQLite's own waiting, which is a lottery.
        self._turn = threading.Lock()

    def transaction(self, *, write: bool, durable: bool = True) -> AbstractContextManager[Transaction]:
        """Return a transaction: a read of one state, or `begin immediate`, synced at commit if it is to be durable.

        Raises:
            sqlite3.Error: on entering or leaving: the database refuses, or another process wrote for 15 s.
        """
        return self._change("write" if durable else "unsynced") if write else _Look(self)

    @contextmanager
    def _change(self, kind: str) -> Iterator[Transaction]:
        if not self._turn.acquire(timeout=WRITE_SECONDS):
            raise sqlite3.OperationalError("database is locked by another thread of this process")
        try:
            held = self._take(kind)
            connection = held.connection
            try:
                connection.execute("begin immediate")
                yield Transaction(connection, postgres=False)
                connection.execute("commit")
            except BaseException:
                _roll_back(connection)
                raise
            finally:
                self._give_back(kind, held)
        finally:
            self._turn.release()

    def close(self) -> None:
        """Close what is idle; what is in use closes when it is given back."""
        with self._lock:
            for held in (each for every in self._idle.values() for each in every):
                held.connection.close()
            self._idle = {kind: [] for kind in self._idle}

    def _take(self, kind: str) -> "_Held":
        there = _identity(self._path)
        if there is None:
            self._make()
        with self._lock:
            while self._idle[kind]:
                held = self._idle[kind].pop()
                if held.identity == there:
                    return held
                held.connection.close()  # the file was replaced: what is written there would be lost
        return _Held(_connect(self._path, kind), _identity(self._path))

    def _give_back(self, kind: str, held: "_Held") -> None:
        if not held.connection.in_transaction:
            with self._lock:
                if len(self._idle[kind]) < _IDLE_COUNT:
                    self._idle[kind].append(held)
                    return
        held.connection.close()


class _Held:
    __slots__ = ("connection", "identity", "memory", "version")

    def __init__(self, connection: sqlite3.Connection, identity: tuple[int, int] | None) -> None:
        self.connection = connection
        self.identity = identity
        self.memory: dict[Any, Any] = {}
        self.version = 0
        """The state that the memory is of, in this connection's own counting."""


class _Look:
    """A read transaction. A class, because entering a generator costs as much as a query."""

    __slots__ = ("_held", "_pool")

    def __init__(self, pool: SqlitePool) -> None:
        self._pool = pool

    def __enter__(self) -> Transaction:
        held = self._held = self._pool._take("read")
        try:
            held.connection.execute("begin")
            # Reading it begins the state that is read from here on; it differs as soon as anybody else has committed.
            (version,) = held.connection.execute("pragma data_version").fetchone()
        except BaseException:
            self._pool._give_back("read", held)
            raise
        if version != held.version or len(held.memory) >= _MEMORY_COUNT:
            held.memory.clear()
            held.version = version
        return Transaction(held.connection, postgres=False, memory=held.memory)

    def __exit__(self, kind: object, fault: BaseException | None, trace: object) -> None:
        held = self._held
        try:
            if fault is None:
                held.connection.execute("commit")
            else:
                _roll_back(held.connection)
        except BaseException:
            _roll_back(held.connection)
            raise
        finally:
            self._pool._give_back("read", held)


def _roll_back(connection: sqlite3.Connection) -> None:
    with suppress(sqlite3.Error):
        connection.execute("rollback")


def _connect(path: str, kind: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=WRITE_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    connection.execute("pragma foreign_keys = on")
    connection.execute(f"pragma synchronous = {'normal' if kind == 'unsynced' else 'full'}")
    if kind == "read":
        connection.execute(f"pragma cache_size = -{_READ_CACHE_KB}")
    return connection


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino

"""Noticing new events in an SQLite store."""

import asyncio
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from metaforge.approvals.nudging import Listener
from metaforge.store import schema
from metaforge.store.database import Database
from metaforge.store.location import StoreUnavailable

POLL_SECONDS = 0.05
"""At most so long a commit goes unnoticed whose nudge was lost; asking is a read of one page in memory."""
IDLE_POLL_SECONDS = 2.0
"""The same while nothing is held here and only pages look on."""
_BUSY_SECONDS = 0.05


class SqliteWatch:
    """Looks when nudged, and now and then whether somebody wrote: every 50 ms while a call waits."""

    def __init__(self, database: Database, home: Path) -> None:
        """Remember the store and where nudges arrive."""
        self._database = database
        self._home = home
        self._hint = asyncio.Event()
        self._seen = 0
        self._is_awaited = True
        self.name = ""

    def look_often(self, is_awaited: bool) -> None:
        """Look more or less often by itself: whether a call waits for what is seen."""
        if is_awaited and not self._is_awaited:
            self._hint.set()
        self._is_awaited = is_awaited

    def look_soon(self) -> None:
        """Look now, for this process has committed."""
        self._hint.set()

    async def run(self, started: Callable[[int], None], woken: Callable[[int, frozenset[str]], None]) -> None:
        """Watch until cancelled; see `waking.Watch`."""
        await asyncio.to_thread(self._database.prepare)
        path = self._database.path
        loop = asyncio.get_running_loop()
        listener = self._listener()
        try:
            # Readers of a write-ahead log wait for nobody, so these short ones may run on the loop.
            with closing(sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)) as connection:
                if listener is not None:
                    loop.add_reader(listener.socket, self._nudged, listener)
                await self._follow(connection, _identity(path), started, woken)
        except sqlite3.Error as fault:
            raise schema.explained(path, fault) from None
        finally:
            if listener is not None:
                loop.remove_reader(listener.socket)
                listener.close()

    async def _follow(
        self,
        connection: sqlite3.Connection,
        identity: tuple[int, int],
        started: Callable[[int], None],
        woken: Callable[[int, frozenset[str]], None],
    ) -> None:
        version = _version(connection)
        self._seen = connection.execute("select coalesce(max(seq), 0) from approval_events").fetchone()[0]
        started(self._seen)
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pause_seconds):
                    await self._hint.wait()
            hinted = self._hint.is_set()
            self._hint.clear()
            before, version = version, _version(connection)
            if hinted or version != before:
                self._look(connection, woken)
            elif _identity(self._database.path) != identity:
                raise StoreUnavailable(f"The database {self._database.path} was replaced")

    @property
    def _pause_seconds(self) -> float:
        return POLL_SECONDS if self._is_awaited or not self.name else IDLE_POLL_SECONDS

    def _look(self, connection: sqlite3.Connection, woken: Callable[[int, frozenset[str]], None]) -> None:
        query = "select seq, approval_id from approval_events where seq > ? order by seq"
        found = connection.execute(query, (self._seen,)).fetchall()
        if found:
            self._seen = found[-1][0]
            woken(self._seen, frozenset(approval_id for _, approval_id in found))

    def _nudged(self, listener: Listener) -> None:
        listener.drain()
        self._hint.set()

    def _listener(self) -> Listener | None:
        """Return where nudges arrive; without one, looking every 50 ms has to do."""
        self.name = ""
        try:
            listener = Listener(self._home)
        except OSError:
            return None
        self.name = listener.name
        return listener


def _version(connection: sqlite3.Connection) -> int:
    """Return a number that changes when another connection has committed."""
    version: int = connection.execute("pragma data_version").fetchone()[0]
    return version


def _identity(path: Path) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError as fault:
        raise StoreUnavailable(f"The database {path} is gone: {fault.strerror}") from None
    return found.st_dev, found.st_ino

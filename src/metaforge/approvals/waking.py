"""Waking who waits for an entry, wherever it was decided: within milliseconds, and at no cost while nothing is held.

On SQLite a process that commits nudges the others, and while something is held each also looks every 50 ms whether the
file was written to, in case a nudge was lost; every two seconds while only pages look on. Postgres tells those who
listen.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from metaforge.approvals.faults import LedgerUnavailable
from metaforge.approvals.model import State
from metaforge.approvals.nudging import nudge
from metaforge.approvals.port import Waker
from metaforge.store.database import Database
from metaforge.store.location import StoreUnavailable

_RETRY_SECONDS = 1.0
_LINGER_SECONDS = 5.0
"""How long the watch goes on when nobody waits: a held call waits in turns."""

Woken = Callable[[int, frozenset[str]], None]
"""Tell the number of the last event, and which approvals the events since the last time are about."""


class Watch(Protocol):
    """What looks at one kind of store while somebody waits."""

    name: str

    async def run(self, started: Callable[[int], None], woken: Woken) -> None:
        """Watch until cancelled; `started` is told the number of the last event once nothing can be missed."""
        ...

    def look_soon(self) -> None:
        """Look now, for this process has committed; from the event loop."""
        ...

    def look_often(self, is_awaited: bool) -> None:
        """Be told whether a call waits, or only pages look on."""
        ...


class StoreWaker:
    """Wakes those who wait in this process. One task watches while anybody waits."""

    def __init__(self, database: Database, home: Path) -> None:
        """Remember the store; nothing is opened before somebody waits.

        Args:
            database: the store of all processes.
            home: METAFORGE_HOME, below which processes of one machine nudge each other.
        """
        self._database = database
        self._home = home
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watch: Watch | None = None
        self._task: asyncio.Task[None] | None = None
        self._started: asyncio.Future[None] | None = None
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        self._followers: set[asyncio.Future[None]] = set()
        self._stop: asyncio.TimerHandle | None = None
        self._seen = 0
        self._is_closed = False

    async def wait(self, approval_id: str, until: float) -> None:
        """Return when the entry may have changed; see `port.Waker`."""
        woken = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(approval_id, set()).add(woken)
        self._pace()
        try:
            await self._while_watching(woken, until, lambda: self._is_settled(approval_id))
        finally:
            there = self._waiting[approval_id]
            there.discard(woken)
            if not there:
                del self._waiting[approval_id]
                self._pace()
            self._linger()

    async def changed(self, seen: int, until: float) -> int:
        """Return the number of the last event once it is another; see `port.Waker`."""
        woken = asyncio.get_running_loop().create_future()
        self._followers.add(woken)
        try:
            await self._while_watching(woken, until, lambda: _ready(self._seen != seen))
            return self._seen
        finally:
            self._followers.discard(woken)
            self._linger()

    def nudge(self) -> None:
        """Wake whoever waits for what was just committed, here and in other processes; from any thread."""
        loop, watch = self._loop, self._watch
        if loop is not None and watch is not None and not loop.is_closed():
            loop.call_soon_threadsafe(watch.look_soon)
        if not self._database.is_postgres:
            nudge(self._home, but=watch.name if watch is not None else "")

    async def close(self) -> None:
        """Stop watching; whoever waits is woken."""
        self._is_closed = True
        self._wake_all()
        if self._stop is not None:
            self._stop.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = self._watch = None

    # -- inside --------------------------------------------------------------------------------------------------

    async def _while_watching(
        self, woken: "asyncio.Future[None]", until: float, is_settled: Callable[[], Awaitable[bool]]
    ) -> None:
        try:
            async with asyncio.timeout(until - time.monotonic()):
                await self._watching()
                # From here on nothing is missed; what came before is in the store.
                if not await is_settled() and not self._is_closed:
                    await woken
        except TimeoutError:
            return
        except LedgerUnavailable:
            await asyncio.sleep(max(0.0, min(_RETRY_SECONDS, until - time.monotonic())))

    async def _watching(self) -> None:
        """Return once the watch has started."""
        loop = asyncio.get_running_loop()
        if self._task is None or self._loop is not loop or self._task.done():
            self._loop = loop
            self._watch = watch = _watch(self._database, self._home)
            self._pace()
            self._started = loop.create_future()
            self._task = loop.create_task(self._keep_watching(watch, self._started))
        assert self._started is not None
        await asyncio.shield(self._started)

    async def _keep_watching(self, watch: Watch, first: "asyncio.Future[None]") -> None:
        def started(seen: int) -> None:
            self._seen = seen
            if not first.done():
                first.set_result(None)
            else:
                self._wake_all()  # the watch was interrupted: anything may have happened

        try:
            while True:
                try:
                    await watch.run(started, self._wake)
                except StoreUnavailable:
                    await asyncio.sleep(_RETRY_SECONDS)
                    self._wake_all()
        finally:
            if not first.done():
                first.set_result(None)  # whoever waits for the start looks for himself

    async def _is_settled(self, approval_id: str) -> bool:
        """Whether an entry no longer awaits an answer."""
        if self._database.answers_at_once:
            return self._state(approval_id) != State.AWAITING
        return await asyncio.to_thread(self._state, approval_id) != State.AWAITING

    def _state(self, approval_id: str) -> str:
        try:
            with self._database.transaction(write=False) as transaction:
                found = transaction.value("select state from approvals where approval_id = ?", approval_id)
        except StoreUnavailable as fault:
            raise LedgerUnavailable(fault.message) from None
        return str(found or "")

    def _wake(self, seen: int, approval_ids: frozenset[str]) -> None:
        self._seen = max(self._seen, seen)
        for approval_id in approval_ids:
            _resolve(self._waiting.get(approval_id, ()))
        if approval_ids:
            _resolve(self._followers)

    def _wake_all(self) -> None:
        for waiting in self._waiting.values():
            _resolve(waiting)
        _resolve(self._followers)

    def _pace(self) -> None:
        if self._watch is not None:
            self._watch.look_often(bool(self._waiting))

    def _linger(self) -> None:
        """Stop the watch in a while, unless somebody waits by then."""
        if not self._waiting and not self._followers and self._loop is not None:
            if self._stop is not None:
                self._stop.cancel()
            self._stop = self._loop.call_later(_LINGER_SECONDS, self._stop_if_idle)

    def _stop_if_idle(self) -> None:
        if not self._waiting and not self._followers and self._task is not None:
            self._task.cancel()
            self._task = self._watch = None


def _watch(database: Database, home: Path) -> Watch:
    if database.is_postgres:
        from metaforge.approvals.watching_postgres import PostgresWatch

        return PostgresWatch(database)
    from metaforge.approvals.watching_sqlite import SqliteWatch

    return SqliteWatch(database, home)


def _resolve(futures: "set[asyncio.Future[None]] | tuple[()]") -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)


async def _ready(settled: bool) -> bool:
    return settled


__all__ = ["StoreWaker", "Waker"]

"""Live news of the ledger: one watcher for any number of pages, and nothing at all while nobody looks."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import orjson

from metaforge.approvals.faults import LedgerUnavailable, UnknownApproval
from metaforge.approvals.model import Entry
from metaforge.telemetry import logs
from metaforge.web.services import Services

KEEP_ALIVE_SECONDS = 15.0
RETRY_SECONDS = 2.0
MAX_PENDING = 1000
"""Waiting entries that are told apart; of more, the latest are."""
MAX_READERS = 500
MAX_UNREAD = 256
"""Events that a reader has not taken: one that is this far behind is ended, comes again and reads the list anew."""

Queue = asyncio.Queue[bytes | None]


class Feed:
    """Server-sent events: `pending` with how many wait, first and after each change; `approval` for each that changed.

    Args:
        services: ledger and waker.
        shown: how an entry is told.
    """

    def __init__(self, services: Services, shown: Callable[[Entry], dict[str, Any]]) -> None:
        self._services = services
        self._shown = shown
        self._readers: set[Queue] = set()
        self._watching: asyncio.Task[None] | None = None
        self._pending: dict[str, int] | None = None
        """What waits, with the number of the last event of each."""
        self._closed = False

    @property
    def is_watching(self) -> bool:
        """Whether anybody reads, so that the ledger is looked at."""
        return self._watching is not None

    @property
    def is_full(self) -> bool:
        """Whether no more readers are taken."""
        return len(self._readers) >= MAX_READERS

    async def events(self, limit_seconds: float = math.inf) -> AsyncIterator[bytes]:
        """Yield encoded events until the reader leaves or the server ends.

        Args:
            limit_seconds: how long the reader may listen: as long as what let it in is good.
        """
        ends = time.monotonic() + limit_seconds
        queue: Queue = asyncio.Queue()
        self._readers.add(queue)
        try:
            yield b"retry: 1000\n\n"
            if self._closed:
                return
            if self._watching is None:
                self._pending = None
                self._watching = asyncio.create_task(self._watch())
            elif self._pending is not None:
                queue.put_nowait(_count(self._pending))
            while (left := ends - time.monotonic()) > 0:
                try:
                    event = await asyncio.wait_for(queue.get(), min(left, KEEP_ALIVE_SECONDS))
                except TimeoutError:
                    event = b": still here\n\n"
                if event is None:
                    return
                yield event
        finally:
            self._readers.discard(queue)
            if not self._readers and self._watching is not None:
                self._watching.cancel()
                self._watching = None

    def close(self) -> None:
        """End every reader."""
        self._closed = True
        if self._watching is not None:
            self._watching.cancel()
        for queue in self._readers:
            queue.put_nowait(None)

    async def _watch(self) -> None:
        seen = 0
        while True:
            try:
                # What is read after a change is at least as new as `seen`: nothing that happens in between is missed.
                await self._look()
                seen = await self._services.waker.changed(seen, time.monotonic() + KEEP_ALIVE_SECONDS)
            except LedgerUnavailable as fault:
                logs.event("approvals_feed_waits", "warning", reason=fault.message)
                await asyncio.sleep(RETRY_SECONDS)

    async def _look(self) -> None:
        now, changed = await asyncio.to_thread(self._changed, self._pending)
        is_first, self._pending = self._pending is None, now
        for entry in changed:
            self._tell(_event("approval", self._shown(entry), entry.seq))
        if changed or is_first:
            self._tell(_count(now))

    def _changed(self, before: dict[str, int] | None) -> tuple[dict[str, int], list[Entry]]:
        """Return what waits now, and what of it, or of what waited before, is not what it was. Blocks."""
        ledger = self._services.ledger
        now = ledger.heads("pending", None, MAX_PENDING)
        changed: list[Entry] = []
        if before is not None:
            for key in [*(key for key, seq in now.items() if before.get(key) != seq), *(before.keys() - now.keys())]:
                with suppress(UnknownApproval):
                    changed.append(ledger.get(key))
        return now, sorted(changed, key=lambda entry: entry.seq)

    def _tell(self, event: bytes) -> None:
        for queue in list(self._readers):
            if queue.qsize() < MAX_UNREAD:
                queue.put_nowait(event)
            else:
                queue.put_nowait(None)
                self._readers.discard(queue)


def _count(pending: dict[str, int]) -> bytes:
    return _event("pending", {"pending_count": len(pending)})


def _event(name: str, data: dict[str, Any], number: int = 0) -> bytes:
    line = f"id: {number}\n".encode() if number else b""
    return line + b"event: " + name.encode() + b"\ndata: " + orjson.dumps(data) + b"\n\n"

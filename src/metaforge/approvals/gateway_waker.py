"""Waking who waits for an entry of a gateway: by its live stream, and by looking every second where that is down."""

import asyncio
import json
import time
from contextlib import suppress

from metaforge.approvals.faults import LedgerUnavailable
from metaforge.approvals.model import State
from metaforge.approvals.port import Ledger
from metaforge.core.certificates import trusted_certificates

STREAM = "/v1/approvals/events"
LOOK_SECONDS = 1.0
"""How often those who wait look for themselves while there is no stream."""
_SILENCE_SECONDS = 40.0
"""A stream that says less often that it lives is taken for dead."""
_LINGER_SECONDS = 5.0


class GatewayWaker:
    """Wakes those who wait in this process. One connection listens while anybody waits."""

    def __init__(self, url: str, key: str, ledger: Ledger) -> None:
        """Remember the gateway; nothing is connected.

        Args:
            url: METAFORGE_GATEWAY_URL, without a path.
            key: what this server shows to the gateway; empty for an open one.
            ledger: the gateway's, to look whether something happened before anybody listened.
        """
        self._url = url
        self._ledger = ledger
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        self._followers: set[asyncio.Future[None]] = set()
        self._task: asyncio.Task[None] | None = None
        self._stop: asyncio.TimerHandle | None = None
        self._listens = False
        self._is_told_all = False
        self._seen = 0

    async def wait(self, approval_id: str, until: float) -> None:
        """Return when the entry may have changed; see `port.Waker`."""
        waiting = self._waiting.setdefault(approval_id, set())
        try:
            await self._until_woken(waiting, until, approval_id)
        finally:
            if not waiting:
                self._waiting.pop(approval_id, None)

    async def changed(self, seen: int, until: float) -> int:
        """Return another number once anything was told; see `port.Waker`."""
        if self._seen == seen:
            await self._until_woken(self._followers, until)
        return self._seen

    def nudge(self) -> None:
        """Do nothing: the gateway tells everybody who listens."""

    async def close(self) -> None:
        """Stop listening; whoever waits is woken."""
        self._wake_all()
        if self._stop is not None:
            self._stop.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    # -- inside --------------------------------------------------------------------------------------------------

    async def _until_woken(self, waiting: "set[asyncio.Future[None]]", until: float, approval_id: str = "") -> None:
        loop = asyncio.get_running_loop()
        if self._task is None or self._task.done() or self._task.get_loop() is not loop:
            self._task, self._listens = loop.create_task(self._listen()), False
        woken = loop.create_future()
        waiting.add(woken)
        # Without a stream nothing is told: who waits looks again soon.
        limit = until if self._listens else min(until, time.monotonic() + LOOK_SECONDS)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(limit - time.monotonic()):
                    if not approval_id or await asyncio.to_thread(self._awaits, approval_id):
                        await woken
        finally:
            waiting.discard(woken)
            if self._stop is not None:
                self._stop.cancel()
            self._stop = loop.call_later(_LINGER_SECONDS, self._stop_if_idle)

    async def _listen(self) -> None:
        trust = await trusted_certificates()
        import httpx

        timeout = httpx.Timeout(5.0, read=_SILENCE_SECONDS)
        async with httpx.AsyncClient(
            base_url=self._url, headers=self._headers, timeout=timeout, verify=trust
        ) as client:
            while True:
                with suppress(httpx.HTTPError):
                    async with client.stream("GET", STREAM) as answer:
                        answer.raise_for_status()
                        self._is_told_all = False
                        self._listens = True
                        async for line in answer.aiter_lines():
                            if line.startswith("data:"):
                                self._told(line.removeprefix("data:"))
                self._listens = False
                self._wake_all()
                await asyncio.sleep(LOOK_SECONDS)

    def _awaits(self, approval_id: str) -> bool:
        """Whether an entry still awaits an answer, as far as can be seen."""
        try:
            return self._ledger.get(approval_id).state is State.AWAITING
        except LedgerUnavailable:
            return True

    def _told(self, data: str) -> None:
        try:
            about = json.loads(data)
        except ValueError:
            return
        named = about.get("id") if isinstance(about, dict) else None
        if not self._is_told_all:
            self._is_told_all = True
            self._wake_all()  # what happened before this first word was not told
            return
        self._seen += 1
        if isinstance(named, str):
            _resolve(self._waiting.get(named.removeprefix("tool:"), set()))
        _resolve(self._followers)

    def _wake_all(self) -> None:
        self._seen += 1
        for waiting in self._waiting.values():
            _resolve(waiting)
        _resolve(self._followers)

    def _stop_if_idle(self) -> None:
        if not any(self._waiting.values()) and not self._followers and self._task is not None:
            self._task.cancel()
            self._task = None


def _resolve(futures: "set[asyncio.Future[None]]") -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)

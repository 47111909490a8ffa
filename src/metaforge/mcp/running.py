"""Requests over HTTP while they run: cancellable, watched for clients that go away, answered once or not at all."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from metaforge.core.errors import InvalidRequest
from metaforge.mcp.dispatch import Dispatcher
from metaforge.mcp.exchange import Exchange
from metaforge.mcp.replies import Receive
from metaforge.mcp.streams import Response
from metaforge.protocol import jsonrpc
from metaforge.protocol.failures import failure
from metaforge.protocol.jsonrpc import Message
from metaforge.protocol.revisions import Dialect
from metaforge.protocol.stateless import http_status

WATCH_SECONDS = 0.03
"""A call that lasts one to two of these is watched for a client that goes away; a shorter one is not worth it."""


class Requests:
    """Runs requests, each in the task that the HTTP server made for it."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._loop: asyncio.AbstractEventLoop
        self._watch: Watch
        self.in_flight: set[Exchange] = set()

    def start(self) -> None:
        """Begin to serve in the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._watch = Watch(self._loop)

    def cancel_all(self) -> None:
        """Withdraw every request."""
        for exchange in list(self.in_flight):
            exchange.cancel()

    async def run(self, exchange: Exchange, receive: Receive) -> None:
        """Answer a request by its own response."""
        response = exchange.own
        assert isinstance(response, Response)
        answer = self._dispatcher.answer_now(exchange)
        if answer is not None:
            await self._finish(exchange, response, answer)
            return
        is_cancellable = exchange.dialect is Dialect.HANDSHAKE
        calls = exchange.client.calls
        if is_cancellable and exchange.id in calls:
            fault = InvalidRequest(f"The id {exchange.id!r} belongs to a request of this session that is still running")
            await response.finish(200, jsonrpc.encode(failure(fault, None, exchange.dialect)))
            return
        task = exchange.task = asyncio.current_task(self._loop)
        self.in_flight.add(exchange)
        if is_cancellable:
            calls[exchange.id] = exchange
        self._watch.begin(exchange, receive)
        try:
            answer = await self._dispatcher.answer(exchange)
        except asyncio.CancelledError:
            if not exchange.cancelled:
                raise
        finally:
            self._watch.end(exchange)
            self.in_flight.discard(exchange)
            if is_cancellable:
                calls.pop(exchange.id, None)
        exchange.task = None
        if answer is None or exchange.cancelled:
            await self._abandon(response, task)
        else:
            await self._finish(exchange, response, answer)

    async def _abandon(self, response: Response, task: asyncio.Task[Any] | None) -> None:
        """End the response of a withdrawn request, whether its cancellation has struck already or is still to come."""
        while task is not None and task.cancelling():
            task.uncancel()
        try:
            await response.abandon()
        except asyncio.CancelledError:
            await response.abandon()

    def _finish(self, exchange: Exchange, response: Response, answer: Message) -> Awaitable[None]:
        status = 200
        if exchange.dialect is Dialect.STATELESS and (error := answer.get("error")):
            status = http_status(error["code"])
        return response.finish(status, self._dispatcher.encode(answer))


class Watch:
    """Cancels calls whose client goes away. One timer looks after all: most calls end before it strikes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._young: dict[Exchange, Receive] = {}
        self._watchers: dict[Exchange, asyncio.Task[None]] = {}
        self._due: set[Exchange] = set()
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, exchange: Exchange, receive: Receive) -> None:
        """Watch a call, from the second strike of the timer that it sees."""
        self._young[exchange] = receive
        if self._timer is None:
            self._timer = self._loop.call_later(WATCH_SECONDS, self._strike)

    def end(self, exchange: Exchange) -> None:
        """Look no longer: the call has ended."""
        self._young.pop(exchange, None)
        if self._watchers and (watcher := self._watchers.pop(exchange, None)) is not None:
            watcher.cancel()

    def _strike(self) -> None:
        for exchange in self._due & self._young.keys():
            watching = when_gone(self._young.pop(exchange), exchange.cancel)
            self._watchers[exchange] = self._loop.create_task(watching)
        self._due = set(self._young)
        self._timer = self._loop.call_later(WATCH_SECONDS, self._strike) if self._young else None


async def when_gone(receive: Receive, act: Callable[[], None]) -> None:
    """Act once the client has gone, or the response has ended."""
    while (await receive())["type"] != "http.disconnect":
        pass
    act()

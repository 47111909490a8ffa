"""Event streams over HTTP: the one a session keeps open, and the one a call's response becomes when it must."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from metaforge.mcp.whole import write_whole
from metaforge.protocol import jsonrpc, sse
from metaforge.protocol.jsonrpc import Message

Send = Callable[[dict[str, Any]], Awaitable[None]]
Header = tuple[bytes, bytes]

KEEP_ALIVE_SECONDS = 15.0
MAX_WAITING_COUNT = 1024
"""Events that a client has not taken; more are dropped, because it does not read."""
SSE_HEADERS: tuple[Header, ...] = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
    (b"content-encoding", b"identity"),
)
"""Proxies pass each event on at once: the last two keep nginx from gathering and from compressing them."""
_JSON = (b"content-type", b"application/json")


async def respond(send: Send, status: int, body: bytes = b"", headers: Sequence[Header] = ()) -> None:
    """Send a whole response: JSON when it has a body."""
    if body and not headers and status == 200 and write_whole(send, status, body, None):
        return
    if body:
        told = [_JSON, (b"content-length", b"%d" % len(body)), *headers]
    else:
        told = [*headers] if status == 204 else [(b"content-length", b"0"), *headers]
    if write_whole(send, status, body, told):
        return
    await send({"type": "http.response.start", "status": status, "headers": told})
    await send({"type": "http.response.body", "body": body})


class EventStream:
    """Sends events in order and comments in between, until it is closed.

    Attributes:
        is_open: whether something put on it now can still reach the client.
    """

    def __init__(self, keep_alive_seconds: float = KEEP_ALIVE_SECONDS) -> None:
        self.is_open = True
        self._waiting: deque[bytes] = deque()
        self._wake = asyncio.Event()
        self._keep_alive_seconds = keep_alive_seconds

    def send(self, message: Message) -> bool:
        """Put one message on the stream."""
        return self.put(sse.frame(jsonrpc.encode(message)))

    def put(self, event: bytes, *, is_last: bool = False) -> bool:
        """Put one encoded event on the stream; the last one closes it."""
        if not self.is_open or (len(self._waiting) >= MAX_WAITING_COUNT and not is_last):
            return False
        self._waiting.append(event)
        if is_last:
            self.is_open = False
        self._wake.set()
        return True

    def close(self) -> None:
        """Take nothing more; what waits is still sent."""
        self.is_open = False
        self._wake.set()

    async def run(self, send: Send, headers: Sequence[Header] = ()) -> None:
        """Send the head, then every event, then the end."""
        loop = asyncio.get_running_loop()
        await send({"type": "http.response.start", "status": 200, "headers": [*SSE_HEADERS, *headers]})
        beat = loop.call_later(self._keep_alive_seconds, self._beat)
        try:
            while True:
                while self._waiting:
                    await send({"type": "http.response.body", "body": self._waiting.popleft(), "more_body": True})
                if not self.is_open:
                    break
                self._wake.clear()
                beat.cancel()
                beat = loop.call_later(self._keep_alive_seconds, self._beat)
                await self._wake.wait()
        finally:
            self.is_open = False
            beat.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _beat(self) -> None:
        self.put(sse.KEEP_ALIVE)


class Response:
    """The response of one POST: plain JSON, or an event stream once something must be said before the answer.

    Args:
        send: the server's.
        can_stream: whether the client accepts an event stream for this request.
    """

    __slots__ = ("_can_stream", "_pump", "_send", "_stream")

    def __init__(self, send: Send, *, can_stream: bool) -> None:
        self._send = send
        self._can_stream = can_stream
        self._stream: EventStream | None = None
        self._pump: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        """Whether something can be said before the answer."""
        return self._can_stream and (self._stream is None or self._stream.is_open)

    def send(self, message: Message) -> bool:
        """Say something before the answer."""
        if not self._can_stream:
            return False
        stream = self._stream
        if stream is None:
            stream = self._stream = EventStream()
            self._pump = asyncio.get_running_loop().create_task(stream.run(self._send))
        return stream.send(message)

    def finish(self, status: int, body: bytes, headers: Sequence[Header] = ()) -> Awaitable[None]:
        """Send the answer, once awaited, by the way the response has taken."""
        if self._stream is None:
            return respond(self._send, status, body, headers)
        assert self._pump is not None
        self._stream.put(sse.frame(body), is_last=True)
        return self._pump

    async def abandon(self) -> None:
        """End the response without an answer: the request was withdrawn."""
        self._can_stream = False
        if self._stream is None:
            await respond(self._send, 202)
            return
        assert self._pump is not None
        self._stream.close()
        await self._pump

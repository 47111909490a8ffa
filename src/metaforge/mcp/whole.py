"""A response in one system call: head and body leave together."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Any

_HEAD = b"HTTP/1.1 "
_INTERIM = b"HTTP/1.1 1"
"""`100 Continue` is waited for: it leaves at once."""
_STATUS_LINES = {each.value: b"HTTP/1.1 %d %s\r\n" % (each.value, each.phrase.encode()) for each in HTTPStatus}
_JSON_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"

Headers = Sequence[tuple[bytes, bytes]]


class CorkedTransport:
    """A transport that holds a response's head until the first part of its body comes."""

    __slots__ = ("_held", "_transport", "write_now")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._held = b""
        self.write_now = transport.write

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        """Return whether the connection is ending."""
        return self._transport.is_closing()

    def write(self, data: bytes) -> None:
        """Write, after what is held; hold a head."""
        if self._held:
            data, self._held = self._held + data, b""
        elif data.startswith(_HEAD) and not data.startswith(_INTERIM):
            self._held = data
            return
        self._transport.write(data)

    def flush(self) -> None:
        """Write what is held: the response has no body."""
        if self._held:
            held, self._held = self._held, b""
            self._transport.write(held)

    def close(self) -> None:
        """Write what is held, then close."""
        self.flush()
        self._transport.close()


def write_whole(send: Callable[..., Awaitable[None]], status: int, body: bytes, headers: Headers | None) -> bool:
    """Write a whole response at once, if `send` is that of a connection of ours with nothing in the way.

    Args:
        send: what the server gave the application.
        body: of the length that the headers say.
        headers: trusted ones; None for a JSON body with status 200 and no other headers.

    Returns:
        False when nothing was written: send it step by step.
    """
    cycle: Any = getattr(send, "__self__", None)
    transport = getattr(cycle, "transport", None)
    if type(transport) is not CorkedTransport:
        return False
    if (
        cycle.response_started
        or cycle.disconnected
        or not cycle.keep_alive
        or cycle.waiting_for_100_continue
        or cycle.flow.write_paused
        or cycle.scope["method"] == "HEAD"
    ):
        return False
    if headers is None:
        content = _JSON_HEAD % (len(body), body)
    else:
        fields = b"".join([b"%b: %b\r\n" % header for header in headers])
        content = b"".join((_STATUS_LINES[status], fields, b"\r\n", body))
    cycle.response_started = cycle.response_complete = True
    transport.write_now(content)
    cycle.message_event.set()
    cycle.on_response()
    return True

"""uvicorn's HTTP protocol with one system call for a response instead of two: head and body leave together."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_HEAD = b"HTTP/1.1 "
_INTERIM = b"HTTP/1.1 1"
"""`100 Continue` is waited for: it leaves at once."""


class CorkedTransport:
    """A transport that holds a response's head until the first part of its body comes."""

    __slots__ = ("_held", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._held = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

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


class CorkedProtocol(HttpToolsProtocol):
    """Serves one connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin a connection."""
        self._corked = CorkedTransport(transport)
        super().connection_made(self._corked)  # type: ignore[arg-type]

    def on_response_complete(self) -> None:
        """Note the end of a response; one to HEAD has never had a body."""
        self._corked.flush()
        super().on_response_complete()

"""uvicorn's HTTP protocol with less work for a short answer: one write, and one timer a connection.

A whole response that is known at once goes past uvicorn's step-by-step sending by `write_whole`; every other one is
sent as always, its head held back until the first part of its body comes. A connection's idle time is looked at when
its one timer strikes, instead of setting a timer for every request.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from metaforge.mcp.whole import CorkedTransport


class CorkedProtocol(HttpToolsProtocol):
    """Serves one connection."""

    _quiet_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin a connection."""
        self._corked = CorkedTransport(transport)
        super().connection_made(self._corked)  # type: ignore[arg-type]

    def connection_lost(self, exc: Exception | None) -> None:
        """End a connection."""
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
        super().connection_lost(exc)

    def _unset_keepalive_if_required(self) -> None:
        """Let the timer run: when it strikes it looks whether the connection was used."""

    def on_response_complete(self) -> None:
        """Note the end of a response; one to HEAD has never had a body."""
        self._corked.flush()
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            return
        self._quiet_since = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._await_quiet(self.timeout_keep_alive)

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection if it was quiet for long enough, else look again later."""
        self.timeout_keep_alive_task = None
        if not self.cycle.response_complete:
            return  # the end of this response sets the timer again
        left = self._quiet_since + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._await_quiet(left)
        else:
            super().timeout_keep_alive_handler()

    def _await_quiet(self, seconds: float) -> None:
        self.timeout_keep_alive_task: Any = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

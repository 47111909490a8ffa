"""Run the HTTP application on uvicorn, and end it within a second."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import uvicorn

from metaforge.access.judge import Access
from metaforge.mcp.corked import CorkedProtocol
from metaforge.mcp.http import HttpServer
from metaforge.mcp.replies import Receive
from metaforge.mcp.service import Service
from metaforge.mcp.streams import Send
from metaforge.settings import BadSetting, Settings
from metaforge.telemetry import logs

CLOSE_SECONDS = 0.5
KEEP_ALIVE_SECONDS = 75


class Application(Protocol):
    """An ASGI application that is told when it begins and when it must end."""

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        ...

    def start(self) -> None:
        """Begin, in the running event loop."""
        ...

    def stop(self) -> None:
        """End every call and stream, so that connections can end."""
        ...


class _Server(uvicorn.Server):
    """Leaves signals to us: uvicorn raises them again before the application could close."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ended = asyncio.Event()

    def end(self) -> None:
        """Let it end."""
        self.should_exit = True
        self._ended.set()

    async def main_loop(self) -> None:
        """Sleep until the end: uvicorn's own looks ten times a second, for headers and limits that we do not use."""
        await self.on_tick(0)
        await self._ended.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for bound in sockets or []:
            _announce(bound)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket.

    Raises:
        BadSetting: the port is taken, or the address is not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as fault:
        raise BadSetting(f"cannot listen on {host}:{port}: {fault.strerror}. Choose another with --port") from None
    bound.setblocking(False)
    return bound


def configure(application: Application) -> uvicorn.Config:
    """Return how uvicorn is to serve the application."""
    options: dict[str, Any] = {
        "http": CorkedProtocol,
        "ws": "none",
        "lifespan": "off",
        "access_log": False,
        "log_config": None,
        "proxy_headers": False,
        "server_header": False,
        "date_header": False,
        "timeout_keep_alive": KEEP_ALIVE_SECONDS,
        "timeout_graceful_shutdown": 1,
    }
    return uvicorn.Config(application, **options)


async def serve_http(
    service: Service,
    settings: Settings,
    bound: socket.socket,
    host: str,
    on_end: Callable[[], None],
    around: Callable[[HttpServer], Application] = lambda server: server,
    access: Access | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT; then end every call and stream.

    Args:
        bound: a listening socket.
        host: the address it was asked for, as the access rules see it.
        on_end: called once when the end begins.
        around: returns what serves in the end, given the MCP server: itself, or something that serves more.
        access: the judge of callers, where what stands around the MCP server shares it.
    """
    application = around(HttpServer(service, settings, host, access))
    server = _Server(configure(application))
    loop = asyncio.get_running_loop()
    closing: list[asyncio.Task[None]] = []

    def end() -> None:
        """Close the application while uvicorn ends the connections: each needs some tenths of a second."""
        if not closing:
            on_end()
            application.stop()
            closing.append(loop.create_task(_close(service)))
            server.end()

    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError, RuntimeError):
            loop.add_signal_handler(number, end)
    application.start()
    try:
        await server.serve(sockets=[bound])
    finally:
        end()
        await closing[0]


async def _close(service: Service) -> None:
    try:
        await asyncio.wait_for(service.close(), CLOSE_SECONDS)
    except TimeoutError:
        logs.event("mcp_close_timed_out", "warning", seconds=CLOSE_SECONDS)


def _announce(bound: socket.socket) -> None:
    """Say on stderr where the server listens."""
    host, port = bound.getsockname()[:2]
    name = f"[{host}]" if ":" in host else host
    os.write(sys.stderr.fileno(), f"metaforge-mcp listening on http://{name}:{port}/mcp\n".encode())

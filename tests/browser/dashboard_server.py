"""A whole server in a thread of its own, so that a browser that blocks can be driven from the test's."""

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import uvicorn

from metaforge.access.judge import Access
from metaforge.app import App
from metaforge.approvals.digest import call_digest
from metaforge.approvals.model import Entry, Kind, Request, Route, later, new_approval_id
from metaforge.core.clock import utc_now
from metaforge.core.ids import new_call_id
from metaforge.mcp.http import HttpServer
from metaforge.mcp.serve import configure
from metaforge.settings import Settings
from metaforge.tools.context import Caller, Trust
from metaforge.tools.effect import Effect
from metaforge.web.front import Front
from metaforge.web.gateway import build
from metaforge.web.pages import routes
from metaforge.web.services import Services

T = TypeVar("T")
LIMIT_SECONDS = 30
AGENT = Caller("anonymous", Trust.UNTRUSTED, "claude-code", "2.1.332", "s-1")


def held_call(**changes: Any) -> Request:
    """Return a call that waits for a person for five minutes."""
    now = changes.get("created_at") or utc_now()
    window_seconds = changes.get("window_seconds", 300.0)
    made = Request(
        approval_id=new_approval_id(), call_id=new_call_id(), tool_id="project.create", kind=Kind.TOOL_CALL,
        effect=Effect.WRITE, arguments={"name": "Camera mount", "description": "Holds a camera below a drone"},
        digest="", adapter_version="0.1.0", project_id="", run_id="", caller=AGENT, title="Create a project",
        summary="Creates the project Camera mount: holds a camera below a drone.",
        reason_held="it would add to the design record", route=Route.DASHBOARD, created_at=now,
        expires_at=later(now, window_seconds), window_seconds=window_seconds,
    )  # fmt: skip
    made = replace(made, **changes)
    digest = call_digest(made.tool_id, made.arguments, made.project_id, made.caller.actor_id, made.adapter_version)
    return replace(made, digest=digest)


@dataclass
class Running:
    """A server that runs."""

    app: App
    services: Services
    url: str
    loop: asyncio.AbstractEventLoop
    stop: Callable[[], None]

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something in the server's event loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(LIMIT_SECONDS)

    def begin(self, work: Coroutine[Any, Any, T]) -> "Callable[[], T]":
        """Start something in the server's event loop; the returned function waits for it."""
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        return lambda: future.result(LIMIT_SECONDS)

    def hold(self, **changes: Any) -> Entry:
        """Put an entry into the ledger, as the gate does."""
        return self.services.ledger.open(held_call(**changes))

    def call(self, tool_id: str, arguments: dict[str, Any]) -> Any:
        """Call a tool as a local client."""
        caller = Caller("local", Trust.LOCAL, "engineer", "1", "s-local")
        return self.do(self.app.call_tool(tool_id, arguments, call_id=new_call_id(), caller=caller))


@contextmanager
def running(settings: Settings) -> Iterator[Running]:
    """Serve everything on a free port of this machine while the block lasts."""
    bound = socket.create_server(("127.0.0.1", 0))
    started: list[Running] = []
    ready, ending = threading.Event(), threading.Event()

    def serve() -> None:
        asyncio.run(_serve(settings, bound, started, ready))
        ending.set()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    assert ready.wait(LIMIT_SECONDS), "the server did not start"
    server = started[0]
    try:
        yield server
    finally:
        server.loop.call_soon_threadsafe(server.stop)
        thread.join(LIMIT_SECONDS)
        assert ending.is_set(), "the server did not end"


async def _serve(settings: Settings, bound: socket.socket, started: list[Running], ready: threading.Event) -> None:
    app = App(settings, over_stdio=False)
    services = app.gateway_services(Access(settings, "127.0.0.1"))
    front = Front(HttpServer(app, settings, "127.0.0.1"), build(services, routes(services)))
    server = Server(configure(front))
    front.start()
    address = f"http://127.0.0.1:{bound.getsockname()[1]}"

    def stop() -> None:
        front.stop()
        server.should_exit = True

    started.append(Running(app, services, address, asyncio.get_running_loop(), stop))
    ready.set()
    await server.serve(sockets=[bound])
    await app.close()


class Server(uvicorn.Server):
    """Leaves signals to the process, which is not its own."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture nothing."""
        yield

"""The gateway on a real socket of the test's own event loop, with a store and a ledger of its own."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from uvicorn.server import ServerState

from metaforge.access.browser import Browser
from metaforge.access.judge import Access
from metaforge.app import App
from metaforge.approvals.digest import call_digest
from metaforge.approvals.holders import Holder
from metaforge.approvals.ledger import SqlLedger
from metaforge.approvals.model import Entry, Kind, Request, Route, later, new_approval_id
from metaforge.approvals.waking import StoreWaker
from metaforge.core.clock import utc_now
from metaforge.core.ids import new_call_id
from metaforge.mcp.corked import CorkedProtocol
from metaforge.mcp.http import HttpServer
from metaforge.mcp.serve import configure
from metaforge.mcp.service import ClientInfo
from metaforge.settings import Settings
from metaforge.tools.context import Caller, Trust
from metaforge.tools.effect import Effect
from metaforge.web.front import Front
from metaforge.web.gateway import Gateway, build
from metaforge.web.services import Services

LIMIT_SECONDS = 10
ASKER = Caller("anonymous", Trust.UNTRUSTED, "claude-code", "2.1", "s-1")


def held_call(**changes: Any) -> Request:
    """Return a call that waits for a person for a minute."""
    now = utc_now()
    made = Request(
        approval_id=new_approval_id(), call_id=new_call_id(), tool_id="project.create", kind=Kind.TOOL_CALL,
        effect=Effect.WRITE, arguments={"name": "Arm", "api_key": "s3cret"}, digest="", adapter_version="0.1.0",
        project_id="", run_id="", caller=ASKER, title="Create a project", summary="Creates the project Arm.",
        reason_held="it would add to the design record", route=Route.DASHBOARD, created_at=now,
        expires_at=later(now, 60), window_seconds=60,
    )  # fmt: skip
    made = replace(made, **changes)
    digest = call_digest(made.tool_id, made.arguments, made.project_id, made.caller.actor_id, made.adapter_version)
    return replace(made, digest=digest)


@dataclass
class Served:
    """A gateway that serves, and the client's way to it."""

    app: App
    services: Services
    gateway: Gateway
    http: httpx.AsyncClient
    port: int

    def hold(self, **changes: Any) -> Entry:
        """Hold a call."""
        return self.services.ledger.open(held_call(**changes))

    def call(self, **changes: Any) -> Request:
        """Return a call to hold."""
        return held_call(**changes)

    async def get(self, path: str, status: int = 200, **options: Any) -> Any:
        """Return the JSON of an answer with this status."""
        return _checked(await self.http.get(path, **options), status)

    async def post(self, path: str, body: Any, status: int = 200, **options: Any) -> Any:
        """Post JSON and return the JSON of an answer with this status."""
        return _checked(await self.http.post(path, json=body, **options), status)


def _checked(answer: httpx.Response, status: int) -> Any:
    assert answer.status_code == status, answer.text
    return orjson.loads(answer.content)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The server's settings; a module or test may have others."""
    return Settings(home=tmp_path / "home", max_request_mb=1, adapters=("none",))


@pytest.fixture
async def served(settings: Settings) -> AsyncIterator[Served]:
    app = App(settings, over_stdio=False)
    waker = StoreWaker(app.database, app.home)
    holder = Holder(app.home)
    access = Access(settings, "127.0.0.1")
    services = Services(
        ledger=SqlLedger(app.database, holder, nudge=waker.nudge), waker=waker, twin=app.twin_services,
        calls=app.calls, resources=app.resources, settings=settings, access=access,
        browser=Browser(access, settings),
        health=lambda: app.health(ClientInfo()),
    )  # fmt: skip
    gateway = build(services)
    front = Front(HttpServer(app, settings, "127.0.0.1"), gateway)
    config, state = configure(front), ServerState()
    config.load()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: CorkedProtocol(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    port = server.sockets[0].getsockname()[1]
    front.start()
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=LIMIT_SECONDS) as http:
        yield Served(app, services, gateway, http, port)
        front.stop()
    for connection in list(state.connections):
        connection.transport.close()
    server.close()
    await server.wait_closed()
    await until_true(lambda: not (state.connections or state.tasks))
    await waker.close()
    holder.close()
    await app.close()


async def until_true(condition: Callable[[], object]) -> None:
    """Let the event loop turn until something has become true."""
    async with asyncio.timeout(LIMIT_SECONDS):
        while not condition():  # noqa: ASYNC110 - what is waited for sets no event
            await asyncio.sleep(0)


@pytest.fixture
def until() -> Callable[..., Any]:
    return until_true


@pytest.fixture
def make_call() -> Callable[..., Request]:
    return held_call


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[Callable[..., "Process"]]:
    """Start `metaforge serve` on a free port; what was started is ended after the test."""
    started: list[Process] = []

    def start(*options: str, **environment: str) -> Process:
        told = {"METAFORGE_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"], **environment}
        running = subprocess.Popen(
            [sys.executable, "-m", "metaforge", "serve", "--port", "0", *options],
            stderr=subprocess.PIPE, text=True, env=told,
        )  # fmt: skip
        assert running.stderr is not None
        lines: list[str] = []
        while not lines or "listening" not in lines[-1]:
            line = running.stderr.readline()
            assert line, f"it ended: {''.join(lines)}"
            lines.append(line)
        port = int(lines[-1].rpartition(":")[2].partition("/")[0])
        started.append(Process(running, port, lines))
        return started[-1]

    yield start
    for each in started:
        if each.popen.poll() is None:
            each.popen.send_signal(signal.SIGTERM)
            each.popen.wait(LIMIT_SECONDS)
        assert each.popen.stderr is not None
        each.popen.stderr.close()


@dataclass
class Process:
    """A running server."""

    popen: "subprocess.Popen[str]"
    port: int
    lines: list[str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

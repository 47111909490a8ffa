"""Both transports around a tiny service, on real pipes and sockets in the test's own event loop."""

import asyncio
import contextlib
import importlib.util
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest
import uvicorn
from uvicorn.server import ServerState

from metaforge.mcp.corked import CorkedProtocol
from metaforge.mcp.http import HttpServer
from metaforge.mcp.serve import configure
from metaforge.mcp.stdio import StdioServer
from metaforge.settings import Settings

sys.path.insert(0, str(Path(__file__).parent))

from desk import Desk, settings_of

from metaforge.app import App

TINY = Path(__file__).with_name("tiny.py")
LIMIT_SECONDS = 10


def load_tiny() -> ModuleType:
    if "tiny_service" not in sys.modules:
        spec = importlib.util.spec_from_file_location("tiny_service", TINY)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["tiny_service"] = module
        spec.loader.exec_module(module)
    return sys.modules["tiny_service"]


@pytest.fixture
def tiny() -> ModuleType:
    return load_tiny()


async def until_true(condition: Callable[[], object]) -> None:
    """Let the event loop turn until something has become true."""
    async with asyncio.timeout(LIMIT_SECONDS):
        while not condition():  # noqa: ASYNC110 - what is waited for sets no event
            await asyncio.sleep(0)


@pytest.fixture
def until() -> Callable[..., Any]:
    return until_true


class Pipes:
    """The client's end of a stdio server."""

    def __init__(self, service: Any, limit_bytes: int = 1 << 20, profile: str = "") -> None:
        self.service = service
        server_in, self._write_end = os.pipe()
        self._read_end, server_out = os.pipe()
        self._descriptors = [server_in, server_out]
        self.server = StdioServer(service, server_in, server_out, limit_bytes, lambda: None, profile)
        self.task = asyncio.create_task(self.server.serve())
        self._count = 0

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        self._reader = asyncio.StreamReader(limit=1 << 26)
        pipe = os.fdopen(self._read_end, "rb", buffering=0)
        self._transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(self._reader), pipe)

    def write(self, data: bytes) -> None:
        os.write(self._write_end, data)

    def send(self, method: str | None = None, params: Any = None, **fields: Any) -> None:
        message = {"jsonrpc": "2.0", **({"method": method} if method else {}), **fields}
        if params is not None:
            message["params"] = params
        self.write(json.dumps(message).encode() + b"\n")

    async def read(self) -> dict[str, Any]:
        line = await asyncio.wait_for(self._reader.readline(), LIMIT_SECONDS)
        assert line, "the server closed its output"
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    async def request(self, method: str, params: Any = None) -> dict[str, Any]:
        self._count += 1
        request_id = f"r{self._count}"
        self.send(method, params, id=request_id)
        answer = await self.read()
        assert answer["id"] == request_id
        return answer

    async def call(self, tool: str, arguments: Any = None, **meta: Any) -> dict[str, Any]:
        params = {"name": f"tiny.{tool}", "arguments": arguments or {}, **({"_meta": meta} if meta else {})}
        return await self.request("tools/call", params)

    async def initialize(self, capabilities: Any = None, revision: str = "2025-11-25") -> dict[str, Any]:
        hello = {"protocolVersion": revision, "capabilities": capabilities or {}}
        answer = await self.request("initialize", {**hello, "clientInfo": {"name": "test", "version": "1"}})
        self.send("notifications/initialized")
        return answer

    async def nothing_but(self, message: dict[str, Any]) -> None:
        """Check, by an answer that is known to come, that nothing was written before it."""
        self.send("ping", id="probe")
        probe = await self.read()
        assert probe == message

    def hang_up(self) -> None:
        if self._write_end >= 0:
            os.close(self._write_end)
            self._write_end = -1

    async def close(self) -> None:
        self.hang_up()
        await asyncio.wait_for(self.task, LIMIT_SECONDS)
        self._transport.close()
        for descriptor in self._descriptors:
            with contextlib.suppress(OSError):
                os.close(descriptor)


@pytest.fixture
def pipes_class() -> type[Pipes]:
    """The client's end, for a test that makes its own."""
    return Pipes


@pytest.fixture
async def pipes(tiny: ModuleType) -> AsyncIterator[Pipes]:
    client = Pipes(tiny.TinyService())
    await client.open()
    yield client
    await client.close()


class Web:
    """A server on a free port of the loopback, and the client's way to it."""

    def __init__(self, service: Any, settings: Settings) -> None:
        self.service = service
        self.app = HttpServer(service, settings, "127.0.0.1")
        self.port = 0
        self.http: httpx.AsyncClient
        self.session_id = ""

    async def open(self, port: int = 0) -> None:
        loop = asyncio.get_running_loop()
        config: uvicorn.Config = configure(self.app)
        config.load()
        state = ServerState()
        self._server = await loop.create_server(
            lambda: CorkedProtocol(config=config, server_state=state, app_state={}), "127.0.0.1", port
        )
        self._state = state
        self.port = self._server.sockets[0].getsockname()[1]
        self.http = httpx.AsyncClient(base_url=f"http://127.0.0.1:{self.port}", timeout=LIMIT_SECONDS)
        self.app.start()

    async def close(self) -> None:
        self.app.stop()
        await self.http.aclose()
        for connection in list(self._state.connections):
            connection.transport.close()
        self._server.close()
        await self._server.wait_closed()
        await until_true(lambda: not (self._state.connections or self._state.tasks))

    def headers(self, **more: str) -> dict[str, str]:
        told = {"accept": "application/json, text/event-stream"}
        if self.session_id:
            told["mcp-session-id"] = self.session_id
        return told | {name.replace("_", "-"): value for name, value in more.items()}

    async def post(self, message: Any, path: str = "/mcp", **headers: str) -> httpx.Response:
        content = message if isinstance(message, bytes) else json.dumps(message).encode()
        return await self.http.post(path, content=content, headers=self.headers(**headers))

    async def initialize(self, capabilities: Any = None, revision: str = "2025-11-25", name: str = "test") -> str:
        hello = {"protocolVersion": revision, "capabilities": capabilities or {}}
        params = {**hello, "clientInfo": {"name": name, "version": "1"}}
        answer = await self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        assert answer.status_code == 200
        self.session_id = answer.headers["mcp-session-id"]
        told = await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert (told.status_code, told.content) == (202, b"")
        return self.session_id

    async def call(self, tool: str, arguments: Any = None, request_id: Any = 1, **headers: str) -> httpx.Response:
        return await self.post(call(tool, arguments, request_id), **headers)

    async def events(self, message: Any, on_event: Callable[[dict[str, Any]], Any] | None = None) -> list[Any]:
        """Post a message and return what its event stream said, each event shown to `on_event` as it comes."""
        seen: list[Any] = []
        content = json.dumps(message).encode()
        async with self.http.stream("POST", "/mcp", content=content, headers=self.headers()) as response:
            assert response.headers["content-type"] == "text/event-stream"
            async for line in response.aiter_lines():
                if line.startswith("data: "):
                    seen.append(json.loads(line[6:]))
                    if on_event is not None:
                        await on_event(seen[-1])
        return seen

    def raw_request(self, message: Any, **headers: str) -> bytes:
        """Return the bytes of a POST, for tests that handle the socket themselves."""
        body = json.dumps(message).encode()
        told = self.headers(**headers) | {"host": f"127.0.0.1:{self.port}", "content-length": str(len(body))}
        head = "".join(f"{name}: {value}\r\n" for name, value in told.items())
        return f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body


def call(tool: str, arguments: Any = None, request_id: Any = 1, **meta: Any) -> dict[str, Any]:
    params = {"name": f"tiny.{tool}", "arguments": arguments or {}, **({"_meta": meta} if meta else {})}
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


@pytest.fixture
def make_call() -> Callable[..., dict[str, Any]]:
    return call


@pytest.fixture
def settings() -> Settings:
    """The server's settings; a module or test may have others."""
    return Settings(max_request_mb=1)


@pytest.fixture
async def web(tiny: ModuleType, settings: Settings) -> AsyncIterator[Web]:
    server = Web(tiny.TinyService(), settings)
    await server.open()
    yield server
    await server.close()


@pytest.fixture
async def serve() -> AsyncIterator[Callable[..., Any]]:
    """Serve any application, over HTTP or (without settings) over pipes, until the test ends."""
    opened: list[Any] = []

    async def start(service: Any, settings: Settings | None = None) -> Any:
        server = Pipes(service) if settings is None else Web(service, settings)
        await server.open()
        opened.append(server)
        return server

    yield start
    for server in reversed(opened):
        await server.close()


@pytest.fixture
async def open_house(tmp_path: Path, serve: Callable[..., Any]) -> AsyncIterator[Callable[..., Any]]:
    """Open a server and a desk beside it: over HTTP, or over stdio. Keywords are METAFORGE_ variables."""
    opened: list[Any] = []

    async def start(over: str = "http", **variables: str) -> tuple[Any, Desk]:
        told = {f"METAFORGE_{name.upper()}": value for name, value in variables.items()}
        settings = settings_of(tmp_path, **told)
        app = App(settings, over_stdio=over == "stdio")
        desk = Desk(app)
        opened.append((app, desk))
        return await serve(app, settings if over == "http" else None), desk

    yield start
    for app, desk in opened:
        await desk.close()
        await app.close()


@pytest.fixture
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port

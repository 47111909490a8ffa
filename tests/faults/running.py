"""The real server as a process, over stdio or HTTP, and a client of it that can be in several places at once."""

import asyncio
import json
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import psutil

Json = dict[str, Any]

HERE = Path(__file__).parent
PATIENCE_SECONDS = 60.0
REVISION = "2025-11-25"
ACCEPT = {"accept": "application/json, text/event-stream"}


def hello(capabilities: Json | None = None) -> Json:
    client = {"name": "fault-tests", "version": "1"}
    return {"protocolVersion": REVISION, "capabilities": capabilities or {}, "clientInfo": client}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Place:
    """Where a server lives: its home, its workspace, its `metaforge.toml` and its variables."""

    def __init__(self, folder: Path, toml: str = "", **variables: str) -> None:
        self.home, self.workspace = folder / "home", folder / "workspace"
        self.home.mkdir()
        self.workspace.mkdir()
        self.log = folder / "server.log"
        self.adapters = ",".join(re.findall(r"^\[adapters\.(\w+)\]", toml, re.MULTILINE)) or "none"
        self.variables = variables
        if toml:
            (self.home / "metaforge.toml").write_text(toml)

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        settings = {
            "METAFORGE_HOME": str(self.home),
            "METAFORGE_WORKSPACE": str(self.workspace),
            "METAFORGE_FIXTURES": "1",
            "METAFORGE_ADAPTERS": self.adapters,
            "METAFORGE_PRESTART": "false",
        }
        return {**kept, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE), **settings, **self.variables}


class Server:
    """One running process of the server."""

    transport = ""

    def __init__(self, place: Place, process: asyncio.subprocess.Process) -> None:
        self.place = place
        self.process = process

    @property
    def pid(self) -> int:
        return self.process.pid

    def descendants(self) -> list[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self.pid).children(recursive=True)
        return []

    def rss_mb(self) -> float:
        return float(psutil.Process(self.pid).memory_info().rss / (1 << 20))

    async def session(self, capabilities: Json | None = None) -> "Session":
        raise NotImplementedError

    async def kill(self) -> None:
        """End the server as a power cut would."""
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGKILL)
        await self.process.wait()

    async def release(self) -> None:
        """Let go of what this side holds."""

    async def close(self) -> None:
        if self.process.returncode is None:
            self.process.terminate()
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self.process.wait()


class Session:
    """A client's conversation with a server. Ids are its own; several requests may be under way."""

    def __init__(self) -> None:
        self.ids = count(1)
        self.told: list[Json] = []
        """Notifications and requests of the server, in the order in which they came."""
        self.news = asyncio.Event()

    async def request(self, method: str, params: Json, request_id: int | str | None = None) -> Json:
        """Return the whole answer to a request."""
        raise NotImplementedError

    async def notify(self, method: str, params: Json) -> None:
        raise NotImplementedError

    def note(self, message: Json) -> None:
        self.told.append(message)
        self.news.set()

    async def until(self, wanted: Any) -> Json:
        """Wait until something was told that `wanted` accepts, and return it."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                for message in self.told:
                    if wanted(message):
                        return message
                self.news.clear()
                await self.news.wait()

    async def call(
        self, tool: str, arguments: Json | None = None, request_id: int | str | None = None, **meta: Any
    ) -> Json:
        """Return the whole answer to a tools/call."""
        params: Json = {"name": tool, "arguments": arguments or {}}
        if meta:
            params["_meta"] = meta
        return await self.request("tools/call", params, request_id)

    def begin(
        self, tool: str, arguments: Json | None = None, request_id: int | str | None = None, **meta: Any
    ) -> "asyncio.Task[Json]":
        return asyncio.create_task(self.call(tool, arguments, request_id, **meta))

    async def data(self, tool: str, **arguments: Any) -> Json:
        """Return the structured result of a call that must succeed."""
        answer = await self.call(tool, arguments)
        assert "result" in answer, answer
        assert not answer["result"].get("isError"), answer["result"]["content"]
        result: Json = answer["result"]["structuredContent"]
        return result

    async def cancel(self, request_id: int | str) -> None:
        await self.notify("notifications/cancelled", {"requestId": request_id, "reason": "no longer wanted"})

    async def vanish(self) -> None:
        """Go away without a word."""
        raise NotImplementedError


def refusal(answer: Json) -> str:
    """Return the text of an error, as a result or as JSON-RPC tells it."""
    if "error" in answer:
        return str(answer["error"]["message"])
    assert answer["result"].get("isError"), f"accepted: {str(answer)[:500]}"
    return "\n".join(block["text"] for block in answer["result"]["content"] if block["type"] == "text")


# -- stdio ---------------------------------------------------------------------------------------------------------


class StdioServer(Server):
    transport = "stdio"

    def __init__(self, place: Place, process: asyncio.subprocess.Process) -> None:
        super().__init__(place, process)
        self.the_session = StdioSession(self)
        self.lines: list[bytes] = []
        """Every line of the server's stdout."""
        self.reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, place: Place) -> "StdioServer":
        with place.log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "metaforge.mcp", "--transport", "stdio",
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log, env=place.environment,
                cwd=place.workspace, limit=1 << 30,
            )  # fmt: skip
        return cls(place, process)

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            self.lines.append(line)
            self.the_session.take(json.loads(line))
        self.the_session.lose()

    async def session(self, capabilities: Json | None = None) -> Session:
        answer = await self.the_session.request("initialize", hello(capabilities))
        assert "result" in answer, answer
        await self.the_session.notify("notifications/initialized", {})
        return self.the_session

    async def close(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.process.wait()
        await self.reading


class StdioSession(Session):
    def __init__(self, server: StdioServer) -> None:
        super().__init__()
        self.server = server
        self.waiting: dict[int | str, asyncio.Future[Json]] = {}

    async def request(self, method: str, params: Json, request_id: int | str | None = None) -> Json:
        request_id = next(self.ids) if request_id is None else request_id
        future = self.waiting[request_id] = asyncio.get_running_loop().create_future()
        await self._write({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await future

    async def notify(self, method: str, params: Json) -> None:
        await self._write({"jsonrpc": "2.0", "method": method, "params": params})

    async def _write(self, message: Json) -> None:
        stdin = self.server.process.stdin
        assert stdin is not None
        stdin.write(json.dumps(message).encode() + b"\n")
        await stdin.drain()

    def take(self, message: Json) -> None:
        future = None if "method" in message else self.waiting.pop(message.get("id"), None)  # type: ignore[arg-type]
        if future is None:
            self.note(message)
        elif not future.done():
            future.set_result(message)

    def lose(self) -> None:
        for future in self.waiting.values():
            if not future.done():
                future.set_exception(ConnectionError("the server ended"))
                future.exception()

    async def vanish(self) -> None:
        await self.server.close()


# -- HTTP ----------------------------------------------------------------------------------------------------------


class HttpServer(Server):
    transport = "http"

    def __init__(self, place: Place, process: asyncio.subprocess.Process, port: int) -> None:
        super().__init__(place, process)
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.http = httpx.AsyncClient(base_url=self.url, timeout=PATIENCE_SECONDS)
        self.sessions: list[HttpSession] = []

    @classmethod
    async def start(cls, place: Place, port: int = 0) -> "HttpServer":
        port = port or free_port()
        with place.log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "metaforge", "serve", "--port", str(port),
                stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, env=place.environment, cwd=place.workspace,
            )  # fmt: skip
        server = cls(place, process, port)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while process.returncode is None:
                with suppress(httpx.TransportError):
                    await server.http.get("/healthz")
                    break
                await asyncio.sleep(0.05)
        assert process.returncode is None, place.log.read_text()[-2000:]
        return server

    async def session(self, capabilities: Json | None = None) -> "HttpSession":
        session = HttpSession(self.url)
        self.sessions.append(session)
        await session.initialize(capabilities)
        return session

    async def close(self) -> None:
        await self.release()
        await super().close()

    async def release(self) -> None:
        for session in self.sessions:
            await session.http.aclose()
        await self.http.aclose()


class HttpSession(Session):
    def __init__(self, url: str) -> None:
        super().__init__()
        self.http = httpx.AsyncClient(base_url=url, timeout=PATIENCE_SECONDS)
        self.headers = dict(ACCEPT)
        self.answered_with: httpx.Headers | None = None
        """The headers of the last answer."""

    @property
    def id(self) -> str:
        return self.headers.get("mcp-session-id", "")

    async def initialize(self, capabilities: Json | None = None) -> None:
        answer = await self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello(capabilities)})
        assert answer.status_code == 200, answer.text
        self.headers["mcp-session-id"] = answer.headers["mcp-session-id"]
        await self.notify("notifications/initialized", {})

    async def post(self, message: Json) -> httpx.Response:
        return await self.http.post("/mcp", json=message, headers=self.headers)

    async def request(self, method: str, params: Json, request_id: int | str | None = None) -> Json:
        request_id = next(self.ids) if request_id is None else request_id
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        async with self.http.stream("POST", "/mcp", json=message, headers=self.headers) as answer:
            self.answered_with = answer.headers
            if not answer.headers.get("content-type", "").startswith("text/event-stream"):
                body: Json = json.loads(await answer.aread())
                return body
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    event: Json = json.loads(line.removeprefix("data: "))
                    if "method" not in event and event.get("id") == request_id:
                        return event
                    self.note(event)
        return {}

    async def notify(self, method: str, params: Json) -> None:
        await self.post({"jsonrpc": "2.0", "method": method, "params": params})

    async def vanish(self) -> None:
        await self.http.aclose()


@asynccontextmanager
async def running(transport: str, place: Place) -> AsyncIterator[Server]:
    """Run a server for as long as the block; it must end by itself when it is told to."""
    server: Server = await (StdioServer if transport == "stdio" else HttpServer).start(place)
    try:
        yield server
    except BaseException:
        await server.kill()
        raise
    finally:
        await server.release()
    if server.process.returncode is None:
        left = server.descendants()
        await server.close()
        assert await gone(left, 5.0) == [], "processes outlived the server"


async def gone(processes: list[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Return those that are still alive after some seconds."""
    _, alive = await asyncio.to_thread(psutil.wait_procs, processes, timeout=seconds)
    return [each for each in alive if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]

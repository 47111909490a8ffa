"""What our connections do beside uvicorn's: answers in one write, idle connections ended by one timer."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import uvicorn

from metaforge.mcp.corked import CorkedProtocol
from metaforge.mcp.serve import configure
from metaforge.mcp.streams import respond

LIMIT_SECONDS = 10
Open = Callable[..., Any]


class Application:
    """Answers with the body of the request; `/pause` waits until told."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.steps = 0

    def start(self) -> None: ...

    def stop(self) -> None: ...

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        async def counted(message: dict[str, Any]) -> None:
            self.steps += 1
            await send(message)

        body, more = b"", True
        while more:
            event = await receive()
            body, more = body + event.get("body", b""), event.get("more_body", False)
        if scope["path"] == "/pause":
            await self.go_on.wait()
        extra = [(b"mcp-session-id", b"s1")] if scope["path"] == "/session" else ()
        await respond(counted if scope["path"] == "/steps" else send, 200, body, extra)


@pytest.fixture
async def open_connection() -> AsyncIterator[Open]:
    """Serve, and open connections to it; the argument is the idle time in seconds."""
    async with contextlib.AsyncExitStack() as stack:

        async def start(keep_alive_seconds: float = 30.0) -> Any:
            application = Application()
            config = configure(application)
            config.load()
            server = uvicorn.Server(config)
            loop = asyncio.get_running_loop()
            made: list[CorkedProtocol] = []

            def make() -> CorkedProtocol:
                made.append(CorkedProtocol(config, server.server_state, {}))
                made[-1].timeout_keep_alive = keep_alive_seconds  # type: ignore[assignment]
                return made[-1]

            bound = socket.create_server(("127.0.0.1", 0))
            listening = await loop.create_server(make, sock=bound)
            stack.callback(listening.close)
            reader, writer = await asyncio.open_connection(*bound.getsockname())
            stack.callback(writer.close)
            return application, made, reader, writer

        yield start


def post(path: str, body: bytes, *more: str) -> bytes:
    head = [f"POST {path} HTTP/1.1", "host: x", f"content-length: {len(body)}", *more, "", ""]
    return "\r\n".join(head).encode() + body


async def read_answer(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    async with asyncio.timeout(LIMIT_SECONDS):
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.split(b"\r\n") if line.startswith(b"content-length"))
        return head, await reader.readexactly(int(length.split(b":")[1]))


@pytest.mark.parametrize("path", ["/", "/session", "/steps"])
async def test_an_answer_is_the_same_whether_it_leaves_whole_or_step_by_step(open_connection: Open, path: str) -> None:
    application, _, reader, writer = await open_connection()
    for body in (b'{"a": 1}', b"x" * 300_000):
        writer.write(post(path, body))
        head, answered = await read_answer(reader)
        assert answered == body
        lines = head.split(b"\r\n")
        assert lines[:3] == [b"HTTP/1.1 200 OK", b"content-type: application/json", b"content-length: %d" % len(body)]
        assert (b"mcp-session-id: s1" in lines) == (path == "/session")
    assert application.steps == (4 if path == "/steps" else 0)


async def test_requests_sent_at_once_on_one_connection_are_answered_in_their_order(open_connection: Open) -> None:
    _, _, reader, writer = await open_connection()
    writer.write(b"".join(post("/", b"%d" % number) for number in range(20)))
    assert [(await read_answer(reader))[1] for _ in range(20)] == [b"%d" % number for number in range(20)]


async def test_a_client_that_wants_the_connection_closed_is_obeyed(open_connection: Open) -> None:
    _, _, reader, writer = await open_connection()
    writer.write(post("/", b"1", "connection: close"))
    head, body = await read_answer(reader)
    assert body == b"1"
    assert b"connection: close" in head.lower()
    assert await asyncio.wait_for(reader.read(), LIMIT_SECONDS) == b""


async def test_an_idle_connection_is_ended_and_one_at_work_is_not(open_connection: Open) -> None:
    application, made, reader, writer = await open_connection(0.05)
    writer.write(post("/", b"1"))
    await read_answer(reader)
    writer.write(post("/pause", b"2"))
    struck = asyncio.Event()
    handler = made[0].timeout_keep_alive_handler

    def strike() -> None:
        handler()
        struck.set()

    made[0].timeout_keep_alive_handler = strike
    made[0].timeout_keep_alive_task.cancel()
    made[0]._await_quiet(0.05)
    await asyncio.wait_for(struck.wait(), LIMIT_SECONDS)
    application.go_on.set()
    assert (await read_answer(reader))[1] == b"2"
    assert await asyncio.wait_for(reader.read(), LIMIT_SECONDS) == b""


async def test_a_client_that_goes_leaves_no_timer(open_connection: Open) -> None:
    _, made, reader, writer = await open_connection()
    writer.write(post("/", b"1"))
    await read_answer(reader)
    timer = made[0].timeout_keep_alive_task
    writer.close()
    async with asyncio.timeout(LIMIT_SECONDS):
        while not timer.cancelled():  # noqa: ASYNC110 - no event tells
            await asyncio.sleep(0)

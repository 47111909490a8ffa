"""A cheap HTTP client: keeps N connections busy with one request each and notes how long every answer took."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import orjson
import uvloop

PROTOCOL_VERSION = "2025-11-25"


@dataclass(frozen=True)
class Load:
    """What one phase of load did."""

    calls_count: int
    elapsed_seconds: float
    latencies_ms: list[float]


@dataclass(frozen=True)
class Target:
    """An address to load and the call to send there."""

    port: int
    tool: str
    text: str = "hello world"
    arguments: Mapping[str, Any] | None = None
    """Instead of a text."""

    def head(self, session: str, body: bytes) -> bytes:
        lines = [
            "POST /mcp HTTP/1.1",
            f"host: 127.0.0.1:{self.port}",
            "content-type: application/json",
            "accept: application/json, text/event-stream",
            f"mcp-protocol-version: {PROTOCOL_VERSION}",
            f"content-length: {len(body)}",
        ]
        if session:
            lines.append(f"mcp-session-id: {session}")
        return "\r\n".join([*lines, "", ""]).encode()

    def request(self, session: str) -> bytes:
        params = {"name": self.tool, "arguments": self.arguments or {"text": self.text}}
        body = orjson.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
        return self.head(session, body) + body


class _Connection(asyncio.Protocol):
    """Sends the same request again as soon as its answer is complete, until told to stop."""

    def __init__(self, request: bytes, deadline: float, keep: Callable[[bytes], None] | None) -> None:
        self.request = request
        self.deadline = deadline
        self.keep = keep
        self.latencies_ms: list[float] = []
        self.buffer = b""
        self.sent_at = 0.0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclass of asyncio's.
        self.transport = cast(asyncio.Transport, transport)
        self._send()

    def _send(self) -> None:
        self.sent_at = time.perf_counter()
        self.transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, blank, body = self.buffer.partition(b"\r\n\r\n")
        if not blank or len(body) < _content_length(head):
            return
        now = time.perf_counter()
        if not head.startswith(b"HTTP/1.1 200"):
            self._fail(f"the server answered {head.splitlines()[0]!r}: {body[:300]!r}")
            return
        self.latencies_ms.append((now - self.sent_at) * 1000)
        if self.keep:
            self.keep(body)
        self.buffer = b""
        if now < self.deadline:
            self._send()
        else:
            self.transport.close()
            if not self.done.done():
                self.done.set_result(None)

    def _fail(self, reason: str) -> None:
        if not self.done.done():
            self.done.set_exception(RuntimeError(reason))
        self.transport.close()

    def connection_lost(self, fault: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(ConnectionError("the server closed the connection"))


def _content_length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    raise RuntimeError(f"an answer without content-length: {head!r}")


async def _exchange(port: int, raw: bytes) -> tuple[bytes, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(raw)
    head = await reader.readuntil(b"\r\n\r\n")
    body = await reader.readexactly(_content_length(head)) if b"content-length" in head.lower() else b""
    writer.close()
    return head, body


async def open_session(target: Target) -> str:
    """Shake hands and return the session's id; empty where the server has no sessions."""
    hello = {
        "protocolVersion": PROTOCOL_VERSION,
        "capabilities": {},
        "clientInfo": {"name": "metaforge-benchmarks", "version": "1"},
    }
    body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
    head, _ = await _exchange(target.port, target.head("", body) + body)
    lines = [line for line in head.split(b"\r\n") if line.lower().startswith(b"mcp-session-id:")]
    if not lines:
        return ""
    session = lines[0].partition(b":")[2].strip().decode()
    ready = orjson.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"})
    await _exchange(target.port, target.head(session, ready) + ready)
    return session


async def _drive(target: Target, clients_count: int, seconds: float, keep: Callable[[bytes], None] | None) -> Load:
    loop = asyncio.get_running_loop()
    requests = [target.request(await open_session(target)) for _ in range(clients_count)]
    started = time.perf_counter()
    deadline = started + seconds
    connections: list[_Connection] = []
    for request in requests:
        _, connection = await loop.create_connection(
            lambda request=request: _Connection(request, deadline, keep),  # type: ignore[misc]
            "127.0.0.1",
            target.port,
        )
        connections.append(connection)
    outcomes = await asyncio.gather(*(each.done for each in connections), return_exceptions=keep is not None)
    if keep is None:
        assert not any(isinstance(each, BaseException) for each in outcomes)
    latencies = [latency for each in connections for latency in each.latencies_ms]
    return Load(len(latencies), time.perf_counter() - started, latencies)


def drive(target: Target, clients_count: int, seconds: float, keep: Callable[[bytes], None] | None = None) -> Load:
    """Load a server for some seconds.

    Args:
        target: where to send what.
        clients_count: connections, each with one request under way and a session of its own.
        seconds: how long.
        keep: receives the body of every answer; with it, a server that dies under load is no error.
    """
    load: Load = uvloop.run(_drive(target, clients_count, seconds, keep))
    return load

"""Adapters that listen elsewhere: their key, several addresses of one, addresses that fail and come back."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from metaforge.core.errors import Busy, ToolCrashed, ToolError, ToolTimedOut, ToolUnavailable
from metaforge.engine.connection import HttpConnection
from metaforge.engine.elsewhere import Introduction
from metaforge.engine.remote import RemoteSource
from metaforge.settings import Settings
from metaforge.store.blobs import BlobStore
from metaforge.tools.context import Caller, Invocation, Trust
from metaforge.tools.http import KEY, MOST_WAITING, HttpAdapter
from metaforge.tools.manifest import AdapterManifest
from metaforge.tools.server import McpToolServer

TOOL = {
    "tool_id": "far.run", "adapter_id": "far", "name": "Run", "description": "Runs.",
    "input_schema": {"type": "object"},
}  # fmt: skip


@dataclass
class Address:
    """An adapter of another make, whose every answer a test decides."""

    port: int = 0
    asked: list[str] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)
    status: int = 200
    health: str = "healthy"
    answer: Callable[[dict[str, Any]], Awaitable[dict[str, Any] | None]] | None = None
    server: asyncio.Server | None = None
    writers: set[asyncio.StreamWriter] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def open(self) -> None:
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self.server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        assert self.server is not None
        self.server.close()
        for writer in list(self.writers):
            writer.transport.abort()
        await self.server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.add(writer)
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.writers.discard(writer)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        size = int(next(line for line in head.lower().split("\r\n") if line.startswith("content-length")).split(":")[1])
        message = json.loads(await reader.readexactly(size))
        self.headers.append(head)
        result: dict[str, Any] | None
        if message["method"] == "health/check":
            result = {"status": self.health, "version": "3.1.0", "adapter_id": "far"}
        elif message["method"] == "tool/list":
            result = {"tools": [TOOL]}
        else:
            self.asked.append(message["params"]["call_id"])
            result = await self.answer(message) if self.answer else {"data": {"port": self.port}}
        if result is None:
            return False
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        writer.write(b"HTTP/1.1 %d X\r\ncontent-type: application/json\r\n" % self.status)
        writer.write(b"content-length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        return True


@pytest.fixture
async def two() -> AsyncIterator[list[Address]]:
    addresses = [Address(), Address()]
    for each in addresses:
        await each.open()
    yield addresses
    for each in addresses:
        await each.close()


@pytest.fixture
async def source(tmp_path: Path, two: list[Address]) -> AsyncIterator[RemoteSource]:
    made = a_source(tmp_path, [each.url for each in two])
    yield made
    await made.close()


def a_source(folder: Path, urls: list[str], **more: Any) -> RemoteSource:
    extra = {name: str(more.pop(name)) for name in list(more) if name.startswith("METAFORGE_")}
    settings = Settings.load({"METAFORGE_HOME": str(folder / "home")} | extra)
    manifest = AdapterManifest.from_json({"adapter_id": "far", "version": "3.1.0", "tools": [TOOL]})
    return RemoteSource(
        manifest, urls, blobs=BlobStore(folder / "blobs"), workspace=folder, settings=settings, **more
    )  # fmt: skip


async def call(source: RemoteSource, call_id: str = "c", *, seconds: float = 30.0, caller: str = "") -> Any:
    invocation = Invocation(call_id, Caller(session_id=caller), seconds)
    return (await source.call(source.manifest.tools[0], {}, invocation)).data


async def test_two_addresses_share_the_calls(source: RemoteSource, two: list[Address]) -> None:
    for _ in range(6):
        await call(source)
    assert [len(each.asked) for each in two] == [3, 3]
    health = await source.health(3.0)
    assert health.reachable
    assert [row["url"] for row in health.detail["addresses"]] == [each.url for each in two]
    assert all(row["latency"]["calls_count"] == 3 and row["round_trip_ms"] > 0 for row in health.detail["addresses"])


async def test_a_dead_address_is_passed_over_its_calls_go_to_the_other_and_it_is_taken_up_again(
    source: RemoteSource, two: list[Address]
) -> None:
    await two[0].close()
    assert {(await call(source))["port"] for _ in range(6)} == {two[1].port}
    assert source.trouble() is None
    health = await source.health(3.0)
    dead, alive = health.detail["addresses"]
    assert health.reachable
    assert dead["breaker"]["state"] == "open"
    assert "does not answer" in dead["error"]
    assert "breaker" not in alive
    await two[0].open()
    await source.health(3.0)
    await asyncio.gather(*(call(source) for _ in range(2)))
    assert two[0].asked


async def test_with_no_address_left_a_call_is_refused_at_once_and_says_when_to_come_again(
    source: RemoteSource, two: list[Address]
) -> None:
    for each in two:
        await each.close()
    for _ in range(2):
        with pytest.raises(ToolUnavailable, match="does not answer"):
            await call(source)
    with pytest.raises(ToolUnavailable, match=r"far is not available.*tried again in 2 s") as told:
        await call(source)
    assert 0 < told.value.data["retry_after_seconds"] <= 2
    trouble = source.trouble()
    assert trouble is not None
    assert trouble.retry_after_seconds <= 2
    assert not (await source.health(1.0)).reachable
    for each in two:
        await each.open()


async def test_a_call_that_may_have_begun_is_not_sent_to_the_next_address(
    source: RemoteSource, two: list[Address]
) -> None:
    async def break_off(message: dict[str, Any]) -> None:
        return None

    for each in two:
        each.answer = break_off
    with pytest.raises(ToolCrashed, match="broke before its answer"):
        await call(source)
    assert sum(len(each.asked) for each in two) == 1


async def test_an_address_that_says_nothing_counts_as_failed(source: RemoteSource, two: list[Address]) -> None:
    async def wait(message: dict[str, Any]) -> None:
        await asyncio.Event().wait()

    two[0].answer = wait
    source._endpoints[1].calls_served = 100
    for _ in range(2):
        with pytest.raises(ToolTimedOut):
            await call(source, seconds=-1.9)
    assert (await call(source))["port"] == two[1].port
    assert source._endpoints[0].breaker.state == "open"


@pytest.mark.parametrize(("status", "told"), [(401, "refuses the key"), (503, "is not ready")])
async def test_what_http_itself_refuses_was_not_begun_and_goes_to_the_next(
    source: RemoteSource, two: list[Address], status: int, told: str
) -> None:
    two[0].status = status
    for _ in range(4):
        assert (await call(source))["port"] == two[1].port
    assert told in source._endpoints[0].breaker.reason


async def test_the_key_is_shown_to_every_address(tmp_path: Path, two: list[Address]) -> None:
    source = a_source(tmp_path, [each.url for each in two], key="open sesame")
    await asyncio.gather(call(source), call(source), source.health(3.0))
    heads = [head.lower() for each in two for head in each.headers]
    assert len(heads) == 4
    assert all("authorization: bearer open sesame\r\n" in head for head in heads)
    await source.close()


@pytest.mark.parametrize("params", ['"text"', "[1]", "5", '{"progress": "half"}', "null"])
async def test_progress_of_no_shape_costs_the_call_nothing(tmp_path: Path, params: str) -> None:
    class Response:
        status_code, headers = 200, {"content-type": "text/event-stream"}

        async def aiter_bytes(self) -> AsyncIterator[bytes]:
            yield f'data: {{"jsonrpc": "2.0", "method": "tool/result", "params": {params}}}\n\n'.encode()
            yield b'data: {"jsonrpc": "2.0", "id": 1, "result": {}}\n\n'

    told: list[float] = []
    connection = HttpConnection("http://127.0.0.1:9", 1)
    answer = await connection._read(Response(), lambda fraction, message: told.append(fraction))  # type: ignore[arg-type]
    assert answer["result"] == {}
    assert told == []


async def test_callers_take_turns_where_more_come_than_are_sent_at_once(tmp_path: Path, two: list[Address]) -> None:
    gate = asyncio.Event()

    async def wait(message: dict[str, Any]) -> dict[str, Any]:
        await gate.wait()
        return {"data": {}}

    two[0].answer = wait
    source = a_source(tmp_path, [two[0].url], at_once=1, METAFORGE_MAX_WAITING_CALLS_PER_CALLER=3)
    calls = [asyncio.create_task(call(source, name, caller=name[0])) for name in ("a0", "a1", "a2", "a3", "b0", "b1")]
    await asyncio.sleep(0)
    with pytest.raises(Busy, match="3 of your calls") as told:
        await call(source, caller="a")
    assert told.value.data["retry_after_seconds"] >= 1
    calls[2].cancel()
    gate.set()
    await asyncio.gather(*calls, return_exceptions=True)
    assert two[0].asked == ["a0", "a1", "b0", "a3", "b1"]
    assert source._in_flight == 0
    await source.close()


async def test_an_adapter_that_comes_late_is_asked_again_and_known_from_then_on(tmp_path: Path) -> None:
    clock = [0.0]
    address = Address()
    await address.open()
    await address.close()
    late = Introduction("far", [address.url], tmp_path, "k", clock=lambda: clock[0])
    assert await asyncio.to_thread(late.wait, 10) is None
    assert "does not say what tools it has" in late.problem
    assert late.retry_after_seconds == 5
    await address.open()
    assert late.manifest() is None
    clock[0] = 6.0
    late.manifest()
    told = await asyncio.to_thread(late.wait, 10)
    assert told is not None
    assert [tool.id for tool in told.tools] == ["far.run"]
    assert all("authorization: bearer k\r\n" in head.lower() for head in address.headers)
    await address.close()
    again = Introduction("far", [address.url], tmp_path)
    assert again.manifest() is not None
    await asyncio.to_thread(again._asking.join, 10)
    assert again.manifest() is not None


# -- the other side ------------------------------------------------------------------------------------------------


async def ask(application: HttpAdapter, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
    sent: list[dict[str, Any]] = []
    given = iter([{"type": "http.request", "body": body}])

    async def receive() -> dict[str, Any]:
        for each in given:
            return each
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http", "method": "POST" if body else "GET", "path": path,
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }  # fmt: skip
    await application(scope, receive, send)
    return sent[0]["status"], b"".join(each.get("body", b"") for each in sent)


async def test_an_adapter_with_a_key_answers_nobody_who_does_not_show_it() -> None:
    application = HttpAdapter(McpToolServer("far", "1.0.0"), "open sesame")
    listing = b'{"jsonrpc": "2.0", "id": 1, "method": "tool/list"}'
    assert (await ask(application, "/rpc", listing))[0] == 401
    assert (await ask(application, "/rpc", listing, authorization="Bearer wrong"))[0] == 401
    assert (await ask(application, "/output/x/y"))[0] == 401
    assert (await ask(application, "/rpc", listing, authorization="Bearer open sesame"))[0] == 200
    assert (await ask(application, "/health"))[0] == 200
    assert KEY == "METAFORGE_WORKER_KEY"


async def test_an_adapter_with_too_much_to_do_says_so_and_begins_nothing() -> None:
    application = HttpAdapter(McpToolServer("far", "1.0.0"))
    application._waiting = MOST_WAITING
    calling = b'{"jsonrpc": "2.0", "id": 1, "method": "tool/call", "params": {"tool_id": "far.run"}}'
    status, body = await ask(application, "/rpc", calling)
    error = json.loads(body)["error"]
    assert (status, error["code"]) == (200, -32003)
    assert (error["data"]["reason"], error["data"]["retry_after_seconds"]) == ("busy", 5)


def test_a_caller_with_an_identity_takes_its_turn_in_every_session() -> None:
    from metaforge.engine.turns import turn_of

    person = {"actor_id": "ada", "trust": Trust.REMOTE, "verified": True}
    assert turn_of(Caller(**person, session_id="1")) == turn_of(Caller(**person, session_id="2")) == "ada"
    assert turn_of(Caller(session_id="1")) != turn_of(Caller(session_id="2"))
    assert issubclass(Busy, ToolUnavailable)
    assert not issubclass(Busy, ToolError)

"""Many calls over many sessions, a third of which vanish: nothing grows, nothing is left, nothing fails by itself."""

import asyncio
import json
import os
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "faults"))

from running import HttpServer, Place, gone, running

WHOLE = os.environ.get("METAFORGE_SOAK", "") == "whole"
CHEAP_CALLS = int(os.environ.get("METAFORGE_SOAK_CALLS", 1_000_000 if WHOLE else 20_000))
CAD_CALLS = int(os.environ.get("METAFORGE_SOAK_CAD_CALLS", 2_000 if WHOLE else 16))
SESSIONS = 64
ROUNDS = 8
"""Each round opens its sessions anew; the first two warm the server up, the rest are measured."""
WARM_ROUNDS = 2
GROWTH_RATIO = 1.05
IDLE_SECONDS = 2
SPARE_DESCRIPTORS = 8
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "soak", "version": "1"}}
PARAMETERS = {"width": 10, "length": 20, "height": 5}


@dataclass
class Told:
    """What came back."""

    answers: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)


class Client:
    """One session on one connection, as cheap for the client's side as can be."""

    def __init__(self, port: int, told: Told) -> None:
        self.port = port
        self.told = told
        self.session = b""
        self.serial = 0

    async def __aenter__(self) -> "Client":
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        head, _ = await self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO})
        line = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"mcp-session-id"))
        self.session = line + b"\r\n"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    async def send(self, message: dict[str, Any], method: bytes = b"POST") -> None:
        body = json.dumps(message).encode()
        self.writer.write(
            method + b" /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
            b"accept: application/json, text/event-stream\r\n" + self.session
            + b"content-length: %d\r\n\r\n" % len(body) + body
        )  # fmt: skip
        await self.writer.drain()

    async def post(self, message: dict[str, Any], method: bytes = b"POST") -> tuple[bytes, Any]:
        await self.send(message, method)
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = next((line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")), b":0")
        body = await self.reader.readexactly(int(length.partition(b":")[2]))
        return head, json.loads(body) if body else None

    def message(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self.serial += 1
        params = {"name": tool, "arguments": arguments}
        return {"jsonrpc": "2.0", "id": self.serial, "method": "tools/call", "params": params}

    async def call(self, tool: str, arguments: dict[str, Any], *, is_provoked: bool = False) -> None:
        _, answer = await self.post(self.message(tool, arguments))
        is_good = "result" in answer and not answer["result"].get("isError")
        if is_good != is_provoked and answer["id"] == self.serial:
            self.told.answers[tool] += 1
        else:
            self.told.errors.append(f"{tool}: {str(answer)[:300]}")


async def visit(port: int, told: Told, number: int, cheap: int, cad: int) -> None:
    """Live one session: one third ends it, one third closes its socket, one third vanishes in the middle of a call."""
    async with Client(port, told) as client:
        for count in range(cheap):
            if count % 50 == 49:
                await client.call("no.such_tool", {}, is_provoked=True)
            await client.call("fixture.echo" if count % 4 else "fixtureproc.echo", {"text": f"{number}-{count}"})
        for count in range(cad):
            path = f"parts/{number % 4}-{count % 3}.step"
            given = {"shape_type": "box", "parameters": PARAMETERS, "output_path": path}
            await client.call("cadquery.create_parametric", given)
        if number % 3 == 0:
            await client.post({}, b"DELETE")
        if number % 3 == 2:
            await client.send(client.message("fixtureproc.sleep", {"seconds": 30}))
            client.writer.transport.abort()


async def one_round(port: int, told: Told, number: int) -> None:
    cheap, rest = divmod(CHEAP_CALLS // ROUNDS, SESSIONS)
    cads = [CAD_CALLS // ROUNDS // SESSIONS] * SESSIONS
    for index in range(CAD_CALLS // ROUNDS % SESSIONS):
        cads[(number + index * 7) % SESSIONS] += 1
    counts = [cheap + (index < rest) for index in range(SESSIONS)]
    await asyncio.gather(
        *(visit(port, told, index, count, cad) for index, (count, cad) in enumerate(zip(counts, cads, strict=True)))
    )


@pytest.fixture
async def web(tmp_path: Path) -> AsyncIterator[HttpServer]:
    idle = str(IDLE_SECONDS)
    place = Place(
        tmp_path, METAFORGE_ADAPTERS="cadquery", METAFORGE_IDLE_SECONDS=idle, METAFORGE_SESSION_IDLE_SECONDS=idle,
        METAFORGE_MAX_WAITING_CALLS="10000",
    )  # fmt: skip
    async with running("http", place) as server:
        assert isinstance(server, HttpServer)
        yield server


async def rest(web: HttpServer) -> psutil.Process:
    """Wait until the server has nothing to do, and return it."""
    async with asyncio.timeout(60):
        while web.descendants():  # noqa: ASYNC110 - other processes tell nothing
            await asyncio.sleep(0.2)
    # Idle sessions are ended by a sweep of the server's own.
    await asyncio.sleep(2 * IDLE_SECONDS)
    return psutil.Process(web.pid)


@pytest.mark.slow
@pytest.mark.program("cadquery")
async def test_nothing_grows_nothing_is_left_and_nothing_fails_by_itself(
    web: HttpServer, record_property: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    told = Told()
    for number in range(WARM_ROUNDS):
        await one_round(web.port, told, number)
    server = await rest(web)
    before_mb, before_fds = server.memory_full_info().uss / (1 << 20), server.num_fds()
    before_threads = server.num_threads()
    began = time.monotonic()
    for number in range(WARM_ROUNDS, ROUNDS):
        await one_round(web.port, told, number)
    seconds = time.monotonic() - began
    server = await rest(web)
    after_mb, after_fds = server.memory_full_info().uss / (1 << 20), server.num_fds()
    zombies = [each for each in psutil.process_iter(["ppid", "status"])
               if each.info["ppid"] == web.pid and each.info["status"] == psutil.STATUS_ZOMBIE]  # fmt: skip
    figures = {
        "calls": sum(told.answers.values()), "cad_calls": told.answers["cadquery.create_parametric"],
        "seconds": round(seconds, 1), "memory_before_mb": round(before_mb, 1), "memory_after_mb": round(after_mb, 1),
        "descriptors_before": before_fds, "descriptors_after": after_fds, "threads_before": before_threads,
        "threads_after": server.num_threads(), "zombies": len(zombies), "errors": len(told.errors),
    }  # fmt: skip
    for name, value in figures.items():
        record_property(name, value)
    with capsys.disabled():
        print("\nsoak:", ", ".join(f"{name} {value}" for name, value in figures.items()))
    assert told.errors == []
    assert figures["cad_calls"] >= CAD_CALLS // ROUNDS * ROUNDS
    assert figures["calls"] >= CHEAP_CALLS
    assert zombies == []
    assert after_fds <= before_fds + SPARE_DESCRIPTORS
    assert after_mb <= before_mb * GROWTH_RATIO
    left = web.descendants()
    await web.kill()
    assert await gone(left, 5.0) == []

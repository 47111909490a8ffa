"""Fault 2: one dead or slow adapter takes everything down."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from running import free_port, refusal

SLOW_SECONDS = 20.0
ROUNDS = 20
SOON_SECONDS = 2.0
"""Far less than any time-out here, and more than a busy machine needs."""


@pytest.fixture
async def slow_address() -> AsyncIterator[str]:
    """An adapter that takes connections and answers everything after twenty seconds."""
    open_now: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_now.add(writer)
        try:
            await reader.readuntil(b"\r\n\r\n")
            await asyncio.sleep(SLOW_SECONDS)
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}).encode()
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            open_now.discard(writer)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()
    for writer in list(open_now):
        writer.transport.abort()


async def test_twenty_rounds_succeed_beside_a_dead_and_a_slow_adapter(
    start: Any, transport: str, slow_address: str
) -> None:
    toml = (
        '[adapters.faulty]\ntarget = "faulty:FaultyServer"\n'
        f'[adapters.dead]\nurl = "http://127.0.0.1:{free_port()}"\n'
        f'[adapters.slow]\nurl = "{slow_address}"\n'
    )
    began = time.monotonic()
    server = await start(transport, toml)
    session = await server.session()
    assert time.monotonic() - began < 15, "the slow adapter held the start up"
    await session.data("faulty.echo", text="up")
    took: list[float] = []
    for number in range(ROUNDS):
        if transport == "http":
            session = await server.session()
        listed = (await session.request("tools/list", {}))["result"]
        assert "faulty.echo" in [tool["name"] for tool in listed["tools"]]
        away = {entry["adapterId"]: entry for entry in listed["_meta"]["unavailableAdapters"]}
        assert {"dead", "slow"} <= set(away)
        assert all(away[name]["reason"] and away[name]["retryAfterSeconds"] >= 0 for name in ("dead", "slow"))
        began = time.monotonic()
        assert (await session.data("faulty.echo", text=str(number)))["text"] == str(number)
        took.append(time.monotonic() - began)
        began = time.monotonic()
        answer = await session.call("dead.run")
        assert time.monotonic() - began < SOON_SECONDS
        assert answer["error"]["code"] == -32003
    assert sorted(took)[ROUNDS // 2] < 0.25, "a healthy call is slow"
    began = time.monotonic()
    health = await session.data("health.check")
    assert time.monotonic() - began < 3.0 + SOON_SECONDS
    assert health["status"] == "degraded"
    assert {"dead", "slow"} <= set(health["unreachable_adapters"])


async def test_an_adapter_that_dies_after_it_was_known_fails_at_once_and_is_taken_up_again(
    start: Any, transport: str
) -> None:
    port = free_port()
    far = await far_adapter(port)
    server = await start(transport, f'[adapters.faulty]\nurl = "http://127.0.0.1:{port}"\n')
    session = await server.session()
    await session.data("faulty.echo", text="up")
    far.kill()
    await far.wait()
    for _ in range(4):
        began = time.monotonic()
        answer = await session.call("faulty.echo", {"text": "away"})
        assert time.monotonic() - began < SOON_SECONDS
        assert answer["error"]["code"] == -32003
    assert answer["error"]["data"]["retry_after_seconds"] <= 2
    listed = (await session.request("tools/list", {}))["result"]
    assert "faulty.echo" in [tool["name"] for tool in listed["tools"]], "it may be back before the client lists again"
    (entry,) = [each for each in listed["_meta"]["unavailableAdapters"] if each["adapterId"] == "faulty"]
    assert "does not answer" in entry["reason"]
    far = await far_adapter(port)
    health = await session.data("health.check")
    assert health["status"] == "healthy", health
    assert (await session.data("faulty.echo", text="back"))["text"] == "back"
    far.terminate()
    await far.wait()


async def far_adapter(port: int) -> Any:
    import os
    import sys

    import httpx
    from running import HERE

    far = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "metaforge.tools.run", "faulty:FaultyServer", "--http", f"127.0.0.1:{port}",
        env={**os.environ, "PYTHONPATH": str(HERE)},
    )  # fmt: skip
    async with httpx.AsyncClient() as client:
        for _ in range(400):
            try:
                await client.get(f"http://127.0.0.1:{port}/health")
                return far
            except httpx.TransportError:
                await asyncio.sleep(0.05)
    raise AssertionError(refusal({"error": {"message": "the far adapter does not come up"}}))

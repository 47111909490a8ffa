"""Fault 6: children and sessions pile up."""

import asyncio
import os
from typing import Any

import psutil
import pytest
from running import HttpServer, HttpSession, gone

SESSIONS = int(os.environ.get("METAFORGE_FAULT_SESSIONS", "200"))
AT_ONCE = 10
IDLE_SECONDS = 2.0
REAPED_SECONDS = 5.0
FAULTY = '[adapters.faulty]\ntarget = "faulty:FaultyServer"\nmax_workers = 2\nidle_seconds = 2\n'
HANGING = '[adapters.hanging]\ntarget = "faulty:HangingServer"\nmax_workers = 2\n'


async def test_sessions_that_end_close_or_vanish_leave_no_process_and_no_session(start: Any) -> None:
    web: HttpServer = await start("http", FAULTY, METAFORGE_SESSION_IDLE_SECONDS=str(IDLE_SECONDS))
    ids: list[str] = []
    turns = asyncio.Semaphore(AT_ONCE)

    async def visit(number: int) -> None:
        async with turns:
            session = HttpSession(web.url)
            await session.initialize()
            ids.append(session.id)
            assert (await session.data("faulty.echo", text=str(number)))["text"] == str(number)
            if number % 3 == 0:
                await session.http.delete("/mcp", headers=session.headers)
            if number % 3 == 2:
                # One third vanishes in the middle of a call.
                call = session.begin("faulty.slow", {"seconds": 60.0})
                await asyncio.sleep(0)
                call.cancel()
            await session.vanish()

    await asyncio.gather(*(visit(number) for number in range(SESSIONS)))
    async with asyncio.timeout(30):
        while web.descendants():  # noqa: ASYNC110 - other processes tell nothing
            await asyncio.sleep(0.2)
    assert not [each for each in psutil.process_iter(["ppid", "status"])
                if each.info["ppid"] == web.pid and each.info["status"] == psutil.STATUS_ZOMBIE]  # fmt: skip
    for session_id in ids:
        left = HttpSession(web.url)
        left.headers["mcp-session-id"] = session_id
        answer = await left.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}})
        assert answer.status_code == 404
        await left.http.aclose()


async def test_fifty_calls_to_a_child_that_never_gets_ready_start_no_more_than_the_pool_holds(
    start: Any, transport: str
) -> None:
    server = await start(transport, HANGING)
    session = await server.session()
    calls = [session.begin("hanging.echo", {"text": "a"}, 1000 + number) for number in range(50)]
    await session.data("fixture.echo", text="they are in line")
    async with asyncio.timeout(20):
        while not server.descendants():  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    for number in range(50):
        await session.cancel(1000 + number)
    for task in calls:
        task.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    adapters = [each for each in server.descendants() if "metaforge.tools.run" in " ".join(cmdline(each))]
    boxes = {each.pid for each in adapters if each.ppid() == server.pid}
    assert len(boxes) <= 2
    assert (await session.data("fixture.echo", text="still here"))["text"] == "still here"


def cmdline(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@pytest.mark.parametrize("box", ["auto", "rlimits"])
async def test_nothing_is_alive_after_the_server_was_killed(start: Any, transport: str, box: str) -> None:
    server = await start(transport, FAULTY + HANGING, METAFORGE_SANDBOX=box)
    session = await server.session()
    await session.data("faulty.echo", text="up")
    calls = [session.begin("faulty.slow", {"seconds": 60.0}), session.begin("hanging.echo", {"text": "a"})]
    async with asyncio.timeout(20):
        while len(server.descendants()) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    await asyncio.sleep(0.3)
    left = server.descendants()
    await server.kill()
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    assert await gone(left, REAPED_SECONDS) == []

"""Fault 5: a cancel goes to the wrong request, or nowhere."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from running import HttpServer, Session

FAULTY = '[adapters.faulty]\ntarget = "faulty:FaultyServer"\nmax_workers = 2\n'
GONE_SECONDS = 1.0
SLACK_SECONDS = 2.0


def lines(mark: Path) -> list[str]:
    return mark.read_text().splitlines() if mark.exists() else []


async def begun(mark: Path) -> int:
    """Wait until the tool has left its first line, and return its process."""
    async with asyncio.timeout(30):
        while not lines(mark):  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.02)
    return int(lines(mark)[0].split()[1])


async def is_gone(pid: int) -> bool:
    import psutil

    async with asyncio.timeout(GONE_SECONDS + SLACK_SECONDS):
        while psutil.pid_exists(pid):  # noqa: ASYNC110 - it is no child of this process
            await asyncio.sleep(0.02)
    return True


@pytest.mark.parametrize("how", ["notification", "closed connection"])
async def test_two_sessions_with_the_same_id_only_the_withdrawn_one_stops(start: Any, tmp_path: Path, how: str) -> None:
    web: HttpServer = await start("http", FAULTY, METAFORGE_SANDBOX="rlimits")
    a, b = await web.session(), await web.session()
    mark_a, mark_b = tmp_path / "a", tmp_path / "b"
    first = a.begin("faulty.slow", {"seconds": 60.0, "mark": str(mark_a)}, 7)
    second = b.begin("faulty.slow", {"seconds": 2.0, "mark": str(mark_b)}, 7)
    pid = await begun(mark_a)
    await begun(mark_b)
    if how == "notification":
        await a.cancel(7)
        # Nothing is said of an id that was withdrawn: the stream or the body ends.
        answer = await asyncio.wait_for(asyncio.gather(first, return_exceptions=True), 10)
        assert answer[0] == {} or isinstance(answer[0], ValueError | httpx.HTTPError), answer
    else:
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await a.vanish()
    assert await is_gone(pid)
    assert (await second)["result"]["structuredContent"]["text"] == "slept"
    assert len(lines(mark_a)) == 1, "the withdrawn call went on"
    assert len(lines(mark_b)) == 2


async def test_over_stdio_the_number_seven_and_the_text_seven_are_two_requests(start: Any, tmp_path: Path) -> None:
    server = await start("stdio", FAULTY, METAFORGE_SANDBOX="rlimits")
    session: Session = await server.session()
    mark_a, mark_b = tmp_path / "a", tmp_path / "b"
    first = session.begin("faulty.slow", {"seconds": 60.0, "mark": str(mark_a)}, 7)
    second = session.begin("faulty.slow", {"seconds": 2.0, "mark": str(mark_b)}, "7")
    pid = await begun(mark_a)
    await begun(mark_b)
    await session.cancel(7)
    assert await is_gone(pid)
    assert (await second)["result"]["structuredContent"]["text"] == "slept"
    assert (await session.data("faulty.echo", text="after"))["text"] == "after"
    assert not first.done(), "an answer was sent for the withdrawn id"
    first.cancel()
    assert len(lines(mark_a)) == 1


async def test_a_cancel_is_not_queued_behind_the_slow_call(server: Any) -> None:
    session: Session = await server.session()
    waiting = [session.begin("faulty.slow", {"seconds": 60.0}, 100 + number) for number in range(6)]
    await session.data("fixture.echo", text="the others are under way or in line")
    for number in range(6):
        await session.cancel(100 + number)
    async with asyncio.timeout(10):
        assert (await session.data("faulty.echo", text="free"))["text"] == "free"
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


@pytest.mark.parametrize("how", ["notification", "closed connection"])
async def test_a_call_that_is_withdrawn_while_it_is_held_becomes_canceled_and_cannot_be_approved(
    web: HttpServer, how: str
) -> None:
    session = await web.session()
    held = session.begin("project.create", {"name": "Leg"}, 7, progressToken="held")
    await session.until(lambda message: message["method"] == "notifications/progress")
    (item,) = (await web.http.get("/v1/approvals")).json()["items"]
    if how == "notification":
        await session.cancel(7)
    else:
        held.cancel()
        await session.vanish()
    await asyncio.gather(held, return_exceptions=True)
    path = f"/v1/approvals/{item['id']}"
    async with asyncio.timeout(10):
        while (await web.http.get(path)).json()["detail"]["state"] == "awaiting_approval":  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert (await web.http.get(path)).json()["detail"]["state"] == "canceled"
    assert (await web.http.post(f"{path}/decision", json={"decision": "approve"})).status_code == 409
    assert (await web.http.get("/v1/projects")).json()["items"] == []

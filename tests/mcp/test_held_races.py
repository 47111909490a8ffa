"""Many at once: what is approved at the instant its window ends runs or times out, and never both."""

import asyncio
import random
import time
from collections import Counter
from datetime import datetime

import httpx
import pytest
from desk import request

from metaforge.approvals.faults import NotDecidable
from metaforge.approvals.model import State

COUNT = 120
WINDOW_SECONDS = 1.5


@pytest.mark.slow
async def test_approvals_at_the_instant_the_window_ends_run_or_time_out_and_never_both(open_house) -> None:
    web, desk = await open_house(approval_hold_seconds=str(WINDOW_SECONDS))
    await web.initialize()
    many = httpx.AsyncClient(
        base_url=web.http.base_url, timeout=30, limits=httpx.Limits(max_connections=COUNT, max_keepalive_connections=0)
    )

    async def call(number: int) -> str:
        message = request("project.create", {"name": f"P{number}"}, number)
        answer = (await many.post("/mcp", json=message, headers=web.headers())).json()
        return "ran" if "result" in answer else str(answer["error"]["data"]["outcome"])

    async def approve_at_the_end(number: int) -> str:
        async with asyncio.timeout(20):
            while True:
                found = {
                    entry.request.call_id: entry for entry in waiting if entry.request.arguments["name"] == f"P{number}"
                }
                if found:
                    break
                await asyncio.sleep(0.01)
        (entry,) = found.values()
        ends = datetime.fromisoformat(entry.request.expires_at).timestamp()
        await asyncio.sleep(max(0.0, ends - time.time() + random.uniform(-0.06, 0.01)))
        try:
            await desk.decide(entry=entry)
        except NotDecidable:
            return "refused"
        return "approved"

    calls = [asyncio.create_task(call(number)) for number in range(COUNT)]
    waiting = []

    async def look() -> None:
        while len(waiting) < COUNT:
            known = {entry.approval_id for entry in waiting}
            every = await asyncio.to_thread(desk.ledger.entries, "all", None, 1000)
            waiting.extend(entry for entry in every if entry.approval_id not in known)
            await asyncio.sleep(0.02)

    looking = asyncio.create_task(look())
    answers = await asyncio.gather(*(approve_at_the_end(number) for number in range(COUNT)))
    outcomes = await asyncio.gather(*calls)
    await looking
    await many.aclose()
    ran = {f"P{number}" for number, outcome in enumerate(outcomes) if outcome == "ran"}
    told = Counter(outcomes)
    assert told["ran"] + told["timed_out"] == COUNT
    assert set(await desk.projects()) == ran
    assert len(await desk.projects()) == len(ran)
    assert [outcome == "ran" for outcome in outcomes] == [answer == "approved" for answer in answers]
    states = Counter(entry.state for entry in await asyncio.to_thread(desk.ledger.entries, "all", None, 1000))
    assert states == {
        state: count for state, count in ((State.COMPLETED, told["ran"]), (State.TIMED_OUT, told["timed_out"])) if count
    }
    verification = await asyncio.to_thread(desk.ledger.verify)
    assert verification.sound

"""Fault 4: a child dies in the middle of a call; the call hangs, and the adapter is dead for ever."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from running import refusal

FAULTY = '[adapters.faulty]\ntarget = "faulty:FaultyServer"\nmax_workers = 5\n'


@pytest.fixture
async def open_box(start: Any, transport: str) -> Any:
    """A server whose adapters may leave marks outside."""
    return await start(transport, FAULTY, METAFORGE_SANDBOX="rlimits")


async def test_calls_in_flight_fail_with_the_exit_status_and_the_next_ones_succeed(
    open_box: Any, tmp_path: Path
) -> None:
    session = await open_box.session()
    mark = tmp_path / "executed"
    await asyncio.gather(*(session.data("faulty.slow", seconds=0.2) for _ in range(5)))
    calls = [session.begin("faulty.exit", {"status": 7, "mark": str(mark), "after": 0.5}) for _ in range(5)]
    began = time.monotonic()
    for answer in await asyncio.gather(*calls):
        assert "exit status 7" in refusal(answer)
        assert answer["result"]["isError"]
        assert "tool_crashed" in refusal(answer)
    assert time.monotonic() - began < 0.5 + 1.0 + 1.0
    assert mark.read_text().splitlines() == ["executed"] * 5, "a call that is not idempotent ran at most once"
    for _ in range(3):
        assert (await session.data("faulty.echo", text="a"))["text"] == "a"


async def test_a_crash_loop_opens_a_breaker_instead_of_starting_without_end(open_box: Any, tmp_path: Path) -> None:
    session = await open_box.session()
    mark = tmp_path / "executed"
    for _ in range(20):
        answer = await session.call("faulty.exit", {"status": 7, "mark": str(mark)})
        if "error" in answer:
            break
    assert answer["error"]["code"] == -32003
    assert "crashed 8 times in a row" in answer["error"]["message"]
    assert 0 < answer["error"]["data"]["retry_after_seconds"] <= 2
    assert len(mark.read_text().splitlines()) == 8
    listed = (await session.request("tools/list", {}))["result"]
    (entry,) = [each for each in listed["_meta"]["unavailableAdapters"] if each["adapterId"] == "faulty"]
    assert entry["retryAfterSeconds"] <= 2
    health = await session.data("health.check")
    (row,) = [each for each in health["adapters"] if each["adapter_id"] == "faulty"]
    assert row["detail"]["breakers"]["crashes"]["state"] in ("open", "half-open")
    await asyncio.sleep(answer["error"]["data"]["retry_after_seconds"])
    answer = await session.call("faulty.echo", {"text": "back"})
    assert answer["result"]["structuredContent"]["text"] == "back"

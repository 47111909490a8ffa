"""Quick calls share a worker: each gets its own answer, and none pays for another's end."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from metaforge.core.errors import ToolCrashed, ToolError, ToolTimedOut
from metaforge.engine import quick
from metaforge.tools.effect import Effect
from metaforge.tools.tool import tool


@pytest.fixture
async def lone(make_house: Callable[..., object]) -> AsyncIterator[object]:
    """The misbehaving adapter with one worker, which is up."""
    made = make_house("auto", max_workers=1)
    await made.call("quick", text="up")
    yield made
    await made.source.close()
    assert made.strangers() == []


def starts(house, name: str, **arguments) -> asyncio.Task:
    return asyncio.create_task(house.call(name, **arguments))


async def begun(house, text: str) -> None:
    """Wait until a call is at work."""
    async with asyncio.timeout(30):
        while (0.5, text) not in house.told:
            house.begun.clear()
            await house.begun.wait()


async def test_quick_calls_at_once_stand_in_line_in_one_worker_and_get_their_own_answers(lone):
    outcomes = await asyncio.gather(*(lone.call("quick", text=str(number)) for number in range(40)))
    assert [outcome.data["text"] for outcome in outcomes] == [str(number) for number in range(40)]
    (worker,) = lone.source.pool.idle
    assert worker.calls_served == 41


async def test_a_refusal_is_the_refused_calls_alone(lone):
    first, refused, second = await asyncio.gather(
        lone.call("quick", text="a"), lone.call("quick_refusal"), lone.call("quick", text="b"), return_exceptions=True
    )
    assert refused.kind == "unknown_material"
    assert first.data["pid"] == second.data["pid"]


async def test_a_crash_is_the_crashing_calls_alone(lone):
    first, crashed, second, third = await asyncio.gather(
        lone.call("quick", text="a"),
        lone.call("quick_crash"),
        lone.call("quick", text="b"),
        lone.call("quick", text="c"),
        return_exceptions=True,
    )
    assert isinstance(crashed, ToolCrashed)
    assert crashed.data["exit_status"] == 3
    assert [each.data["text"] for each in (first, second, third)] == ["a", "b", "c"]


async def test_a_call_that_loses_worker_after_worker_says_that_it_was_not_begun(lone, monkeypatch):
    monkeypatch.setattr(quick, "ATTEMPTS", 1)
    crashed, last = await asyncio.gather(
        lone.call("quick_crash"), lone.call("quick", text="last"), return_exceptions=True
    )
    assert isinstance(crashed, ToolCrashed)
    assert isinstance(last, ToolCrashed)
    assert last.retryable
    assert "it was not begun" in last.message
    assert (await lone.call("quick", text="next")).data["text"] == "next"


async def test_the_deadline_of_the_call_at_work_ends_its_worker_and_another_runs_the_rest(lone):
    stuck, late = await asyncio.gather(
        lone.call("quick", seconds=0.4, text="stuck", pause=60.0),
        lone.call("quick", text="late"),
        return_exceptions=True,
    )
    assert isinstance(stuck, ToolTimedOut)
    assert late.data["text"] == "late"


async def test_the_deadline_of_a_call_in_line_leaves_the_one_at_work_alone(lone):
    at_work = starts(lone, "quick", text="at work", pause=1.0)
    await begun(lone, "at work")
    with pytest.raises(ToolTimedOut):
        await lone.call("quick", seconds=0.05, text="impatient")
    pid = (await at_work).data["pid"]
    assert (await lone.call("quick", text="next")).data["pid"] == pid


async def test_a_cancelled_call_in_line_leaves_the_others_and_the_worker_alone(lone):
    at_work = starts(lone, "quick", text="at work", pause=0.3)
    await begun(lone, "at work")
    cancelled, last = starts(lone, "quick", text="cancelled"), starts(lone, "quick", text="last")
    await asyncio.sleep(0)
    cancelled.cancel()
    assert (await last).data["pid"] == (await at_work).data["pid"]
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert len(lone.source.pool.idle) == 1


async def test_cancelling_the_only_call_ends_its_worker(lone):
    (worker,) = lone.source.pool.idle
    alone = starts(lone, "quick", text="alone", pause=60.0)
    await begun(lone, "alone")
    alone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await alone
    assert worker.box.exited.done()
    assert (await lone.call("quick", text="next")).data["text"] == "next"


async def test_a_call_that_needs_a_whole_worker_is_not_kept_waiting_by_quick_ones(lone):
    at_work = starts(lone, "quick", text="at work", pause=0.3)
    await begun(lone, "at work")
    whole = starts(lone, "echo", text="whole")
    await asyncio.sleep(0)
    order: list[str] = []
    whole.add_done_callback(lambda _: order.append("whole"))
    behind = starts(lone, "quick", text="behind")
    behind.add_done_callback(lambda _: order.append("behind"))
    await asyncio.gather(at_work, whole, behind)
    assert order == ["whole", "behind"]


async def test_closing_ends_quick_calls_under_way(make_house):
    made = make_house("auto", max_workers=1)
    await made.call("quick", text="up")
    calls = [starts(made, "quick", text=text, pause=60.0) for text in "abc"]
    await begun(made, "a")
    await made.source.close()
    ended = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(each, ToolError) or "shutting down" in str(each) for each in ended)
    assert made.strangers() == []


async def test_a_file_that_a_quick_tool_leaves_against_its_word_is_refused(lone):
    with pytest.raises(ToolError, match="a quick tool leaves no files"):
        await lone.call("quick_file")


def test_a_tool_that_writes_or_runs_a_callers_code_cannot_be_quick():
    about = {"capability": "test", "title": "Test", "is_quick": True}
    with pytest.raises(ValueError, match="is_quick needs"):
        tool(effect=Effect.PRODUCE, **about)
    with pytest.raises(ValueError, match="is_quick needs"):
        tool(effect=Effect.READ, runs_caller_code=True, **about)

"""A session has a worker of its own: it stays, it is nobody else's, and when it ends whoever names it is told why."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from metaforge.core.errors import ToolError
from metaforge.tools.context import Caller, Invocation, Trust

HOUSE: dict[str, Any] = {"target": "notebook:NotebookServer"}


@pytest.fixture
async def house(make_house: Callable[..., Any]) -> AsyncIterator[Any]:
    made = make_house("rlimits", **HOUSE)
    yield made
    await made.source.close()


async def opened(house: Any, **more: Any) -> dict[str, Any]:
    return dict((await house.call("open_session", **more)).data)


async def refusal(house: Any, name: str, /, **arguments: Any) -> ToolError:
    with pytest.raises(ToolError) as fault:
        await house.call(name, **arguments)
    return fault.value


async def test_calls_of_a_session_meet_the_same_process_and_no_other_session_does(house: Any) -> None:
    first, second = await opened(house), await opened(house)
    assert first["pid"] != second["pid"]
    for _ in range(2):
        written = await house.call("write", session_id=first["session_id"], line="a")
        assert written.data["pid"] == first["pid"]
    assert written.data["lines"] == ["a", "a"]
    other = await house.call("write", session_id=second["session_id"], line="b")
    assert other.data["lines"] == ["b"]
    assert (await house.call("stateless")).data["pid"] not in (first["pid"], second["pid"])


async def test_two_calls_of_one_session_take_turns(house: Any) -> None:
    session = (await opened(house))["session_id"]
    both = [house.call("write", session_id=session, line=line, pause_mm=0.05) for line in "ab"]
    answers = await asyncio.gather(*both)
    assert sorted(len(each.data["lines"]) for each in answers) == [1, 2]


async def test_a_refusal_keeps_the_session_and_a_close_ends_its_process(house: Any) -> None:
    session = await opened(house)
    assert (await refusal(house, "refuse", session_id=session["session_id"])).kind == "wrong"
    await house.call("write", session_id=session["session_id"], line="still here")
    await house.call("close_session", session_id=session["session_id"])
    assert (await refusal(house, "write", session_id=session["session_id"], line="x")).kind == "no_such_session"
    assert session["pid"] not in [worker.box.pid for worker in house.source.pool.workers]


async def test_a_crashed_session_is_lost_with_its_reason_and_health_lists_it(house: Any) -> None:
    session = (await opened(house, name="Bracket"))["session_id"]
    assert (await refusal(house, "crash", session_id=session)).kind == "tool_crashed"
    fault = await refusal(house, "write", session_id=session, line="x")
    assert fault.kind == "session_lost"
    assert "Bracket" in fault.message
    assert "notebook.open_session" in fault.fix
    told = (await house.source.health(3.0)).detail["sessions"]
    assert told["open_count"] == 0
    assert told["lost"][0]["name"] == "Bracket"


async def test_a_cancelled_call_and_a_deadline_lose_the_session(house: Any) -> None:
    session = (await opened(house))["session_id"]
    call = asyncio.create_task(house.call("write", session_id=session, line="x", pause_mm=30))
    await house.begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert "was cancelled" in (await refusal(house, "write", session_id=session, line="x")).message
    session = (await opened(house))["session_id"]
    assert (
        await refusal(house, "write", session_id=session, line="x", pause_mm=30, seconds=0.3)
    ).kind == "tool_timeout"
    assert (await refusal(house, "write", session_id=session, line="x")).kind == "session_lost"


async def test_an_unused_session_ends_by_itself(make_house: Callable[..., Any]) -> None:
    house = make_house("rlimits", **HOUSE, METAFORGE_TOOL_SESSION_IDLE_SECONDS="0.2")
    try:
        session = (await opened(house))["session_id"]
        held = house.source._sessions.workers[0]
        await asyncio.wait_for(asyncio.shield(held.ended), 5)
        fault = await refusal(house, "write", session_id=session, line="x")
        assert "nobody used it for 0.2 s" in fault.message
    finally:
        await house.source.close()


async def test_more_sessions_than_allowed_are_refused_with_those_that_could_be_closed(
    make_house: Callable[..., Any],
) -> None:
    house = make_house("rlimits", **HOUSE, METAFORGE_MAX_TOOL_SESSIONS="1")
    try:
        session = (await opened(house))["session_id"]
        fault = await refusal(house, "open_session")
        assert fault.kind == "session_limit"
        assert session in fault.message
        await house.call("close_session", session_id=session)
        await opened(house)
    finally:
        await house.source.close()


async def test_a_session_is_its_callers_alone(house: Any) -> None:
    session = (await opened(house))["session_id"]
    tool = next(tool for tool in house.source.manifest.tools if tool.id == "notebook.write")
    stranger = Invocation("call-2", Caller("mallory", Trust.REMOTE, session_id="s2"), 10.0)
    with pytest.raises(ToolError) as fault:
        await house.source.call(tool, {"session_id": session, "line": "x"}, stranger)
    assert fault.value.kind == "no_such_session"
    assert f"Open: {session}" not in fault.value.message


async def test_what_a_script_left_running_cannot_swap_the_files_of_later_calls(house: Any) -> None:
    session = (await opened(house))["session_id"]
    await house.call("write", session_id=session, line="mine")
    await house.call("run", session_id=session)
    outcomes = await asyncio.gather(
        *(house.call("save", session_id=session, path=f"out{number}.txt") for number in range(10)),
        return_exceptions=True,
    )
    # One swapped before it was looked at is refused: a link is no file of this folder.
    assert all(isinstance(each, ToolError) for each in outcomes if isinstance(each, BaseException)), outcomes
    kept = [house.blobs.read(each.files[0].sha256) for each in outcomes if not isinstance(each, BaseException)]
    assert set(kept) <= {b"mine"}

"""Every call is an event of its client's session; what an agent tells stands among them; nobody is asked."""

from typing import Any

import pytest

from metaforge.core.errors import NotApproved
from metaforge.tools.context import Trust
from metaforge.twin import sessions
from metaforge.twin.model import Session, SessionEvent


def told(bench: Any, session_id: str) -> tuple[Session, list[SessionEvent]]:
    assert bench.app.recorder.flush(30)
    with bench.app.twin_services.store.read() as view:
        return sessions.get(view, session_id), sessions.events(view, session_id)


async def test_a_started_session_collects_what_its_client_does(bench: Any, project_id: str) -> None:
    started = await bench.do(
        "session.start", agent_code="mechanical", task_type="design", title="Bracket", project_id=project_id
    )
    session_id = started["session_id"]
    assert started["project_scope_bound"] is True
    logged = await bench.do("session.log_event", session_id=session_id, type="thought", message="thin", data={"mm": 3})
    assert logged["seq"] >= 1
    await bench.commit()
    await bench.refused("twin.get_node", item_key="CAD-NO")
    await bench.another("session-2").do("project.list")
    await bench.do("session.complete", session_id=session_id, status="completed", summary="done")
    await bench.do("project.list")

    session, events = told(bench, session_id)
    assert (session.status, session.summary, session.agent_code, session.implicit) == (
        "completed", "done", "mechanical", False,
    )  # fmt: skip
    by_tool = [each.data["tool_id"] for each in events if "tool_id" in each.data]
    assert sorted(by_tool) == sorted(
        ["session.start", "session.log_event", "twin.commit_geometry", "twin.get_node", "session.complete"]
    )
    assert [each.message for each in events if each.type == "thought"] == ["thin"]
    assert [each.data["tool_id"] for each in events if each.type == "error"] == ["twin.get_node"]
    assert sorted(each.seq for each in events) == list(range(1, len(events) + 1))
    for each in events:
        if "tool_id" in each.data:
            assert bench.app.calls.get_call(each.call_id).tool_id == each.data["tool_id"]


async def test_starting_one_says_whether_a_project_is_open_whoever_opened_it(bench: Any, project_id: str) -> None:
    assert (await bench.do("session.start", agent_code="a", task_type="b"))["project_scope_bound"] is True
    other = bench.another("session-2")
    assert (await other.do("session.start", agent_code="a", task_type="b"))["project_scope_bound"] is False


async def test_clients_that_start_none_have_one_of_their_own(bench: Any, project_id: str) -> None:
    other = bench.another("session-2")
    await other.do("project.list")
    await other.do("project.list")
    assert bench.app.recorder.flush(30)
    mine = bench.app.scopes.current_session(bench.caller)
    theirs = bench.app.scopes.current_session(other.caller)
    assert mine.session_id != theirs.session_id
    session, events = told(bench, theirs.session_id)
    assert session.implicit
    assert [each.data["tool_id"] for each in events] == ["project.list", "project.list"]


async def test_bookkeeping_of_a_remote_caller_is_never_held_and_its_writes_are(bench: Any) -> None:
    remote = bench.another("session-2", trust=Trust.UNTRUSTED)
    started = await remote.do("session.start", agent_code="a", task_type="b")
    await remote.do("session.log_event", session_id=started["session_id"], type="result", message="x")
    await remote.do("session.complete", session_id=started["session_id"], status="failed")
    with pytest.raises(NotApproved):
        await bench.decided(remote.outcome("project.create", name="x"), "reject")


async def test_an_ended_or_unknown_session_takes_no_events(bench: Any) -> None:
    started = await bench.do("session.start", agent_code="a", task_type="b")
    await bench.do("session.complete", session_id=started["session_id"], status="completed")
    event = {"type": "thought", "message": "x"}
    assert (await bench.refused("session.log_event", session_id=started["session_id"], **event)).kind == (
        "session_completed"
    )
    assert (await bench.refused("session.log_event", session_id="nope", **event)).kind == "unknown_session"


async def test_a_session_in_an_unknown_project_is_not_started(bench: Any) -> None:
    refusal = await bench.refused("session.start", agent_code="a", task_type="b", project_id="nope")
    assert refusal.kind == "unknown_project"

"""Projects, and work sessions with their events."""

import pytest

from metaforge.core.errors import ToolError
from metaforge.twin import sessions
from metaforge.twin.model import ChangeKind, Reader
from metaforge.twin.store import TwinStore


def test_a_project_is_created_changed_listed_and_hidden(twin: TwinStore) -> None:
    with twin.change(author="owner") as change:
        made = change.create_project(" Drone 🚁 ", "flies", "draft")
        change.create_project("Rover")
    with twin.change(author="other") as change:
        changed = change.update_project(made.project_id, description="flies far")
    assert (changed.name, changed.description, changed.status, changed.author) == (
        "Drone 🚁",
        "flies far",
        "draft",
        "owner",
    )
    with twin.read() as view:
        assert view.project(made.project_id) == changed
        assert [project.name for project in view.projects()] == ["Drone 🚁", "Rover"]

    with twin.change(author="owner") as change:
        change.delete_project(made.project_id)

    with twin.read() as view:
        assert view.project(made.project_id) is None
        assert [project.name for project in view.projects()] == ["Rover"]
        entries = view.changes(project_id=made.project_id)
    assert [entry.body["what"] for entry in entries] == ["create", "update", "delete"]
    assert entries[1].body["before"]["description"] == "flies"
    for work in ("update_project", "delete_project"):
        with pytest.raises(ToolError, match="no project") as caught, twin.change(author="owner") as change:
            getattr(change, work)(made.project_id)
        assert "Rover" in caught.value.fix


def test_what_a_deleted_project_holds_is_kept_and_stands_in_nobodys_way(twin: TwinStore, project_id: str) -> None:
    with twin.change(author="a", project_id=project_id) as change:
        leg = change.define("cad_model", "Leg", {})
        other = change.create_project("Rover").project_id
    with twin.change(author="a", project_id=other) as change:
        kept = change.define("cad_model", "Leg", {})
    with twin.change(author="owner") as change:
        change.delete_project(project_id)
    with twin.read() as view:
        assert view.node(leg.node_id) == leg
        assert view["CAD-LEG"] == kept
    with twin.read(Reader(project_id=project_id)) as view:
        assert view["CAD-LEG"] == leg


@pytest.mark.parametrize("name", ["", "   "])
def test_a_project_needs_a_name(twin: TwinStore, name: str) -> None:
    with pytest.raises(ToolError, match="needs a name"), twin.change(author="owner") as change:
        change.create_project(name)


def test_a_session_gathers_events_in_order_until_it_is_completed(twin: TwinStore, project_id: str) -> None:
    with twin.change(author="agent", project_id=project_id) as change:
        made = change.start_session("mechanical", "design", title="Leg", client_session_id="c1", client_name="code")
    for number in range(3):
        with twin.change(author="agent", durable=False) as change:
            change.log_event(made.session_id, "action", f"step {number}", {"n": number}, call_id=f"call{number}")
    with twin.change(author="agent") as change:
        ended = change.complete_session(made.session_id, "completed", "done")

    with twin.read() as view:
        found = sessions.get(view, made.session_id)
        events = sessions.events(view, made.session_id)
        assert sessions.events(view, made.session_id, after_seq=2) == events[2:]
        assert sessions.latest_of_client(view, "c1") is None
        kinds = [entry.kind for entry in view.changes(project_id=project_id)]
    assert found == ended
    assert (found.status, found.summary, found.event_count, found.project_id) == ("completed", "done", 3, project_id)
    assert [(event.seq, event.message, event.data, event.call_id) for event in events] == [
        (number + 1, f"step {number}", {"n": number}, f"call{number}") for number in range(3)
    ]
    assert kinds[1:] == [ChangeKind.SESSION, ChangeKind.SESSION]


def test_a_completed_or_unknown_session_takes_no_events(twin: TwinStore) -> None:
    with twin.change(author="agent") as change:
        made = change.start_session("a", "b")
        change.complete_session(made.session_id, "failed")
    for session_id, kind in ((made.session_id, "session_completed"), ("s0", "unknown_session")):
        with pytest.raises(ToolError) as caught, twin.change(author="agent") as change:
            change.log_event(session_id, "action", "late")
        assert caught.value.kind == kind
        with pytest.raises(ToolError) as caught, twin.change(author="agent") as change:
            change.complete_session(session_id, "completed")
        assert caught.value.kind == kind


def test_a_session_ends_completed_or_failed(twin: TwinStore) -> None:
    with pytest.raises(ToolError, match="completed or failed"), twin.change(author="agent") as change:
        change.complete_session(change.start_session("a", "b").session_id, "paused")


def test_each_client_connection_has_its_own_latest_session(twin: TwinStore) -> None:
    with twin.change(author="agent") as change:
        change.start_session("a", "first", client_session_id="c1", implicit=True)
        second = change.start_session("a", "second", client_session_id="c1")
        other = change.start_session("a", "other", client_session_id="c2")
    with twin.read() as view:
        assert sessions.latest_of_client(view, "c1") == second
        assert sessions.latest_of_client(view, "c2") == other
        assert sessions.latest_of_client(view, "c3") is None


def test_sessions_are_listed_in_parts_by_project_and_standing(twin: TwinStore, project_id: str) -> None:
    with twin.change(author="agent", project_id=project_id) as change:
        first, second = (change.start_session("mechanical", "design", title=title) for title in ("one", "two"))
        change.complete_session(first.session_id, "completed")
    with twin.change(author="agent") as change:
        third = change.start_session("electrical", "layout")

    def listed(*asked: object) -> tuple[list[str], int]:
        with twin.read() as view:
            found, total = sessions.listed(view, *asked)  # type: ignore[arg-type]
        return [each.session_id for each in found], total

    assert listed("", "", 2, 0) == ([third.session_id, second.session_id], 3)
    assert listed("", "", 2, 2) == ([first.session_id], 3)
    assert listed(project_id, "", 10, 0) == ([second.session_id, first.session_id], 2)
    assert listed(project_id, "completed", 10, 0) == ([first.session_id], 1)
    assert listed("", "failed", 10, 0) == ([], 0)

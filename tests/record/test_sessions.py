"""Every call is an event of its client's work session, on either database, however often it arrives."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from metaforge.record.call_record import CallRecord
from metaforge.record.queries import CallLog
from metaforge.record.recorder import Recorder
from metaforge.store.blobs import BlobStore
from metaforge.store.database import Database
from metaforge.tools.context import Caller
from metaforge.twin import sessions
from metaforge.twin.model import SessionEvent
from metaforge.twin.store import TwinStore

Make = Callable[..., CallRecord]


@pytest.fixture
def database(database_url: str, tmp_path: Path) -> Iterator[Database]:
    database = Database(database_url, tmp_path)
    yield database
    database.close()


@pytest.fixture
def recorder(database: Database, tmp_path: Path) -> Iterator[Recorder]:
    recorder = Recorder(database, tmp_path / "journal")
    yield recorder
    recorder.close(10)


@pytest.fixture
def twin(database: Database, tmp_path: Path) -> TwinStore:
    return TwinStore(database, BlobStore(tmp_path / "blobs"))


def events(twin: TwinStore, session_id: str) -> list[SessionEvent]:
    with twin.read() as view:
        return sessions.events(view, session_id)


def test_a_session_nobody_started_is_made_of_its_first_call(recorder: Recorder, twin: TwinStore, make: Make) -> None:
    caller = Caller("anna", client_name="codex", session_id="c1")
    recorder.append(make("a" * 16, work_session_id="s1", caller=caller, summary="a box", project_id="p1"))
    recorder.append(make("b" * 16, work_session_id="s1", caller=caller, status="refused", error_message="too large"))
    assert recorder.flush(30)

    with twin.read() as view:
        session = sessions.get(view, "s1")
    assert (session.implicit, session.status, session.project_id, session.author) == (True, "active", "p1", "anna")
    assert (session.client_session_id, session.client_name, session.event_count) == ("c1", "codex", 2)
    told = events(twin, "s1")
    assert [(each.seq, each.type, each.message, each.call_id) for each in told] == [
        (1, "action", "a box", "a" * 16),
        (2, "error", "too large", "b" * 16),
    ]
    assert told[0].data == {
        "tool_id": "cadquery.create_parametric", "status": "ok", "duration_ms": 1.5, "captured_by": "server",
    }  # fmt: skip


def test_a_call_that_arrives_twice_is_one_event(recorder: Recorder, twin: TwinStore, make: Make) -> None:
    for call_id in ("a" * 16, "a" * 16, "b" * 16):
        recorder.append(make(call_id, work_session_id="s1"))
    assert recorder.flush(30)
    recorder.append(make("a" * 16, work_session_id="s1"))
    recorder.append(make("c" * 16, work_session_id="s1"))
    assert recorder.flush(30)

    assert [(each.seq, each.call_id[0]) for each in events(twin, "s1")] == [(1, "a"), (2, "b"), (3, "c")]


def test_calls_and_told_events_share_one_numbering(recorder: Recorder, twin: TwinStore, make: Make) -> None:
    with twin.change(author="anna") as change:
        session_id = change.start_session("mechanical", "design").session_id
        change.log_event(session_id, "thought", "thin walls")
    recorder.append(make("a" * 16, work_session_id=session_id))
    recorder.append(make("b" * 16, work_session_id=session_id))
    assert recorder.flush(30)
    with twin.change(author="anna") as change:
        assert change.log_event(session_id, "decision", "3 mm").seq == 4
    told = events(twin, session_id)
    assert [each.seq for each in told] == [1, 2, 3, 4]
    with twin.read() as view:
        assert not sessions.get(view, session_id).implicit


def test_calls_outside_sessions_are_no_events(recorder: Recorder, twin: TwinStore, make: Make) -> None:
    recorder.append(make("a" * 16))
    assert recorder.flush(30)
    with twin.read() as view:
        assert view.transaction.value("select count(*) from session_events") == 0


def test_calls_of_a_session_are_read_in_parts_in_its_order(
    database: Database, recorder: Recorder, twin: TwinStore, make: Make
) -> None:
    caller = Caller("anna", client_name="codex", session_id="c1")
    with twin.change(author="anna") as change:
        started = change.start_session("mechanical", "design").session_id
    for number in range(3):
        recorder.append(make(f"c{number}", caller=caller, work_session_id=started))
    recorder.append(make("other", caller=caller))
    log = CallLog(database, recorder)

    assert [call.call_id for call in log.calls_of_session(started, 2)] == ["c0", "c1"]
    assert [call.call_id for call in log.calls_of_session(started, 2, 2)] == ["c2"]
    assert log.calls_of_session("") == []

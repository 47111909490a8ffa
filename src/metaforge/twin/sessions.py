"""Write work sessions and their events."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from metaforge.core.errors import ToolError
from metaforge.twin import rows
from metaforge.twin.bodies import check_text, dump
from metaforge.twin.ids import new_id
from metaforge.twin.model import ChangeKind, Session, SessionEvent

if TYPE_CHECKING:
    from metaforge.twin.change import Change
    from metaforge.twin.view import View

ACTIVE = "active"
_INSERT = (
    f"insert into sessions ({rows.SESSION_COLUMNS}) values ({', '.join('?' * (rows.SESSION_COLUMNS.count(',') + 1))})"
)
_INSERT_EVENT = (
    f"insert into session_events ({rows.EVENT_COLUMNS}) values ({', '.join('?' * (rows.EVENT_COLUMNS.count(',') + 1))})"
)


def start(
    change: "Change",
    agent_code: str,
    task_type: str,
    title: str,
    client_session_id: str,
    client_name: str,
    implicit: bool,
) -> Session:
    """Start a session; see `Change.start_session`."""
    made = Session(
        new_id("s"), change.project_id, client_session_id, check_text(agent_code, "agent_code"),
        check_text(task_type, "task_type"), check_text(title, "The title"), ACTIVE, "", implicit, change.author,
        client_name, 0, change.now, change.now, "",
    )  # fmt: skip
    change.transaction.run(
        _INSERT,
        made.session_id, made.project_id, made.client_session_id, made.agent_code, made.task_type, made.title,
        made.status, made.summary, int(implicit), made.author, made.client_name, 0, made.started_at,
        made.last_event_at, "",
    )  # fmt: skip
    change.log(ChangeKind.SESSION, ref=made.session_id, body={"what": "start"})
    return made


def log_event(
    change: "Change", session_id: str, type: str, message: str, data: Mapping[str, Any], call_id: str
) -> SessionEvent:
    """Add an event; see `Change.log_event`."""
    # The update comes first: it keeps the row for this change, so that no two events get one number.
    touched = change.transaction.run(
        "update sessions set event_count = event_count + 1, last_event_at = ? where session_id = ? and status = ?",
        change.now, session_id, ACTIVE,
    )  # fmt: skip
    if not touched:
        raise _not_active(change.view, session_id)
    seq = int(change.transaction.value("select event_count from sessions where session_id = ?", session_id))
    made = SessionEvent(
        session_id, seq, new_id("e"), check_text(type, "The type"), check_text(message, "The message"), data, call_id,
        change.author, change.now,
    )  # fmt: skip
    change.transaction.run(
        _INSERT_EVENT,
        session_id, seq, made.event_id, made.type, made.message, dump(data, "The event's data").decode(), call_id,
        made.author, made.at,
    )  # fmt: skip
    return made


def complete(change: "Change", session_id: str, status: str, summary: str) -> Session:
    """End a session; see `Change.complete_session`."""
    if status not in ("completed", "failed"):
        raise ToolError(f"A session ends completed or failed, not {status!r}", kind="bad_status")
    touched = change.transaction.run(
        "update sessions set status = ?, summary = ?, completed_at = ? where session_id = ? and status = ?",
        status, check_text(summary, "The summary"), change.now, session_id, ACTIVE,
    )  # fmt: skip
    if not touched:
        raise _not_active(change.view, session_id)
    ended = get(change.view, session_id)
    change.log(ChangeKind.SESSION, ref=session_id, body={"what": status}, project_id=ended.project_id)
    return replace(ended, status=status)


def get(view: "View", session_id: str) -> Session:
    """Return a session.

    Raises:
        ToolError: `unknown_session`.
    """
    row = view.transaction.row(f"select {rows.SESSION_COLUMNS} from sessions where session_id = ?", session_id)
    if row is None:
        raise ToolError(
            f"There is no session {session_id[:120]!r}", kind="unknown_session", fix="Start one with session.start"
        )
    return rows.session_of(row)


def listed(view: "View", project_id: str, status: str, limit: int, offset: int) -> tuple[list[Session], int]:
    """Return a part of the sessions, the latest first, and how many there are.

    Args:
        view: of any reader.
        project_id: of this project only; empty for all.
        status: active, completed or failed; empty for all.
        limit: at most so many.
        offset: how many to skip.
    """
    where, values = "(? = '' or project_id = ?) and (? = '' or status = ?)", (project_id, project_id, status, status)
    query = f"select {rows.SESSION_COLUMNS} from sessions where {where} order by session_id desc limit ? offset ?"
    found = [rows.session_of(row) for row in view.transaction.rows(query, *values, limit, offset)]
    return found, int(view.transaction.value(f"select count(*) from sessions where {where}", *values))


def latest_of_client(view: "View", client_session_id: str) -> Session | None:
    """Return the active session that a client's connection started last, or None."""
    row = view.transaction.row(
        f"select {rows.SESSION_COLUMNS} from sessions where client_session_id = ? and status = ? "
        "order by session_id desc limit 1",
        client_session_id, ACTIVE,
    )  # fmt: skip
    return rows.session_of(row) if row else None


def events(view: "View", session_id: str, after_seq: int = 0, limit: int = 1000) -> list[SessionEvent]:
    """Return events of a session in their order: what was logged, and its calls."""
    logged = f"select {rows.EVENT_COLUMNS} from session_events where session_id = ? and seq > ? order by seq limit ?"
    # The condition on the empty name is what lets the database use the index of calls that belong to a session.
    called = (
        "select work_session_id, event_seq, record from calls "
        "where work_session_id = ? and work_session_id != '' and event_seq > ? order by event_seq limit ?"
    )
    found = [
        *(rows.event_of(row) for row in view.transaction.rows(logged, session_id, after_seq, limit)),
        *(rows.event_of_call(row) for row in view.transaction.rows(called, session_id, after_seq, limit)),
    ]
    return sorted(found, key=lambda event: event.seq)[:limit]


def _not_active(view: "View", session_id: str) -> ToolError:
    found = get(view, session_id)
    return ToolError(
        f"Session {session_id} was {found.status} at {found.completed_at}",
        kind="session_completed", fix="Start another with session.start",
    )  # fmt: skip

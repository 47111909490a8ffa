"""Calls as events of their clients' work sessions, in a Postgres database."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    import psycopg

_SESSION = """
    insert into sessions (session_id, project_id, client_session_id, agent_code, task_type, title, status, summary,
                          implicit, author, client_name, event_count, started_at, last_event_at, completed_at)
    values (%s, %s, %s, '', '', '', 'active', '', 1, %s, %s, 0, %s, %s, '')
    on conflict (session_id) do update set last_event_at = greatest(sessions.last_event_at, excluded.last_event_at)
    returning event_count
"""
"""Keeps the session's row until the commit, so that nobody else gives out the same numbers."""
_KNOWN = "select event_id from session_events where event_id = any(%s)"
_EVENT = """
    insert into session_events (session_id, seq, event_id, type, message, data, call_id, author, at)
    values (%s, %s, %s, %s, %s, %s, %s, %s, %s)
"""
_COUNT = "update sessions set event_count = %s where session_id = %s"


@dataclass(frozen=True)
class Event:
    """A call as an event of a session."""

    session_id: str
    call_id: str
    project_id: str
    client_session_id: str
    actor_id: str
    client_name: str
    at: str
    type: str
    message: str
    data: str


def event_of(record: dict[str, Any]) -> Event | None:
    """Return the event that a record is, or None where it belongs to no session.

    Raises:
        KeyError, TypeError, AttributeError: it is no record.
    """
    session_id = record.get("work_session_id")
    if not session_id:
        return None
    caller = record["caller"]
    message = record.get("summary") or record.get("error_message") or f"{record['tool_id']} {record['status']}"
    told = {
        "tool_id": record["tool_id"], "status": record["status"], "duration_ms": record.get("duration_ms"),
        "captured_by": "server",
    }  # fmt: skip
    return Event(
        _text(session_id), _text(record["call_id"]), _text(record.get("project_id", "")), _text(caller["session_id"]),
        _text(caller["actor_id"]), _text(caller["client_name"]), _text(record["started_at"]),
        "action" if record["status"] == "ok" else "error", _text(message), _text(orjson.dumps(told).decode()),
    )  # fmt: skip


def write_events(cursor: "psycopg.Cursor[Any]", events: Iterable[Event]) -> None:
    """Add events to their sessions, numbered in their order; one that is there already is left as it is."""
    by_session: dict[str, list[Event]] = {}
    for event in events:
        by_session.setdefault(event.session_id, []).append(event)
    # Always in one order, so that two writers never wait for each other.
    for session_id in sorted(by_session):
        several = list({event.call_id: event for event in by_session[session_id]}.values())
        first, last = several[0], several[-1]
        cursor.execute(
            _SESSION,
            (
                session_id,
                first.project_id,
                first.client_session_id,
                first.actor_id,
                first.client_name,
                first.at,
                last.at,
            ),
        )
        row = cursor.fetchone()
        count = int(row[0]) if row else 0
        cursor.execute(_KNOWN, ([event.call_id for event in several],))
        known = {row[0] for row in cursor.fetchall()}
        fresh = [event for event in several if event.call_id not in known]
        for number, event in enumerate(fresh, count + 1):
            cursor.execute(
                _EVENT,
                (session_id, number, event.call_id, event.type, event.message, event.data, event.call_id,
                 event.actor_id, event.at),
            )  # fmt: skip
        cursor.execute(_COUNT, (count + len(fresh), session_id))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, found {value!r}")
    return value.replace("\x00", "\N{REPLACEMENT CHARACTER}")

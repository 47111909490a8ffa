"""Work sessions: what agents did, their events and calls; and the way in for what other programs tell of them."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from metaforge.twin import sessions
from metaforge.twin.model import Session, SessionEvent
from metaforge.twin.view import View
from metaforge.web.api.calls import CallRow, call_row
from metaforge.web.api.parameters import (
    MAX_LIMIT,
    NAME,
    Filter,
    JsonObject,
    Page,
    Plain,
    Served,
    SessionId,
    next_offset,
)
from metaforge.web.identity import identity_of

router = APIRouter(tags=["sessions"], prefix="/sessions")
Text = Annotated[Plain, Field(max_length=10_000)]
Word = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00]*[^\x00\s][^\x00]*$")]
EventType = Literal["thought", "action", "decision", "observation", "error", "result"]


class SessionRow(BaseModel):
    """A work session."""

    session_id: str
    project_id: str
    agent_code: str
    task_type: str
    title: str
    status: str = Field(description="active, completed or failed.")
    summary: str
    implicit: bool = Field(description="Whether nobody started it: it was made of its client's first call.")
    author: str
    client_name: str
    event_count: int
    started_at: str
    last_event_at: str
    completed_at: str


class Sessions(BaseModel):
    """A part of the sessions, the latest first."""

    items: list[SessionRow]
    total: int
    next_offset: int | None = Field(None, description="Where the next part begins; null after the last.")


class EventRow(BaseModel):
    """What happened in a session."""

    session_id: str
    seq: int
    event_id: str
    type: str
    message: str
    data: dict[str, Any]
    call_id: str
    author: str
    at: str


class Events(BaseModel):
    """A part of a session's events, in their order."""

    items: list[EventRow]
    next_after: int | None = Field(None, description="`after` of the next part; null after the last.")


class SessionCalls(BaseModel):
    """A part of a session's calls, in their order."""

    items: list[CallRow]
    next_offset: int | None = None


class Starting(BaseModel):
    """A session to start."""

    model_config = ConfigDict(extra="forbid")

    agent_code: Word = Field(description="Which agent works, such as mechanical.")
    task_type: Word = Field(description="What kind of task.")
    title: Text = ""
    project_id: str | None = Field(None, pattern=NAME, description="The project it works on.")
    client_name: Annotated[Plain, Field(max_length=200)] = ""


class Telling(BaseModel):
    """An event to add."""

    model_config = ConfigDict(extra="forbid")

    type: EventType
    message: Annotated[str, Field(min_length=1, max_length=10_000, pattern=r"^[^\x00]*[^\x00\s][^\x00]*$")]
    data: JsonObject = Field(default_factory=dict, description="More about it.")


class Ending(BaseModel):
    """How a session ends."""

    model_config = ConfigDict(extra="forbid")

    status: Literal["completed", "failed"]
    summary: Text = ""


class SessionFilter(Page):
    """Which sessions."""

    project_id: str | None = Query(None, pattern=NAME, description="Of this project only.")
    status: Literal["active", "completed", "failed"] | None = Query(None, description="Of this standing only.")


class EventFilter(Filter):
    """Which events."""

    limit: int = Query(50, ge=1, le=MAX_LIMIT, description="At most so many.")
    after: int = Query(0, ge=0, le=1_000_000_000, description="Only events of a greater seq.")


@router.get("")
async def list_sessions(served: Served, which: Annotated[SessionFilter, Query()]) -> Sessions:
    """List sessions, the latest first."""
    found, total = await served.read(
        lambda view: sessions.listed(view, which.project_id or "", which.status or "", which.limit, which.offset)
    )
    return Sessions(
        items=[_session(each) for each in found], total=total, next_offset=next_offset(which, len(found), total)
    )


@router.post("", status_code=201)
async def start_session(served: Served, request: Request, starting: Annotated[Starting, Body()]) -> SessionRow:
    """Start a session for what another program tells of an agent."""
    made = await served.change(
        lambda change: change.start_session(
            starting.agent_code, starting.task_type, title=starting.title, client_name=starting.client_name
        ),
        author=identity_of(request).actor_id, project_id=starting.project_id or "",
    )  # fmt: skip
    return _session(made)


@router.get("/{session_id}")
async def read_session(served: Served, session_id: SessionId, nothing: Annotated[Filter, Query()]) -> SessionRow:
    """Read a session."""
    return _session(await served.read(lambda view: sessions.get(view, session_id)))


@router.get("/{session_id}/events")
async def list_events(served: Served, session_id: SessionId, which: Annotated[EventFilter, Query()]) -> Events:
    """List a session's events, in their order."""

    def look(view: View) -> list[SessionEvent]:
        sessions.get(view, session_id)
        return sessions.events(view, session_id, which.after, which.limit + 1)

    found = await served.read(look)
    part = found[: which.limit]
    return Events(items=[_event(each) for each in part], next_after=part[-1].seq if len(found) > which.limit else None)


@router.post("/{session_id}/events", status_code=201)
async def log_event(
    served: Served, request: Request, session_id: SessionId, telling: Annotated[Telling, Body()]
) -> EventRow:
    """Add an event to an active session."""
    made = await served.change(
        lambda change: change.log_event(session_id, telling.type, telling.message, telling.data),
        author=identity_of(request).actor_id,
    )
    return _event(made)


@router.post("/{session_id}/complete")
async def complete_session(
    served: Served, request: Request, session_id: SessionId, ending: Annotated[Ending, Body()]
) -> SessionRow:
    """End an active session."""
    ended = await served.change(
        lambda change: change.complete_session(session_id, ending.status, ending.summary),
        author=identity_of(request).actor_id,
    )
    return _session(ended)


@router.get("/{session_id}/calls")
async def list_session_calls(served: Served, session_id: SessionId, page: Annotated[Page, Query()]) -> SessionCalls:
    """List the calls of a session, in their order."""
    await served.read(lambda view: sessions.get(view, session_id))
    found = await run_in_threadpool(served.calls.calls_of_session, session_id, page.limit + 1, page.offset)
    more = page.offset + page.limit if len(found) > page.limit else None
    return SessionCalls(items=[CallRow(**call_row(each)) for each in found[: page.limit]], next_offset=more)


def _session(session: Session) -> SessionRow:
    return SessionRow(
        session_id=session.session_id, project_id=session.project_id, agent_code=session.agent_code,
        task_type=session.task_type, title=session.title, status=session.status, summary=session.summary,
        implicit=session.implicit, author=session.author, client_name=session.client_name,
        event_count=session.event_count, started_at=session.started_at, last_event_at=session.last_event_at,
        completed_at=session.completed_at,
    )  # fmt: skip


def _event(event: SessionEvent) -> EventRow:
    return EventRow(
        session_id=event.session_id, seq=event.seq, event_id=event.event_id, type=event.type, message=event.message,
        data=dict(event.data), call_id=event.call_id, author=event.author, at=event.at,
    )  # fmt: skip

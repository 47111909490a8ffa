"""`session.*`: what an agent did, as it tells it. Every call is an event of its client's session anyway."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from metaforge import __version__
from metaforge.tools.context import Answer, Invocation
from metaforge.tools.effect import Effect, HoldRule
from metaforge.tools.server import McpToolServer
from metaforge.tools.tool import tool
from metaforge.twin.services import ToolGroup, TwinServices

Text = Annotated[str, Field(min_length=1)]


@dataclass(frozen=True)
class StartedAnswer:
    session_id: str
    project_scope_bound: bool


@dataclass(frozen=True)
class EventAnswer:
    event_id: str
    seq: int


@dataclass(frozen=True)
class CompletedAnswer:
    ok: bool
    event_count: int


class SessionTools(ToolGroup):
    """Bookkeeping of the caller's own activity: never held for approval."""

    @tool(
        effect=Effect.WRITE, capability="session", title="Start a work session", hold=HoldRule.NEVER,
        search_hint="begin a session, log what the agent does",
    )  # fmt: skip
    async def start(
        self, ctx: Invocation, agent_code: Text, task_type: Text, title: str = "", project_id: str | None = None
    ) -> Answer[StartedAnswer]:
        """Start a session: this client's next calls become its events.

        Args:
            agent_code: Which agent works, such as mechanical.
            task_type: What kind of task.
            title: What it is about.
            project_id: Opens this project for the client too.
        """
        services = self.services
        caller = ctx.caller
        started = await services.change(
            _outside_runs(ctx),
            lambda change: change.start_session(
                agent_code, task_type, title=title,
                client_session_id=caller.session_id, client_name=caller.client_name,
            ),
            project_id=project_id,
        )  # fmt: skip
        services.scopes.open_session(caller, started.session_id)
        bound = (
            services.scopes.bind_project(caller, project_id) if project_id else bool(services.scopes.project_of(caller))
        )
        return Answer(StartedAnswer(started.session_id, bound), f"Session {started.session_id} started.")

    @tool(
        effect=Effect.WRITE, capability="session", title="Log a session event", hold=HoldRule.NEVER,
        search_hint="note a thought, decision, observation, error or result",
    )  # fmt: skip
    async def log_event(
        self,
        ctx: Invocation,
        session_id: str,
        type: Literal["thought", "action", "decision", "observation", "error", "result"],
        message: Text,
        data: dict[str, Any] | None = None,
    ) -> Answer[EventAnswer]:
        """Add an event to a session.

        Args:
            session_id: The session.
            type: What kind of event.
            message: What happened.
            data: More about it.
        """
        logged = await self.services.change(
            _outside_runs(ctx),
            lambda change: change.log_event(session_id, type, message, data, call_id=ctx.call_id),
            durable=False,
        )
        return Answer(EventAnswer(logged.event_id, logged.seq), f"Event {logged.seq} logged.")

    @tool(
        effect=Effect.WRITE, capability="session", title="Complete a work session", hold=HoldRule.NEVER,
        search_hint="end a session with a summary",
    )  # fmt: skip
    async def complete(
        self, ctx: Invocation, session_id: str, status: Literal["completed", "failed"], summary: str = ""
    ) -> Answer[CompletedAnswer]:
        """End a session.

        Args:
            session_id: The session.
            status: How it went.
            summary: What came of it.
        """
        services = self.services
        ended = await services.change(
            _outside_runs(ctx), lambda change: change.complete_session(session_id, status, summary)
        )
        services.scopes.end_session(session_id)
        return Answer(CompletedAnswer(True, ended.event_count), f"Session {session_id} {status}.")


class SessionServer(McpToolServer):
    """Runs inside the server."""

    in_process = True

    def __init__(self, services: TwinServices | None = None) -> None:
        super().__init__("session", __version__, groups=[SessionTools(services)])


def _outside_runs(ctx: Invocation) -> Invocation:
    """What an agent did is told even after its run has ended."""
    from dataclasses import replace

    return replace(ctx, run_id="")

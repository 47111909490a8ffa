"""Held calls as JSON of the API: how they are told, and what is told of them by those who hold and decide them."""

from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

from metaforge.approvals.digest import call_digest
from metaforge.approvals.model import Entry, Kind, Route, later, new_approval_id
from metaforge.approvals.model import Request as HeldCall
from metaforge.approvals.showing import shown_arguments
from metaforge.approvals.wire import entry_json
from metaforge.core.clock import utc_now
from metaforge.core.ids import new_call_id
from metaforge.tools.context import Caller, Trust
from metaforge.tools.effect import Effect
from metaforge.web.api.approval_item import Decided, decided_of
from metaforge.web.api.parameters import MAX_LIMIT, NAME, Filter, JsonObject, Plain

Reason = Annotated[Plain, Field(max_length=2000)]
Name = Annotated[Plain, Field(max_length=200)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Client(BaseModel):
    """The program that made the call."""

    name: str
    version: str


class ClientBody(BaseModel):
    """The program that made the call, as the server that holds it knows it."""

    model_config = ConfigDict(extra="forbid")

    name: Name = ""
    version: Name = ""


class ToolApproval(BaseModel):
    """A held call and what became of it."""

    id: str
    status: Literal[
        "awaiting_approval", "approved", "running", "completed", "rejected", "timed_out", "canceled", "failed"
    ]
    tool: str
    arguments: dict[str, Any] = Field(description="Without secrets; after a decision with edits, the edited ones.")
    edited: bool
    reason: str = Field(description="Why it is held.")
    caller: str = Field(description="Who asks.")
    trust: str
    source: Literal["mcp"] = "mcp"
    session_id: str
    project: str
    route: Literal["elicitation", "dashboard", "both"]
    on_dashboard: bool
    client: Client
    timeout_seconds: float
    created_at: str
    expires_at: str
    updated_at: str
    kind: Literal["tool_call", "human_authority"]
    effect: str
    title: str
    summary: str
    digest: str
    call_id: str
    run_id: str
    decision: Decided | None
    ended_reason: str
    entry: dict[str, Any] | None = Field(None, description="The whole entry, for its holder alone.")


class ToolApprovals(BaseModel):
    """A part of the list, the latest first."""

    items: list[ToolApproval]
    next_before: str | None = Field(None, description="`before` of the next part; null after the last.")


class ToolApprovalFilter(Filter):
    """Which held calls."""

    status: Literal["pending", "decided", "all"] = Query("pending", description="decided is all but pending.")
    project_id: str | None = Query(None, pattern=NAME, description="Of this project only.")
    limit: int = Query(50, ge=1, le=MAX_LIMIT, description="At most so many.")
    before: str | None = Query(None, pattern=r"^run_[0-9a-f]{16}$", description="Only older ones than this.")


class Holding(BaseModel):
    """A call to hold: nobody is asked before this entry is durable."""

    model_config = ConfigDict(extra="forbid")

    tool: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}(\.[a-z0-9_]{1,64})?$")]
    arguments: JsonObject = Field(description="Complete, as the call would run with them.")
    reason: Reason = Field("", description="Why it is held.")
    caller: Name = Field("anonymous", description="Who asks.")
    trust: Literal["local", "remote", "untrusted", "service"] = "untrusted"
    verified: bool = Field(False, description="Whether the caller is an authenticated person.")
    client: ClientBody = Field(default_factory=lambda: ClientBody())
    source: Literal["mcp"] = "mcp"
    session_id: Name = ""
    project: Annotated[str, Field(pattern=r"^([A-Za-z0-9][A-Za-z0-9_.:-]{0,99})?$")] = ""
    route: Literal["elicitation", "dashboard", "both"] = "dashboard"
    timeout_seconds: float = Field(100.0, gt=0, le=3600, description="How long the call waits.")
    approval_id: str | None = Field(None, pattern=r"^run_[0-9a-f]{16}$", description="Chosen here if left out.")
    call_id: Annotated[str, Field(pattern=r"^([0-9a-f]{16})?$")] = ""
    run_id: Annotated[str, Field(pattern=r"^([A-Za-z0-9][A-Za-z0-9_.:-]{0,99})?$")] = ""
    kind: Literal["tool_call", "human_authority"] = "tool_call"
    effect: Literal["produce", "write", "destroy"] = "write"
    adapter_version: Name = ""
    title: Annotated[Plain, Field(max_length=500)] = ""
    summary: Annotated[Plain, Field(max_length=10_000)] = ""
    change: JsonObject = Field(default_factory=dict, description="What it would do: now, after, pictures.")


class Approving(BaseModel):
    """Let the call run."""

    model_config = ConfigDict(extra="forbid")

    decision: Literal["approve"]
    reason: Reason = ""
    arguments: JsonObject | None = Field(
        None, description="Run with these arguments instead; what is shown as [redacted] stands for what it hides."
    )


class Rejecting(BaseModel):
    """Let the call not run."""

    model_config = ConfigDict(extra="forbid")

    decision: Literal["reject"]
    reason: Reason = ""


class Resolving(BaseModel):
    """How a held call ended, as the server that holds it knows: an answer in its client, or no answer."""

    model_config = ConfigDict(extra="forbid")

    outcome: Literal["approved", "rejected", "timed_out", "canceled", "completed", "failed"]
    reason: Reason = ""
    approved_by: Name = Field("local:elicitation", description="Who answered in the client.")
    approver_verified: bool = False


class Claiming(BaseModel):
    """The call that is about to run."""

    model_config = ConfigDict(extra="forbid")

    digest: Digest = Field(description="Of the call that is about to run, computed anew from it.")


def held_call(holding: Holding) -> HeldCall:
    """Return the call that a server asks to hold, in times of this server."""
    now, client = utc_now(), holding.client
    return HeldCall(
        approval_id=holding.approval_id or new_approval_id(), call_id=holding.call_id or new_call_id(),
        tool_id=holding.tool, kind=Kind(holding.kind), effect=Effect(holding.effect), arguments=holding.arguments,
        digest=call_digest(holding.tool, holding.arguments, holding.project, holding.caller, holding.adapter_version),
        adapter_version=holding.adapter_version, project_id=holding.project, run_id=holding.run_id,
        caller=Caller(holding.caller, Trust(holding.trust), client.name, client.version, holding.session_id,
                      holding.verified),
        title=holding.title or holding.tool, summary=holding.summary, reason_held=holding.reason,
        route=Route(holding.route), created_at=now, expires_at=later(now, holding.timeout_seconds),
        window_seconds=holding.timeout_seconds, change=holding.change,
    )  # fmt: skip


def told_of(entry: Entry, *, whole: bool) -> ToolApproval:
    """Return an entry as it is told; `whole` adds all of it, for its holder."""
    request, caller = entry.request, entry.request.caller
    return ToolApproval(
        id=entry.approval_id, status=entry.state.value, tool=request.tool_id,
        arguments=shown_arguments(entry.arguments), edited=entry.edited, reason=request.reason_held,
        caller=caller.actor_id, trust=caller.trust.value, session_id=caller.session_id, project=request.project_id,
        route=request.route.value, on_dashboard=entry.on_dashboard,
        client=Client(name=caller.client_name, version=caller.client_version),
        timeout_seconds=request.window_seconds, created_at=request.created_at, expires_at=request.expires_at,
        updated_at=entry.updated_at, kind=request.kind.value, effect=request.effect.value, title=request.title,
        summary=request.summary, digest=entry.digest, call_id=request.call_id, run_id=request.run_id,
        decision=decided_of(entry.decision), ended_reason=entry.ended_reason,
        entry=entry_json(entry) if whole else None,
    )  # fmt: skip

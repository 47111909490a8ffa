"""`/v1/chat/tool_approvals`: held calls in the ledger's own words, for programs and for servers that hold them.

A server that keeps no ledger of its own holds its calls in this one: it opens an entry, reads it, claims it before the
call runs, and ends it. Complete arguments, secrets included, are told to an entry's holder alone.
"""

import hmac
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Header, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from metaforge.access.identity import Method
from metaforge.approvals.digest import call_digest
from metaforge.approvals.faults import NotDecidable
from metaforge.approvals.model import (
    Approver,
    Entry,
    Kind,
    Route,
    State,
    Verdict,
    later,
    new_approval_id,
)
from metaforge.approvals.model import Request as HeldCall
from metaforge.approvals.port import EndState
from metaforge.approvals.showing import shown_arguments
from metaforge.approvals.wire import entry_json
from metaforge.core.clock import utc_now
from metaforge.core.errors import InvalidArguments
from metaforge.core.ids import new_call_id
from metaforge.tools.context import Caller, Trust
from metaforge.tools.effect import Effect
from metaforge.web.api.approval_item import Decided, decided_of
from metaforge.web.api.parameters import MAX_LIMIT, NAME, ApprovalId, Filter, JsonObject, Plain, Served
from metaforge.web.identity import Deciding, identity_of

router = APIRouter(tags=["tool approvals"], prefix="/chat/tool_approvals")
Reason = Annotated[Plain, Field(max_length=2000)]
Name = Annotated[Plain, Field(max_length=200)]
Holder = Annotated[
    str, Header(alias="x-metaforge-holder", max_length=100, pattern=r"^[\x20-\x7e]*$", description="Which server asks.")
]
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


DecisionBody = Annotated[Approving | Rejecting, Body(discriminator="decision")]
_ENDS: dict[str, EndState] = {
    "timed_out": State.TIMED_OUT, "canceled": State.CANCELED, "completed": State.COMPLETED, "failed": State.FAILED,
}  # fmt: skip


@router.get("")
async def list_tool_approvals(served: Served, which: Annotated[ToolApprovalFilter, Query()]) -> ToolApprovals:
    """List held calls, the latest first; those that wait, where no status is given."""
    found = await run_in_threadpool(
        served.ledger.entries, which.status, which.project_id, which.limit + 1, which.before or ""
    )
    part = found[: which.limit]
    return ToolApprovals(
        items=[_told(each) for each in part],
        next_before=part[-1].approval_id if len(found) > which.limit else None,
    )


@router.post("", status_code=201)
async def hold_call(served: Served, holding: Annotated[Holding, Body()], holder: Holder) -> ToolApproval:
    """Record a call that waits for a person, before anyone is asked. The times are this server's."""
    request = _held_call(holding)

    def hold() -> Entry:
        try:
            return served.ledger.open(request, holder=holder)
        except InvalidArguments:
            raise _taken(served.ledger.get(request.approval_id)) from None

    return _told(await run_in_threadpool(hold), holder)


@router.get("/{approval_id}")
async def read_tool_approval(
    served: Served, approval_id: ApprovalId, nothing: Annotated[Filter, Query()], holder: Holder = ""
) -> ToolApproval:
    """Read one held call."""
    return _told(await run_in_threadpool(served.ledger.get, approval_id), holder)


@router.post("/{approval_id}")
async def decide_tool_approval(
    served: Served, approver: Deciding, approval_id: ApprovalId, deciding: DecisionBody
) -> ToolApproval:
    """Decide one held call. The approver is whoever the credential names; a name in the body is not read."""
    arguments = deciding.arguments if isinstance(deciding, Approving) else None
    return _told(await served.decide(approval_id, deciding.decision, approver, deciding.reason, arguments))


@router.post("/{approval_id}/resolve")
async def resolve_tool_approval(
    served: Served, request: Request, approval_id: ApprovalId, resolving: Annotated[Resolving, Body()], holder: Holder
) -> ToolApproval:
    """Say how a held call ended; for the server that holds it. What came first stays, and is returned."""
    identity = identity_of(request)

    def resolve() -> Entry:
        _check_holder(served.ledger.get(approval_id), holder)
        if (end := _ENDS.get(resolving.outcome)) is not None:
            return served.ledger.end(approval_id, end, resolving.reason)
        # A server that showed no credential vouches for nobody.
        verified = resolving.approver_verified and identity.method is not Method.OPEN
        approver = Approver(resolving.approved_by, verified, "elicitation", agent=identity.actor_id)
        verdict: Verdict = "approve" if resolving.outcome == "approved" else "reject"
        return served.ledger.decide(approval_id, verdict, approver, resolving.reason, inline=True)

    return _told(await run_in_threadpool(resolve), holder)


@router.post("/{approval_id}/claim")
async def claim_tool_approval(
    served: Served, approval_id: ApprovalId, claiming: Annotated[Claiming, Body()], holder: Holder
) -> ToolApproval:
    """Take an approved call to run it, once; for the server that holds it."""

    def claim() -> Entry:
        _check_holder(served.ledger.get(approval_id), holder)
        return served.ledger.claim(approval_id, claiming.digest, holder=holder)

    return _told(await run_in_threadpool(claim), holder)


@router.post("/{approval_id}/show")
async def show_tool_approval(served: Served, approval_id: ApprovalId, holder: Holder) -> ToolApproval:
    """Let a call that was asked in its client be decided elsewhere too; for the server that holds it."""

    def show() -> Entry:
        _check_holder(served.ledger.get(approval_id), holder)
        return served.ledger.show_on_dashboard(approval_id)

    return _told(await run_in_threadpool(show), holder)


def _held_call(holding: Holding) -> HeldCall:
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


def _told(entry: Entry, holder: str = "") -> ToolApproval:
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
        entry=entry_json(entry) if _holds(entry, holder) else None,
    )  # fmt: skip


def _taken(entry: Entry) -> NotDecidable:
    return NotDecidable(
        f"The approval id {entry.approval_id} is taken by another call: leave it out, and one is made",
        approval_id=entry.approval_id, code="approval_id_taken", state=entry.state.value,
    )  # fmt: skip


def _holds(entry: Entry, holder: str) -> bool:
    return bool(holder) and hmac.compare_digest(holder.encode(), entry.holder.encode())


def _check_holder(entry: Entry, holder: str) -> None:
    if not _holds(entry, holder):
        raise NotDecidable(
            f"{entry.approval_id} is held by another server: only that one claims, shows or resolves it",
            status=403, approval_id=entry.approval_id, code="not_holder", state=entry.state.value,
        )  # fmt: skip

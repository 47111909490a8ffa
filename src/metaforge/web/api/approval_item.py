"""An approval as `/v1/approvals` tells it, whatever it is about."""

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, Field

from metaforge.approvals.deciding import refusal_of_decision
from metaforge.approvals.model import Approver, Decision, Entry, Kind, State
from metaforge.approvals.showing import shown_arguments
from metaforge.core.clock import utc_now

PREFIX = "tool:"
Status = Literal["pending", "approved", "rejected", "expired", "canceled"]
_STATUSES: dict[State, Status] = {
    State.AWAITING: "pending",
    State.REJECTED: "rejected",
    State.TIMED_OUT: "expired",
    State.CANCELED: "canceled",
}


class Finding(BaseModel):
    """Something to look at before deciding."""

    kind: Literal["missing_deliverable", "ungrounded", "constraint_violation", "analysis", "geometry", "other"]
    severity: Literal["error", "warning", "info"]
    message: str


class Requester(BaseModel):
    """Who asks, as the server knows them."""

    actor_id: str
    trust: str
    client_name: str
    client_version: str
    session_id: str


class Decided(BaseModel):
    """What a person decided."""

    decision: Literal["approve", "reject"]
    reason: str
    approver: str
    approver_verified: bool
    surface: Literal["elicitation", "dashboard", "cli", "agent"]
    on_behalf_of: str
    agent: str
    decided_at: str


class Detail(BaseModel):
    """What a decision on a held call is about."""

    tool: str
    effect: str
    arguments: dict[str, Any] = Field(description="Exact, without secrets; after a decision with edits, the edited.")
    edited: bool = Field(description="Whether the person changed the arguments.")
    digest: str = Field(description="Of tool, arguments, project, caller and adapter version: what an approval binds.")
    adapter_version: str
    call_id: str
    run_id: str
    state: str = Field(description="Where the call stands, such as awaiting_approval, running, completed, failed.")
    ended_reason: str
    window_seconds: float
    on_dashboard: bool = Field(description="Whether it may be decided outside the client that asked.")
    change: dict[str, Any] = Field(description="What it would do to the design: now, after, pictures.")
    updated_at: str


class ApprovalItem(BaseModel):
    """Something that waits for a person, or was decided."""

    id: str = Field(description="`tool:` and the approval's own id.")
    kind: Literal["tool_call", "human_authority"]
    status: Status
    title: str
    summary: str
    project_id: str | None
    created_at: str
    deadline: str
    route: Literal["elicitation", "dashboard", "both"]
    requested_by: Requester
    reason_held: str
    findings: list[Finding]
    allowed_decisions: list[Literal["approve", "reject"]] = Field(description="What can be decided now, and by you.")
    rework_targets: list[str]
    reason_required_for: list[Literal["approve", "reject"]]
    decidable: bool
    not_decidable_reason: str | None
    detail: Detail
    decision: Decided | None


@dataclass(frozen=True)
class Looking:
    """Who looks, and what agents may do here."""

    approver: Approver
    agents_may_decide: bool


def status_of(entry: Entry) -> Status:
    """Return an entry's standing: a call that was approved stays so, whatever became of it."""
    if (status := _STATUSES.get(entry.state)) is not None:
        return status
    return "approved" if entry.decision is not None else "expired"


def item_of(entry: Entry, looking: Looking) -> ApprovalItem:
    """Return an entry as it is told to somebody."""
    request, caller = entry.request, entry.request.caller
    may_approve, may_reject = (
        refusal_of_decision(
            entry, looking.approver, utc_now(), inline=False, agents_may_decide=looking.agents_may_decide,
            approving=approving,
        )
        for approving in (True, False)
    )  # fmt: skip
    refusal = may_approve and may_reject
    allowed: list[Literal["approve", "reject"]] = ["approve"] if may_approve is None else []
    allowed += ["reject"] if may_reject is None else []
    return ApprovalItem(
        id=PREFIX + entry.approval_id,
        kind="human_authority" if request.kind is Kind.HUMAN_AUTHORITY else "tool_call",
        status=status_of(entry),
        title=request.title,
        summary=request.summary,
        project_id=request.project_id or None,
        created_at=request.created_at,
        deadline=request.expires_at,
        route=request.route.value,
        requested_by=Requester(
            actor_id=caller.actor_id, trust=caller.trust.value, client_name=caller.client_name,
            client_version=caller.client_version, session_id=caller.session_id,
        ),
        reason_held=request.reason_held,
        findings=[],
        allowed_decisions=allowed,
        rework_targets=[],
        reason_required_for=["reject"],
        decidable=refusal is None,
        not_decidable_reason=refusal.message if refusal else None,
        detail=_detail(entry),
        decision=decided_of(entry.decision),
    )  # fmt: skip


def _detail(entry: Entry) -> Detail:
    request = entry.request
    return Detail(
        tool=request.tool_id, effect=request.effect.value, arguments=shown_arguments(entry.arguments),
        edited=entry.edited, digest=entry.digest, adapter_version=request.adapter_version, call_id=request.call_id,
        run_id=request.run_id, state=entry.state.value, ended_reason=entry.ended_reason,
        window_seconds=request.window_seconds, on_dashboard=entry.on_dashboard, change=dict(request.change),
        updated_at=entry.updated_at,
    )  # fmt: skip


def decided_of(decision: Decision | None) -> Decided | None:
    """Return a decision as it is told."""
    if decision is None:
        return None
    by = decision.approver
    return Decided(
        decision=decision.decision, reason=decision.reason, approver=by.name, approver_verified=by.verified,
        surface=by.surface, on_behalf_of=by.on_behalf_of, agent=by.agent, decided_at=decision.decided_at,
    )  # fmt: skip

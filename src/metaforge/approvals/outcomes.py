"""What a client is told of a held call: while it waits, when it was not approved, and when it was. No I/O."""

from collections.abc import Mapping
from typing import Any, Literal

from metaforge.approvals.model import Entry, Request, Route, State
from metaforge.approvals.showing import shown_arguments
from metaforge.core.errors import NotApproved

APPROVALS_PAGE = "the MetaForge dashboard Approvals page"
Refusal = Literal["rejected", "timed_out", "cancelled"]
_OUTCOMES: dict[State, Refusal] = {
    State.REJECTED: "rejected",
    State.TIMED_OUT: "timed_out",
    State.CANCELED: "cancelled",
}
_SHOWN_CHANGES = 5


def approvals_page(dashboard_url: str) -> str:
    """Return the name of the Approvals page, with its address where it is known."""
    return f"{APPROVALS_PAGE} ({dashboard_url}/approvals)" if dashboard_url else APPROVALS_PAGE


def where_asked(request: Request, route: Route, dashboard_url: str) -> str:
    """Return where the question is, in words."""
    client = request.caller.client_name or "the client"
    inline = f"the question shown in {client}"
    if route is Route.ELICITATION:
        return inline
    page = approvals_page(dashboard_url)
    return page if route is Route.DASHBOARD else f"{inline} and {page}"


def waiting_message(request: Request, route: Route, dashboard_url: str) -> str:
    """Return what progress says while a call waits."""
    held = f"{request.tool_id} is held for human approval (approval {request.approval_id})."
    window = f"Waiting up to {request.window_seconds:g}s."
    page = approvals_page(dashboard_url).replace(" (", ": ").removesuffix(")")
    if route is Route.DASHBOARD:
        return f"{held} A person must approve or reject it on {page}. {window}"
    client = request.caller.client_name or "the client"
    if route is Route.ELICITATION:
        return f"{held} A person must answer the question shown in {client}. {window}"
    return f"{held} A person must answer the question shown in {client}, or decide it on {page}. {window}"


def not_configured(tool_id: str, reason: str) -> NotApproved:
    """Return the refusal of a server that holds writes and cannot ask anybody."""
    return NotApproved(
        f"{tool_id} was not run (not_configured): {reason}, so a person must approve it, and this server has no "
        "approval gate to ask one. Nothing was changed.",
        tool_id=tool_id, code="approval_required", outcome="not_configured", retryable=False,
    )  # fmt: skip


def not_approved(entry: Entry, route: Route, dashboard_url: str, held_seconds: float) -> NotApproved:
    """Return the error of a call that was not approved: its message alone says all of it."""
    request = entry.request
    outcome = _OUTCOMES.get(entry.state, "cancelled")
    where = where_asked(request, route, dashboard_url)
    decided = entry.decision if outcome == "rejected" else None
    data: dict[str, Any] = {
        "tool_id": request.tool_id,
        "code": "approval_required",
        "outcome": outcome,
        "approval_id": request.approval_id,
        "route": _told_route(entry, route),
        "where": where,
        "held_seconds": round(held_seconds, 2),
        "window_seconds": request.window_seconds,
        "retryable": False,
    }
    if decided is not None:
        data |= {"decided_by": decided.approver.name, "approver_verified": decided.approver.verified}
        data |= {"reason": decided.reason} if decided.reason else {}
    on = "in" if route is not Route.DASHBOARD else "on"
    return NotApproved(
        f"{request.tool_id} was not run ({outcome}): held for approval {request.approval_id} {on} {where}, and "
        f"{_why(entry, outcome, held_seconds)}. Nothing was changed.",
        **data,
    )


def _why(entry: Entry, outcome: Refusal, held_seconds: float) -> str:
    request, decision = entry.request, entry.decision
    if outcome == "rejected" and decision is not None:
        said = f", saying: {decision.reason.rstrip('.')}" if decision.reason else ""
        return f"{decision.approver.name} rejected it after {held_seconds:.1f}s{said}"
    if outcome == "timed_out":
        if "dismissed" in entry.ended_reason:
            return f"{entry.ended_reason} after {held_seconds:.1f}s"
        return f"no one answered before the approval window closed ({request.window_seconds:g}s)"
    told = f" ({entry.ended_reason})" if entry.ended_reason else ""
    return f"the hold was closed before anyone answered{told}"


def _told_route(entry: Entry, route: Route) -> str:
    """Return the route by which it was decided, else the one by which it was asked."""
    if entry.decision is None:
        return route.value
    return "elicitation" if entry.decision.approver.surface == "elicitation" else "dashboard"


def approval_meta(entry: Entry, held_seconds: float) -> dict[str, Any]:
    """Return what a result says of its approval, beside the tool's own fields; `note` stands alone."""
    decision = entry.decision
    assert decision is not None
    approver = decision.approver
    via = approver.surface
    note = (
        f"This write was held for human approval and was approved by {approver.name} (approval {entry.approval_id}) "
        f"after {held_seconds:.1f}s via {via}."
    )
    told: dict[str, Any] = {
        "held": True,
        "outcome": "approved",
        "route": "elicitation" if via == "elicitation" else "dashboard",
        "heldSeconds": round(held_seconds, 2),
        "approvalId": entry.approval_id,
        "approvedBy": approver.name,
        "approverVerified": approver.verified,
        "digest": entry.digest,
        "edited": entry.edited,
    }
    if decision.reason:
        told["reason"] = decision.reason
        note += f" They said: {decision.reason.rstrip('.')}."
    if decision.arguments is not None:
        told["changes"] = changes(entry.request.arguments, decision.arguments)
        note += f" It ran with arguments that the approver changed: {'; '.join(told['changes'])}."
    return {**told, "note": note}


def changes(asked: Mapping[str, Any], approved: Mapping[str, Any]) -> list[str]:
    """Return in words what an approver changed, without secrets."""
    before, after = shown_arguments(asked), shown_arguments(approved)
    told = []
    for name in dict.fromkeys((*before, *after)):
        if name not in after:
            told.append(f"{name} left out")
        elif name not in before:
            told.append(f"{name} = {_short(after[name])}")
        elif asked[name] != approved[name]:
            told.append(f"{name} {_short(before[name])} -> {_short(after[name])}")
    return told if len(told) <= _SHOWN_CHANGES else [*told[:_SHOWN_CHANGES], f"and {len(told) - _SHOWN_CHANGES} more"]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."

"""Entries as JSON: in the store, and between a server and its gateway. No I/O."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from metaforge.approvals.chain import Event, Happening
from metaforge.approvals.digest import canonical
from metaforge.approvals.model import Approver, Decision, Entry, Kind, Request, Route, State
from metaforge.tools.context import Caller, ServiceClaims, Trust
from metaforge.tools.effect import Effect


def request_json(request: Request, *, shown: bool = False) -> dict[str, Any]:
    """Return a request as JSON.

    Args:
        request: what is asked.
        shown: without secrets, for people and for what is kept for ever.
    """
    arguments = dict(request.shown if shown else request.arguments)
    return {
        "approval_id": request.approval_id,
        "call_id": request.call_id,
        "tool_id": request.tool_id,
        "kind": request.kind.value,
        "effect": request.effect.value,
        "arguments": arguments,
        "digest": request.digest,
        "adapter_version": request.adapter_version,
        "project_id": request.project_id,
        "run_id": request.run_id,
        "caller": asdict(request.caller) | {"trust": request.caller.trust.value},
        "title": request.title,
        "summary": request.summary,
        "reason_held": request.reason_held,
        "route": request.route.value,
        "created_at": request.created_at,
        "expires_at": request.expires_at,
        "window_seconds": request.window_seconds,
        "change": dict(request.change),
    }


def request_from(data: Mapping[str, Any]) -> Request:
    """Return the request that JSON tells of; raises KeyError, TypeError or ValueError where it is none."""
    return Request(
        **{
            **_known(Request, data),
            "kind": Kind(data["kind"]),
            "effect": Effect(data["effect"]),
            "route": Route(data["route"]),
            "caller": caller_from(data["caller"]),
        }
    )


def caller_from(data: Mapping[str, Any]) -> Caller:
    """Return the caller that JSON tells of."""
    service = data.get("service")
    claims = ServiceClaims(**_known(ServiceClaims, service)) if service else None
    return Caller(**{**_known(Caller, data), "trust": Trust(data["trust"]), "service": claims})


def decision_json(decision: Decision, *, shown: bool = False) -> dict[str, Any]:
    """Return a decision as JSON; `shown` as for requests."""
    arguments = decision.shown if shown else decision.arguments
    return {
        "decision": decision.decision,
        "approver": asdict(decision.approver),
        "reason": decision.reason,
        "decided_at": decision.decided_at,
        "arguments": None if arguments is None else dict(arguments),
        "digest": decision.digest,
    }


def decision_from(data: Mapping[str, Any]) -> Decision:
    """Return the decision that JSON tells of."""
    return Decision(**{**_known(Decision, data), "approver": approver_from(data["approver"])})


def approver_from(data: Mapping[str, Any]) -> Approver:
    """Return the approver that JSON tells of."""
    return Approver(**_known(Approver, data))


def entry_json(entry: Entry, *, shown: bool = False) -> dict[str, Any]:
    """Return an entry as JSON; `shown` as for requests."""
    return {
        "request": request_json(entry.request, shown=shown),
        "state": entry.state.value,
        "on_dashboard": entry.on_dashboard,
        "decision": decision_json(entry.decision, shown=shown) if entry.decision else None,
        "ended_reason": entry.ended_reason,
        "updated_at": entry.updated_at,
        "holder": entry.holder,
        "seq": entry.seq,
        "hash": entry.hash,
    }


def entry_from(data: Mapping[str, Any]) -> Entry:
    """Return the entry that JSON tells of."""
    decision = data["decision"]
    return Entry(
        **{
            **_known(Entry, data),
            "request": request_from(data["request"]),
            "state": State(data["state"]),
            "decision": decision_from(decision) if decision else None,
        }
    )


def mark_of(event: Event) -> str:
    """Return what tells the request or the decision of an event from every other; empty for other events."""
    body = json.loads(event.body)
    if event.event == Happening.OPENED:
        return _mark(request_json(request_from(body["request"]), shown=True))
    return _mark(decision_json(decision_from(body), shown=True)) if event.event == Happening.DECIDED else ""


def marks_of(entry: Entry) -> list[str]:
    """Return the marks that the events of an entry have, where it says what they say."""
    request = _mark(request_json(entry.request, shown=True))
    return [request, _mark(decision_json(entry.decision, shown=True))] if entry.decision else [request]


def _mark(told: dict[str, Any]) -> str:
    return hashlib.sha256(canonical(told)).hexdigest()


def _known(kind: type, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that this version knows; a gateway may be newer."""
    return {field.name: data[field.name] for field in fields(kind) if field.name in data}

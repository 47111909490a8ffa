"""`/v1/chat/tool_approvals`: held calls in the ledger's own words, for programs and for servers that hold them.

A server that keeps no ledger of its own holds its calls in this one: it opens an entry, reads it, claims it before the
call runs, and ends it. Complete arguments, secrets included, are told to an entry's holder alone.
"""

import hmac
from typing import Annotated

from fastapi import APIRouter, Body, Header, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from metaforge.access.identity import Method
from metaforge.approvals.faults import NotDecidable
from metaforge.approvals.model import Approver, Entry, State, Verdict
from metaforge.approvals.port import EndState
from metaforge.approvals.room import MAX_COUNT
from metaforge.core.errors import InvalidArguments
from metaforge.web.api.held_call import (
    Approving,
    Claiming,
    Holding,
    Rejecting,
    Resolving,
    ToolApproval,
    ToolApprovalFilter,
    ToolApprovals,
    held_call,
    told_of,
)
from metaforge.web.api.parameters import ApprovalId, Filter, Served
from metaforge.web.identity import Deciding, identity_of

router = APIRouter(tags=["tool approvals"], prefix="/chat/tool_approvals")
Holder = Annotated[
    str, Header(alias="x-metaforge-holder", max_length=100, pattern=r"^[\x20-\x7e]*$", description="Which server asks.")
]
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
    request = held_call(holding)

    def hold() -> Entry:
        if len(served.ledger.heads(limit=MAX_COUNT)) >= MAX_COUNT:
            raise HTTPException(
                429, f"{MAX_COUNT} calls wait for a person already: hold this one when some are decided"
            )
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


def _told(entry: Entry, holder: str = "") -> ToolApproval:
    return told_of(entry, whole=_holds(entry, holder))


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

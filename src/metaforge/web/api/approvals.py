"""`/v1/approvals`: whatever waits for a person, in one list, with its live news."""

import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse

from metaforge.approvals.faults import UnknownApproval
from metaforge.approvals.model import Entry
from metaforge.approvals.showing import whole_arguments
from metaforge.web.api.approval_item import PREFIX, ApprovalItem, Looking, item_of
from metaforge.web.api.parameters import MAX_LIMIT, NAME, Filter, JsonObject, Plain, Served
from metaforge.web.feed import Feed
from metaforge.web.identity import Asking, Deciding, identity_of

router = APIRouter(tags=["approvals"], prefix="/approvals")
_MAX_SCANNED = 2000
"""How many entries one request looks through for its kind."""
_MAX_COUNTED = 1000

ItemId = Annotated[
    str,
    Path(
        description="`tool:` and the approval's own id.",
        pattern=r"^([a-z_]{1,30}:)?[A-Za-z0-9_.-]{1,80}$",
    ),
]
Reason = Annotated[Plain, Field(max_length=2000)]


class Approvals(BaseModel):
    """A part of the list, the latest first."""

    items: list[ApprovalItem]
    unscoped_count: int = Field(description="How many of this status belong to no project; at most 1000 are counted.")
    next_before: str | None = Field(None, description="`before` of the next part; null after the last.")


class ApprovalFilter(Filter):
    """Which approvals."""

    status: Literal["pending", "decided", "all"] = Query("pending", description="decided is all but pending.")
    project_id: str | None = Query(None, pattern=NAME, description="Of this project only.")
    kind: Literal["tool_call", "human_authority"] | None = Query(None, description="Of this kind only.")
    limit: int = Query(50, ge=1, le=MAX_LIMIT, description="At most so many.")
    before: str | None = Query(None, pattern=r"^tool:run_[0-9a-f]{16}$", description="Only older ones than this.")


class Approving(BaseModel):
    """Let the call run."""

    model_config = ConfigDict(extra="forbid")

    decision: Literal["approve"]
    reason: Reason = ""
    arguments: JsonObject | None = Field(
        None, description="Run with these arguments instead; what is shown as [redacted] stands for what it hides."
    )


class Rejecting(BaseModel):
    """Let the call not run; the agent is told the reason."""

    model_config = ConfigDict(extra="forbid")

    decision: Literal["reject"]
    reason: Annotated[str, Field(min_length=1, max_length=2000, pattern=r"^[^\x00]*[^\x00\s][^\x00]*$")]


DecisionBody = Annotated[Approving | Rejecting, Body(discriminator="decision")]


@router.get("")
async def list_approvals(served: Served, approver: Asking, which: Annotated[ApprovalFilter, Query()]) -> Approvals:
    """List approvals, the latest first."""

    def look() -> tuple[list[Entry], bool, int]:
        unscoped = served.ledger.heads(which.status, "", _MAX_COUNTED)
        return *_found(served, which), len(unscoped)

    found, more, unscoped_count = await run_in_threadpool(look)
    looking = Looking(approver, served.agents_may_decide)
    return Approvals(
        items=[item_of(each, looking) for each in found], unscoped_count=unscoped_count,
        next_before=PREFIX + found[-1].approval_id if more and found else None,
    )  # fmt: skip


def _found(served: Served, which: ApprovalFilter) -> tuple[list[Entry], bool]:
    """Return a part of the list, and whether there may be more."""
    before, found, scanned = (which.before or "").removeprefix(PREFIX), list[Entry](), 0
    while scanned < _MAX_SCANNED:
        part = served.ledger.entries(which.status, which.project_id, which.limit + 1, before)
        scanned += len(part)
        found += [each for each in part if which.kind in (None, each.request.kind.value)]
        if len(found) > which.limit:
            return found[: which.limit], True
        if len(part) <= which.limit:
            return found, False
        before = part[-1].approval_id
    return found, True


@router.get(
    "/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "Events"}},
)
async def follow_approvals(request: Request, nothing: Annotated[Filter, Query()]) -> StreamingResponse:
    """Follow approvals as server-sent events, until either side leaves.

    `pending` tells how many wait, at first and after each change; `approval` tells one that was opened, decided or
    ended, as `GET /v1/approvals/{id}` does.
    """
    headers = {"cache-control": "no-cache, no-transform", "x-accel-buffering": "no", "content-encoding": "identity"}
    feed: Feed = request.app.state.feed
    if feed.is_full:
        raise HTTPException(503, "As many follow approvals already as this server takes: ask again later")
    events = feed.events(identity_of(request).expires_at - time.time())
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


@router.get("/{item_id}")
async def read_approval(
    served: Served, approver: Asking, item_id: ItemId, nothing: Annotated[Filter, Query()]
) -> ApprovalItem:
    """Read one approval."""
    entry = await run_in_threadpool(served.ledger.get, native_id(item_id))
    return item_of(entry, Looking(approver, served.agents_may_decide))


@router.get("/{item_id}/arguments")
async def read_arguments(served: Served, item_id: ItemId, nothing: Annotated[Filter, Query()]) -> dict[str, Any]:
    """Read the arguments of one approval in full length, without secrets; of an ended one they are not kept so."""
    entry = await run_in_threadpool(served.ledger.get, native_id(item_id))
    return whole_arguments(entry.arguments)


@router.post("/{item_id}/decision")
async def decide_approval(served: Served, approver: Deciding, item_id: ItemId, deciding: DecisionBody) -> ApprovalItem:
    """Decide one approval. The approver is whoever the credential names; a name in the body is not read."""
    arguments = deciding.arguments if isinstance(deciding, Approving) else None
    entry = await served.decide(native_id(item_id), deciding.decision, approver, deciding.reason, arguments)
    return item_of(entry, Looking(approver, served.agents_may_decide))


def native_id(item_id: str) -> str:
    """Return the ledger's id of an item.

    Raises:
        UnknownApproval: it names something that has no approvals here.
    """
    kind, colon, name = item_id.rpartition(":")
    if colon and kind != PREFIX[:-1]:
        raise UnknownApproval(f"There is no approval {item_id}", approval_id=item_id)
    return name

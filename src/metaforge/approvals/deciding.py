"""Whether an entry takes a decision, or lets a call run. No I/O."""

from metaforge.approvals.faults import NotClaimable, NotDecidable
from metaforge.approvals.model import Approver, Entry, Kind, Route, State
from metaforge.core.errors import MetaForgeError

_NOBODY = frozenset({"", "anonymous", "local", "api-key"})
"""Callers who are anybody: an agent that decides may be the one that asked."""


def refusal_of_decision(
    entry: Entry, approver: Approver, now: str, *, inline: bool, agents_may_decide: bool, approving: bool = True
) -> MetaForgeError | None:
    """Return why an entry does not take a decision now, or None.

    Args:
        entry: the entry.
        approver: who decides.
        now: the time.
        inline: whether the decision answers the question in the client that asked.
        agents_may_decide: whether agents may decide what is a person's to decide.
        approving: whether the decision is to approve.
    """
    request = entry.request
    if entry.state is not State.AWAITING:
        return _closed(entry)
    if now >= request.expires_at:
        return _refused(entry, "window_closed", f"its window of {request.window_seconds:g} s is over, so the call "
                        "does not run any more. Ask for it again if it is still wanted")  # fmt: skip
    if not inline and request.route is Route.ELICITATION and not entry.on_dashboard:
        client = " ".join(filter(None, (request.caller.client_name, request.caller.client_version))) or "the client"
        return _refused(entry, "answer_in_client", f"the question is on the screen in {client}: answer it there")
    if approver.surface != "agent":
        return None
    if request.kind is Kind.HUMAN_AUTHORITY and not agents_may_decide:
        return _refused(entry, "human_authority_required", "it is a person's decision, and an agent cannot take it",
                        status=403)  # fmt: skip
    if request.caller.actor_id in (approver.name, approver.agent):
        return _refused(entry, "own_call", "an agent cannot approve its own call", status=403)
    if approving and request.caller.actor_id in _NOBODY:
        told = "an agent cannot approve its own call, and nobody can tell whose this one is"
        return _refused(entry, "own_call", told, status=403)
    return None


def _closed(entry: Entry) -> NotDecidable:
    decision = entry.decision
    if decision is not None:
        word = "approved" if decision.decision == "approve" else "rejected"
        told = f"it was already {word} by {decision.approver.name} at {decision.decided_at}"
        return _refused(entry, "already_decided", f"{told} (now {entry.state.value})")
    told = f"it ended as {entry.state.value}" + (f": {entry.ended_reason}" if entry.ended_reason else "")
    return _refused(entry, "ended", f"{told}. Ask for the call again if it is still wanted")


def _refused(entry: Entry, code: str, told: str, *, status: int = 409) -> NotDecidable:
    return NotDecidable(
        f"{entry.approval_id} ({entry.request.tool_id}) cannot be decided: {told}. Nothing was recorded",
        status=status, approval_id=entry.approval_id, code=code, state=entry.state.value,
    )  # fmt: skip


def refusal_of_claim(entry: Entry, digest: str) -> NotClaimable | None:
    """Return why a call may not run on an entry, or None."""
    if entry.state is not State.APPROVED:
        started = entry.state in (State.RUNNING, State.COMPLETED) or (
            entry.state is State.FAILED and entry.decision is not None
        )
        code, told = ("already_claimed", "has run or is running") if started else ("not_approved", "is not approved")
        told = f"{told} (it is {entry.state.value})"
    elif digest != entry.digest:
        code, told = "other_call", "allows another call: tool, arguments, project, caller or adapter version differ"
    else:
        return None
    return NotClaimable(
        f"{entry.approval_id} {told}, so {entry.request.tool_id} was not run",
        approval_id=entry.approval_id, code=code, state=entry.state.value,
    )  # fmt: skip

"""Run an approved call: exactly what was approved, once, or not at all."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

from metaforge.approvals import outcomes
from metaforge.approvals.driving import Spawn
from metaforge.approvals.faults import LedgerUnavailable, NotClaimable
from metaforge.approvals.held import C, HeldCall, Revise
from metaforge.approvals.model import Approver, Entry, Kind, State
from metaforge.approvals.port import EndState, Ledger
from metaforge.approvals.preview import Previewer
from metaforge.core.errors import InvalidArguments, MetaForgeError, NotApproved, ToolError
from metaforge.telemetry import logs
from metaforge.tools.context import Outcome
from metaforge.tools.effect import Effect

_LEFT = "its client left before it ran: nothing was done"
_FIRST_RETRY_SECONDS = 1.0
_LONGEST_RETRY_SECONDS = 60.0


class Runner:
    """Takes an approved entry, runs its call and writes down how that ended.

    Args:
        digest: of a call as it would run.
        spawn: starts work that goes on when the call is cancelled.
    """

    def __init__(self, ledger: Ledger, previewer: Previewer, digest: Callable[[HeldCall], str], spawn: Spawn) -> None:
        self._ledger = ledger
        self._previewer = previewer
        self._digest = digest
        self._spawn = spawn
        self._later: set[asyncio.Task[None]] = set()

    async def run(
        self,
        call: C,
        proceed: Callable[[C], Awaitable[Outcome]],
        revise: Revise[C],
        entry: Entry,
        held_seconds: float,
    ) -> Outcome:
        """Run the call that an entry approves.

        Raises:
            NotApproved: the entry does not allow it, or the ledger cannot say so.
            MetaForgeError: what it was approved for is not there any more, or what the call raises.
        """
        decision = entry.decision
        assert decision is not None
        try:
            _must_be_a_person(entry, decision.approver)
            edited = None if decision.arguments is None else dict(decision.arguments)
            approved = await revise(call, edited, decision.approver)
            warnings = await self._still_true(approved, entry)
            digest = await asyncio.to_thread(self._digest, approved)
        except BaseException as fault:
            await self._end(entry, State.FAILED, f"it did not run: {_reason(fault)}")
            raise
        await self._claim(entry, digest)
        try:
            outcome = await proceed(approved)
        except BaseException as fault:
            await self._end(entry, State.FAILED, _reason(fault))
            raise
        await self._end(entry, State.COMPLETED, "")
        meta = {**outcome.meta, "approval": outcomes.approval_meta(entry, held_seconds)}
        return replace(outcome, meta=meta, warnings=(*warnings, *outcome.warnings))

    def close(self) -> None:
        """Give up what could not be written down yet: the next process finds that this one is gone."""
        for task in self._later:
            task.cancel()

    async def _still_true(self, call: HeldCall, entry: Entry) -> tuple[str, ...]:
        """Look again at what the approver was shown.

        Files that the call reads must be the same; so must what it replaces or removes. The rest of the design may
        have moved on, which is told.

        Raises:
            ToolError: `changed_while_waiting`.
        """
        shown = entry.request.change
        preview = await self._previewer.preview(call, again=True)
        for path, sha256 in preview.reads.items():
            if shown.get("reads", {}).get(path, sha256) != sha256:
                raise _changed(entry, f"{path} is another file now")
        seen = shown.get("now", {})
        moved = [name for name, now in preview.change()["now"].items() if name in seen and seen[name] != now]
        if not moved:
            return ()
        told = ", ".join(moved[:5])
        if call.effect is Effect.DESTROY:
            raise _changed(entry, f"{told} is no longer what the approver was shown")
        return (f"{told} changed between the question and its approval: look at the difference",)

    async def _claim(self, entry: Entry, digest: str) -> None:
        """Take the entry to run it; where nobody waits any more by then, it is given up unrun."""
        claiming = self._spawn(asyncio.to_thread(self._claimed, entry.approval_id, digest))
        try:
            refusal: NotClaimable | None = await asyncio.shield(claiming)
        except asyncio.CancelledError:
            self._spawn(self._give_up(claiming, entry))
            raise
        except LedgerUnavailable as fault:
            await self._end(entry, State.FAILED, f"it did not run: {fault.message}")
            raise
        if refusal is not None:
            raise NotApproved(
                f"{refusal.message}. Nothing was changed.",
                code="approval_required", tool_id=entry.request.tool_id, outcome="cancelled",
                approval_id=entry.approval_id, reason=refusal.data.get("code"), retryable=False,
            )  # fmt: skip

    def _claimed(self, approval_id: str, digest: str) -> NotClaimable | None:
        try:
            self._ledger.claim(approval_id, digest)
        except NotClaimable as refusal:
            return refusal
        return None

    async def _give_up(self, claiming: "asyncio.Task[Any]", entry: Entry) -> None:
        await asyncio.wait([claiming])
        await asyncio.to_thread(self._ledger.end, entry.approval_id, State.FAILED, _LEFT)

    async def _end(self, entry: Entry, state: EndState, reason: str) -> None:
        """Write down how it ended, whatever becomes of the call; what was done is done even if that fails."""
        end = partial(self._ledger.end, entry.approval_id, state, reason[:1000])
        ending = self._spawn(asyncio.to_thread(end))
        try:
            await asyncio.shield(ending)
        except LedgerUnavailable as fault:
            logs.event("approval_end_not_recorded", "error", approval_id=entry.approval_id, reason=fault.message)
            task = asyncio.ensure_future(_until_recorded(end))
            self._later.add(task)
            task.add_done_callback(self._later.discard)


async def _until_recorded(end: Callable[[], Entry]) -> None:
    """Write an end down once the ledger takes it again, so that no entry stays open for ever."""
    pause_seconds = _FIRST_RETRY_SECONDS
    while True:
        await asyncio.sleep(pause_seconds)
        try:
            await asyncio.to_thread(end)
            return
        except LedgerUnavailable:
            pause_seconds = min(2 * pause_seconds, _LONGEST_RETRY_SECONDS)


def _must_be_a_person(entry: Entry, approver: Approver) -> None:
    """Refuse a person's decision that no person stands behind."""
    if entry.request.kind is not Kind.HUMAN_AUTHORITY:
        return
    if not approver.name or (approver.surface == "elicitation" and not approver.verified):
        raise ToolError(
            f"{entry.request.tool_id} is a person's decision, and no identified approver stands behind approval "
            f"{entry.approval_id} ({approver.name or 'nobody'} by {approver.surface})",
            kind="human_authority_required", fix="Ask a person to decide it on the dashboard",
            code="human_authority_required", approval_id=entry.approval_id,
        )  # fmt: skip


def _changed(entry: Entry, what: str) -> ToolError:
    return ToolError(
        f"{entry.request.tool_id} was not run: {what} (approval {entry.approval_id})", kind="changed_while_waiting",
        fix="Ask for the call again, so that a person sees what it would do now", approval_id=entry.approval_id,
    )  # fmt: skip


def _reason(fault: BaseException) -> str:
    if isinstance(fault, asyncio.CancelledError):
        return "it was cancelled while it ran"
    if isinstance(fault, InvalidArguments):
        return f"the arguments are not valid: {fault.message}"
    return fault.message if isinstance(fault, MetaForgeError) else f"{type(fault).__name__}: {fault}"

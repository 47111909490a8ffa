"""The ledger in the store: every change is an appended event and its consequence, in one synced transaction.

SQLite lets one transaction write at a time, Postgres appends in turn under a lock: of any number of decisions, ends
and claims at once, from any thread, process or machine, each sees what the one before it did.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import orjson

from metaforge.approvals import rows
from metaforge.approvals.chain import ENDS, Happening, Impossible, own_fault_of, told_by
from metaforge.approvals.deciding import refusal_of_claim, refusal_of_decision
from metaforge.approvals.digest import call_digest
from metaforge.approvals.expiry import overdue
from metaforge.approvals.faults import LedgerBroken, LedgerUnavailable, UnknownApproval
from metaforge.approvals.holders import Holder
from metaforge.approvals.model import Approver, Decision, Entry, Request, Route, State, Status, Verdict, Verification
from metaforge.approvals.port import EndState
from metaforge.approvals.showing import restored
from metaforge.approvals.verifying import fault_in_tail, verify
from metaforge.approvals.wire import decision_json, mark_of, marks_of, request_json
from metaforge.core.clock import utc_now
from metaforge.core.errors import InvalidArguments, MetaForgeError
from metaforge.store.database import Database
from metaforge.store.location import StoreUnavailable
from metaforge.store.transaction import Transaction

MAX_LISTED_COUNT = 1000


class SqlLedger:
    """Entries in the store that all processes share."""

    def __init__(
        self,
        database: Database,
        holder: Holder,
        *,
        nudge: Callable[[], None] = lambda: None,
        clock: Callable[[], str] = utc_now,
        agents_may_decide: bool = False,
    ) -> None:
        """Remember where entries are kept; nothing is opened.

        Args:
            database: the store.
            holder: this process, as what waits for entries and runs their calls.
            nudge: called after each commit, to wake who waits.
            clock: the time, as `core.clock.utc_now` writes it.
            agents_may_decide: whether an agent may decide what is a person's to decide.
        """
        self._database = database
        self._holder = holder
        self._nudge = nudge
        self._clock = clock
        self._agents_may_decide = agents_may_decide
        self._tail_is_checked = False
        self._broken: LedgerBroken | None = None

    # -- a call that waits ---------------------------------------------------------------------------------------

    def open(self, request: Request, *, holder: str = "") -> Entry:
        """Record a request before anyone is asked; see `port.Ledger`. Repeated, it returns the entry that is there."""
        if _digest(request, request.arguments) != request.digest:
            raise InvalidArguments(
                f"The digest of {request.approval_id} is not that of its arguments: nothing was held"
            )
        on_dashboard = request.route is not Route.ELICITATION
        held_by = holder or self._holder.id
        with self._appending() as transaction:
            self._check(transaction)
            there = rows.entry(transaction, request.approval_id)
            if there is not None:
                if there.request.digest != request.digest or there.request.call_id != request.call_id:
                    raise InvalidArguments(f"The approval id {request.approval_id} is taken by another call")
                return there
            now = self._clock()
            body = {"request": request_json(request, shown=True), "on_dashboard": on_dashboard, "holder": held_by}
            event = rows.append(transaction, request.approval_id, Happening.OPENED, body, now)
            made = Entry(request, State.AWAITING, on_dashboard, None, "", now, held_by, event.seq, event.hash)
            rows.insert_entry(transaction, made)
        self._nudge()
        return made

    def show_on_dashboard(self, approval_id: str) -> Entry:
        """Let an inline entry be decided elsewhere too; see `port.Ledger`."""
        with self._changing(approval_id) as (transaction, entry):
            if entry.on_dashboard or entry.state is not State.AWAITING:
                return entry
            changed = self._add(transaction, entry, Happening.SHOWN, {}, on_dashboard=True)
        self._nudge()
        return changed

    def end(self, approval_id: str, state: EndState, reason: str = "") -> Entry:
        """End an entry unless something came first; see `port.Ledger`."""
        with self._changing(approval_id) as (transaction, entry):
            if state not in ENDS.get(entry.state, ()):
                return entry
            changed = self._end(transaction, entry, state, reason)
        self._nudge()
        return changed

    # -- a person's answer ---------------------------------------------------------------------------------------

    def decide(
        self,
        approval_id: str,
        decision: Verdict,
        approver: Approver,
        reason: str = "",
        arguments: Mapping[str, Any] | None = None,
        inline: bool = False,
    ) -> Entry:
        """Record a person's answer, once; see `port.Ledger`."""
        if decision not in ("approve", "reject"):
            raise InvalidArguments(f"A decision is approve or reject, not {decision!r}", fields={"decision": decision})
        refusal: MetaForgeError | None
        with self._changing(approval_id) as (transaction, entry):
            now = self._clock()
            if due := overdue(entry, now, self._holder.alive):
                entry = self._end(transaction, entry, *due)
            refusal = refusal_of_decision(
                entry, approver, now, inline=inline, agents_may_decide=self._agents_may_decide,
                approving=decision == "approve",
            )  # fmt: skip
            if refusal is None:
                made = _decision(entry.request, decision, approver, reason, arguments, now)
                state = State.APPROVED if decision == "approve" else State.REJECTED
                body = {**decision_json(made, shown=True), "inline": inline}
                entry = self._add(
                    transaction, entry, Happening.DECIDED, body, state=state, decision=made, updated_at=now
                )
        self._nudge()
        if refusal is not None:
            raise refusal
        return entry

    def claim(self, approval_id: str, digest: str, *, holder: str = "") -> Entry:
        """Take an approved entry to run its call, once; see `port.Ledger`."""
        run_by = holder or self._holder.id
        with self._changing(approval_id) as (transaction, entry):
            self._check(transaction)
            self._check_entry(transaction, entry)
            if (refusal := refusal_of_claim(entry, digest)) is not None:
                raise refusal
            body = {"digest": digest, "holder": run_by}
            changed = self._add(transaction, entry, Happening.CLAIMED, body, state=State.RUNNING, holder=run_by)
        self._nudge()
        return changed

    # -- looking -------------------------------------------------------------------------------------------------

    def get(self, approval_id: str) -> Entry:
        """Return an entry, ended first where nobody waits for it any more."""
        entry = self._read(approval_id)
        return self._read(approval_id) if self._end_overdue([entry]) else entry

    def entries(
        self, status: Status = "pending", project_id: str | None = None, limit: int = 100, before: str = ""
    ) -> list[Entry]:
        """Return entries, newest first; those nobody waits for any more are ended first."""
        asked = (status, project_id, min(max(limit, 1), MAX_LISTED_COUNT), before)

        def look() -> list[Entry]:
            with self._explained(), self._database.transaction(write=False) as transaction:
                return rows.listed(transaction, *asked)

        found = look()
        return look() if self._end_overdue(found) else found

    def heads(self, status: Status = "pending", project_id: str | None = None, limit: int = 100) -> dict[str, int]:
        """Return ids and the numbers of their last events; see `port.Ledger`."""
        with self._explained(), self._database.transaction(write=False) as transaction:
            return rows.heads(transaction, status, project_id, min(max(limit, 1), MAX_LISTED_COUNT))

    def expire(self, now: str = "") -> int:
        """End what nobody waits for any more; see `port.Ledger`."""
        moment, alive = now or self._clock(), cache(self._holder.alive)
        with self._explained(), self._database.transaction(write=False) as transaction:
            if not any(overdue(entry, moment, alive) for entry in rows.open_entries(transaction)):
                return 0
        count = 0
        with self._appending() as transaction:
            for entry in rows.open_entries(transaction):
                if due := overdue(entry, moment, alive):
                    self._end(transaction, entry, *due)
                    count += 1
        self._nudge()
        return count

    def verify(self, head: str = "") -> Verification:
        """Check the whole chain and every entry; a broken one refuses held writes in this process from then on."""
        with self._explained(), self._database.transaction(write=False) as transaction:
            found = verify(transaction, head)
        self._broken = None if found.sound else rows.broken(found.reason, found.broken_at or 0)
        return found

    def export(self) -> Iterator[str]:
        """Yield every event as a line of JSON, from one state of the store."""
        with self._explained(), self._database.transaction(write=False) as transaction:
            for event in rows.events(transaction):
                yield orjson.dumps(event.as_json()).decode()

    def close(self) -> None:
        """Do nothing: the store is the application's."""

    # -- inside --------------------------------------------------------------------------------------------------

    def _read(self, approval_id: str) -> Entry:
        with self._explained(), self._database.transaction(write=False) as transaction:
            return _there(rows.entry(transaction, approval_id), approval_id)

    def _end_overdue(self, entries: list[Entry]) -> bool:
        """End what is overdue among entries that were read; whoever may only read, reads on."""
        now, alive = self._clock(), cache(self._holder.alive)
        if not any(overdue(entry, now, alive) for entry in entries):
            return False
        try:
            return self.expire(now) > 0
        except LedgerUnavailable:
            return False

    @contextmanager
    def _changing(self, approval_id: str) -> Iterator[tuple[Transaction, Entry]]:
        with self._appending() as transaction:
            yield transaction, _there(rows.entry(transaction, approval_id), approval_id)

    @contextmanager
    def _appending(self) -> Iterator[Transaction]:
        with self._explained(), self._database.transaction(write=True) as transaction:
            rows.begin(transaction)
            yield transaction

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except StoreUnavailable as fault:
            raise LedgerUnavailable(
                f"The approval ledger cannot be used, so nobody is asked and no held write runs. {fault.message}"
            ) from None

    def _add(
        self, transaction: Transaction, entry: Entry, happening: Happening, body: dict[str, Any], **changes: Any
    ) -> Entry:
        now = changes.pop("updated_at", "") or self._clock()
        event = rows.append(transaction, entry.approval_id, happening, body, now)
        changed = replace(entry, **changes, updated_at=now, seq=event.seq, hash=event.hash)
        rows.update_entry(transaction, changed)
        return changed

    def _end(self, transaction: Transaction, entry: Entry, state: State, reason: str) -> Entry:
        body = {"state": state.value, "reason": reason}
        return self._add(transaction, entry, Happening.ENDED, body, state=state, ended_reason=reason)

    def _check(self, transaction: Transaction) -> None:
        """Refuse to hold or run anything on a broken chain: the tail at first use, all of it once `verify` told so."""
        if self._broken is not None:
            raise self._broken
        if not self._tail_is_checked:
            if (found := fault_in_tail(transaction)) is not None:
                raise rows.broken(found[1], found[0])
            self._tail_is_checked = True

    def _check_entry(self, transaction: Transaction, entry: Entry) -> None:
        """Believe an entry only as far as its events bear it out."""
        events = rows.events_of(transaction, entry.approval_id)
        for event in events:
            if fault := own_fault_of(event):
                raise rows.broken(fault, event.seq)
        try:
            told = told_by(events)
        except Impossible as fault:
            raise rows.broken(str(fault), entry.seq) from None
        if told is None or (told.state, told.digest) != (entry.state, entry.digest):
            raise rows.broken(f"{entry.approval_id} is not what its events tell", entry.seq)
        if entry.state is State.APPROVED and _digest(entry.request, entry.arguments) != entry.digest:
            raise rows.broken(f"the arguments of {entry.approval_id} are not those that were approved", entry.seq)
        if list(filter(None, map(mark_of, events))) != marks_of(entry):
            raise rows.broken(f"{entry.approval_id} does not say what was asked and decided", entry.seq)


def _there(entry: Entry | None, approval_id: str) -> Entry:
    if entry is None:
        raise UnknownApproval(f"There is no approval {approval_id}", approval_id=approval_id)
    return entry


def _digest(request: Request, arguments: Mapping[str, Any]) -> str:
    return call_digest(request.tool_id, arguments, request.project_id, request.caller.actor_id, request.adapter_version)


def _decision(
    request: Request,
    verdict: Verdict,
    approver: Approver,
    reason: str,
    arguments: Mapping[str, Any] | None,
    now: str,
) -> Decision:
    """Return the decision; arguments that are what was asked for are no change."""
    if verdict == "approve" and arguments is not None:
        complete = restored(arguments, request.arguments)
        digest = _digest(request, complete)
        if digest != request.digest:
            return Decision(verdict, approver, reason, now, complete, digest)
    return Decision(verdict, approver, reason, now, None, request.digest)

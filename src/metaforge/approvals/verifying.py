"""Checking the chain: whether anything in it was changed, left out, added or reordered outside the ledger."""

from metaforge.approvals import rows
from metaforge.approvals.chain import (
    GENESIS,
    Event,
    History,
    Impossible,
    after,
    fault_of,
    link_fault_of,
    own_fault_of,
)
from metaforge.approvals.model import Verification
from metaforge.approvals.wire import mark_of, marks_of
from metaforge.store.transaction import Transaction

TAIL_COUNT = 500
"""How many of the last events are checked at first use: a few milliseconds."""


def fault_in_tail(transaction: Transaction) -> tuple[int, str] | None:
    """Return the first of the last events that does not fit, and what is wrong with it."""
    last = rows.last_event(transaction)
    before: Event | None = None
    for event in rows.events(transaction, since=last.seq - TAIL_COUNT if last else 0):
        first_of_all = before is None and event.seq > 1
        fault = own_fault_of(event) if first_of_all else fault_of(event, before)
        if fault:
            return event.seq, fault
        before = event
    return None


def verify(transaction: Transaction, head: str) -> Verification:
    """Check every event, then every entry against its events.

    Args:
        transaction: one state of the store.
        head: a hash noted earlier; empty for none.
    """
    histories: dict[str, History] = {}
    marks: dict[str, list[str]] = {}
    before: Event | None = None
    head_is_there = not head or head == GENESIS
    count = 0
    for event in rows.events(transaction):
        if misfit := _misfit(event, before, histories):
            return Verification(count, before.hash if before else GENESIS, *misfit)
        if mark := mark_of(event):
            marks.setdefault(event.approval_id, []).append(mark)
        head_is_there = head_is_there or event.hash == head
        before = event
        count += 1
    reached = before.hash if before else GENESIS
    if not head_is_there:
        return Verification(count, reached, None, f"the noted head {head} is not in the chain: its end was removed or "
                            "all of it was written anew")  # fmt: skip
    found = _fault_in_entries(transaction, histories, marks)
    return Verification(count, reached, *found) if found else Verification(count, reached)


def _misfit(event: Event, before: Event | None, histories: dict[str, History]) -> tuple[int, str] | None:
    """Return the event that does not fit and why: the one before, where that was changed and given a new hash."""
    fault = fault_of(event, before) or _impossible(histories, event)
    if not fault:
        return None
    replaced = before is not None and event.seq == before.seq + 1 and not own_fault_of(event)
    return (before.seq if before and replaced and link_fault_of(event, before) else event.seq), fault


def _impossible(histories: dict[str, History], event: Event) -> str:
    try:
        histories[event.approval_id] = after(histories.get(event.approval_id), event)
    except (Impossible, KeyError, ValueError) as fault:
        return f"event {event.seq} cannot have happened: {fault}"
    return ""


def _fault_in_entries(
    transaction: Transaction, histories: dict[str, History], marks: dict[str, list[str]]
) -> tuple[int | None, str] | None:
    count = 0
    for entry in rows.every_entry(transaction):
        count += 1
        told = histories.get(entry.approval_id)
        if told != History(entry.state, entry.on_dashboard, entry.digest, entry.seq):
            return entry.seq, f"{entry.approval_id} says {entry.state.value}, which is not what its events tell"
        if marks_of(entry) != marks.get(entry.approval_id):
            return entry.seq, f"{entry.approval_id} does not say what was asked and decided"
    total = rows.entry_count(transaction)
    if count == total == len(histories):
        return None
    return (
        None,
        f"{total} entries, {count} of them with their last event, {len(histories)} in the chain: some are missing",
    )

"""The statements behind the ledger: appending to the chain, and the table of what it amounts to."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import orjson

from metaforge.approvals.chain import COLUMNS, GENESIS, Event, Happening, hash_of, own_fault_of
from metaforge.approvals.digest import canonical
from metaforge.approvals.faults import LedgerBroken
from metaforge.approvals.model import OPEN_STATES, Decision, Entry, Request, State, Status
from metaforge.approvals.wire import decision_from, decision_json, request_from, request_json
from metaforge.store.transaction import Row, Transaction

CHANNEL = "metaforge_approvals"
"""Where Postgres tells of each event: its number and approval."""

_APPEND_LOCK = 7_237_002
_OPEN = f"state in ({', '.join(repr(each.value) for each in sorted(OPEN_STATES))})"
_FIELDS = "request, state, on_dashboard, decision, ended_reason, updated_at, holder, last_seq, hash"
_FROM = "from approvals join approval_events on seq = last_seq"
_ENTRY = f"select {_FIELDS} {_FROM}"


def begin(transaction: Transaction) -> None:
    """Wait for the turn to append; on SQLite the transaction itself is the turn."""
    if transaction.postgres:
        transaction.run("select pg_advisory_xact_lock(?)", _APPEND_LOCK)


def append(transaction: Transaction, approval_id: str, happening: Happening, body: dict[str, Any], at: str) -> Event:
    """Add an event to the chain.

    Raises:
        LedgerBroken: the last event was changed; nothing may be added to it.
    """
    tail = last_event(transaction)
    if tail is not None and (fault := own_fault_of(tail)):
        raise broken(fault, tail.seq)
    seq, prev_hash = (tail.seq + 1, tail.hash) if tail else (1, GENESIS)
    text = canonical(body).decode()
    digest = hash_of(seq, approval_id, happening, text, at, prev_hash)
    event = Event(seq, approval_id, happening, text, at, prev_hash, digest)
    transaction.run(
        f"insert into approval_events ({COLUMNS}) values (?, ?, ?, ?, ?, ?, ?)",
        *(seq, approval_id, happening.value, text, at, prev_hash, digest),
    )
    if transaction.postgres:
        transaction.run("select pg_notify(?, ?)", CHANNEL, f"{seq} {approval_id}")
    return event


def broken(fault: str, seq: int) -> LedgerBroken:
    """Return the refusal of a ledger that something else wrote to."""
    return LedgerBroken(
        f"The approval ledger was changed outside MetaForge ({fault}), so no held write runs. "
        "`metaforge ledger verify` shows what does not fit; restore the store from a backup",
        broken_at=seq,
    )


def last_event(transaction: Transaction) -> Event | None:
    """Return the last event of all."""
    row = transaction.row(f"select {COLUMNS} from approval_events order by seq desc limit 1")
    return Event(*row) if row else None


def events(transaction: Transaction, since: int = 0) -> Iterator[Event]:
    """Yield the events after a number, in order."""
    for row in transaction.each(f"select {COLUMNS} from approval_events where seq > ? order by seq", since):
        yield Event(*row)


def events_of(transaction: Transaction, approval_id: str) -> list[Event]:
    """Return the events of one approval, in order."""
    query = f"select {COLUMNS} from approval_events where approval_id = ? order by seq"
    return [Event(*row) for row in transaction.rows(query, approval_id)]


def insert_entry(transaction: Transaction, entry: Entry) -> None:
    """Put a new entry into the table; its `seq` is the event that opened it.

    What everybody may see lies in `request` and `decision`; what only the call itself needs, secrets and long values,
    in `whole`, until the entry ends. So a list is small however much is asked for.
    """
    request = entry.request
    transaction.run(
        """
        insert into approvals (approval_id, first_seq, last_seq, tool_id, project_id, state, on_dashboard, holder,
                               request, whole, decision, ended_reason, expires_at, updated_at)
        values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', '', ?, ?)
        """,
        *(request.approval_id, entry.seq, entry.seq, request.tool_id, request.project_id, entry.state.value),
        *(int(entry.on_dashboard), entry.holder, _text(request_json(request, shown=True)), _whole(entry)),
        *(request.expires_at, entry.updated_at),
    )


def update_entry(transaction: Transaction, entry: Entry) -> None:
    """Write what became of an entry; of one that ended no secret is kept."""
    decision = _text(decision_json(entry.decision, shown=True)) if entry.decision else ""
    transaction.run(
        """
        update approvals set last_seq = ?, state = ?, on_dashboard = ?, holder = ?, request = ?, whole = ?,
                             decision = ?, ended_reason = ?, updated_at = ?
        where approval_id = ?
        """,
        *(entry.seq, entry.state.value, int(entry.on_dashboard), entry.holder),
        *(_text(request_json(entry.request, shown=True)), "" if entry.state.ended else _whole(entry), decision),
        *(entry.ended_reason, entry.updated_at, entry.approval_id),
    )


def entry(transaction: Transaction, approval_id: str) -> Entry | None:
    """Return one entry, with all that its call needs while it is open."""
    row = transaction.row(f"select whole, {_FIELDS} {_FROM} where approvals.approval_id = ?", approval_id)
    if row is None:
        return None
    whole, *rest = row
    found = _entry(tuple(rest))
    if not whole:
        return found
    told = json.loads(whole)
    request, decision = replace(found.request, arguments=told["asked"]), found.decision
    request.__dict__["shown"] = found.request.arguments  # which saves making it anew, from many megabytes perhaps
    if decision is not None and told["approved"] is not None:
        decision = replace(decision, arguments=told["approved"])
        decision.__dict__["shown"] = found.decision.arguments if found.decision else None
    return replace(found, request=request, decision=decision)


def _whole(entry: Entry) -> str:
    """Return what is not shown of an open entry's arguments as JSON; empty where all of it is."""
    request, decision = entry.request, entry.decision
    approved = decision.arguments if decision is not None else None
    if request.shown == request.arguments and (decision is None or decision.shown == approved):
        return ""
    return _text({"asked": dict(request.arguments), "approved": None if approved is None else dict(approved)})


def open_entries(transaction: Transaction) -> list[Entry]:
    """Return every entry to which something can still happen, oldest first, as everybody may see it."""
    return [_entry(row) for row in transaction.rows(f"{_ENTRY} where {_OPEN} order by first_seq")]


def every_entry(transaction: Transaction) -> Iterator[Entry]:
    """Yield every entry, oldest first."""
    for row in transaction.each(f"{_ENTRY} order by first_seq"):
        yield _entry(row)


def entry_count(transaction: Transaction) -> int:
    """Return how many entries the table has, whether or not their events are there."""
    return int(transaction.value("select count(*) from approvals"))


def listed(transaction: Transaction, status: Status, project_id: str | None, limit: int, before: str) -> list[Entry]:
    """Return entries, newest first, as everybody may see them."""
    where, values = _where(status, project_id)
    if before:
        where += " and first_seq < (select first_seq from approvals where approval_id = ?)"
        values.append(before)
    query = f"{_ENTRY} where {where} order by first_seq desc limit ?"
    return [_entry(row) for row in transaction.rows(query, *values, limit)]


def heads(transaction: Transaction, status: Status, project_id: str | None, limit: int) -> dict[str, int]:
    """Return ids, newest first, with the number of the last event of each."""
    where, values = _where(status, project_id)
    query = f"select approval_id, last_seq from approvals where {where} order by first_seq desc limit ?"
    return dict(transaction.rows(query, *values, limit))


def _where(status: Status, project_id: str | None) -> tuple[str, list[Any]]:
    conditions, values = ["true"], list[Any]()
    if status == "pending":
        conditions.append(f"{_OPEN} and state = ?")
        values.append(State.AWAITING.value)
    elif status == "decided":
        conditions.append("state <> ?")
        values.append(State.AWAITING.value)
    if project_id is not None:
        conditions.append("project_id = ?")
        values.append(project_id)
    return " and ".join(conditions), values


def _entry(row: Row) -> Entry:
    request, state, on_dashboard, decision, ended_reason, updated_at, holder, last_seq, digest = row
    return Entry(
        _request(request),
        State(state),
        bool(on_dashboard),
        _decision(decision),
        ended_reason,
        updated_at,
        holder,
        last_seq,
        digest,
    )


def _request(text: str) -> Request:
    return request_from(json.loads(text))


def _decision(text: str) -> Decision | None:
    return decision_from(json.loads(text)) if text else None


def _text(data: dict[str, Any]) -> str:
    return orjson.dumps(data).decode()

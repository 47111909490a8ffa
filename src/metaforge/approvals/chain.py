"""The chain of events: how each is bound to the one before, and what an approval's events amount to. No I/O."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from metaforge.approvals.model import State

GENESIS = "0" * 64
"""What the first event follows."""


class Happening(StrEnum):
    """The kinds of event."""

    OPENED = "opened"
    SHOWN = "shown_on_dashboard"
    DECIDED = "decided"
    CLAIMED = "claimed"
    ENDED = "ended"


ENDS: dict[State, frozenset[State]] = {
    State.AWAITING: frozenset({State.TIMED_OUT, State.CANCELED, State.FAILED}),
    State.APPROVED: frozenset({State.CANCELED, State.FAILED}),
    State.RUNNING: frozenset({State.COMPLETED, State.FAILED}),
}
"""How an entry may end, by where it is. What was begun is not called off: it was done, or it failed on the way."""


@dataclass(frozen=True)
class Event:
    """One row of the ledger."""

    seq: int
    approval_id: str
    event: str
    body: str
    """Canonical JSON."""
    at: str
    prev_hash: str
    hash: str

    def as_json(self) -> dict[str, Any]:
        """Return it as one object whose `body` is still the text that the hash is over."""
        return {
            "seq": self.seq,
            "approval_id": self.approval_id,
            "event": self.event,
            "body": self.body,
            "at": self.at,
            "prev_hash": self.prev_hash,
            "hash": self.hash,
        }


COLUMNS = "seq, approval_id, event, body, at, prev_hash, hash"
"""The columns of an Event, in order."""


def hash_of(seq: int, approval_id: str, event: str, body: str, at: str, prev_hash: str) -> str:
    """Return the SHA-256 of an event: over its fields in UTF-8, joined by line feeds, which none of them holds."""
    text = "\n".join((prev_hash, str(seq), approval_id, event, at, body))
    return hashlib.sha256(text.encode()).hexdigest()


def fault_of(event: Event, before: Event | None) -> str:
    """Say what is wrong with an event that follows another; empty when it fits."""
    expected = before.seq + 1 if before else 1
    if event.seq != expected:
        return f"event {expected} is missing" if event.seq > expected else f"event {event.seq} is there twice"
    return own_fault_of(event) or link_fault_of(event, before)


def own_fault_of(event: Event) -> str:
    """Say whether an event was changed since it was written; empty when it was not."""
    told = hash_of(event.seq, event.approval_id, event.event, event.body, event.at, event.prev_hash)
    return "" if told == event.hash else f"event {event.seq} was changed: its content does not give its hash"


def link_fault_of(event: Event, before: Event | None) -> str:
    """Say whether an event follows another one than it was written after; empty when it does not."""
    if event.prev_hash == (before.hash if before else GENESIS):
        return ""
    return f"event {event.seq} does not follow the one before it: that one was replaced"


@dataclass(frozen=True)
class History:
    """What an approval's events amount to."""

    state: State
    on_dashboard: bool
    digest: str
    """Of the call that was asked about, or of what was approved instead."""
    last_seq: int


class Impossible(ValueError):
    """Events in an order that the ledger never writes."""


def told_by(events: Iterable[Event]) -> History | None:
    """Return what events of one approval amount to, or None where there are none; raises Impossible."""
    history: History | None = None
    for event in events:
        history = after(history, event)
    return history


def after(history: History | None, event: Event) -> History:
    """Return the history with one more event; raises Impossible where it cannot follow."""
    body = json.loads(event.body)
    if history is None:
        if event.event != Happening.OPENED:
            raise Impossible(f"{event.approval_id} was {event.event} before it was opened")
        request = body["request"]
        return History(State.AWAITING, body["on_dashboard"], request["digest"], event.seq)
    known = replace(history, last_seq=event.seq)
    state = history.state
    if event.event == Happening.SHOWN and state is State.AWAITING:
        return replace(known, on_dashboard=True)
    if event.event == Happening.DECIDED and state is State.AWAITING:
        approved = body["decision"] == "approve"
        return replace(known, state=State.APPROVED if approved else State.REJECTED, digest=body["digest"])
    if event.event == Happening.CLAIMED and state is State.APPROVED and body["digest"] == history.digest:
        return replace(known, state=State.RUNNING)
    if event.event == Happening.ENDED and body["state"] in ENDS.get(state, ()):
        return replace(known, state=State(body["state"]))
    raise Impossible(f"{event.approval_id} was {event.event} while it was {state.value}")

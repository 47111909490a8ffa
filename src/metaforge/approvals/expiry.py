"""When an entry that nobody waits for any more ends, and as what. No I/O."""

from collections.abc import Callable

from metaforge.approvals.model import ORPHAN_SECONDS, Entry, State, later
from metaforge.approvals.port import EndState

LONGEST_RUN_SECONDS = 3600.0
"""No call runs longer; one whose process cannot be seen is given up after it."""


def overdue(entry: Entry, now: str, alive: Callable[[str], bool | None]) -> tuple[EndState, str] | None:
    """Return how an entry is to be ended that its holder left, or None.

    Args:
        entry: the entry.
        now: the time.
        alive: whether a holder's process lives; None where that cannot be seen.
    """
    if entry.state.ended:
        return None
    dead = alive(entry.holder) is False
    orphaned = now >= later(entry.request.expires_at, ORPHAN_SECONDS)
    if entry.state is State.AWAITING:
        if orphaned or (dead and now >= entry.request.expires_at):
            return State.TIMED_OUT, "nobody answered, and the server that held the call never said so"
        return (State.CANCELED, "the server that held the call has ended") if dead else None
    if entry.state is State.APPROVED:
        if dead or (orphaned and alive(entry.holder) is None):
            return State.FAILED, "it was approved, and the server ended before it ran: nothing was done"
        return None
    given_up = alive(entry.holder) is None and now >= later(entry.updated_at, LONGEST_RUN_SECONDS + ORPHAN_SECONDS)
    if dead or given_up:
        return State.FAILED, "the server ended while it ran: look what was done before asking for it again"
    return None

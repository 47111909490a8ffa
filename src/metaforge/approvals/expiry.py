"""When an entry that nobody waits for any more ends, and as what. No I/O."""

from collections.abc import Callable

from metaforge.approvals.model import ORPHAN_SECONDS, Entry, State, later
from metaforge.approvals.port import EndState

LONGEST_RUN_SECONDS = 3600.0
"""No call runs longer; one whose process cannot be seen is given up after it."""
LEFT_SECONDS = 600.0
"""An approved call begins within seconds; one that has not so long after its window never will."""
FORGOTTEN_SECONDS = 2 * LONGEST_RUN_SECONDS
"""After so long a living process has lost what became of a call: it could not write it down."""


def overdue(entry: Entry, now: str, alive: Callable[[str], bool | None]) -> tuple[EndState, str] | None:
    """Return how an entry is to be ended that its holder left, or None.

    Args:
        entry: the entry.
        now: the time.
        alive: whether a holder's process lives; None where that cannot be seen.
    """
    if entry.state.ended:
        return None
    lives = alive(entry.holder)
    dead = lives is False
    orphaned = now >= later(entry.request.expires_at, ORPHAN_SECONDS)
    if entry.state is State.AWAITING:
        if orphaned or (dead and now >= entry.request.expires_at):
            return State.TIMED_OUT, "nobody answered, and the server that held the call never said so"
        return (State.CANCELED, "the server that held the call has ended") if dead else None
    if entry.state is State.APPROVED:
        if dead or (orphaned and lives is None):
            return State.FAILED, "it was approved, and the server ended before it ran: nothing was done"
        if lives and now >= later(entry.request.expires_at, LEFT_SECONDS):
            return State.FAILED, "it was approved, and the server never began to run it: nothing was done"
        return None
    longest = FORGOTTEN_SECONDS if lives else LONGEST_RUN_SECONDS + ORPHAN_SECONDS
    if dead or now >= later(entry.updated_at, longest):
        ended = "never said how it ended" if lives else "ended while it ran"
        return State.FAILED, f"the server {ended}: look what was done before asking for it again"
    return None

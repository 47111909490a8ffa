"""What the rest of the house needs of a ledger and of a waker. No I/O here.

`SqlLedger` keeps the entries in the store; `GatewayLedger` reaches those of a gateway over HTTP.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, Protocol

from metaforge.approvals.model import Approver, Entry, Request, State, Status, Verdict, Verification

EndState = Literal[State.TIMED_OUT, State.CANCELED, State.COMPLETED, State.FAILED]


class Ledger(Protocol):
    """Entries, and the only ways in which they change.

    Synchronous: every method blocks for one short transaction, from any thread and any process, and what it
    returned is on disk. Each raises LedgerUnavailable when it cannot record.
    """

    def open(self, request: Request, *, holder: str = "") -> Entry:
        """Record a request before anyone is asked.

        Args:
            request: the call, its arguments complete.
            holder: who waits for it; this process by default.
        """
        ...

    def get(self, approval_id: str) -> Entry:
        """Return an entry; raises UnknownApproval."""
        ...

    def entries(
        self, status: Status = "pending", project_id: str | None = None, limit: int = 100, before: str = ""
    ) -> list[Entry]:
        """Return entries, newest first, with their arguments as `showing.shown_arguments` tells them.

        Args:
            status: `pending` awaits a person; `decided` is everything else.
            project_id: of one project only.
            limit: at most so many.
            before: an approval id; entries older than it.
        """
        ...

    def heads(self, status: Status = "pending", project_id: str | None = None, limit: int = 100) -> dict[str, int]:
        """Return the ids of entries, newest first, and the number of the last event of each: for counting and noticing.

        Args:
            status, project_id, limit: as `entries` takes them; nothing is ended first.
        """
        ...

    def show_on_dashboard(self, approval_id: str) -> Entry:
        """Let an entry that was asked in the client be decided elsewhere too; an ended one stays as it is."""
        ...

    def decide(
        self,
        approval_id: str,
        decision: Verdict,
        approver: Approver,
        reason: str = "",
        arguments: Mapping[str, Any] | None = None,
        inline: bool = False,
    ) -> Entry:
        """Record a person's answer; of any number at once exactly one is taken.

        Args:
            approval_id: the entry.
            decision: approve or reject.
            approver: who decides, from the authenticated surface.
            reason: their words.
            arguments: what to run instead; values shown as redacted stand for the ones that were hidden.
            inline: whether it answers the question in the client that made the call.

        Raises:
            UnknownApproval: no such entry.
            NotDecidable: it is decided, ended or past its window, is to be answered in the client, or is not this
                approver's to decide.
            InvalidArguments: the changed arguments cannot be carried.
        """
        ...

    def claim(self, approval_id: str, digest: str, *, holder: str = "") -> Entry:
        """Take an approved entry to run its call, once; raises NotClaimable otherwise, and nothing may run then.

        Args:
            approval_id: the entry.
            digest: of the call that is about to run, computed anew from it.
            holder: who runs it; this process by default.
        """
        ...

    def end(self, approval_id: str, state: EndState, reason: str = "") -> Entry:
        """End an entry; return it as it is where a decision or another end came first.

        The waiter ends it `timed_out` or `canceled` while it awaits an answer; `canceled` also ends an approved entry
        whose call nobody waits for any more, never one that was claimed; `completed` and `failed` end one that was
        claimed, and `failed` an approved one that cannot run.
        """
        ...

    def expire(self, now: str = "") -> int:
        """End entries nobody waits for: 30 s after their window, or at once where their process is known dead.

        Args:
            now: the time; the present one by default.

        Returns:
            How many were ended.
        """
        ...

    def verify(self, head: str = "") -> Verification:
        """Check every event against the chain, and every entry against its events.

        Args:
            head: a hash noted earlier, which must be in the chain.
        """
        ...

    def export(self) -> Iterator[str]:
        """Yield every event as one line of JSON, oldest first."""
        ...

    def close(self) -> None:
        """Close connections of its own; it may be used again."""
        ...


class Waker(Protocol):
    """Wakes those who wait for an entry, in this process and in others."""

    async def wait(self, approval_id: str, until: float) -> None:
        """Return when the entry may have changed since it was opened, at once if it no longer awaits an answer.

        Args:
            approval_id: the entry.
            until: a reading of `time.monotonic()` at which to return in any case.
        """
        ...

    async def changed(self, seen: int, until: float) -> int:
        """Wait for anything in the ledger to change, for live pages.

        Args:
            seen: the number returned before, 0 at first.
            until: a reading of `time.monotonic()` at which to return in any case.

        Returns:
            The number of the ledger's last event.
        """
        ...

    def nudge(self) -> None:
        """Say that something was committed, from any thread."""
        ...

    async def close(self) -> None:
        """Stop watching."""
        ...

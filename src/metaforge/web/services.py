"""What routes and pages need of the server behind them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from metaforge.twin.model import Reader

if TYPE_CHECKING:
    from metaforge.approvals.model import Approver, Entry, Verdict
    from metaforge.approvals.port import Ledger, Waker
    from metaforge.record.queries import CallLog
    from metaforge.record.resources import Resources
    from metaforge.settings import Settings
    from metaforge.twin.services import TwinServices
    from metaforge.twin.view import View

T = TypeVar("T")


class Access(Protocol):
    """Judges the headers of a request."""

    mode: str

    def foreign(self, headers: Mapping[bytes, bytes]) -> str:
        """Say why a request comes from a page it should not come from; empty when it does not."""
        ...

    def denied(self, headers: Mapping[bytes, bytes]) -> str:
        """Say why a request is not authenticated; empty when it is."""
        ...


@dataclass(frozen=True)
class Services:
    """The server as routes and pages see it. What blocks is asked through the methods, which use threads.

    Attributes:
        ledger: approvals of held calls; its methods block.
        waker: tells of changes of the ledger, of this process and others.
        twin: the design record.
        calls: the record of calls; its methods block.
        resources: contents by `metaforge://` address, such as pictures and models.
        settings: what this process was told.
        access: who may come in.
        health: asks every adapter and returns the roll-up.
    """

    ledger: "Ledger"
    waker: "Waker"
    twin: "TwinServices"
    calls: "CallLog"
    resources: "Resources"
    settings: "Settings"
    access: Access
    health: Callable[[], Awaitable[dict[str, Any]]]

    async def read(self, work: "Callable[[View], T]", *, project_id: str = "") -> T:
        """Run `work` on what everybody sees of the design record: approved heads and closed revisions, no run's drafts.

        Args:
            work: reads only; nothing of the view may be used after it returns.
            project_id: whose keys are read first.

        Raises:
            ToolError: what `work` raises.
            StoreUnavailable: the database cannot be used; the message says what to do.
        """

        def look() -> T:
            with self.twin.store.read(Reader("", project_id)) as view:
                return work(view)

        return await asyncio.to_thread(look)

    async def decide(
        self,
        approval_id: str,
        decision: "Verdict",
        approver: "Approver",
        reason: str = "",
        arguments: Mapping[str, Any] | None = None,
    ) -> "Entry":
        """Decide a waiting entry and wake the call that waits for it.

        Args:
            approval_id: `run_` and 16 hex digits.
            decision: approve or reject.
            approver: who decides, as the request's access rules know them, never from its body.
            reason: why; shown to the agent.
            arguments: edited arguments that the call shall run with instead of its own.

        Raises:
            UnknownApproval: there is no such entry.
            NotDecidable: it was decided, has ended, or may not be decided here or by this approver.
            InvalidArguments: the edited arguments cannot be carried.
        """
        entry = await asyncio.to_thread(
            lambda: self.ledger.decide(approval_id, decision, approver, reason=reason, arguments=arguments)
        )
        self.waker.nudge()
        return entry

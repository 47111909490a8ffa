"""What routes and pages need of the server behind them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from metaforge.twin.model import Reader

if TYPE_CHECKING:
    from metaforge.access.browser import Browser
    from metaforge.access.judge import Access
    from metaforge.approvals.model import Approver, Entry, Verdict
    from metaforge.approvals.port import Ledger, Waker
    from metaforge.record.queries import CallLog
    from metaforge.record.resources import Resources
    from metaforge.settings import Settings
    from metaforge.twin.change import Change
    from metaforge.twin.measuring import Catalogue, Engine
    from metaforge.twin.services import TwinServices
    from metaforge.twin.view import View

T = TypeVar("T")


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
        browser: people who signed in, and the tokens of their forms.
        health: asks every adapter and returns the roll-up.
        agents_may_decide: whether an agent may decide what is a person's alone.
        engine: runs the conversion behind the 3-D view; without one there is none.
        catalogue: knows that tool.
    """

    ledger: "Ledger"
    waker: "Waker"
    twin: "TwinServices"
    calls: "CallLog"
    resources: "Resources"
    settings: "Settings"
    access: "Access"
    browser: "Browser"
    health: Callable[[], Awaitable[dict[str, Any]]]
    agents_may_decide: bool = False
    engine: "Engine | None" = None
    catalogue: "Catalogue | None" = None

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

    async def change(self, work: "Callable[[Change], T]", *, author: str, project_id: str = "") -> T:
        """Run `work` in one change of the design record, written when this returns or not at all.

        Args:
            work: what to write; see `twin.change.Change`.
            author: who writes, as the request's access rules know them.
            project_id: where new things belong.

        Raises:
            ToolError: what `work` raises, or `unknown_project`.
            StoreUnavailable: the database cannot be used; the message says what to do.
        """

        def write() -> T:
            with self.twin.store.change(author=author, project_id=project_id) as change:
                return work(change)

        return await asyncio.to_thread(write)

    async def decide(
        self,
        approval_id: str,
        decision: "Verdict",
        approver: "Approver",
        reason: str = "",
        arguments: Mapping[str, Any] | None = None,
    ) -> "Entry":
        """Decide a waiting entry; the call that waits for it goes on at once.

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
        return await asyncio.to_thread(
            lambda: self.ledger.decide(approval_id, decision, approver, reason=reason, arguments=arguments)
        )

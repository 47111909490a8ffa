"""Drive holds: carry out what each asks for, and tell it what happens, until the ledger says how it ended."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from math import inf
from typing import Any

from metaforge.approvals import outcomes, questions
from metaforge.approvals.faults import LedgerUnavailable, NotDecidable
from metaforge.approvals.held import Client, inline_approver
from metaforge.approvals.hold import (
    Ask,
    AskFailed,
    Close,
    Decide,
    Effect,
    Event,
    Gone,
    Hold,
    Learned,
    Report,
    ShowOnDashboard,
    Ticked,
    Withdraw,
)
from metaforge.approvals.model import Entry, Route
from metaforge.approvals.port import Ledger, Waker
from metaforge.core.errors import MetaForgeError
from metaforge.telemetry import logs

Spawn = Callable[[Coroutine[Any, Any, Any]], "asyncio.Task[Any]"]


@dataclass
class Waiting:
    """One hold under way.

    Attributes:
        route: where the question is now.
        to_do: what the hold has asked for and nobody has done yet.
        reply: the question in the client, while it is open.
    """

    entry: Entry
    hold: Hold
    to_do: deque[Effect]
    client: Client | None = None
    route: Route = Route.DASHBOARD
    reply: "asyncio.Task[dict[str, Any]] | None" = field(default=None, repr=False)

    def take(self, event: Event) -> None:
        """Let the hold see an event."""
        self.hold, effects = self.hold.handle(event, time.monotonic())
        self.to_do.extend(effects)


class Driver:
    """Drives any number of holds, each in its own call's task.

    Args:
        spawn: starts work that goes on when the call is cancelled.
    """

    def __init__(self, ledger: Ledger, waker: Waker, dashboard_url: str, spawn: Spawn) -> None:
        self._ledger = ledger
        self._waker = waker
        self._dashboard_url = dashboard_url
        self._spawn = spawn

    async def drive(self, waiting: Waiting) -> Entry:
        """Wait for a person's answer or the end of the window.

        Returns:
            The entry as it ended: approved, or not.

        Raises:
            LedgerUnavailable: the answer or the end cannot be written down.
            asyncio.CancelledError: nobody waits any more; `leave` says so to the client and the ledger.
        """
        while True:
            while waiting.to_do:
                await self._perform(waiting, waiting.to_do.popleft())
            if waiting.hold.has_ended:
                return waiting.entry
            waiting.take(await self._next(waiting))

    def leave(self, waiting: Waiting, reason: str) -> None:
        """Withdraw the question at once, and end the entry soon: the call was cancelled."""
        waiting.to_do.clear()
        waiting.take(Gone(reason))
        for effect in waiting.to_do:
            if isinstance(effect, Withdraw) and waiting.client is not None:
                waiting.client.withdraw(effect.reason)
            elif isinstance(effect, Close):
                self._spawn(asyncio.to_thread(self._ledger.end, waiting.entry.approval_id, effect.state, effect.reason))
        waiting.to_do.clear()
        if waiting.reply is not None:
            waiting.reply.cancel()

    # -- what a hold asks for --------------------------------------------------------------------------------------

    async def _perform(self, waiting: Waiting, effect: Effect) -> None:
        match effect:
            case Ask():
                await self._ask(waiting)
            case Report():
                self._report(waiting, effect)
            case Withdraw():
                await self._withdraw(waiting, effect.reason)
            case ShowOnDashboard():
                await self._show(waiting)
            case Decide():
                await self._decide(waiting, effect)
            case Close():
                await self._settle(
                    waiting, lambda: self._ledger.end(waiting.entry.approval_id, effect.state, effect.reason)
                )

    async def _ask(self, waiting: Waiting) -> None:
        if waiting.client is None:
            return
        request = waiting.entry.request
        message = questions.question(request)
        waiting.reply = asyncio.ensure_future(waiting.client.ask(message, questions.SCHEMA))
        await asyncio.sleep(0)  # the question is on its way when anything else is sent

    def _report(self, waiting: Waiting, effect: Report) -> None:
        if waiting.client is not None:
            message = outcomes.waiting_message(waiting.entry.request, waiting.route, self._dashboard_url)
            waiting.client.report_waiting(effect.elapsed_seconds, effect.total_seconds, message)

    async def _withdraw(self, waiting: Waiting, reason: str) -> None:
        reply, waiting.reply = waiting.reply, None
        if waiting.client is None or reply is None:
            return
        waiting.client.withdraw(reason)
        await asyncio.wait([reply])
        if not reply.cancelled() and reply.exception() is None:
            logs.event("mcp_elicitation_late_response_ignored", "warning", approval_id=waiting.entry.approval_id)

    async def _show(self, waiting: Waiting) -> None:
        await self._settle(waiting, lambda: self._ledger.show_on_dashboard(waiting.entry.approval_id))
        waiting.route = Route.BOTH if waiting.hold.is_asked else Route.DASHBOARD
        logs.event(
            "mcp_tool_call_hold_opened_on_dashboard", approval_id=waiting.entry.approval_id,
            tool_id=waiting.entry.request.tool_id, is_still_asked_inline=waiting.hold.is_asked,
        )  # fmt: skip
        if waiting.hold.report_at < inf:
            now = time.monotonic()
            began, ends = waiting.hold.began_at, waiting.hold.ends_at
            self._report(waiting, Report(round(now - began, 3), round(ends - began, 3)))

    async def _decide(self, waiting: Waiting, effect: Decide) -> None:
        request = waiting.entry.request
        approver = inline_approver(request.caller)

        def decide() -> Entry:
            try:
                return self._ledger.decide(
                    request.approval_id, effect.verdict, approver, reason=effect.reason, inline=True
                )
            except NotDecidable:
                return self._ledger.get(request.approval_id)

        await self._settle(waiting, decide)

    async def _settle(self, waiting: Waiting, change: Callable[[], Entry]) -> None:
        """Change the entry, and let the hold see what it is then."""
        waiting.entry = await asyncio.to_thread(change)
        waiting.take(Learned(waiting.entry.state))

    # -- what happens to it ----------------------------------------------------------------------------------------

    async def _next(self, waiting: Waiting) -> Event:
        """Wait for the client's answer, for news of the ledger's, or for the time to come."""
        approval_id, until, reply = waiting.entry.approval_id, waiting.hold.next_wake, waiting.reply
        if reply is None:
            await self._waker.wait(approval_id, until)
        else:
            news = asyncio.ensure_future(self._waker.wait(approval_id, until))
            try:
                await asyncio.wait({reply, news}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                news.cancel()
            if reply.done():
                waiting.reply = None
                return _said(reply)
        if time.monotonic() >= until:
            return Ticked()
        try:
            waiting.entry = await asyncio.to_thread(self._ledger.get, approval_id)
        except LedgerUnavailable:
            return Ticked()
        return Learned(waiting.entry.state)


def _said(reply: "asyncio.Task[dict[str, Any]]") -> Event:
    """Return the client's answer as an event; whatever else came of the question is a failure to ask."""
    if reply.cancelled():
        return AskFailed()
    fault = reply.exception()
    if fault is None:
        return questions.read_answer(reply.result())
    if not isinstance(fault, MetaForgeError):
        raise fault
    logs.event("mcp_elicitation_failed", "warning", reason=str(fault))
    return AskFailed()

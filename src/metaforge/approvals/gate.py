"""Between the approve stage and the engine: a person is asked about a call, and it runs once if they say yes.

A held call costs a waiting task and nothing else: no polling, no thread of its own.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from math import inf
from typing import Any, Protocol

from metaforge.approvals import outcomes, questions
from metaforge.approvals.digest import call_digest
from metaforge.approvals.driving import Driver, Waiting
from metaforge.approvals.faults import UnknownApproval
from metaforge.approvals.held import Asking, C, Client, HeldCall, Revise, asking_about, kind_of
from metaforge.approvals.hold import AskFailed, Hold, Learned
from metaforge.approvals.model import (
    Entry,
    Request,
    Route,
    State,
    later,
    new_approval_id,
    seconds_between,
)
from metaforge.approvals.policy import Policy
from metaforge.approvals.port import Ledger, Waker
from metaforge.approvals.preview import Preview, Previewer
from metaforge.approvals.room import Place, Room
from metaforge.approvals.running import Runner
from metaforge.core.clock import utc_now
from metaforge.core.errors import MetaForgeError
from metaforge.protocol.request_state import BadRequestState
from metaforge.settings import Settings
from metaforge.telemetry import logs
from metaforge.tools.context import Outcome

QUESTION = "approval"
"""Names the question of a call that is sent away and comes back with the answer."""
LATE_SECONDS = 600.0
"""How long after its window a call that comes back is still told what became of it."""
_LEAVING_SECONDS = 0.2
_SILENT_SECONDS = 0.5
"""How long a client hears nothing while it is worked out what its call would change."""
_GONE = "nobody waits for the call any more: its client left or cancelled it, or the server shut down"
_SHUT_DOWN = "the server shut down"
_NOT_FETCHED = "it was approved, and its client did not come back for it within the window: nothing was done"
_PREPARING = "{tool_id} waits for human approval; what it would change is being worked out."


class Once(Protocol):
    """Marks a token as used, across processes."""

    def use(self, token: str) -> bool:
        """Return whether this is its first use."""
        ...


class Versions(Protocol):
    """Which version of an adapter serves: `registry.registry.ToolRegistry`."""

    def adapter_version(self, adapter_id: str) -> str: ...


class Gate:
    """Holds calls for a person.

    Args:
        ledger: where every request and answer is written down, before anybody acts on it.
        waker: tells when an entry may have changed.
        once: sees to it that a call comes back with its answer once.
        settings: windows, route and dashboard.
        policy: says why a call is held.
        previewer: says what it would change.
        versions: of adapters, which an approval is bound to.
        announce: tells people elsewhere that a call waits.
    """

    def __init__(
        self,
        ledger: Ledger,
        waker: Waker,
        once: Once,
        settings: Settings,
        policy: Policy,
        previewer: Previewer,
        versions: Versions,
        announce: Callable[[Entry], None] = lambda entry: None,
    ) -> None:
        self.ledger = ledger
        self._once = once
        self._settings = settings
        self._policy = policy
        self._previewer = previewer
        self._versions = versions
        self._announce = announce
        self._room = Room()
        self._driver = Driver(ledger, waker, settings.dashboard_url, self._spawn)
        self._runner = Runner(ledger, previewer, self.digest, self._spawn)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._parked: dict[str, asyncio.Task[None]] = {}
        self._driven = 0
        self._is_closing = False

    async def hold(self, call: C, proceed: Callable[[C], Awaitable[Outcome]], revise: Revise[C]) -> Outcome:
        """Ask a person about a call, and run it once if they approve.

        Args:
            call: resolved, scoped and validated.
            proceed: runs a call.
            revise: makes the approved call of it.

        Raises:
            NotApproved: it was not approved, or the ledger cannot record it; nothing ran.
            InputRequired: the call is to be sent again with the person's answer.
            MetaForgeError: what the call itself raises, before anyone is asked or when it runs.
        """
        is_back = call.ask is not None and call.ask.carried is not None
        place = self._room.take(call.caller, call.arguments, is_back=is_back)
        try:
            waiting = await self._wait(call, place)
        finally:
            if not place.is_kept:
                place.leave()
        held_seconds = seconds_between(waiting.entry.request.created_at, utc_now())
        _log_ended(waiting, held_seconds)
        if waiting.entry.state is State.APPROVED:
            return await self._runner.run(call, proceed, revise, waiting.entry, held_seconds)
        raise outcomes.not_approved(waiting.entry, waiting.route, self._settings.dashboard_url, held_seconds)

    async def _wait(self, call: HeldCall, place: Place) -> Waiting:
        """Wait until a call is decided or its hold has ended."""
        client: Client | None = call.ask
        if client is not None and client.carried is not None:
            waiting = await self._come_back(call, client, client.carried)
        else:
            waiting = await self._begin(call, client, place)
        if not waiting.hold.has_ended:
            await self._drive(waiting)
        return waiting

    async def close(self) -> None:
        """End what still waits, and finish what is being written down."""
        self._is_closing = True
        until = time.monotonic() + _LEAVING_SECONDS
        while self._driven and time.monotonic() < until:  # noqa: ASYNC110 - cancelled calls hand over what they leave
            await asyncio.sleep(0.005)
        self._runner.close()
        parked, self._parked = self._parked, {}
        for approval_id, task in parked.items():
            task.cancel()
            self._spawn(asyncio.to_thread(self.ledger.end, approval_id, State.CANCELED, _SHUT_DOWN))
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def _drive(self, waiting: Waiting) -> None:
        self._driven += 1
        try:
            await self._driver.drive(waiting)
        except BaseException:
            self._driver.leave(waiting, self._why_gone())
            raise
        finally:
            self._driven -= 1

    # -- a call that is held ---------------------------------------------------------------------------------------

    async def _begin(self, call: HeldCall, client: Client | None, place: Place) -> Waiting:
        """Write the request down and begin to ask."""
        asking = asking_about(call, self._settings)
        preview = await self._preview(call, client, asking)
        # Arguments of many megabytes take a while to be written down canonically: not on the loop that serves others.
        request = await asyncio.to_thread(self._request, call, asking, preview)
        waiting = self._waiting(await self._open(request), client, asking)
        _log_held(waiting, asking)
        self._announce(waiting.entry)
        if client is None:
            entry, url = waiting.entry, self._settings.dashboard_url
            call.progress(0.0, outcomes.waiting_message(entry.request, waiting.route, url))
        if client is not None and asking.inline and client.comes_back:
            self._park(waiting, place)
            raise self._sent_away(waiting.entry, client)
        return waiting

    async def _preview(self, call: HeldCall, client: Client | None, asking: Asking) -> Preview:
        """Say what a call would change; where that takes a while, its client is told."""
        message = _PREPARING.format(tool_id=call.resolved().id)
        told: asyncio.TimerHandle | None = None
        if asking.progress and client is not None:
            loop = asyncio.get_running_loop()
            told = loop.call_later(_SILENT_SECONDS, client.report_waiting, 0.0, asking.window_seconds, message)
        try:
            return await self._previewer.preview(call)
        finally:
            if told is not None:
                told.cancel()

    def _request(self, call: HeldCall, asking: Asking, preview: Preview) -> Request:
        tool, now = call.resolved(), utc_now()
        return Request(
            approval_id=new_approval_id(),
            call_id=call.id,
            tool_id=tool.id,
            kind=kind_of(call),
            effect=call.effect,
            arguments=call.arguments,
            digest=self.digest(call),
            adapter_version=self._versions.adapter_version(tool.adapter_id),
            project_id=call.project_id,
            run_id=call.run_id,
            caller=call.caller,
            title=tool.name,
            summary=preview.summary,
            reason_held=self._policy.reason(tool, call.effect),
            route=asking.route,
            created_at=now,
            expires_at=later(now, asking.window_seconds),
            window_seconds=asking.window_seconds,
            change=preview.change(),
        )

    def digest(self, call: HeldCall) -> str:
        """Return what an approval of a call is bound to; raises InvalidArguments where it has no canonical form."""
        tool = call.resolved()
        version = self._versions.adapter_version(tool.adapter_id)
        return call_digest(tool.id, call.arguments, call.project_id, call.caller.actor_id, version)

    async def _open(self, request: Request) -> Entry:
        """Write a request down; one that nobody waits for by then is ended."""
        opening = self._spawn(asyncio.to_thread(self.ledger.open, request))
        try:
            opened: Entry = await asyncio.shield(opening)
        except asyncio.CancelledError:
            self._spawn(self._end_opened(opening, request.approval_id, self._why_gone()))
            raise
        return opened

    async def _end_opened(self, opening: "asyncio.Task[Entry]", approval_id: str, reason: str) -> None:
        await asyncio.wait([opening])
        if opening.exception() is None:
            await asyncio.to_thread(self.ledger.end, approval_id, State.CANCELED, reason)

    def _waiting(
        self, entry: Entry, client: Client | None, asking: Asking, *, elapsed_seconds: float | None = None
    ) -> Waiting:
        settings, now = self._settings, time.monotonic()
        hold, effects = Hold.begin(
            now,
            window_seconds=asking.window_seconds,
            inline=asking.inline,
            dashboard=asking.dashboard,
            rescue_seconds=settings.approval_rescue_seconds if asking.inline else inf,
            report_seconds=settings.approval_progress_interval_seconds if asking.progress else None,
            began_at=None if elapsed_seconds is None else now - elapsed_seconds,
        )
        return Waiting(entry, hold, deque(effects), client, asking.route)

    def _why_gone(self) -> str:
        return _SHUT_DOWN if self._is_closing else _GONE

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Start work that goes on when the call is cancelled."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (fault := task.exception()) is not None:
            logs.event("approval_ledger_write_failed", "error", reason=str(fault))

    # -- a call that is sent away and comes back -------------------------------------------------------------------

    def _sent_away(self, entry: Entry, client: Client) -> Exception:
        """Return what to raise for the client to ask its person and to send the call again with the answer."""
        request = entry.request
        left_seconds = request.window_seconds - seconds_between(request.created_at, utc_now())
        carried = {QUESTION: entry.approval_id}
        until = time.time() + left_seconds + LATE_SECONDS
        return client.send_away(QUESTION, questions.question(request), questions.SCHEMA, carried, until)

    def _park(self, waiting: Waiting, place: Place) -> None:
        """Wait for the dashboard, or the end, while the client has the call."""
        waiting.client = None
        task = self._parked[waiting.entry.approval_id] = asyncio.ensure_future(self._keep(waiting))
        task.add_done_callback(lambda _: self._parked.pop(waiting.entry.approval_id, None))
        place.is_kept = True
        task.add_done_callback(place.leave)

    async def _keep(self, waiting: Waiting) -> None:
        try:
            entry = await self._driver.drive(waiting)
            if entry.state is State.APPROVED:
                await asyncio.sleep(max(0.0, waiting.hold.ends_at - time.monotonic()))
                await asyncio.to_thread(self.ledger.end, entry.approval_id, State.CANCELED, _NOT_FETCHED)
        except MetaForgeError as fault:
            logs.event("approval_wait_failed", "error", approval_id=waiting.entry.approval_id, reason=fault.message)

    async def _come_back(self, call: HeldCall, client: Client, carried: dict[str, Any]) -> Waiting:
        """Take a call up again that comes with its person's answer.

        Raises:
            BadRequestState: it is another call, or came back before.
        """
        approval_id = str(carried.get(QUESTION, ""))
        try:
            entry = await asyncio.to_thread(self.ledger.get, approval_id)
        except UnknownApproval:
            raise BadRequestState from None
        digest = await asyncio.to_thread(self.digest, call)
        if entry.request.digest != digest or not await asyncio.to_thread(self._once.use, str(carried.get("nonce"))):
            raise BadRequestState
        parked = self._parked.pop(approval_id, None)
        try:
            if parked is not None:
                parked.cancel()
                await asyncio.wait([parked])
                entry = await asyncio.to_thread(self.ledger.get, approval_id)
        except asyncio.CancelledError:
            self._spawn(asyncio.to_thread(self.ledger.end, approval_id, State.CANCELED, self._why_gone()))
            raise
        return self._taken_up(entry, client)

    def _taken_up(self, entry: Entry, client: Client) -> Waiting:
        request, reply = entry.request, client.brought(QUESTION)
        asking = Asking(
            inline=entry.state is State.AWAITING,
            dashboard=entry.on_dashboard,
            progress=entry.state is State.AWAITING and client.has_progress,
            window_seconds=request.window_seconds,
        )
        waiting = self._waiting(entry, client, asking, elapsed_seconds=seconds_between(request.created_at, utc_now()))
        waiting.route = Route.BOTH if entry.on_dashboard else Route.ELICITATION
        if entry.state is State.AWAITING:
            waiting.take(AskFailed() if reply is None else questions.read_answer(reply))
        elif entry.state in (State.RUNNING, State.COMPLETED, State.FAILED):
            raise BadRequestState
        else:
            waiting.take(Learned(entry.state))
            if reply is not None:
                logs.event(
                    "mcp_elicitation_late_response_ignored", "warning",
                    approval_id=entry.approval_id, state=entry.state.value,
                )  # fmt: skip
        return waiting


def _log_held(waiting: Waiting, asking: Asking) -> None:
    request = waiting.entry.request
    logs.event(
        "mcp_tool_call_held_for_approval", approval_id=request.approval_id, call_id=request.call_id,
        tool_id=request.tool_id, effect=request.effect.value, route=asking.route.value,
        window_seconds=request.window_seconds, progress=asking.progress, actor_id=request.caller.actor_id,
        client=request.caller.client_name, client_version=request.caller.client_version,
        project_id=request.project_id,
    )  # fmt: skip


def _log_ended(waiting: Waiting, held_seconds: float) -> None:
    entry = waiting.entry
    decision = entry.decision
    logs.event(
        "mcp_tool_call_hold_ended", approval_id=entry.approval_id, tool_id=entry.request.tool_id,
        state=entry.state.value, held_seconds=round(held_seconds, 3), reason=entry.ended_reason,
        approver=decision.approver.name if decision else "",
        surface=decision.approver.surface if decision else "",
    )  # fmt: skip

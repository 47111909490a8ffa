"""Sessions of tools, such as a live CAD document: each has a worker of its own that serves nobody else.

A worker taken from the pool for `open` leaves it and stays with the session until that is closed, idle for too long, or
ended by a crash, a deadline or a cancelled call; then the session is lost, and whoever names it is told why.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from metaforge.core.errors import FailureMode, MetaForgeError, ToolError
from metaforge.engine import faults
from metaforge.engine.pool import WorkerPool
from metaforge.engine.turns import turn_of
from metaforge.engine.worker import Worker
from metaforge.telemetry.logs import event
from metaforge.tools.context import Caller, Invocation, Outcome
from metaforge.tools.manifest import Tool

Run = Callable[[Worker, Tool, dict[str, Any], Invocation, float, float], Awaitable[Outcome]]
"""Put a call to a worker and collect its files: worker, tool, arguments, invocation, seconds left, seconds waited."""

_REMEMBERED = 64
_FATAL = frozenset({"tool_crashed", "tool_timeout", "session_lost", "no_such_session", "document_closed"})
"""Kinds of refusals after which there is no document any more."""


@dataclass
class Held:
    """A session and the worker that has it."""

    session_id: str
    name: str
    caller: Caller
    worker: Worker
    last_used: float
    ran_code: bool = False
    """Code of a caller ran in its worker, which is not believed from then on."""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(frozen=True)
class Lost:
    """A session that ended without being closed, and why."""

    session_id: str
    name: str
    caller: Caller
    reason: str
    at: float


class Sessions:
    """The open and lost sessions of one adapter.

    Args:
        adapter_id: whose they are.
        pool: where the workers come from.
        wait: waits for one of its workers.
        run: puts a call to a worker.
        most: how many may be open at once.
        idle_seconds: one unused for this long is ended.
    """

    def __init__(
        self,
        adapter_id: str,
        pool: WorkerPool,
        *,
        wait: Callable[[float, str], Awaitable[Worker]],
        run: Run,
        most: int,
        idle_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._adapter_id = adapter_id
        self._pool = pool
        self._wait = wait
        self._run = run
        self._most = most
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._held: dict[str, Held] = {}
        self._opening = 0
        self._lost: dict[str, Lost] = {}
        self._timer: asyncio.TimerHandle | None = None

    @property
    def workers(self) -> list[Worker]:
        return [held.worker for held in self._held.values()]

    def describe(self) -> dict[str, Any]:
        """Return what health tells of sessions; their ids are their callers' alone."""
        now = self._clock()
        return {
            "open_count": len(self._held),
            "lost": [
                {"name": lost.name, "reason": lost.reason, "seconds_ago": round(now - lost.at)}
                for lost in self._lost.values()
            ],
        }

    async def call(self, tool: Tool, arguments: dict[str, Any], invocation: Invocation) -> Outcome:
        """Run one call of a session's tool.

        Raises:
            ToolError: `session_limit`, `session_lost`, `no_such_session`, or what the tool refuses.
        """
        if tool.session == "open":
            return await self._open(tool, arguments, invocation)
        held = self._find(str(arguments.get("session_id")), invocation.caller)
        started = self._clock()
        try:
            async with asyncio.timeout(invocation.timeout_seconds):
                await held.turn.acquire()
        except TimeoutError:
            raise faults.deadline_passed(invocation.timeout_seconds, invocation.timeout_seconds) from None
        try:
            # It may have been closed or lost meanwhile.
            held = self._find(held.session_id, invocation.caller)
            return await self._use(held, tool, arguments, invocation, self._clock() - started)
        finally:
            held.last_used = self._clock()
            held.turn.release()

    async def _open(self, tool: Tool, arguments: dict[str, Any], invocation: Invocation) -> Outcome:
        if len(self._held) + self._opening >= self._most:
            raise self._full(invocation.caller)
        self._opening += 1
        try:
            worker = self._pool.take()
            started = self._clock()
            if worker is None:
                worker = await self._wait(invocation.timeout_seconds, turn_of(invocation.caller))
            waited = self._clock() - started
            try:
                outcome = await self._run(
                    worker, tool, arguments, invocation, invocation.timeout_seconds - waited, waited
                )
                session_id = str(outcome.data["session_id"])
            except BaseException:
                await self._pool.discard(worker)
                raise
            self._pool.part_with(worker)
            held = Held(session_id, str(arguments.get("name") or ""), invocation.caller, worker, self._clock())
            self._held[session_id] = held
            worker.ended.add_done_callback(lambda _: self._note_end(held))
        finally:
            self._opening -= 1
        self._pool.prestart()
        self._arm()
        return outcome

    async def _use(
        self, held: Held, tool: Tool, arguments: dict[str, Any], invocation: Invocation, waited: float
    ) -> Outcome:
        held.ran_code = held.ran_code or tool.runs_caller_code
        if held.ran_code and not tool.runs_caller_code:
            tool = replace(tool, runs_caller_code=True)
        worker = held.worker
        try:
            outcome = await self._run(worker, tool, arguments, invocation, invocation.timeout_seconds - waited, waited)
        except asyncio.CancelledError:
            await self._lose(held, f"call {invocation.call_id} ({tool.id}) was cancelled while it ran")
            raise
        except MetaForgeError as fault:
            kind = getattr(fault, "kind", "")
            if worker.spoiled or not worker.alive or kind in _FATAL:
                await self._lose(held, fault.message)
            else:
                worker.box.empty_output()
            raise
        except BaseException:
            await self._lose(held, "the server failed while it was used")
            raise
        if tool.session == "close":
            self._held.pop(held.session_id, None)
            await self._pool.discard(worker)
        else:
            worker.box.empty_output()
        return outcome

    def _find(self, session_id: str, caller: Caller) -> Held:
        held = self._held.get(session_id)
        if held is not None and held.caller.actor_id == caller.actor_id:
            return held
        lost = self._lost.get(session_id)
        fix = f"open a new one with {self._adapter_id}.open_session; files it exported are still in the workspace"
        if lost is not None and lost.caller.actor_id == caller.actor_id:
            raise ToolError(
                f"Session {session_id} ({lost.name}) is lost: {lost.reason}", kind="session_lost", fix=fix,
                where=session_id, failure_mode=FailureMode.ENVIRONMENT,
            )  # fmt: skip
        raise ToolError(
            f"There is no open session {session_id}: it was closed, or opened before the server last started. "
            f"{self._own(caller)}",
            kind="no_such_session", fix=fix, where=session_id,
        )  # fmt: skip

    def _own(self, caller: Caller) -> str:
        mine = turn_of(caller)
        there = [f"{held.session_id} ({held.name})" for held in self._held.values() if turn_of(held.caller) == mine]
        gone = [f"{lost.session_id} ({lost.reason})" for lost in self._lost.values() if turn_of(lost.caller) == mine]
        told = f"Open: {', '.join(there) or 'none'}"
        return f"{told}; lost: {', '.join(gone[-5:])}" if gone else told

    def _full(self, caller: Caller) -> ToolError:
        return ToolError(
            f"{len(self._held)} sessions of {self._adapter_id} are open, as many as may be. {self._own(caller)}",
            kind="session_limit", fix=f"close one with {self._adapter_id}.close_session", retryable=True,
            failure_mode=FailureMode.LIMIT,
        )  # fmt: skip

    # -- ending ------------------------------------------------------------------------------------------------------

    def _note_end(self, held: Held) -> None:
        """Note a worker that ended by itself between two calls."""
        if self._held.get(held.session_id) is held and not held.turn.locked():
            del self._held[held.session_id]
            self._remember(held, "its process ended by itself")

    async def _lose(self, held: Held, reason: str) -> None:
        if self._held.pop(held.session_id, None) is not None:
            self._remember(held, reason)
        await self._pool.discard(held.worker)

    def _remember(self, held: Held, reason: str) -> None:
        event("session_lost", "warning", adapter_id=self._adapter_id, session_id=held.session_id, reason=reason)
        self._lost[held.session_id] = Lost(held.session_id, held.name, held.caller, reason, self._clock())
        while len(self._lost) > _REMEMBERED:
            del self._lost[next(iter(self._lost))]

    def _arm(self) -> None:
        if self._timer is None and self._held:
            oldest = min(held.last_used for held in self._held.values())
            seconds = max(0.05, oldest + self._idle_seconds - self._clock())
            self._timer = asyncio.get_running_loop().call_later(seconds, self.end_idle)

    def end_idle(self) -> None:
        """End the sessions that nobody used for too long."""
        self._timer = None
        now = self._clock()
        for held in list(self._held.values()):
            if now - held.last_used >= self._idle_seconds and not held.turn.locked():
                del self._held[held.session_id]
                self._remember(held, f"nobody used it for {self._idle_seconds:g} s")
                self._pool.end(held.worker)
        self._arm()

    def close(self) -> None:
        """End every session; the pool sees their workers gone."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for held in self._held.values():
            self._pool.end(held.worker)
        self._held.clear()

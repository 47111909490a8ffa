"""Quick calls: several under way in one worker, which answers them in their order.

Waking a process for a call and being woken by its answer costs more than a quick tool's own work. A worker that has
the next call before it has answered the last need not sleep, and nobody need wake it. It still serves one call at a
time: when it ends, all that it had after the first was not begun, and is run by another.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from metaforge.core.errors import MetaForgeError
from metaforge.engine import faults
from metaforge.engine.answers import checked, without_files
from metaforge.engine.asking import DeadlineStruck, cpu_seconds, expire, memory_mb, refusal, request_of
from metaforge.engine.pool import WorkerPool
from metaforge.engine.turns import turn_of
from metaforge.engine.worker import Worker, WorkerGone
from metaforge.tools.context import Invocation
from metaforge.tools.manifest import Tool

DEPTH = 16
"""How many calls one worker is given at most; more wait for a worker."""
ATTEMPTS = 3
"""How many workers may end before a call that they had not begun is given up."""


class _NotBegun(Exception):
    """The worker ended before it came to this call."""


class _Lane:
    """A worker, and the numbers of the calls it was given and has not answered, oldest first."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.numbers: deque[int] = deque()
        self._last_begun: int | None = None

    def takes(self, tool: Tool) -> bool:
        worker = self.worker
        return (
            len(self.numbers) < DEPTH
            and worker.alive
            and not worker.spoiled
            and worker.box.memory_mb == memory_mb(tool)
        )

    def had_begun(self, number: int) -> bool:
        """Return whether a call is the one that the worker was at when it ended, which it just did."""
        if self._last_begun is None:
            self._last_begun = self.numbers[0]
        return number == self._last_begun


class QuickCalls:
    """Runs the quick calls of one adapter.

    Args:
        pool: its workers.
        wait: waits at most so many seconds for a free one, in a caller's turn.
    """

    def __init__(self, pool: WorkerPool, wait: Callable[[float, str], Awaitable[Worker]]) -> None:
        self._pool = pool
        self._wait = wait
        self._lanes: list[_Lane] = []

    async def call(self, tool: Tool, arguments: dict[str, Any], invocation: Invocation) -> dict[str, Any]:
        """Run one call and return the worker's answer.

        Raises:
            MetaForgeError: it refused, crashed or passed a limit.
        """
        loop = asyncio.get_running_loop()
        started = loop.time()
        for _ in range(ATTEMPTS):
            lane = self._join(tool)
            if lane is None:
                left = invocation.timeout_seconds - (loop.time() - started)
                lane = await self._open(tool, left, turn_of(invocation.caller))
            try:
                answer = await self._ask(lane, tool, arguments, invocation, loop.time() - started)
            except _NotBegun:
                continue
            self._pool.note_answer(loop.time() - started)
            return answer
        raise faults.never_begun(tool.adapter_id, ATTEMPTS)

    def _join(self, tool: Tool) -> _Lane | None:
        if self._pool.is_awaited:
            return None  # whoever waits for a whole worker comes first
        return next((lane for lane in self._lanes if lane.takes(tool)), None)

    async def _open(self, tool: Tool, seconds: float, caller: str) -> _Lane:
        worker = self._pool.take() or await self._wait(seconds, caller)
        worker.box.limit_memory(memory_mb(tool))
        worker.watch()
        lane = _Lane(worker)
        self._lanes.append(lane)
        return lane

    async def _ask(
        self, lane: _Lane, tool: Tool, arguments: dict[str, Any], invocation: Invocation, waited: float
    ) -> dict[str, Any]:
        worker, left = lane.worker, invocation.timeout_seconds - waited
        number = worker.request("tool/call", request_of(worker, tool, arguments, invocation, left), invocation.progress)
        lane.numbers.append(number)
        future = worker.answer(number)
        timer = expire(future, left)
        try:
            message = await future
        except DeadlineStruck:
            await self._pass_deadline(lane, number)
            raise faults.deadline_passed(invocation.timeout_seconds, waited) from None
        except asyncio.CancelledError:
            await self._withdraw(lane, number)
            raise
        except (WorkerGone, MetaForgeError) as fault:
            had_begun = lane.had_begun(number)
            self._finish(lane, number)
            if not had_begun:
                raise _NotBegun from None
            if isinstance(fault, MetaForgeError):
                raise
            ended = await worker.explain_end(cpu_seconds=cpu_seconds(tool))
            if isinstance(ended, faults.WorkerCrashed):
                self._pool.note_crash(worker, ended.message)
            raise ended from None
        finally:
            timer.cancel()
        error = message.get("error")
        fault_told = None
        if error is not None:
            self._pool.note_refusal()
            fault_told = refusal(worker, error)
        self._finish(lane, number)
        if fault_told is not None:
            raise fault_told
        return without_files(tool, checked(tool, message.get("result")))

    async def _pass_deadline(self, lane: _Lane, number: int) -> None:
        if number != lane.numbers[0]:
            # What the worker is at is somebody else's call.
            self._leave(lane, number)
            return
        lane.had_begun(number)
        lane.worker.spoiled = True
        self._finish(lane, number)
        await lane.worker.kill()

    async def _withdraw(self, lane: _Lane, number: int) -> None:
        """End the worker of a cancelled call, unless others wait for it: then this call ends within milliseconds."""
        if len(lane.numbers) > 1:
            self._leave(lane, number)
            return
        lane.worker.spoiled = True
        self._finish(lane, number)
        await lane.worker.kill()

    def _leave(self, lane: _Lane, number: int) -> None:
        """Let a call run that nobody waits for; it counts until it has ended."""
        answered = lane.worker.await_again(number)
        answered.add_done_callback(lambda _: self._finish(lane, number))

    def _finish(self, lane: _Lane, number: int) -> None:
        worker = lane.worker
        worker.forget(number)
        worker.calls_served += 1
        lane.numbers.remove(number)
        if lane.numbers:
            return
        self._lanes.remove(lane)
        worker.unwatch()
        self._pool.release(worker)

"""The workers of one adapter: one call at a time each, started when needed, retired when idle or used up."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from metaforge.core.errors import Busy, MetaForgeError, ToolUnavailable
from metaforge.engine.breaker import Breaker
from metaforge.engine.processes import free_memory_mb
from metaforge.engine.turns import Turns
from metaforge.engine.worker import Worker
from metaforge.telemetry import metrics
from metaforge.telemetry.logs import event
from metaforge.tools.source import Trouble

CRASHES_IN_A_ROW = 8
"""How often an adapter may crash, be started anew and crash again without one answer before starting it pauses."""
_CRASH_PAUSE_SECONDS = 2.0
_LATENCIES = 64


class WorkerPool:
    """Hands out workers; callers take turns where some must wait.

    Args:
        start: starts one and returns it ready; raises MetaForgeError when it cannot.
        max_workers: how many may live at once.
        idle_seconds: a worker unused for this long is retired.
        prestart: whether workers may be started ahead of a call at all.
        prestart_free_mb: and how much memory in MiB must then be free.
        turns: where calls wait.
    """

    def __init__(
        self,
        adapter_id: str,
        start: Callable[[], Awaitable[Worker]],
        *,
        max_workers: int,
        idle_seconds: float,
        prestart: bool = True,
        prestart_free_mb: int = 0,
        breaker: Breaker | None = None,
        turns: "Turns[Worker] | None" = None,
        clock: Callable[[], float] = time.monotonic,
        free_mb: Callable[[], float] = free_memory_mb,
    ) -> None:
        self.adapter_id = adapter_id
        self.breaker = breaker or Breaker(clock=clock)
        """Counts failed starts."""
        self.crashes = Breaker(threshold=CRASHES_IN_A_ROW, pause_seconds=_CRASH_PAUSE_SECONDS, clock=clock)
        """Counts workers that were started after one had crashed, and crashed as well."""
        self._start = start
        self._max_workers = max_workers
        self._idle_seconds = idle_seconds
        self._may_prestart = prestart
        self._prestart_free_mb = prestart_free_mb
        self._clock = clock
        self._free_mb = free_mb
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()
        self._starting: set[asyncio.Task[None]] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._waiters: Turns[Worker] = Turns(adapter_id) if turns is None else turns
        self._crashed_at = float("-inf")
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self.retired_count = self.crashed_count = 0
        """Workers that were ended here, and workers that died by themselves."""
        self.latencies: deque[float] = deque(maxlen=_LATENCIES)
        """How long the last answered calls took in seconds, waiting included."""

    @property
    def workers(self) -> list[Worker]:
        """Those that are up."""
        return [*self._idle, *self._busy]

    @property
    def idle(self) -> list[Worker]:
        return list(self._idle)

    @property
    def is_awaited(self) -> bool:
        """Whether a call waits for a worker."""
        return bool(self._waiters)

    @property
    def waiting_count(self) -> int:
        """How many calls wait for a worker."""
        return self._waiters.awaited_count()

    @property
    def open_breaker(self) -> Breaker | None:
        """What keeps workers from being started just now, if anything does."""
        return next((each for each in (self.breaker, self.crashes) if not each.is_closed), None)

    def trouble(self) -> Trouble | None:
        """Return why no worker is started just now, where none is up either."""
        breaker = self.open_breaker
        if breaker is None or self._idle or self._busy:
            return None
        return Trouble(f"it {self._told_of(breaker)}", round(breaker.seconds_left, 1))

    def _told_of(self, breaker: Breaker) -> str:
        what = "failed to start" if breaker is self.breaker else "was started and crashed"
        return f"{what} {breaker.failures} times in a row: {breaker.reason}"

    @property
    def starting_count(self) -> int:
        return len(self._starting)

    # -- handing out ---------------------------------------------------------------------------------------------

    def take(self) -> Worker | None:
        """Return an idle worker, or None: then `wait` for one."""
        while self._idle and not self._waiters:
            worker = self._idle.pop()
            if worker.alive and not worker.spoiled:
                self._busy.add(worker)
                return worker
            self._finish(worker.kill())
        return None

    def wait(self, caller: str = "") -> "asyncio.Future[Worker]":
        """Return a future of the next free worker; one is started where there is room.

        A future that was given a worker and is not used must be handed back by `give_up`. Raises ToolUnavailable,
        Busy or ToolCrashed through the future when none can be had.

        Args:
            caller: whose turn it takes.
        """
        future: asyncio.Future[Worker] = asyncio.get_running_loop().create_future()
        if self._closed:
            future.set_exception(ToolUnavailable(f"{self.adapter_id} is shutting down", reason="shutting down"))
            return future
        try:
            self._waiters.add(future, caller, self._seconds_to_wait())
        except Busy as busy:
            future.set_exception(busy)
            return future
        if self._idle:
            self._offer(self._idle.pop())
        else:
            self._fill()
        return future

    def _seconds_to_wait(self) -> float:
        mean = sum(self.latencies) / len(self.latencies) if self.latencies else 1.0
        return len(self._waiters) * mean / self._max_workers

    def give_up(self, future: "asyncio.Future[Worker]") -> None:
        """Stop waiting; a worker that was just given is taken back."""
        if not future.done():
            future.cancel()
            self._waiters.remove(future)
        elif not future.cancelled() and future.exception() is None:
            self.release(future.result())

    def release(self, worker: Worker) -> None:
        """Take a worker back after its call."""
        self._busy.discard(worker)
        if self._closed or worker.spoiled or not worker.alive:
            self._finish(worker.kill())
            self._fill()
            return
        self._offer(worker)

    async def discard(self, worker: Worker) -> None:
        """End a worker, and return when its processes are gone; a spare is started where memory allows."""
        self._busy.discard(worker)
        ending = self._finish(worker.kill())
        self._fill()
        await outlast(ending)

    def part_with(self, worker: Worker) -> None:
        """Give a worker away for good, to a session: it counts among the pool's no longer."""
        self._busy.discard(worker)
        self._fill()

    def end(self, worker: Worker) -> None:
        """End a worker that was given away; `close` waits for it."""
        self._finish(worker.kill())

    def _offer(self, worker: Worker) -> None:
        if (future := self._waiters.next()) is not None:
            self._busy.add(worker)
            future.set_result(worker)
            return
        worker.idle_since = self._clock()
        self._idle.append(worker)
        if self._timer is None:
            self._arm(self._idle_seconds)

    # -- starting ------------------------------------------------------------------------------------------------

    def prestart(self) -> None:
        """Start one worker ahead of a call, where there is none yet and memory allows."""
        if not self._may_prestart or self._closed or self._idle or self._starting or self._room() < 1:
            return
        # A spare is nobody's probe: what failed is tried again when a call asks for it.
        if self.open_breaker is None and self._free_mb() > self._prestart_free_mb:
            self._begin()

    def _room(self) -> int:
        return self._max_workers - len(self._idle) - len(self._busy) - len(self._starting)

    def _fill(self) -> None:
        """Start what the waiting calls need."""
        if not self._waiters:
            return
        self._waiters.forget_done()
        room = self._room()
        if room > 0:
            needed = self._waiters.awaited_count() - len(self._starting)
            for _ in range(min(needed, room)):
                if not self._admit():
                    break
                self._begin()
        if self._waiters and not self._starting and not self._busy and self.open_breaker is not None:
            self._refuse_waiters(self.open_breaker)

    def _admit(self) -> bool:
        if not self.breaker.admit():
            return False
        if self.crashes.admit():
            return True
        self.breaker.release()
        return False

    def _begin(self) -> None:
        task = asyncio.get_running_loop().create_task(self._bring_up())
        self._starting.add(task)
        task.add_done_callback(self._end_start)

    def _end_start(self, task: "asyncio.Task[None]") -> None:
        self._starting.discard(task)
        if task.cancelled():
            self.breaker.release()
            self.crashes.release()

    async def _bring_up(self) -> None:
        task: Any = asyncio.current_task()
        try:
            worker = await self._start()
        except MetaForgeError as fault:
            self._starting.discard(task)
            self._note_failed_start(fault)
            return
        self._starting.discard(task)
        self.breaker.succeed()
        metrics.worker_started(self.adapter_id)
        worker.ended.add_done_callback(lambda _: self._forget(worker))
        if self._closed:
            self._finish(worker.kill())
            return
        self._offer(worker)

    def _note_failed_start(self, fault: MetaForgeError) -> None:
        self.breaker.fail(fault.message)
        self.crashes.release()
        event(
            "adapter_start_failed", "warning",
            adapter_id=self.adapter_id, error=fault.message, failures=self.breaker.failures,
        )  # fmt: skip
        if (future := self._waiters.next()) is not None:
            future.set_exception(fault)
        self._fill()

    def _refuse_waiters(self, breaker: Breaker) -> None:
        while (future := self._waiters.next()) is not None:
            future.set_exception(
                ToolUnavailable(
                    f"{self.adapter_id} {self._told_of(breaker)}. "
                    f"It is tried again in {breaker.seconds_left:.0f} s; `metaforge doctor` says what is missing",
                    reason=breaker.reason, retry_after_seconds=round(breaker.seconds_left, 1),
                )
            )  # fmt: skip

    # -- supervising ---------------------------------------------------------------------------------------------

    def note_answer(self, seconds: float) -> None:
        """Note that a worker answered a call, with whatever it had to say.

        Args:
            seconds: how long the call took, waiting included.
        """
        self.latencies.append(seconds)
        if self.crashes.failures:
            self.crashes.succeed()

    def note_refusal(self) -> None:
        """Note that a worker answered with a refusal: it works, whatever the call was."""
        if self.crashes.failures:
            self.crashes.succeed()

    def note_crash(self, worker: Worker, reason: str) -> None:
        """Note that a worker ended by itself; those that were up before the last crash say nothing new.

        Args:
            reason: what is told to whoever calls while starting pauses.
        """
        if worker.started > self._crashed_at:
            self._crashed_at = self._clock()
            self.crashes.fail(reason)
            if not self.crashes.is_closed:
                event(
                    "adapter_crash_loop", "warning",
                    adapter_id=self.adapter_id, crashes=self.crashes.failures, error=reason,
                )  # fmt: skip

    # -- ending --------------------------------------------------------------------------------------------------

    def _forget(self, worker: Worker) -> None:
        """Count an end; an idle worker that died by itself is handed out no more."""
        if worker.died:
            self.crashed_count += 1
            metrics.worker_crashed(self.adapter_id)
        else:
            self.retired_count += 1
            metrics.worker_retired(self.adapter_id)
            self.crashes.release()
        if worker in self._idle:
            if worker.died:
                self.note_crash(worker, "its process ended by itself while it had nothing to do")
            self._idle.remove(worker)
            self._finish(worker.kill())

    def _arm(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self.retire_idle)

    def retire_idle(self) -> None:
        """End the workers that were idle too long."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = self._clock()
        kept = [worker for worker in self._idle if now - worker.idle_since < self._idle_seconds]
        for worker in self._idle:
            if worker not in kept:
                event("worker_retired", adapter_id=self.adapter_id, pid=worker.box.pid, calls=worker.calls_served)
                self._finish(worker.kill())
        self._idle = kept
        if kept and not self._closed:
            oldest = min(worker.idle_since for worker in kept)
            self._arm(max(0.01, oldest + self._idle_seconds - now))

    def _finish(self, ending: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(ending)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task

    async def close(self) -> None:
        """End every worker; all are gone when this returns."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while (future := self._waiters.next()) is not None:
            future.set_exception(ToolUnavailable(f"{self.adapter_id} is shutting down", reason="shutting down"))
            future.exception()
        for task in self._starting:
            task.cancel()
        for worker in self.workers:
            self._finish(worker.kill())
        self._idle.clear()
        while pending := [task for task in (*self._starting, *self._ending) if not task.done()]:
            await asyncio.wait(pending)


async def outlast(task: "asyncio.Task[Any]") -> None:
    """Wait for a task to its end, even when cancelled meanwhile; the cancellation then goes on."""
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                break
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError

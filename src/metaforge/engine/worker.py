"""A worker that can be asked: requests matched to answers, progress passed on, its death told to who waits."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from metaforge.core.errors import MetaForgeError
from metaforge.engine import disk, faults, processes
from metaforge.engine.box import Box
from metaforge.engine.launch import Launcher
from metaforge.engine.lines import MessageReader
from metaforge.protocol import jsonrpc
from metaforge.telemetry.logs import event
from metaforge.tools.context import Progress

_MIB = 1 << 20
_WATCH_SECONDS = 0.2
_PROGRESS_CHARACTERS = 500
_REPORTS = 50
_REPORTS_PER_SECOND = 10


class WorkerGone(Exception):
    """The process ended, or closed its stdout, while an answer was awaited."""


class Worker:
    """One started process of an adapter. Serves one call at a time.

    Args:
        adapter_id: whose it is, for the log.
        max_output_mb: the longest answer that is read, in MiB.
        on_junk: told the first text on its stdout that is no message.
    """

    def __init__(self, adapter_id: str, max_output_mb: int, on_junk: Callable[[str], None] | None = None) -> None:
        loop = asyncio.get_running_loop()
        self.adapter_id = adapter_id
        self.started = time.monotonic()
        self.idle_since = 0.0
        self.calls_served = 0
        self.spoiled = False
        """Not to be used again: its stream or its memory is in doubt."""
        self.ready: asyncio.Future[None] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()
        """Done when it can answer no more, whether or not its process is gone."""
        self.spilled: Path | None = None
        """The file of an answer that was larger than answers may be; removed with the worker."""
        self.died = False
        """It ended by itself: nobody here ended it."""
        self._max_output_mb = max_output_mb
        self._reader = MessageReader(
            max_output_mb * _MIB, self._take, on_junk or self._log_junk, self._overflow, self._spill
        )
        self._waiting: dict[int, tuple[asyncio.Future[dict[str, Any]], Progress | None]] = {}
        self._serial = 0
        self._disk_mb = 0
        self._reports, self._reported = float(_REPORTS), 0.0
        self._box: Box | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._killed_for: MetaForgeError | None = None

    async def launch(self, launcher: Launcher) -> None:
        """Start the process; `ready` is done when it says so."""
        self._box = await launcher.launch(self._reader.feed, self._lose)
        self._box.exited.add_done_callback(lambda _: self._lose())

    @property
    def box(self) -> Box:
        if self._box is None:
            raise RuntimeError("the worker was not launched")
        return self._box

    @property
    def alive(self) -> bool:
        return not self.ended.done()

    def request(self, method: str, params: dict[str, Any], progress: Progress | None = None) -> int:
        """Send a request and return its number; `answer` waits for it."""
        self._serial = number = self._serial + 1
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = (future, progress)
        if self.ended.done():
            future.set_exception(WorkerGone())
        else:
            self.box.write(jsonrpc.encode(jsonrpc.request(number, method, params)) + b"\n")
        return number

    def answer(self, number: int) -> "asyncio.Future[dict[str, Any]]":
        """Return the future of a request's answer: the whole JSON-RPC message. Raises WorkerGone, OverLimit."""
        return self._waiting[number][0]

    def await_again(self, number: int) -> "asyncio.Future[dict[str, Any]]":
        """Return a new future of an answer whose first one was cancelled or has expired."""
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = (future, None)
        if self.ended.done():
            future.set_exception(WorkerGone())
            future.exception()
        return future

    def forget(self, number: int) -> None:
        """Stop waiting for an answer; one that comes later is dropped."""
        self._waiting.pop(number, None)

    # -- watching ------------------------------------------------------------------------------------------------

    def watch(self, disk_mb: int = 0) -> None:
        """Look at the box from time to time: memory and processes where no control group bounds them, and its files.

        Args:
            disk_mb: what the files of the output folder may take together, in MiB; 0 does not look.
        """
        self._disk_mb = disk_mb
        if disk_mb or self.box.group is None:
            self._watch = asyncio.get_running_loop().call_later(_WATCH_SECONDS, self._look)

    def unwatch(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _look(self) -> None:
        fault = self._over_processes() or self._over_disk()
        if fault is not None:
            self._end_for(fault)
        else:
            self.watch(self._disk_mb)

    def _over_processes(self) -> MetaForgeError | None:
        box = self.box
        if box.group is not None:
            return None
        pids = box.processes()
        if len(pids) > box.max_processes:
            return faults.over("process_limit", box.max_processes)
        if processes.uses_more_than(pids, box.memory_mb):
            return faults.over("memory_limit", box.memory_mb)
        return None

    def _over_disk(self) -> MetaForgeError | None:
        if not self._disk_mb:
            return None
        passed = disk.passes(str(self.box.output), self._disk_mb * _MIB, self.box.processes())
        if not passed:
            return None
        if passed == "bytes":
            return faults.over("disk_limit", self._disk_mb)
        return faults.over("file_limit", disk.MAX_FILES)

    def _end_for(self, fault: MetaForgeError) -> None:
        self._killed_for = fault
        self.spoiled = True
        self._fail_all(fault)

    def memory_was_short(self) -> bool:
        return self._box is not None and self._box.memory_was_short()

    async def explain_end(self, *, cpu_seconds: int = 0, starting: bool = False) -> MetaForgeError:
        """Return why it ended, in words a caller can act on."""
        if self._killed_for is not None:
            return self._killed_for
        box = self.box
        # Its stdout closes just before its process is gone.
        await asyncio.wait([box.exited], timeout=_WATCH_SECONDS)
        if box.memory_was_short():
            return faults.over("memory_limit", box.memory_mb)
        stderr = await box.last_words()
        status = box.exited.result() if box.exited.done() else None
        return faults.crashed(status, stderr, cpu_seconds=cpu_seconds, starting=starting)

    async def end(self) -> None:
        """End the process and everything it started; what it wrote stays until `kill`."""
        self.unwatch()
        self._lose(by_itself=False)
        await self.box.end()

    async def kill(self) -> None:
        """End the process and everything it started; they and their files are gone when this returns."""
        self.unwatch()
        self._lose(by_itself=False)
        if self._box is not None:
            await self._box.kill()

    # -- the stream ----------------------------------------------------------------------------------------------

    def _take(self, message: dict[str, Any]) -> None:
        number = message.get("id")
        if number is not None:
            waiting = self._waiting.get(number) if type(number) is int else None
            if waiting is not None and not waiting[0].done() and "method" not in message:
                waiting[0].set_result(message)
            return
        method = message.get("method")
        if method == "worker/ready":
            if self._box is not None:
                self._box.settle()
            if not self.ready.done():
                self.ready.set_result(None)
        elif method == "tool/result":
            self._report(message.get("params"))

    def _report(self, params: Any) -> None:
        number = params.get("request_id") if isinstance(params, dict) else None
        waiting = self._waiting.get(number) if type(number) is int else None
        if waiting is None or waiting[1] is None or not self._may_report():
            return
        fraction = params.get("progress")
        if isinstance(fraction, int | float):
            text = str(params.get("message") or "")[:_PROGRESS_CHARACTERS]
            waiting[1](min(max(float(fraction), 0.0), 1.0), text)

    def _may_report(self) -> bool:
        """Let some reports through at once and the rest a few a second: a client has to read them all."""
        now = time.monotonic()
        self._reports = min(_REPORTS, self._reports + (now - self._reported) * _REPORTS_PER_SECOND)
        self._reported = now
        if self._reports < 1:
            return False
        self._reports -= 1
        return True

    def _log_junk(self, text: str) -> None:
        event("adapter_stdout_junk", "warning", adapter_id=self.adapter_id, text=text)

    def _spill(self) -> Path:
        return self.box.folder / "answer.json"

    def _overflow(self, whole: Path | None) -> None:
        self.spoiled = True
        self.spilled = whole
        self._fail_all(faults.over("output_limit", self._max_output_mb))

    def _lose(self, *, by_itself: bool = True) -> None:
        if self.ended.done():
            return
        self._reader.close()
        self.died = by_itself
        self.ended.set_result(None)
        self._fail_all(WorkerGone())
        if not self.ready.done():
            self.ready.set_exception(WorkerGone())
            self.ready.exception()  # nobody has to be waiting for it

    def _fail_all(self, fault: Exception) -> None:
        for future, _ in self._waiting.values():
            if not future.done():
                future.set_exception(fault)
                future.exception()

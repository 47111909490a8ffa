"""`ProcessSource`: the tools of one adapter, run in supervised processes of this machine."""

import asyncio
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from metaforge.core.errors import MetaForgeError, OverLimit, ToolUnavailable
from metaforge.engine import faults
from metaforge.engine.answers import checked
from metaforge.engine.asking import DeadlineStruck, cpu_seconds, expire, memory_mb, refusal, request_of
from metaforge.engine.collect import Collection, Collector, Standing, asked_for
from metaforge.engine.health import WorkerReport, health_of
from metaforge.engine.launch import DEFAULT_DISK_MB, Launcher, ProcessLauncher
from metaforge.engine.outcome import outcome_of
from metaforge.engine.pool import WorkerPool, outlast
from metaforge.engine.quick import QuickCalls
from metaforge.engine.remote import RemoteSource
from metaforge.engine.sessions import Sessions
from metaforge.engine.turns import Turns, turn_of
from metaforge.engine.worker import Worker, WorkerGone
from metaforge.registry.probe import Probe
from metaforge.settings import Settings
from metaforge.store.blobs import Blobs
from metaforge.telemetry.logs import event
from metaforge.tools.context import Invocation, Outcome
from metaforge.tools.effect import Effect
from metaforge.tools.manifest import AdapterManifest, Tool
from metaforge.tools.source import AdapterHealth, Trouble

__all__ = ["ProcessSource", "RemoteSource"]

START_SECONDS = 120.0
"""A CAD kernel loads in two seconds; on a cold and busy machine it may take a minute."""

_INLINE_BYTES = 4 << 20
"""Files up to this size are stored at once; more is left to a thread."""


@runtime_checkable
class CheckedLauncher(Protocol):
    """A launcher that can say beforehand whether it could start anything, and from what image."""

    @property
    def image(self) -> str: ...

    def check(self) -> object:
        """Raise ToolUnavailable when it could not. Blocking."""
        ...

    def trouble(self) -> Trouble | None:
        """Return what was wrong when it was last looked at."""
        ...


class ProcessSource:
    """A ToolSource over a pool of workers.

    Args:
        manifest: the adapter as its manifest tells it.
        settings: pool sizes, limits and the sandbox.
        workspace: root of the workspace, an existing folder.
        blobs: where the contents of its files are kept.
        probe: looks for its programs and modules, for health.
        launcher: starts its workers; by default boxed processes of this machine.
    """

    def __init__(
        self,
        manifest: AdapterManifest,
        settings: Settings,
        workspace: Path,
        blobs: Blobs,
        probe: Probe | None = None,
        *,
        launcher: Launcher | None = None,
        max_workers: int | None = None,
        idle_seconds: float | None = None,
    ) -> None:
        self._manifest = manifest
        self._launcher = launcher or ProcessLauncher(manifest, settings, workspace)
        self._collector = Collector(workspace, blobs)
        self._blobs = blobs
        self._probe = probe
        self._max_output_mb = settings.max_output_mb
        self._last_call = 0.0
        self._junk = ""
        self.pool = WorkerPool(
            manifest.adapter_id,
            self._start,
            max_workers=max_workers or settings.max_workers,
            idle_seconds=idle_seconds or settings.idle_seconds,
            prestart=settings.prestart,
            prestart_free_mb=settings.prestart_free_mb,
            turns=Turns(
                manifest.adapter_id,
                longest=settings.max_waiting_calls,
                longest_of_one=settings.max_waiting_calls_per_caller,
            ),
        )
        self._quick = QuickCalls(self.pool, self._wait_for_worker)
        self._sessions = Sessions(
            manifest.adapter_id,
            self.pool,
            wait=self._wait_for_worker,
            run=self._run_in_session,
            most=settings.max_tool_sessions,
            idle_seconds=settings.tool_session_idle_seconds,
        )

    @property
    def manifest(self) -> AdapterManifest:
        return self._manifest

    def prestart(self) -> None:
        """Start a worker in the background where memory allows."""
        probe = self._probe
        if probe is None or any(not probe.missing(tool.needs) for tool in self._manifest.tools):
            self.pool.prestart()

    def trouble(self) -> Trouble | None:
        """Return why calls are refused just now, if they are."""
        launcher = self._launcher
        return self.pool.trouble() or (launcher.trouble() if isinstance(launcher, CheckedLauncher) else None)

    async def close(self) -> None:
        """End every worker of this adapter."""
        self._sessions.close()
        await self.pool.close()

    async def _start(self) -> Worker:
        worker = Worker(self._manifest.adapter_id, self._max_output_mb, self._note_junk)
        try:
            await worker.launch(self._launcher)
            async with asyncio.timeout(START_SECONDS):
                await worker.ready
        except WorkerGone:
            fault = await worker.explain_end(starting=True)
            await worker.kill()
            raise fault from None
        except TimeoutError:
            await worker.kill()
            raise faults.slow_start(self._manifest.adapter_id, START_SECONDS) from None
        except BaseException:
            await worker.kill()
            raise
        return worker

    def _note_junk(self, text: str) -> None:
        """Warn once per adapter, and keep the text for health."""
        if not self._junk:
            self._junk = text
            event("adapter_stdout_junk", "warning", adapter_id=self._manifest.adapter_id, text=text)

    # -- a call --------------------------------------------------------------------------------------------------

    async def call(self, tool: Tool, arguments: dict[str, Any], invocation: Invocation) -> Outcome:
        """Run one call in a worker that does nothing else meanwhile; a quick one may stand in line with others."""
        self._last_call = time.time()
        if tool.is_quick:
            answer = await self._quick.call(tool, arguments, invocation)
            return outcome_of(tool, answer, meta=_meta(answer))
        if tool.session:
            return await self._sessions.call(tool, arguments, invocation)
        loop = asyncio.get_running_loop()
        started = loop.time()
        overwrite = self._standing(tool, arguments, invocation)
        worker = self.pool.take()
        if worker is None:
            worker = await self._wait_for_worker(invocation.timeout_seconds, turn_of(invocation.caller))
        waited = loop.time() - started
        try:
            answer = await self._ask(worker, tool, arguments, invocation, invocation.timeout_seconds - waited, waited)
            self.pool.note_answer(loop.time() - started)
            if tool.runs_caller_code:
                # What a caller's code left running could still change the files.
                await worker.end()
            files = await self._collect(worker, tool, arguments, answer, overwrite)
        except asyncio.CancelledError:
            await self.pool.discard(worker)
            raise
        except MetaForgeError:
            await self._give_back(worker, tool)
            raise
        except BaseException:
            await self.pool.discard(worker)
            raise
        await self._give_back(worker, tool)
        return files

    async def _run_in_session(
        self, worker: Worker, tool: Tool, arguments: dict[str, Any], invocation: Invocation, left: float, waited: float
    ) -> Outcome:
        """Run one call in the worker of a session, which stays with it."""
        overwrite = self._standing(tool, arguments, invocation)
        answer = await self._ask(worker, tool, arguments, invocation, left, waited)
        if not tool.runs_caller_code:
            return await self._collect(worker, tool, arguments, answer, overwrite)
        # What a caller's code left running could change the files while they are looked at.
        worker.box.freeze()
        try:
            return await self._collect(worker, tool, arguments, answer, overwrite)
        finally:
            worker.box.thaw()

    async def _wait_for_worker(self, seconds: float, caller: str) -> Worker:
        future = self.pool.wait(caller)
        timer = expire(future, seconds)
        try:
            return await future
        except DeadlineStruck:
            raise faults.deadline_passed(seconds, seconds) from None
        except asyncio.CancelledError:
            self.pool.give_up(future)
            raise
        finally:
            timer.cancel()

    async def _ask(
        self, worker: Worker, tool: Tool, arguments: dict[str, Any], invocation: Invocation, left: float, waited: float
    ) -> dict[str, Any]:
        worker.box.limit_memory(memory_mb(tool))
        params = request_of(worker, tool, arguments, invocation, left)
        number = worker.request("tool/call", params, invocation.progress)
        future = worker.answer(number)
        timer = expire(future, left)
        worker.watch((tool.limits.max_disk_mb or DEFAULT_DISK_MB) if tool.runs_caller_code else 0)
        try:
            message = await future
        except DeadlineStruck:
            worker.spoiled = True
            await worker.kill()
            raise faults.deadline_passed(invocation.timeout_seconds, waited) from None
        except OverLimit as over:
            if worker.spilled is not None:
                await asyncio.to_thread(faults.keep_whole, over, worker.spilled, self._blobs)
            raise
        except WorkerGone:
            fault = await worker.explain_end(cpu_seconds=cpu_seconds(tool))
            if isinstance(fault, faults.WorkerCrashed) and not tool.runs_caller_code:
                self.pool.note_crash(worker, fault.message)
            raise fault from None
        finally:
            timer.cancel()
            worker.unwatch()
            worker.forget(number)
            worker.calls_served += 1
        error = message.get("error")
        if error is None:
            return checked(tool, message.get("result"))
        self.pool.note_refusal()
        raise refusal(worker, error)

    def _standing(self, tool: Tool, arguments: dict[str, Any], invocation: Invocation) -> Standing | None:
        """Return what a call may replace, as it is now; None where it may replace nothing."""
        return self._collector.standing(asked_for(tool, arguments)) if invocation.overwrite else None

    async def _collect(
        self, worker: Worker, tool: Tool, arguments: dict[str, Any], answer: dict[str, Any], overwrite: Standing | None
    ) -> Outcome:
        if not (answer.get("files") or answer.get("pictures") or answer.get("output_files")):
            return outcome_of(tool, answer, meta=_meta(answer))
        found = self._collector.examine(
            answer,
            worker.box.output,
            max_disk_mb=tool.limits.max_disk_mb or DEFAULT_DISK_MB,
            beside=asked_for(tool, arguments) if tool.runs_caller_code else None,
        )
        if tool.effect is Effect.READ:
            artefacts = self._collector.keep(found.files)
        else:
            artefacts = await self._place(found, overwrite=overwrite)
        return outcome_of(tool, answer, artefacts, found.images, meta=_meta(answer))

    async def _place(self, found: Collection, *, overwrite: Standing | None) -> Any:
        if found.size_bytes <= _INLINE_BYTES:
            return self._collector.place(found.files, overwrite=overwrite)
        task = asyncio.create_task(asyncio.to_thread(self._collector.place, found.files, overwrite=overwrite))
        # A thread cannot be stopped: the output folder must outlive it.
        await outlast(task)
        return task.result()

    async def _give_back(self, worker: Worker, tool: Tool) -> None:
        if tool.runs_caller_code:
            worker.spoiled = True
        if worker.spoiled or not worker.alive:
            await self.pool.discard(worker)
            self.pool.prestart()
            return
        worker.box.empty_output()
        self.pool.release(worker)

    # -- health --------------------------------------------------------------------------------------------------

    async def health(self, timeout_seconds: float) -> AdapterHealth:
        """Ask an idle worker, or look for the programs when none is up."""
        pool = self.pool
        answered_ms, error = 0.0, ""
        if idle := pool.take():
            started = time.perf_counter()
            error = await self._greet(idle, timeout_seconds)
            answered_ms = (time.perf_counter() - started) * 1000
        unable = await self._check_launcher()
        report = WorkerReport(
            workers=[*pool.workers, *self._sessions.workers],
            sessions=self._sessions.describe() if any(tool.session for tool in self._manifest.tools) else None,
            starting_count=pool.starting_count,
            waiting_count=pool.waiting_count,
            breakers={"starts": pool.breaker, "crashes": pool.crashes},
            trouble=pool.trouble(),
            latencies=tuple(pool.latencies),
            answered_ms=answered_ms,
            error=error or (unable.message if unable else ""),
            install=str(unable.data.get("install") or "") if unable else "",
            last_call=datetime.fromtimestamp(self._last_call, UTC) if self._last_call else None,
            junk=self._junk,
            image=self._launcher.image if isinstance(self._launcher, CheckedLauncher) else "",
            ended=(pool.retired_count, pool.crashed_count),
        )
        # Looking for programs runs them.
        return await asyncio.to_thread(health_of, self._manifest, report, self._probe)

    async def _check_launcher(self) -> ToolUnavailable | None:
        if isinstance(self._launcher, CheckedLauncher):
            try:
                await asyncio.to_thread(self._launcher.check)
            except ToolUnavailable as unable:
                return unable
        return None

    async def _greet(self, worker: Worker, seconds: float) -> str:
        """Ask a worker how it is; return what is wrong with it."""
        number = worker.request("health/check", {})
        future = worker.answer(number)
        timer = expire(future, seconds)
        try:
            await future
        except DeadlineStruck:
            worker.spoiled = True
            return f"a worker did not answer a health check within {seconds:g} s and is being ended"
        except (WorkerGone, MetaForgeError):
            return "a worker ended during a health check"
        finally:
            timer.cancel()
            worker.forget(number)
            self.pool.release(worker)
        return ""


def _meta(answer: dict[str, Any]) -> dict[str, Any]:
    duration = answer.get("duration_ms")
    return {"adapter_duration_ms": duration} if isinstance(duration, int | float) else {}

"""`RemoteSource`: the tools of an adapter that runs elsewhere, at one address or at several that share its calls."""

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from metaforge.core.errors import MetaForgeError, ToolError, ToolUnavailable
from metaforge.engine import faults
from metaforge.engine.answers import checked
from metaforge.engine.asking import DeadlineStruck, expire
from metaforge.engine.breaker import Breaker
from metaforge.engine.collect import Collector, Standing, asked_for
from metaforge.engine.connection import HttpConnection
from metaforge.engine.faults import DeadlinePassed, WorkerCrashed
from metaforge.engine.health import latency_of
from metaforge.engine.launch import DEFAULT_DISK_MB, make_folder
from metaforge.engine.outcome import outcome_of
from metaforge.engine.removal import remove_tree
from metaforge.engine.turns import Turns, turn_of
from metaforge.settings import Settings
from metaforge.store.blobs import Blobs
from metaforge.telemetry.logs import event
from metaforge.tools.context import Invocation, Outcome
from metaforge.tools.manifest import AdapterManifest, Tool
from metaforge.tools.source import AdapterHealth, AdapterState, Trouble

_MIB = 1 << 20
_MARGIN_SECONDS = 2.0
"""The remote side ends a call at its deadline and says so; this side waits a little longer for that answer."""
_FAILURES_IN_A_ROW = 2
_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 2.0, 60.0
_LATENCIES = 64
DEFAULT_AT_ONCE = 8
"""Calls that one address is sent at once; what it does not do at once waits there."""


class Endpoint:
    """One address of an adapter, and how it has been doing."""

    def __init__(self, connection: HttpConnection) -> None:
        self.connection = connection
        self.breaker = Breaker(
            threshold=_FAILURES_IN_A_ROW, pause_seconds=_PAUSE_SECONDS, longest_pause_seconds=_LONGEST_PAUSE_SECONDS
        )
        self.in_flight = 0
        self.calls_served = 0
        self.latencies: deque[float] = deque(maxlen=_LATENCIES)

    async def ask(self, params: dict[str, Any], invocation: Invocation) -> dict[str, Any]:
        """Put a call to it, and note how that went.

        Raises:
            ToolUnavailable: it does not answer, or refuses; nothing was begun.
            ToolError: it broke off, or did not answer in time.
        """
        started = time.perf_counter()
        seconds = invocation.timeout_seconds + _MARGIN_SECONDS
        self.in_flight += 1
        try:
            message = await self.connection.request("tool/call", params, seconds=seconds, progress=invocation.progress)
        except (ToolUnavailable, WorkerCrashed, DeadlinePassed) as fault:
            self.fail(fault.message)
            raise
        except MetaForgeError:
            self.breaker.succeed()
            raise
        except BaseException:
            self.breaker.release()
            raise
        finally:
            self.in_flight -= 1
        self.breaker.succeed()
        self.calls_served += 1
        self.latencies.append(time.perf_counter() - started)
        return message

    def fail(self, reason: str) -> None:
        """Count a failure."""
        self.breaker.fail(reason)
        if not self.breaker.is_closed:
            event("adapter_address_down", "warning", url=self.connection.base, error=reason)

    async def measure(self, seconds: float) -> tuple[dict[str, Any], str]:
        """Ask how it is, whether or not calls are kept from it; return its row and what is wrong."""
        row: dict[str, Any] = {"url": self.connection.base}
        started, error = time.perf_counter(), ""
        try:
            message = await self.connection.request("health/check", {}, seconds=seconds)
        except (ToolUnavailable, ToolError) as fault:
            error = fault.message
            self.fail(error)
        else:
            status = message.get("result") or {}
            row |= {"round_trip_ms": round((time.perf_counter() - started) * 1000, 1)} | status
            if status.get("status") == "healthy":
                self.breaker.succeed()
            else:
                error = f"the adapter at {self.connection.base} says {status.get('status') or message.get('error')}"
        if self.breaker.failures:
            row["breaker"] = self.breaker.told()
        if self.latencies:
            row["latency"] = latency_of(self.latencies)
        return row | {"calls_served": self.calls_served, "calls_under_way_count": self.in_flight}, error


class RemoteSource:
    """A ToolSource over HTTP. The adapter reads the workspace through a mount of its own; its files are fetched.

    Calls go to the address with the fewest under way. One that fails is passed over for a while, then tried with one
    call; a call that nobody had begun goes to the next address by itself.

    Args:
        manifest: the adapter.
        urls: where it listens.
        key: what every address wants to be shown; empty for none.
        at_once: how many calls one address is sent at once; more wait here, their callers in turns.
    """

    def __init__(
        self,
        manifest: AdapterManifest,
        urls: str | Sequence[str],
        *,
        blobs: Blobs,
        workspace: Path,
        settings: Settings,
        key: str = "",
        at_once: int = DEFAULT_AT_ONCE,
    ) -> None:
        self._manifest = manifest
        self._settings = settings
        self._key = key
        self._at_once = at_once
        self._endpoints: list[Endpoint] = []
        self.join([urls] if isinstance(urls, str) else urls)
        self._turns: Turns[None] = Turns(
            manifest.adapter_id,
            longest=settings.max_waiting_calls,
            longest_of_one=settings.max_waiting_calls_per_caller,
        )
        self._in_flight = 0
        self._collector = Collector(workspace, blobs)
        self._folders = settings.home_path / "workers"

    def join(self, urls: Sequence[str]) -> None:
        """Let more addresses share the calls; one that is known already is left as it is."""
        for url in urls:
            connection = HttpConnection(url, self._settings.max_output_mb, self._key)
            if all(each.connection.base != connection.base for each in self._endpoints):
                self._endpoints.append(Endpoint(connection))

    @property
    def manifest(self) -> AdapterManifest:
        return self._manifest

    @property
    def urls(self) -> list[str]:
        return [endpoint.connection.base for endpoint in self._endpoints]

    def trouble(self) -> Trouble | None:
        """Return why calls are refused just now: no address is left to try."""
        breakers = [endpoint.breaker for endpoint in self._endpoints]
        if any(breaker.is_closed for breaker in breakers):
            return None
        return Trouble(
            "; ".join(dict.fromkeys(breaker.reason for breaker in breakers)),
            round(min(breaker.seconds_left for breaker in breakers), 1),
        )

    # -- a call --------------------------------------------------------------------------------------------------

    async def call(self, tool: Tool, arguments: dict[str, Any], invocation: Invocation) -> Outcome:
        """Run one call there, and bring its files here. Going away cancels it."""
        params = {
            "tool_id": tool.id, "arguments": arguments, "timeout_seconds": invocation.timeout_seconds,
            "call_id": invocation.call_id, "trace_id": invocation.trace_id, "overwrite": invocation.overwrite,
            "fetch_outputs": True,
        }  # fmt: skip
        overwrite = self._collector.standing(asked_for(tool, arguments)) if invocation.overwrite else None
        await self._enter(invocation)
        try:
            endpoint, message = await self._ask(params, invocation)
            if (error := message.get("error")) is not None:
                raise faults.rebuild(error)
            answer = checked(tool, message.get("result"))
            url = str(answer.get("output_url") or "")
            if not url:
                return outcome_of(tool, answer)
            folder = make_folder(self._folders)
            try:
                connection = endpoint.connection
                return await self._bring(connection, tool, answer, url, folder, overwrite=overwrite)
            finally:
                remove_tree(folder)
                await endpoint.connection.client.delete(url)
        finally:
            self._leave()

    async def _enter(self, invocation: Invocation) -> None:
        """Wait for a place among the calls that are under way."""
        if self._in_flight < self._at_once * len(self._endpoints) and not self._turns:
            self._in_flight += 1
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._turns.add(future, turn_of(invocation.caller), self._seconds_to_wait())
        timer = expire(future, invocation.timeout_seconds)
        try:
            await future
        except DeadlineStruck:
            raise faults.deadline_passed(invocation.timeout_seconds, invocation.timeout_seconds) from None
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self._leave()
            raise
        finally:
            timer.cancel()
            self._turns.remove(future)

    def _seconds_to_wait(self) -> float:
        taken = [seconds for endpoint in self._endpoints for seconds in endpoint.latencies] or [1.0]
        return len(self._turns) * sum(taken) / len(taken) / (self._at_once * len(self._endpoints))

    def _leave(self) -> None:
        if (future := self._turns.next()) is not None:
            future.set_result(None)
        else:
            self._in_flight -= 1

    async def _ask(self, params: dict[str, Any], invocation: Invocation) -> tuple[Endpoint, dict[str, Any]]:
        tried: list[Endpoint] = []
        while (endpoint := self._choose(tried)) is not None:
            tried.append(endpoint)
            try:
                return endpoint, await endpoint.ask(params, invocation)
            except ToolUnavailable as fault:
                # Nothing was begun there: the next address may have it.
                last = fault
        if tried:
            raise last
        trouble = self.trouble() or Trouble("its addresses are being tried by other calls", 1.0)
        raise ToolUnavailable(
            f"{self._manifest.adapter_id} is not available: {trouble.reason}. "
            f"It is tried again in {trouble.retry_after_seconds:.0f} s",
            reason=trouble.reason, retry_after_seconds=trouble.retry_after_seconds, install="",
        )  # fmt: skip

    def _choose(self, tried: Sequence[Endpoint]) -> Endpoint | None:
        """Return the address with the fewest calls under way; one that failed gets one when its pause ends."""
        for endpoint in sorted(self._endpoints, key=lambda each: (each.in_flight, each.calls_served)):
            if endpoint not in tried and endpoint.breaker.admit():
                return endpoint
        return None

    async def _bring(
        self,
        connection: HttpConnection,
        tool: Tool,
        answer: dict[str, Any],
        url: str,
        folder: Path,
        *,
        overwrite: Standing | None,
    ) -> Outcome:
        left = (tool.limits.max_disk_mb or DEFAULT_DISK_MB) * _MIB
        names = [str(entry.get("path")) for key in ("files", "pictures") for entry in answer.get(key) or ()]
        for name in dict.fromkeys(names or map(str, answer.get("output_files") or ())):
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts:
                raise ToolError(f"The output file {name} is refused: its path leads out", kind="output_invalid")
            left -= await connection.fetch(f"{url}/{quote(name)}", folder / path, left)
        found = self._collector.examine(answer, folder, max_disk_mb=tool.limits.max_disk_mb or DEFAULT_DISK_MB)
        files = await asyncio.to_thread(self._collector.place, found.files, overwrite=overwrite)
        return outcome_of(tool, answer, files, found.images)

    # -- health --------------------------------------------------------------------------------------------------

    async def health(self, timeout_seconds: float) -> AdapterHealth:
        """Ask every address at once, within the time; it is reachable when one answers."""
        measured = await asyncio.gather(*(endpoint.measure(timeout_seconds) for endpoint in self._endpoints))
        errors = [error for _, error in measured if error]
        is_reachable = len(errors) < len(measured)
        detail: dict[str, Any] = dict(next((row for row, error in measured if not error), measured[0][0]))
        if len(measured) > 1:
            detail["addresses"] = [row | ({"error": error} if error else {}) for row, error in measured]
        if waiting := self._turns.awaited_count():
            detail["calls_waiting_count"] = waiting
        return AdapterHealth(
            adapter_id=self._manifest.adapter_id,
            version=self._manifest.version,
            tools_registered=len(self._manifest.tools),
            reachable=is_reachable,
            state=AdapterState.READY if is_reachable else AdapterState.DOWN,
            error="" if is_reachable else "; ".join(errors),
            detail=detail,
        )

    def prestart(self) -> None:
        """It was started by someone else."""

    async def close(self) -> None:
        """Close the connections."""
        for endpoint in self._endpoints:
            await endpoint.connection.close()

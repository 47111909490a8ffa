"""`ExecutionEngine`: runs a call where its tool lives, within its deadline, again only where that is safe."""

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from metaforge.core.errors import Cancelled, ToolUnavailable
from metaforge.core.ids import new_call_id
from metaforge.engine.faults import DeadlinePassed, WorkerCrashed
from metaforge.telemetry.logs import event
from metaforge.tools.context import Caller, Invocation, Outcome, Trust
from metaforge.tools.manifest import Tool
from metaforge.tools.source import ToolSource

if TYPE_CHECKING:
    from metaforge.protocol.messages import ToolCallResult

LONGEST_SECONDS = 3600.0


class Catalogue(Protocol):
    """What the engine asks of the registry."""

    def find(self, name: str) -> Tool: ...

    def source(self, adapter_id: str) -> ToolSource | None: ...

    def sources(self) -> Iterator[ToolSource]: ...

    def unavailable_reason(self, tool_id: str) -> tuple[str, str] | None: ...


class ExecutionEngine:
    """Manages the life of tool calls.

    Args:
        registry: knows the tools and where each lives.
    """

    def __init__(self, registry: Catalogue) -> None:
        self._registry = registry
        self._running: dict[str, asyncio.Task[Any]] = {}
        self._cancelled: set[str] = set()

    async def run(self, tool: Tool, arguments: dict[str, Any], invocation: Invocation) -> Outcome:
        """Run a call whose arguments are already judged.

        Args:
            tool: what to run.
            arguments: its arguments.
            invocation: who calls, and how long the tool may take: the smallest of this, the tool's own and 3600 s.

        Raises:
            ToolUnavailable: it cannot run here; nothing was started.
            ToolError: it ran and refused, crashed, or passed a limit.
            Cancelled: `cancel` was called.
        """
        source = self._source(tool)
        asked = invocation.timeout_seconds
        seconds = min(asked if asked > 0 else tool.timeout_seconds, tool.timeout_seconds, LONGEST_SECONDS)
        if seconds != asked:
            invocation = _with_deadline(invocation, seconds)
        task = asyncio.current_task()
        assert task is not None
        key = invocation.call_id
        self._running[key] = task
        try:
            if tool.retries and tool.idempotent:
                return await self._run_again(source, tool, arguments, invocation)
            return await source.call(tool, arguments, invocation)
        except asyncio.CancelledError:
            if key in self._cancelled and task.uncancel() == 0:
                raise Cancelled(f"{tool.id} was cancelled; its processes were ended", retryable=True) from None
            raise
        finally:
            if self._running.get(key) is task:
                del self._running[key]
            self._cancelled.discard(key)

    async def _run_again(
        self, source: ToolSource, tool: Tool, arguments: dict[str, Any], invocation: Invocation
    ) -> Outcome:
        """Repeat an idempotent call that got no answer; an answer, even a refusal, is final."""
        loop = asyncio.get_running_loop()
        end = loop.time() + LONGEST_SECONDS
        for attempt in range(1, tool.retries + 1):
            try:
                return await source.call(tool, arguments, invocation)
            except (WorkerCrashed, DeadlinePassed) as fault:
                left = end - loop.time()
                if left <= 0:
                    raise
                event(
                    "tool_call_retried", "warning",
                    call_id=invocation.call_id, tool_id=tool.id, attempt=attempt, error=fault.message,
                )  # fmt: skip
                invocation = _with_deadline(invocation, min(invocation.timeout_seconds, left))
        return await source.call(tool, arguments, invocation)

    def _source(self, tool: Tool) -> ToolSource:
        if tool.needs and (missing := self._registry.unavailable_reason(tool.id)) is not None:
            reason, install = missing
            raise ToolUnavailable(
                f"{tool.id} cannot run here: {reason}." + (f" To mend it: {install}" if install else ""),
                tool_id=tool.id, reason=reason, install=install,
            )  # fmt: skip
        source = self._registry.source(tool.adapter_id)
        if source is None:
            raise ToolUnavailable(
                f"{tool.id} cannot run: its adapter {tool.adapter_id} is not loaded",
                tool_id=tool.id, reason="its adapter is not loaded", install="",
            )  # fmt: skip
        return source

    async def invoke(
        self, tool_id: str, arguments: dict[str, Any], timeout_seconds: int = 120, trace_id: str | None = None
    ) -> "ToolCallResult":
        """Execute a tool call and return its result as the legacy dialect tells it.

        Args:
            tool_id: such as `calculix.run_fea`.
            arguments: its arguments, not checked against the schema here.
            timeout_seconds: the longest it may take, 1 to 3600 s.
            trace_id: carried into the adapter.

        Raises:
            MetaForgeError: what `run` raises, or UnknownTool.
        """
        from metaforge.protocol.messages import ToolCallResult

        started = asyncio.get_running_loop().time()
        invocation = Invocation(
            call_id=new_call_id(),
            caller=Caller("engine", Trust.LOCAL),
            timeout_seconds=float(timeout_seconds),
            trace_id=trace_id or "",
            overwrite=arguments.get("overwrite") is True,
        )
        outcome = await self.run(self._registry.find(tool_id), arguments, invocation)
        return ToolCallResult(
            tool_id=tool_id,
            status="success",
            data=outcome.data,
            duration_ms=round((asyncio.get_running_loop().time() - started) * 1000, 3),
            output_files=[file.path for file in outcome.files],
            summary=outcome.summary,
            warnings=list(outcome.warnings),
            next_step=outcome.next_step,
            files=[{"path": f.path, "media_type": f.media_type, "role": f.role} for f in outcome.files],
            programs={each.name: each.version for each in outcome.programs},
        )

    @property
    def running(self) -> list[str]:
        """The ids of calls under way."""
        return list(self._running)

    async def cancel(self, request_id: str) -> bool:
        """Cancel a running call; return whether there was one.

        Args:
            request_id: its call id.
        """
        task = self._running.get(request_id)
        if task is None or task.done():
            return False
        self._cancelled.add(request_id)
        task.cancel()
        await asyncio.sleep(0)
        return True

    async def close(self) -> None:
        """End every worker of every adapter; calls under way fail."""
        await asyncio.gather(*(source.close() for source in self._registry.sources()))


def _with_deadline(invocation: Invocation, seconds: float) -> Invocation:
    copy = object.__new__(Invocation)
    copy.__dict__.update(invocation.__dict__)
    copy.__dict__["timeout_seconds"] = seconds
    return copy

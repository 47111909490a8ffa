"""One call put to a worker: its request, its limits, its deadline, and what an error answer means."""

import asyncio
from typing import Any

from metaforge.core.errors import MetaForgeError, OverLimit
from metaforge.engine import faults
from metaforge.engine.launch import DEFAULT_CPU_SECONDS, DEFAULT_MEMORY_MB
from metaforge.engine.worker import Worker
from metaforge.tools.context import Invocation
from metaforge.tools.manifest import Tool


class DeadlineStruck(Exception):
    """The deadline passed."""


def expire(future: "asyncio.Future[Any]", seconds: float) -> asyncio.TimerHandle:
    """Let a future raise DeadlineStruck after some seconds. Cheaper than `asyncio.timeout`, and needs no task."""

    def strike() -> None:
        if not future.done():
            future.set_exception(DeadlineStruck())

    return future.get_loop().call_later(max(0.0, seconds), strike)


def memory_mb(tool: Tool) -> int:
    """Return the memory that a call of a tool may use, in MiB."""
    return tool.limits.max_memory_mb or DEFAULT_MEMORY_MB


def cpu_seconds(tool: Tool) -> int:
    """Return the CPU time that a call of a tool may use."""
    return tool.limits.max_cpu_seconds or DEFAULT_CPU_SECONDS


def request_of(
    worker: Worker, tool: Tool, arguments: dict[str, Any], invocation: Invocation, left_seconds: float
) -> dict[str, Any]:
    """Return the parameters of the `tool/call` that a worker is sent."""
    params = {
        "tool_id": tool.id, "arguments": arguments, "timeout_seconds": left_seconds, "call_id": invocation.call_id,
        "output_dir": worker.box.output_inside, "max_cpu_seconds": cpu_seconds(tool),
    }  # fmt: skip
    if invocation.overwrite:
        params["overwrite"] = True
    if invocation.trace_id:
        params["trace_id"] = invocation.trace_id
    return params


def refusal(worker: Worker, error: Any) -> MetaForgeError:
    """Return an error answer as an exception; a program that was killed for memory explains more than its own."""
    fault = faults.rebuild(error, memory_mb=worker.box.memory_mb)
    if worker.memory_was_short():
        fault = faults.over("memory_limit", worker.box.memory_mb)
    if isinstance(fault, OverLimit) and fault.kind == "memory_limit":
        worker.spoiled = True
    return fault

"""What went wrong with a worker, as the errors a caller can act on."""

import re
import signal
from typing import Any

from metaforge.core.codes import Code
from metaforge.core.errors import (
    FailureMode,
    InvalidArguments,
    MetaForgeError,
    OverLimit,
    ToolCrashed,
    ToolError,
    ToolTimedOut,
    ToolUnavailable,
    UnknownMethod,
    UnknownTool,
)

_LIMIT_KINDS = frozenset({"over_limit", "memory_limit", "cpu_limit", "disk_limit", "file_limit", "output_limit"})
_ENVELOPE = frozenset({"error_type", "tool_id", "details", "duration_ms", "message", "self"})
"""Fields of the legacy dialect's `data` that only repeat the error or its call."""
_TOOL_FIELDS = ("kind", "where", "fix", "retryable", "failure_mode")
_SIGNALLED = 128
_TOLD_LINES = 3
_TOLD_CHARACTERS = 400
_MESSAGE_CHARACTERS = 8000
"""A model reads the whole of it."""


class WorkerCrashed(ToolCrashed):
    """The worker's process ended before it answered, or its connection broke: the call may be sent again."""


class DeadlinePassed(ToolTimedOut):
    """The worker did not answer in time and was ended: the call may be sent again."""


def rebuild(error: Any, *, memory_mb: int = 0) -> MetaForgeError:
    """Return the exception that an adapter's error envelope stands for.

    Args:
        error: the `error` of a JSON-RPC answer, whatever it is.
        memory_mb: the worker's memory limit in MiB, to be named when it ran out.
    """
    error = error if isinstance(error, dict) else {"message": error}
    code, message = error.get("code"), str(error.get("message") or "The adapter gave no reason")[:_MESSAGE_CHARACTERS]
    data = error.get("data")
    data = dict(data) if isinstance(data, dict) else {}
    rest = {key: value for key, value in data.items() if key not in _ENVELOPE and key not in _TOOL_FIELDS}
    if code == Code.INVALID_PARAMS:
        return InvalidArguments(message, **rest)
    if code == Code.METHOD_NOT_FOUND:
        return UnknownTool(message, **rest) if data.get("tool_id") else UnknownMethod(message, **rest)
    if code == Code.TOOL_UNAVAILABLE:
        return ToolUnavailable(message, **rest)
    kind = str(data.get("kind") or "")
    if kind == "memory_limit" and "limit_mb" not in rest and memory_mb:
        return out_of_memory(memory_mb)
    shape: type[ToolError] = ToolError
    if code == Code.TOOL_TIMEOUT:
        shape = ToolTimedOut
    elif kind in _LIMIT_KINDS:
        shape = OverLimit
    elif kind == ToolCrashed.default_kind:
        shape = ToolCrashed
    try:
        mode = FailureMode(data.get("failure_mode") or FailureMode.INPUT)
    except ValueError:
        mode = FailureMode.INPUT
    return shape(
        message,
        kind=kind,
        where=str(data.get("where") or "")[:_MESSAGE_CHARACTERS],
        fix=str(data.get("fix") or "")[:_MESSAGE_CHARACTERS],
        retryable=bool(data.get("retryable")),
        failure_mode=mode,
        **rest,
    )


def out_of_memory(memory_mb: int) -> OverLimit:
    return OverLimit(
        f"The tool needed more than the {memory_mb} MB of memory it may use",
        kind="memory_limit",
        fix="ask for less: a coarser mesh, fewer or simpler parts, smaller arrays",
        failure_mode=FailureMode.LIMIT,
        limit_mb=memory_mb,
    )


def too_many_processes(limit: int) -> OverLimit:
    return OverLimit(
        f"The tool started more than the {limit} processes it may run",
        kind="process_limit",
        fix="run the work in one process",
        failure_mode=FailureMode.LIMIT,
        limit_count=limit,
    )


def over_disk(limit_mb: int) -> OverLimit:
    return OverLimit(
        f"The tool wrote more than the {limit_mb} MB it may write",
        kind="disk_limit",
        fix="ask for less: a coarser mesh, fewer saved steps; a script writes its part through output_path alone",
        failure_mode=FailureMode.LIMIT,
        limit_mb=limit_mb,
    )


def too_many_files(limit: int) -> OverLimit:
    return OverLimit(
        f"The tool made more than the {limit} files and folders it may make, or nested them too deep",
        kind="file_limit",
        fix="write one file; a script writes its part through output_path alone",
        failure_mode=FailureMode.LIMIT,
        limit_count=limit,
    )


def out_of_cpu(cpu_seconds: int) -> OverLimit:
    return OverLimit(
        f"The tool used more than the {cpu_seconds} s of CPU time it may use",
        kind="cpu_limit",
        fix="ask for less work in one call: a coarser mesh, fewer steps",
        failure_mode=FailureMode.LIMIT,
        limit_seconds=cpu_seconds,
    )


def over_output(limit_mb: int) -> OverLimit:
    return OverLimit(
        f"The tool's answer is larger than {limit_mb} MB, the most one answer may hold",
        kind="output_limit",
        fix="ask for fewer results, or have them written to a file; METAFORGE_MAX_OUTPUT_MB raises the limit",
        failure_mode=FailureMode.LIMIT,
        limit_mb=limit_mb,
    )


def deadline_passed(seconds: float, waited_seconds: float) -> DeadlinePassed:
    waiting = f", {waited_seconds:.1f} s of them waiting for a free worker" if waited_seconds >= 1 else ""
    return DeadlinePassed(
        f"The tool did not finish within {seconds:g} s{waiting}; its processes were ended",
        fix="ask for less work in one call, or for a longer timeout where the tool takes one",
        retryable=True,
        failure_mode=FailureMode.LIMIT,
        timeout_seconds=seconds,
    )


def never_begun(adapter_id: str, times: int) -> ToolError:
    """Return the error for a call that lost one worker after another before it came to its turn."""
    return WorkerCrashed(
        f"{adapter_id} lost {times} processes to other calls before it came to this one; it was not begun",
        fix="call again; `metaforge doctor` and the log say what ends the processes",
        retryable=True,
        failure_mode=FailureMode.ENVIRONMENT,
    )


def crashed(status: int | None, stderr: str, *, cpu_seconds: int, starting: bool = False) -> ToolError:
    """Return the error for a worker that ended by itself.

    Args:
        status: its exit status, 128 + n for signal n; None when the connection broke and it lives on.
        stderr: the end of what it wrote there.
        cpu_seconds: its limit of CPU time, to be named when that was the reason.
        starting: whether it had not yet taken a call.
    """
    what = "The adapter's process" if starting else "The tool's process"
    told = last_words(stderr)
    if status is None:
        return WorkerCrashed(
            f"{what} closed its connection without an answer" + (f": {told}" if told else ""),
            kind="connection_lost", retryable=True, failure_mode=FailureMode.ENVIRONMENT,
        )  # fmt: skip
    number = status - _SIGNALLED if status > _SIGNALLED else -status if status < 0 else 0
    if number == signal.SIGXCPU and cpu_seconds:
        return out_of_cpu(cpu_seconds)
    reasons: dict[int, str] = {
        signal.SIGSEGV: "The CAD kernel or program crashed",
        signal.SIGABRT: "The CAD kernel or program aborted",
        signal.SIGKILL: f"{what} was killed, most often by the system for want of memory",
    }
    reason = reasons.get(number, f"{what} ended before it answered")
    how = f"signal {number}, {_signal_name(number)}" if number else f"exit status {status}"
    ended: dict[str, Any] = {"signal": number} if number else {"exit_status": status}
    return WorkerCrashed(
        f"{reason} ({how})" + (f": {told}" if told else ""),
        fix="" if starting else "change the input: the same one is likely to end the same way",
        failure_mode=FailureMode.ENVIRONMENT,
        **ended,
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


_NOISE = re.compile(r"^(Traceback \(most|Current thread|Thread 0x|Extension modules:|\s*$|\^+$|\s+[\^~]+\s*$)")


def last_words(stderr: str) -> str:
    """Return the last lines that say something, on one line."""
    lines = [line.strip() for line in stderr.splitlines() if not _NOISE.match(line)]
    fatal = next((n for n, line in enumerate(lines) if line.startswith("Fatal Python error")), None)
    kept = lines[-_TOLD_LINES:] if fatal is None else lines[fatal : fatal + 2]
    return "; ".join(kept)[-_TOLD_CHARACTERS:]


def slow_start(adapter_id: str, seconds: float) -> ToolError:
    return WorkerCrashed(
        f"{adapter_id} was not ready {seconds:g} s after its start and was ended",
        kind="start_timeout",
        retryable=True,
        fix="try again when the machine is less busy",
        failure_mode=FailureMode.ENVIRONMENT,
    )

"""What went wrong with a worker, as the errors a caller can act on."""

import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from metaforge.store.blobs import Blobs

_ENVELOPE = frozenset({"error_type", "tool_id", "details", "duration_ms", "message", "self"})
"""Fields of the legacy dialect's `data` that only repeat the error or its call."""
_TOOL_FIELDS = ("kind", "where", "fix", "retryable", "failure_mode")
_SIGNALLED = 128
_TOLD_LINES = 3
_TOLD_CHARACTERS = 400
_MESSAGE_CHARACTERS = 8000
"""A model reads the whole of it."""


@dataclass(frozen=True)
class Limit:
    """A limit of one call: its kind, what is told when it is passed, and what its number counts."""

    kind: str
    told: str
    fix: str
    unit: str = "mb"


_LIMITS = (
    Limit(
        kind="memory_limit",
        told="The tool needed more than the {limit} MB of memory it may use",
        fix="ask for less: a coarser mesh, fewer or simpler parts, smaller arrays",
    ),
    Limit(
        kind="process_limit",
        told="The tool started more than the {limit} processes it may run",
        fix="run the work in one process",
        unit="count",
    ),
    Limit(
        kind="disk_limit",
        told="The tool wrote more than the {limit} MB it may write",
        fix="ask for less: a coarser mesh, fewer saved steps; a script writes its part through output_path alone",
    ),
    Limit(
        kind="file_limit",
        told="The tool made more than the {limit} files and folders it may make, or nested them too deep",
        fix="write one file; a script writes its part through output_path alone",
        unit="count",
    ),
    Limit(
        kind="cpu_limit",
        told="The tool used more than the {limit} s of CPU time it may use",
        fix="ask for less work in one call: a coarser mesh, fewer steps",
        unit="seconds",
    ),
    Limit(
        kind="output_limit",
        told="The tool's answer is larger than {limit} MB, the most one answer may hold",
        fix="ask for fewer results, or have them written to a file; METAFORGE_MAX_OUTPUT_MB raises the limit",
    ),
)
_LIMIT_OF_KIND = {each.kind: each for each in _LIMITS}
_LIMIT_KINDS = frozenset({OverLimit.default_kind, *_LIMIT_OF_KIND})


def over(kind: str, limit: int) -> OverLimit:
    """Return the error for a call that passed one of its limits.

    Args:
        kind: which one, such as `memory_limit`.
        limit: the limit, in MiB, seconds of CPU time, or a count.
    """
    passed = _LIMIT_OF_KIND[kind]
    told: dict[str, Any] = {f"limit_{passed.unit}": limit}
    return OverLimit(
        passed.told.format(limit=limit),
        kind=kind,
        fix=passed.fix,
        failure_mode=FailureMode.LIMIT,
        **told,
    )


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
        return over("memory_limit", memory_mb)
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


def keep_whole(fault: OverLimit, answer: Path, blobs: "Blobs") -> None:
    """Keep an answer that was too large, and let its error say where. Blocking: the file is copied."""
    try:
        size_bytes = answer.stat().st_size
        uri = f"metaforge://artefacts/{blobs.put_file(answer)}"
    except (OSError, MetaForgeError):
        return
    fault.message += f". All {size_bytes} bytes of it are kept at {uri}"
    fault.link = {
        "type": "resource_link", "uri": uri, "name": "answer.json", "mimeType": "application/json", "size": size_bytes,
    }  # fmt: skip


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
        return over("cpu_limit", cpu_seconds)
    reasons: dict[int, str] = {
        signal.SIGSEGV: "The CAD kernel or program crashed",
        signal.SIGABRT: "The CAD kernel or program aborted",
        signal.SIGKILL: f"{what} was killed, most often for want of memory or for CPU time beyond its limit",
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

"""The legacy dialect: `tool/list`, `tool/call` with `tool/result` progress, `health/check`, and its error envelope."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from metaforge.core.errors import InvalidParams
from metaforge.protocol import jsonrpc
from metaforge.protocol.jsonrpc import Message, RequestId

MAX_TIMEOUT_SECONDS = 3600


class ToolCall(NamedTuple):
    """The parameters of `tool/call`. `timeout_seconds` is None where the caller left it to the tool."""

    tool_id: str
    arguments: dict[str, Any]
    timeout_seconds: float | None
    trace_id: str


def read_call(params: Mapping[str, Any]) -> ToolCall:
    """Read the parameters of `tool/call`.

    Raises:
        InvalidParams: naming the parameter and what it takes.
    """
    tool_id, arguments = params.get("tool_id"), params.get("arguments")
    timeout, trace_id = params.get("timeout_seconds"), params.get("trace_id")
    if not isinstance(tool_id, str) or not tool_id:
        raise InvalidParams('tool/call: "tool_id" is missing; it is a string such as "calculix.run_fea"')
    if arguments is not None and not isinstance(arguments, dict):
        raise InvalidParams('tool/call: "arguments" must be an object')
    if timeout is not None and not _is_timeout(timeout):
        raise InvalidParams(f'tool/call: "timeout_seconds" must be a number from 1 to {MAX_TIMEOUT_SECONDS}')
    if trace_id is not None and not isinstance(trace_id, str):
        raise InvalidParams('tool/call: "trace_id" must be a string')
    return ToolCall(tool_id, arguments or {}, timeout, trace_id or "")


def read_capability(params: Mapping[str, Any]) -> str | None:
    """Return the capability that `tool/list` is to be filtered by, if any.

    Raises:
        InvalidParams: it is no string.
    """
    capability = params.get("capability")
    if capability is not None and not isinstance(capability, str):
        raise InvalidParams('tool/list: "capability" must be a string such as "stress_analysis"')
    return capability


def progress(request_id: RequestId, fraction: float, message: str) -> Message:
    """Return the `tool/result` notification that reports progress on a call."""
    return jsonrpc.notification(
        "tool/result", {"request_id": request_id, "progress": min(max(fraction, 0.0), 1.0), "message": message}
    )


def _is_timeout(value: Any) -> bool:
    return type(value) in (int, float) and 1 <= value <= MAX_TIMEOUT_SECONDS

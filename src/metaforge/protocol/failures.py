"""Every exception as the wire tells it, in each dialect: one table, read by both transports."""

from typing import Any

from metaforge.core.codes import Code
from metaforge.core.errors import (
    InvalidArguments,
    MetaForgeError,
    NotApproved,
    OverLimit,
    ResourceNotFound,
    ToolError,
    UnknownTool,
)
from metaforge.protocol import jsonrpc
from metaforge.protocol.jsonrpc import Message, RequestId
from metaforge.protocol.revisions import Dialect
from metaforge.protocol.stateless import SERVER_KEY, MissingCapability

_RENUMBERED_WHEN_STATELESS = (UnknownTool, ResourceNotFound)
"""Their own codes mean something else, or nothing, in the stateless era, which says -32602."""


def failure(
    fault: Exception,
    request_id: RequestId | None,
    dialect: Dialect,
    *,
    tool_id: str = "",
    call_id: str = "",
    duration_ms: float = 0.0,
    server: dict[str, Any] | None = None,
) -> Message:
    """Return the answer to a request that raised `fault`.

    A tool that ran and refused, and arguments it cannot take, are results with `isError`, which a model gets to read;
    everything else is a JSON-RPC error. The legacy dialect knows only the latter.

    Args:
        tool_id: the tool, when the request called one.
        server: what a stateless result says of the server.
    """
    if tool_id and dialect is not Dialect.LEGACY and (text := _readable(fault, dialect)):
        result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": True}
        if isinstance(fault, OverLimit) and fault.link is not None:
            result["content"].append(fault.link)
        about = {"toolId": tool_id, "details": str(fault), "durationMs": duration_ms}
        result["_meta"] = {"callId": call_id, "error": about}
        if dialect is Dialect.STATELESS:
            result["resultType"] = "complete"
            result["_meta"][SERVER_KEY] = server
        return jsonrpc.result(request_id, result)  # type: ignore[arg-type]
    code, message, data = _error(fault, dialect)
    if dialect is Dialect.LEGACY:
        about = {"error_type": Code(code).name, "tool_id": tool_id, "details": message, "duration_ms": duration_ms}
        data = {**_classification(fault), **data, **(about if tool_id else {"error_type": about["error_type"]})}
    if call_id:
        data = {**data, "call_id": call_id}
    return jsonrpc.error(request_id, code, message, data)


def _readable(fault: Exception, dialect: Dialect) -> str:
    """Return the text of an error result; empty when the fault is a JSON-RPC error."""
    if isinstance(fault, ToolError):
        return fault.text()
    if isinstance(fault, InvalidArguments):
        return f"{fault.message}\n[invalid_arguments; retrying unchanged cannot help; state unchanged]"
    if isinstance(fault, MissingCapability) and dialect is Dialect.HANDSHAKE:
        return f"{fault.message}\n[missing_capability; retrying unchanged cannot help; state unchanged]"
    return ""


def _error(fault: Exception, dialect: Dialect) -> tuple[int, str, dict[str, Any]]:
    if not isinstance(fault, MetaForgeError):
        what = f"{type(fault).__name__}: {fault}"
        message = f"MetaForge itself failed ({what}). Nothing in the request needs changing; its log holds the details"
        return Code.INTERNAL_ERROR, message, {}
    code = int(fault.code)
    if dialect is Dialect.STATELESS and isinstance(fault, _RENUMBERED_WHEN_STATELESS):
        code = Code.INVALID_PARAMS
    if isinstance(fault, NotApproved):
        return code, fault.message, {"code": "approval_required", **fault.data}
    return code, fault.message, fault.data


def _classification(fault: Exception) -> dict[str, Any]:
    """Return what the legacy dialect's `data` adds for a tool that refused."""
    if not isinstance(fault, ToolError):
        return {}
    return {
        "kind": fault.kind,
        "where": fault.where,
        "fix": fault.fix,
        "retryable": fault.retryable,
        "failure_mode": str(fault.failure_mode),
    }

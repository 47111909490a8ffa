"""What an adapter answers in the legacy dialect: results, and errors that the engine can rebuild."""

from typing import Any

from metaforge.core.codes import Code
from metaforge.core.errors import MetaForgeError, ToolError
from metaforge.protocol import jsonrpc
from metaforge.protocol.jsonrpc import Message
from metaforge.tools.context import Answer
from metaforge.tools.tool import MarkedTool


def answer_json(result: Any, marked: MarkedTool | None) -> Message:
    """Return what a tool returned as the dialect writes it.

    Args:
        result: an Answer, or plain data.
        marked: the method it came from, which knows how its data is written; None for a registered handler.
    """
    if not isinstance(result, Answer):
        data = marked.dump(result) if marked else dict(result)
        return {"data": data, "output_files": list(data.get("output_files", ()))}
    told: Message = {
        "data": marked.dump(result.data) if marked else dict(result.data),
        "output_files": [str(file.path) for file in result.files],
        "summary": result.summary,
    }
    if result.warnings:
        told["warnings"] = list(result.warnings)
    if result.next_step:
        told["next_step"] = result.next_step
    if result.files:
        told["files"] = [{"path": str(f.path), "media_type": f.media_type, "role": f.role} for f in result.files]
    if result.pictures:
        told["pictures"] = [{"path": str(p.path), "caption": p.caption} for p in result.pictures]
    if result.programs:
        told["programs"] = result.programs
    return told


def unexpected(request_id: jsonrpc.RequestId | None, kind: str, message: str) -> Message:
    """Return the error for a fault that is the adapter's own."""
    data = {
        "error_type": "TOOL_EXECUTION_ERROR",
        "kind": kind,
        "details": message,
        "failure_mode": "environment",
    }
    return jsonrpc.error(request_id, Code.TOOL_EXECUTION_ERROR, message, data)


def complete_error(fault: MetaForgeError, tool_id: str, duration_ms: float) -> None:
    """Give an error the legacy dialect's `data`, from which the engine rebuilds the same exception."""
    is_tool_error = isinstance(fault, ToolError)
    fault.data = {
        **fault.data,
        "error_type": "INVALID_PARAMS" if fault.code == Code.INVALID_PARAMS else "TOOL_EXECUTION_ERROR",
        "tool_id": tool_id,
        "details": fault.message,
        "duration_ms": duration_ms,
    }
    if is_tool_error:
        assert isinstance(fault, ToolError)
        fault.data |= {
            "kind": fault.kind, "where": fault.where, "fix": fault.fix,
            "retryable": fault.retryable, "failure_mode": str(fault.failure_mode),
        }  # fmt: skip

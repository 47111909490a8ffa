"""How a call ended, in the words of its record."""

import asyncio
from dataclasses import dataclass

from metaforge.core.errors import (
    InvalidArguments,
    MetaForgeError,
    NotApproved,
    ProtocolError,
    ToolCrashed,
    ToolError,
    ToolTimedOut,
    ToolUnavailable,
    UnknownTool,
)


@dataclass(frozen=True)
class Ending:
    """`status` is one of ok, refused, failed, timeout, cancelled, unavailable, invalid, unknown_tool."""

    status: str
    kind: str = ""
    message: str = ""


OK = Ending("ok")

_STATUS: tuple[tuple[type[BaseException], str], ...] = (
    (asyncio.CancelledError, "cancelled"),
    (UnknownTool, "unknown_tool"),
    (ToolUnavailable, "unavailable"),
    (InvalidArguments, "invalid"),
    (NotApproved, "refused"),
    (ToolTimedOut, "timeout"),
    (ToolCrashed, "failed"),
    (ToolError, "refused"),
    (ProtocolError, "refused"),
)


def ending_of(fault: BaseException) -> Ending:
    """Return how a call that raised `fault` ended."""
    status = next((status for kind, status in _STATUS if isinstance(fault, kind)), "failed")
    if isinstance(fault, ToolError):
        return Ending(status, fault.kind, fault.message)
    if isinstance(fault, MetaForgeError):
        return Ending(status, type(fault).__name__, fault.message)
    return Ending(status, type(fault).__name__, str(fault))

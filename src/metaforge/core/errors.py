"""Every error MetaForge raises on purpose.

    MetaForgeError
    ├── ProtocolError            the call never reached a tool: a JSON-RPC error
    │   ├── InvalidRequest           -32600
    │   ├── UnknownMethod            -32601
    │   ├── InvalidParams            -32602: a method's own parameters, not a tool's arguments
    │   ├── UnknownTool              -32601, -32602 in the stateless era
    │   ├── ToolUnavailable          -32003
    │   ├── Busy                     -32003 with data.reason busy and data.retry_after_seconds
    │   ├── NotApproved              -32001 with data.code approval_required
    │   ├── ServiceRefused           -32001 with data.code service_*: not what the run may do
    │   ├── ResourceNotFound         -32002, -32602 in the stateless era
    │   ├── ResourceUnreadable       -32005
    │   ├── AuthDenied               -32007
    │   └── Quarantined              -32003: the tool's own schema is broken
    ├── InvalidArguments         the arguments are wrong: isError text, -32602 on the legacy dialect
    └── ToolError                the tool ran and refused, or could not finish: isError text
        ├── ToolCrashed              its process died
        ├── ToolTimedOut             -32006 on the legacy dialect
        ├── OverLimit                memory, CPU time, output size, disk
        └── Cancelled                the caller withdrew; no answer follows

The split is "did the tool run?", not "was there a problem". A message is written for the model or person who must
act on it: what happened, to what, and what to do, with a number.
"""

from enum import StrEnum
from typing import Any, ClassVar

from metaforge.core.codes import Code


class FailureMode(StrEnum):
    """Who can do something about it."""

    DESIGN = "design"
    INPUT = "input"
    ENVIRONMENT = "environment"
    LIMIT = "limit"


class MetaForgeError(Exception):
    """Base class. `data` travels to the client as `error.data`."""

    code: ClassVar[int] = Code.INTERNAL_ERROR

    def __init__(self, message: str, **data: Any) -> None:
        super().__init__(message)
        self.message = message
        self.data = data


class ProtocolError(MetaForgeError):
    """The call never reached a tool."""


class InvalidRequest(ProtocolError):
    code = Code.INVALID_REQUEST


class UnknownMethod(ProtocolError):
    code = Code.METHOD_NOT_FOUND


class InvalidParams(ProtocolError):
    """A method's own parameters are missing or of the wrong kind."""

    code = Code.INVALID_PARAMS


class UnknownTool(ProtocolError):
    """`data`: tool_id, did_you_mean, tool_count."""

    code = Code.METHOD_NOT_FOUND


class ToolUnavailable(ProtocolError):
    """`data`: tool_id, reason, install (the command that mends it)."""

    code = Code.TOOL_UNAVAILABLE


class Busy(ToolUnavailable):
    """Too many calls wait already; nothing was begun. `data`: reason, retry_after_seconds, waiting_count."""


class Quarantined(ToolUnavailable):
    """The tool's own schema is broken; `data.reason` says how."""


class NotApproved(ProtocolError):
    code = Code.TOOL_EXECUTION_ERROR


class ServiceRefused(ProtocolError):
    """`data`: tool_id, code (service_scope, service_other_project or service_refused), run_id, retryable."""

    code = Code.TOOL_EXECUTION_ERROR


class ResourceNotFound(ProtocolError):
    code = Code.RESOURCE_NOT_FOUND


class ResourceUnreadable(ProtocolError):
    code = Code.RESOURCE_READ_ERROR


class AuthDenied(ProtocolError):
    code = Code.AUTH_DENIED


class InvalidArguments(MetaForgeError):
    """Arguments fail the schema or name a path that may not be used. `data.fields`: name -> what was expected."""

    code = Code.INVALID_PARAMS


class ToolError(MetaForgeError):
    """The tool ran and refused.

    Args:
        message: what happened, to what, in the field's own words, with the number.
        kind: a short stable name (`fillet_too_large`) that a client can branch on.
        where: the operation, line, element, node or file concerned.
        fix: what to do next, with a number where there is one.
        retryable: whether the same call can succeed if sent again unchanged.
        failure_mode: design, input, environment or limit.
    """

    code = Code.TOOL_EXECUTION_ERROR
    default_kind: ClassVar[str] = "tool_refused"

    def __init__(
        self,
        message: str,
        *,
        kind: str = "",
        where: str = "",
        fix: str = "",
        retryable: bool = False,
        failure_mode: FailureMode = FailureMode.INPUT,
        **data: Any,
    ) -> None:
        super().__init__(message, **data)
        self.kind = kind or self.default_kind
        self.where = where
        self.fix = fix
        self.retryable = retryable
        self.failure_mode = failure_mode

    def text(self) -> str:
        """Everything a model needs on its own, because an error result carries nothing else."""
        parts = [self.message.rstrip()]
        if self.where:
            parts.append(f"Where: {self.where}")
        if self.fix:
            parts.append(f"Fix: {self.fix}")
        parts.append(f"[{self.kind}; retrying unchanged {'can' if self.retryable else 'cannot'} help; state unchanged]")
        return "\n".join(parts)


class ToolCrashed(ToolError):
    """The tool's process died. `data`: exit_status or signal."""

    default_kind = "tool_crashed"


class ToolTimedOut(ToolError):
    code = Code.TOOL_TIMEOUT
    default_kind = "tool_timeout"


class OverLimit(ToolError):
    default_kind = "over_limit"
    link: dict[str, Any] | None = None
    """Where an answer that was too large is kept, as content that a client can follow."""


class Cancelled(ToolError):
    default_kind = "cancelled"

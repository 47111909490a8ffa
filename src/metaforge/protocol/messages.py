"""The legacy dialect's messages as pydantic models: what adapters and `McpClient` exchange.

The unified server's own hot path does not import this module: building pydantic models costs about 0.1 s of start.
Ids are strings or integers and are echoed as they came.
"""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from metaforge.core.errors import FailureMode

RequestId = str | int


class ToolListRequest(BaseModel):
    capability: str | None = None


class ToolCallRequest(BaseModel):
    tool_id: str = Field(..., description="Tool identifier, such as 'calculix.run_fea'")
    arguments: dict[str, Any] = Field(default_factory=dict)
    timeout_seconds: int = Field(default=120, ge=1, le=3600)
    trace_id: str | None = None


class HealthCheckRequest(BaseModel):
    pass


class ResourceLimits(BaseModel):
    """What one call may use: resident memory and disk in MiB, CPU time in seconds."""

    max_memory_mb: int = 1024
    max_cpu_seconds: int = 300
    max_disk_mb: int = 256


class NeedMessage(BaseModel):
    """A program or module a tool cannot work without."""

    kind: str
    name: str
    apt: str = ""
    extra: str = ""
    minimum: str = ""
    backports_of: str = ""


class ToolManifest(BaseModel):
    """One tool as `tool/list` tells it. The fields from `effect` on are MetaForge's own."""

    model_config = ConfigDict(use_enum_values=True)

    tool_id: str
    adapter_id: str
    name: str
    description: str
    capability: str
    input_schema: dict[str, Any] = Field(default_factory=dict)
    output_schema: dict[str, Any] = Field(default_factory=dict)
    phase: int = 1
    resource_limits: ResourceLimits = Field(default_factory=ResourceLimits)
    effect: str = "destroy"
    idempotent: bool = False
    timeout_seconds: float = 120.0
    retries: int = 0
    needs: list[NeedMessage] = Field(default_factory=list)
    runs_caller_code: bool = False
    is_quick: bool = False
    search_hint: str = ""
    hold: str = "by_effect"
    session: str = ""
    aliases: dict[str, str] = Field(default_factory=dict)


class ToolListResult(BaseModel):
    tools: list[ToolManifest]


class ToolCallResult(BaseModel):
    """The answer to `tool/call`. The fields after `output_files` are MetaForge's own."""

    tool_id: str
    status: str
    data: dict[str, Any] = Field(default_factory=dict)
    duration_ms: float = 0
    output_files: list[str] = Field(default_factory=list)
    summary: str = ""
    warnings: list[str] = Field(default_factory=list)
    next_step: str = ""
    files: list[dict[str, Any]] = Field(default_factory=list)
    pictures: list[dict[str, Any]] = Field(default_factory=list)
    programs: dict[str, str] = Field(default_factory=dict)


class ToolProgress(BaseModel):
    """The params of a `tool/result` notification."""

    request_id: RequestId
    progress: float = Field(ge=0.0, le=1.0)
    message: str = ""


class HealthStatus(BaseModel):
    adapter_id: str
    status: str
    version: str
    tools_available: int
    uptime_seconds: float
    last_invocation: datetime | None = None


class McpErrorData(BaseModel):
    """`error.data` of the legacy dialect. The fields after `duration_ms` are MetaForge's own."""

    error_type: str
    tool_id: str
    details: str
    duration_ms: float = 0
    kind: str = ""
    where: str = ""
    fix: str = ""
    retryable: bool = False
    failure_mode: FailureMode = FailureMode.INPUT
    fields: dict[str, str] | None = None


class JsonRpcRequest(BaseModel):
    jsonrpc: str = "2.0"
    id: RequestId
    method: str
    params: dict[str, Any] = Field(default_factory=dict)


class JsonRpcSuccessResponse(BaseModel):
    jsonrpc: str = "2.0"
    id: RequestId
    result: dict[str, Any]


class JsonRpcErrorResponse(BaseModel):
    jsonrpc: str = "2.0"
    id: RequestId | None
    error: dict[str, Any]

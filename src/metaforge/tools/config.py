"""How one adapter is reached and limited: `AdapterConfig`, from settings or `metaforge.toml`."""

from pydantic import BaseModel, ConfigDict, Field

from metaforge.protocol.messages import ResourceLimits


class AdapterConfig(BaseModel):
    """Where an adapter runs and what it may use.

    `transport` is `process` (a sandboxed process, the default), `stdio` (a container of `image`) or `http`
    (a remote adapter at `host`:`port`, or at `url`).
    """

    model_config = ConfigDict(extra="forbid")

    adapter_id: str
    image: str = ""
    transport: str = "process"
    host: str = "localhost"
    port: int = 8080
    url: str = ""
    workspace_mount: str = "/workspace"
    resource_limits: ResourceLimits = Field(default_factory=ResourceLimits)
    environment: dict[str, str] = Field(default_factory=dict)
    health_interval_seconds: int = 30
    max_workers: int = Field(default=2, ge=1, le=16)
    idle_seconds: float = Field(default=300.0, gt=0)

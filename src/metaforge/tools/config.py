"""How one adapter is reached and limited: `AdapterConfig`, from settings or `metaforge.toml`."""

import tomllib
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from metaforge.core.errors import MetaForgeError
from metaforge.protocol.messages import ResourceLimits


class AdapterConfig(BaseModel):
    """Where an adapter runs and what it may use.

    `transport` is `process` (a sandboxed process, the default), `stdio` (a container of `image`) or `http`
    (a remote adapter at `host`:`port`, or at `url`).
    """

    model_config = ConfigDict(extra="forbid")

    adapter_id: str
    image: str = ""
    transport: Literal["process", "stdio", "http"] = "process"
    host: str = "localhost"
    port: int = 8080
    url: str = ""
    workspace_mount: str = "/workspace"
    resource_limits: ResourceLimits = Field(default_factory=ResourceLimits)
    environment: dict[str, str] = Field(default_factory=dict)
    health_interval_seconds: int = 30
    max_workers: int = Field(default=2, ge=1, le=16)
    idle_seconds: float = Field(default=300.0, gt=0)


class BadConfig(MetaForgeError):
    """`metaforge.toml` cannot be used; the message names the file, the adapter and the field."""


def load_configs(path: Path) -> dict[str, AdapterConfig]:
    """Read `[adapters.<id>]` tables of a `metaforge.toml`.

    Raises:
        BadConfig: not TOML, or a table with a field that does not fit.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("adapters", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as fault:
        raise BadConfig(f"{path} cannot be read: {fault}") from None
    if not isinstance(tables, dict):
        raise BadConfig(f"{path}: `adapters` is a table of tables, one for each adapter: [adapters.calculix]")
    configs = {}
    for adapter_id, table in tables.items():
        try:
            configs[adapter_id] = AdapterConfig(**{**table, "adapter_id": adapter_id})
        except (ValidationError, TypeError) as fault:
            raise BadConfig(f"{path}, [adapters.{adapter_id}]: {fault}") from None
    return configs

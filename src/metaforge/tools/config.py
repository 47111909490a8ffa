"""How one adapter is reached and limited: `AdapterConfig`, from settings or `metaforge.toml`."""

import difflib
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from metaforge.core.errors import MetaForgeError
from metaforge.protocol.messages import ResourceLimits


class OwnLimits(ResourceLimits):
    """Limits that one adapter's tools get instead of their own; what is left out stays theirs."""

    model_config = ConfigDict(extra="forbid")

    max_memory_mb: int = Field(default=1024, ge=64, le=1 << 20)
    max_cpu_seconds: int = Field(default=300, ge=1)
    max_disk_mb: int = Field(default=256, ge=1)


class AdapterConfig(BaseModel):
    """Where an adapter runs and what it may use.

    `transport` is `process` (a sandboxed process, the default), `stdio` (a container of `image`, which sees the
    workspace at `workspace_mount`, to read or, with `workspace_mode` rw, to change) or `http` (a remote adapter at
    `host`:`port`, at `url`, or at several `urls` that share its calls; `key` is what it wants to be shown). `target`
    is the `module:Class` of an adapter that neither this package nor an installed one brings.
    """

    model_config = ConfigDict(extra="forbid")

    adapter_id: str
    image: str = ""
    transport: Literal["process", "stdio", "http"] = "process"
    target: str = ""
    host: str = "localhost"
    port: int = Field(default=8080, ge=1, le=65535)
    url: str = Field(default="", pattern=r"^(https?://.+)?$")
    urls: list[Annotated[str, Field(pattern=r"^https?://.+$")]] = Field(default_factory=list)
    key: str = Field(default="", repr=False)
    workspace_mount: str = Field(default="/workspace", pattern=r"^/[^:,]+$")
    workspace_mode: Literal["ro", "rw"] = "ro"
    resource_limits: OwnLimits = Field(default_factory=OwnLimits)
    environment: dict[str, str] = Field(default_factory=dict)
    health_interval_seconds: int = 30
    max_workers: int = Field(default=2, ge=1, le=16)
    idle_seconds: float = Field(default=300.0, gt=0)

    @property
    def is_remote(self) -> bool:
        return self.transport == "http" or bool(self.url) or bool(self.urls)

    @property
    def is_container(self) -> bool:
        return not self.is_remote and (self.transport == "stdio" or bool(self.image))

    @property
    def addresses(self) -> list[str]:
        """Where a remote adapter listens; several share its calls. `url` may name several too, by commas."""
        named = [*(part.strip() for part in self.url.split(",") if part.strip()), *self.urls]
        return list(dict.fromkeys(named)) or [f"http://{self.host}:{self.port}"]

    def limits_given(self) -> dict[str, int]:
        """Return the limits that were written down: the defaults are those of each tool."""
        return self.resource_limits.model_dump(include=self.resource_limits.model_fields_set)


class BadConfig(MetaForgeError):
    """`metaforge.toml` cannot be used; the message names the file, the line, the adapter and the field."""


def load_configs(path: Path) -> dict[str, AdapterConfig]:
    """Read `[adapters.<id>]` tables of a `metaforge.toml`.

    Raises:
        BadConfig: not TOML, or a table with a field that does not fit.
    """
    try:
        text = path.read_text(encoding="utf-8")
        tables = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as fault:
        raise BadConfig(f"{path} cannot be read: {fault}") from None
    for name in tables:
        if name != "adapters":
            raise BadConfig(f"{path}, line {_line(text, [name])}: {name} is unknown; write [adapters.<id>] tables")
    adapters = tables.get("adapters", {})
    if not isinstance(adapters, dict):
        raise BadConfig(f"{path}: `adapters` is a table of tables, one for each adapter: [adapters.calculix]")
    configs = {}
    for adapter_id, table in adapters.items():
        where = ["adapters", adapter_id]
        if not isinstance(table, dict):
            raise BadConfig(f"{path}, line {_line(text, where)}: {adapter_id} is a table: [adapters.{adapter_id}]")
        try:
            configs[adapter_id] = AdapterConfig(**{**table, "adapter_id": adapter_id})
        except ValidationError as fault:
            told = [_told(path, text, where, error) for error in fault.errors()]
            raise BadConfig("; ".join(told)) from None
    return configs


def _told(path: Path, text: str, where: list[str], error: Any) -> str:
    names = [str(part) for part in error["loc"]]
    reason = str(error["msg"])
    if error["type"] == "extra_forbidden":
        model = OwnLimits if names[0] == "resource_limits" else AdapterConfig
        fields = [name for name in model.model_fields if name != "adapter_id"]
        closest = difflib.get_close_matches(names[-1], fields, 1)
        reason = f"there is no such field; did you mean {closest[0]}?" if closest else f"fields: {', '.join(fields)}"
    given = "" if isinstance(error["input"], dict) else f" = {error['input']!r}"
    return f"{path}, line {_line(text, [*where, *names])}: [{'.'.join(where)}] {'.'.join(names)}{given}: {reason}"


def _line(text: str, names: list[str]) -> int:
    """Return the line where a value is written: that of its own key, else of the innermost table around it."""
    table: list[str] = []
    best, depth = 1, 0
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[+\s*([^\]]+?)\s*\]", line):
            table = _keys(header[1])
            here = table
        elif "=" in line:
            here = [*table, *_keys(line.partition("=")[0])]
        else:
            continue
        common = len(here) if here == names[: len(here)] else 0
        if common > depth:
            best, depth = number, common
    return best


def _keys(text: str) -> list[str]:
    return [part.strip().strip("\"'") for part in text.strip().split(".")]

"""Where tools come from: the server itself, an adapter's process, or a remote adapter."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from metaforge.tools.context import Invocation, Outcome
from metaforge.tools.manifest import AdapterManifest, Tool


class AdapterState(StrEnum):
    """What an adapter is doing, beside whether it can be reached."""

    READY = "ready"
    IDLE = "idle"
    STARTING = "starting"
    DOWN = "down"


@dataclass(frozen=True)
class AdapterHealth:
    """One adapter's row of the health roll-up."""

    adapter_id: str
    version: str
    tools_registered: int
    reachable: bool
    state: AdapterState
    error: str = ""
    install: str = ""
    detail: dict[str, Any] | None = None
    """Workers, breaker, sandbox, memory: what helps a person."""


@dataclass(frozen=True)
class Trouble:
    """Why calls to an adapter are refused for now, and when it is tried again."""

    reason: str
    retry_after_seconds: float


@runtime_checkable
class Supervised(Protocol):
    """A source that stops trying for a while what keeps failing."""

    def trouble(self) -> Trouble | None:
        """Return what is wrong just now, without asking anybody."""
        ...


@runtime_checkable
class Joinable(Protocol):
    """A source that several addresses can share."""

    @property
    def urls(self) -> list[str]: ...

    def join(self, urls: Sequence[str]) -> None:
        """Let more addresses share the calls."""
        ...


class ToolSource(Protocol):
    """Serves the tools of one adapter."""

    @property
    def manifest(self) -> AdapterManifest: ...

    async def call(self, tool: Tool, arguments: dict[str, Any], invocation: Invocation) -> Outcome:
        """Run a call whose arguments are already judged.

        Raises:
            ToolError: it ran and refused, or could not finish.
            ToolUnavailable: it cannot run here.
            asyncio.CancelledError: the caller withdrew; every process of the call is gone when this is raised.
        """
        ...

    async def health(self, timeout_seconds: float) -> AdapterHealth:
        """Measure, never assert: ask a running adapter, probe the programs of an idle one."""
        ...

    def prestart(self) -> None:
        """Warm up in the background where memory allows; does nothing for sources that need none."""
        ...

    async def close(self) -> None:
        """Stop everything this source started; nothing is left when this returns (1 s at the most)."""
        ...

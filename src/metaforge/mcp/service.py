"""What the transports need of the application behind them. `metaforge.app.App` is one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from metaforge.tools.context import Caller, Outcome, Progress
from metaforge.tools.manifest import Tool


@dataclass(frozen=True)
class ClientInfo:
    """The client of a session or stateless request, for `health/check` and records."""

    name: str = ""
    version: str = ""
    protocol_requested: str = ""
    protocol_negotiated: str = ""
    can_elicit: bool = False
    profile: str = ""
    """The profile that its connection asked for; empty for that of the server, where it has one."""


@dataclass(frozen=True)
class ResourceContent:
    """One resource as `resources/read` returns it."""

    uri: str
    media_type: str
    content: bytes


class Service(Protocol):
    """The application as a transport sees it."""

    version: str

    def instructions(self, profile: str = "") -> str:
        """What a client is told of the server, once."""
        ...

    def listed_tools(self, profile: str = "") -> Sequence[Tool]:
        """The tools to list, in a fixed order: those of a profile, or all."""
        ...

    def list_meta(self, profile: str = "") -> dict[str, Any]:
        """`_meta` of `tools/list`: `unavailableAdapters` and the like; empty when there is nothing to say."""
        ...

    def unknown_tool(self, tool_id: str) -> Exception:
        """The UnknownTool error for an id nothing answers to, with the closest names."""
        ...

    async def call_tool(
        self,
        tool_id: str,
        arguments: dict[str, Any],
        *,
        call_id: str,
        caller: Caller,
        timeout_seconds: float | None = None,
        trace_id: str = "",
        progress: Progress | None = None,
        ask: Any = None,
        idempotency_key: str = "",
    ) -> Outcome:
        """Run one call through the whole pipeline; raises MetaForgeError or asyncio.CancelledError."""
        ...

    async def health(self, client: ClientInfo) -> dict[str, Any]:
        """The roll-up of `health/check`."""
        ...

    def links(self, call_id: str) -> list[dict[str, str]]:
        """`_meta.links` of a call's result: where people find it; empty where there is no dashboard."""
        ...

    async def list_resources(self) -> list[dict[str, Any]]:
        """`resources/list` entries: uri, name, mimeType, size ..."""
        ...

    def resource_templates(self) -> list[dict[str, Any]]:
        """`resources/templates/list` entries."""
        ...

    async def read_resource(self, uri: str, caller: Caller | None = None) -> list[ResourceContent]:
        """Read it in the project that the caller has opened; raises ResourceNotFound or ResourceUnreadable."""
        ...

    def request_state_key(self) -> bytes:
        """The secret that a `requestState` is signed with: the same in every process that shares this one's data."""
        ...

    def client_ready(self) -> None:
        """A client finished its handshake: start workers in the background."""
        ...

    async def close(self) -> None:
        """Stop every worker and flush the record; one second at the most."""
        ...

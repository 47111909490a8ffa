"""`health.check`: what is connected, what is missing and the command that mends it."""

from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from metaforge import __version__
from metaforge.tools.context import Answer, Invocation
from metaforge.tools.effect import Effect
from metaforge.tools.server import McpToolServer
from metaforge.tools.tool import tool

RollUp = Callable[[Invocation], Awaitable[dict[str, Any]]]


class AdapterRow(BaseModel):
    model_config = ConfigDict(extra="allow")

    adapter_id: str
    version: str
    tools_registered: int
    reachable: bool
    state: str = Field(description="ready, idle, starting or down")
    error: str | None = None
    install: str | None = None


class HealthReport(BaseModel):
    model_config = ConfigDict(extra="allow")

    service: str
    status: str = Field(description="healthy or degraded")
    version: str
    uptime_seconds: float
    adapter_count: int
    tool_count: int
    adapters: list[AdapterRow]
    unreachable_adapters: list[str] | None = None
    detail: str | None = None


async def _unbound(invocation: Invocation) -> dict[str, Any]:
    raise RuntimeError("health.check has no server to report on")


class HealthServer(McpToolServer):
    """Runs inside the server whose health it tells."""

    in_process = True

    def __init__(self, roll_up: RollUp = _unbound) -> None:
        super().__init__("health", __version__)
        self._roll_up = roll_up

    @tool(
        effect=Effect.READ,
        capability="health",
        title="Check health",
        search_hint="what is connected, installed, unreachable; status of adapters",
    )
    async def check(self, ctx: Invocation) -> Answer[HealthReport]:
        """Measure every adapter: reachable or not, why, and the one command that mends it."""
        report = await self._roll_up(ctx)
        down = report.get("unreachable_adapters", [])
        summary = f"{report['status']}: {report['adapter_count']} adapters, {report['tool_count']} tools"
        if down:
            summary += f"; unreachable: {', '.join(down)}"
        fixes = [row["install"] for row in report["adapters"] if row.get("install")]
        return Answer(
            HealthReport.model_validate(report),
            summary + ".",
            next_step=f"To mend it: {fixes[0]}" if fixes else "",
        )

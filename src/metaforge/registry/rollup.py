"""The health roll-up: every adapter measured at once, told in one report."""

from typing import Any

from metaforge.registry.registry import QUARANTINED, ToolRegistry
from metaforge.tools.source import AdapterHealth


async def roll_up(
    registry: ToolRegistry,
    *,
    version: str,
    uptime_seconds: float,
    auth: str,
    client: dict[str, Any],
    sandbox: dict[str, Any],
    problems: list[str],
) -> dict[str, Any]:
    """Ask every adapter and return the report of `health/check`.

    Args:
        auth: what the transport in front enforces: open, api_key, oauth, api_key+oauth or unknown.
        client: the client of this session, with `protocol_skew` when it asked for another revision.
        sandbox: which isolation adapter processes get.
        problems: sentences about this server itself, such as a record that cannot be written.
    """
    rows = [_row(health) for health in await registry.measure_health()]
    rows += [_dropped_row(entry.adapter_id, entry.reason, entry.install)
             for entry in registry.unavailable() if not entry.tools]  # fmt: skip
    down = [row["adapter_id"] for row in rows if not row["reachable"]]
    report: dict[str, Any] = {
        "service": "metaforge-mcp",
        "status": "degraded" if down or problems else "healthy",
        "version": version,
        "uptime_seconds": round(uptime_seconds, 3),
        "adapter_count": len(rows),
        "tool_count": registry.tool_count,
        "auth": auth,
        "client": client,
        "sandbox": sandbox,
        "llm_usage_24h": {"available": False, "reason": "this release makes no model calls of its own"},
        "adapters": rows,
    }
    if registry.mended:
        report["mended_schemas"] = {tool_id: list(notes) for tool_id, notes in registry.mended.items()}
    left_out = [entry for entry in registry.unavailable() if entry.reason.startswith(QUARANTINED)]
    if left_out:
        report["quarantined"] = [
            {"adapter_id": entry.adapter_id, "tools": list(entry.tools), "reason": entry.reason} for entry in left_out
        ]
    if down:
        report["unreachable_adapters"] = down
        report["detail"] = (
            f"{len(down)} of {len(rows)} adapters did not answer: {', '.join(down)}. "
            "Their tools are registered but calls to them will fail."
        )
    if problems:
        report["problems"] = problems
    return report


def _row(health: AdapterHealth) -> dict[str, Any]:
    row: dict[str, Any] = {
        "adapter_id": health.adapter_id,
        "version": health.version,
        "tools_registered": health.tools_registered,
        "reachable": health.reachable,
        "state": str(health.state),
    }
    optional = {"error": health.error, "install": health.install, "detail": health.detail}
    return row | {key: value for key, value in optional.items() if value}


def _dropped_row(adapter_id: str, reason: str, install: str) -> dict[str, Any]:
    row = {"adapter_id": adapter_id, "version": "", "tools_registered": 0, "reachable": False, "state": "down"}
    row["error"] = reason
    return row | ({"install": install} if install else {})

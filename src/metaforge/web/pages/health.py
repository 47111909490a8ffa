"""Health: which adapters answer, what is missing and the command that mends it."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from metaforge.web.pages.site import Site
from metaforge.web.pages.words import ago, duration, inline, spoken
from metaforge.web.services import Services

_SAID = ("workers", "last_invocation", "uptime_seconds")


class HealthPages:
    """The page `/system`."""

    def __init__(self, services: Services, site: Site) -> None:
        self._services = services
        self._site = site

    async def shown(self, request: Request) -> Response:
        """Show the roll-up, measured now."""
        report = await self._services.health()
        values = {
            "title": "Health", "section": "health", "report": report,
            "details": {row["adapter_id"]: _detail(row) for row in report["adapters"]},
            "uptime": duration(float(report.get("uptime_seconds") or 0)),
        }  # fmt: skip
        return await self._site.page(request, "health.html", values)


def _detail(row: Mapping[str, Any]) -> str:
    """Say what an adapter tells of itself in a line."""
    detail = row.get("detail")
    if row.get("error"):
        return str(row["error"])
    if not isinstance(detail, Mapping):
        return str(detail or "")
    told = []
    workers = [each for each in detail.get("workers") or () if isinstance(each, Mapping)]
    if workers:
        served = sum(int(each.get("calls_served") or 0) for each in workers)
        room_mb = sum(float(each.get("rss_mb") or 0) for each in workers)
        told.append(f"{len(workers)} worker{'s' if len(workers) > 1 else ''}, {room_mb:.0f} MB, {served} calls served")
    if detail.get("last_invocation"):
        told.append(f"last call {ago(str(detail['last_invocation']))}")
    more = {name: value for name, value in detail.items() if name not in _SAID and value not in (None, "", [], {})}
    told += [f"{spoken(name)} {inline(value, 80)}" for name, value in more.items()]
    return ", ".join(told)

"""Calls: what was called, by whom, with what outcome, and the files that came of it."""

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from metaforge.record.call_record import CallRecord
from metaforge.record.queries import MAX_LIMIT
from metaforge.tools.context import Artefact
from metaforge.web.pages.paging import part_of
from metaforge.web.pages.site import Site
from metaforge.web.services import Services

PAGE_COUNT = 100
STATUSES = ("ok", "refused", "failed", "timeout", "cancelled", "unavailable", "invalid", "unknown_tool")
PICTURE_TYPES = ("image/png", "image/jpeg")
SHAPE_TYPES = ("model/step", "model/gltf-binary", "model/vnd.brep")
_SHAPE_ENDS = (".step", ".stp", ".glb", ".brep", ".brp")


class CallPages:
    """The pages below `/calls`."""

    def __init__(self, services: Services, site: Site) -> None:
        self._services = services
        self._site = site

    async def listed(self, request: Request) -> Response:
        """Show calls, the latest first."""
        query = request.query_params
        tool_id, status = query.get("tool", "")[:200].strip(), query.get("status", "")
        status = status if status in STATUSES else ""
        found = await asyncio.to_thread(self._services.calls.list_calls, MAX_LIMIT, tool_id, status)
        shown, part = part_of(request, found, PAGE_COUNT)
        values = {
            "title": "Calls", "section": "calls", "calls": shown, "part": part, "tool_id": tool_id, "status": status,
            "statuses": STATUSES, "cut": len(found) == MAX_LIMIT, "tools": sorted({each.tool_id for each in found}),
        }  # fmt: skip
        return await self._site.page(request, "calls.html", values)

    async def shown(self, request: Request) -> Response:
        """Show one call."""
        call_id = request.path_params["call_id"]
        try:
            call = await asyncio.to_thread(self._services.calls.get_call, call_id)
        except KeyError:
            told = f"There is no record of a call {call_id[:80]!r}. A call is recorded when it has ended."
            return await self._site.fault(request, 404, "Not found", told)
        shapes = [each for each in call.artefacts if is_shape(each)]
        values: dict[str, Any] = {
            "title": call.tool_id, "section": "calls", "call": call, "is_shape": is_shape, "shape": shapes[:1],
            "pictures": [each for each in call.artefacts if each.media_type in PICTURE_TYPES],
            "others": _others(call), "model_id": "model",
        }  # fmt: skip
        return await self._site.page(request, "call.html", values, model=bool(shapes))


def is_shape(file: Artefact) -> bool:
    """Whether a file can be seen in the 3-D view."""
    return file.media_type in SHAPE_TYPES or file.path.lower().endswith(_SHAPE_ENDS)


def _others(call: CallRecord) -> list[Artefact]:
    return [each for each in call.artefacts if each.media_type not in PICTURE_TYPES]

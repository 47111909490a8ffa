"""Approvals: what waits for a person, one entry with everything they need to judge it, and their answer."""

import asyncio
import hashlib
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from metaforge.approvals.faults import NotDecidable
from metaforge.approvals.model import Entry, Verdict
from metaforge.core.errors import InvalidArguments
from metaforge.twin.overview import list_projects
from metaforge.web.pages.approval_list import PAGE_COUNT, Filter, list_entries
from metaforge.web.pages.approval_view import shown_entry
from metaforge.web.pages.edits import Edits
from metaforge.web.pages.forms import read_form
from metaforge.web.pages.people import Forbidden, People
from metaforge.web.pages.site import Site, see_other
from metaforge.web.services import Services

MAX_PROJECTS = 500


class ApprovalPages:
    """The pages below `/approvals`."""

    def __init__(self, services: Services, site: Site, people: People) -> None:
        self._services = services
        self._site = site
        self._people = people
        self._edits = Edits(services.catalogue)

    async def listed(self, request: Request) -> Response:
        """Show entries of one status, a page at a time."""
        asked = Filter.of(request.query_params)
        listing, names = await asyncio.gather(
            asyncio.to_thread(list_entries, self._services.ledger, asked), self._project_names()
        )
        told = [(entry.approval_id, entry.seq, entry.state) for entry in listing.entries]
        return await self._site.page(
            request,
            "approvals.html",
            {
                "title": "Approvals", "section": "approvals", "asked": asked, "listing": listing, "names": names,
                "page_count": PAGE_COUNT, "version_of_part": _version(told, listing.matching, listing.more),
            },
        )  # fmt: skip

    async def shown(self, request: Request) -> Response:
        """Show one entry."""
        entry = await asyncio.to_thread(self._services.ledger.get, _approval_id(request))
        return await self._page(request, entry)

    async def decided(self, request: Request) -> Response:
        """Take a person's answer."""
        approval_id = _approval_id(request)
        form = await read_form(request)
        visitor = self._people.check(request, form.get("csrf", ""))
        if visitor.may_not:
            raise Forbidden(visitor.may_not)
        decision, reason = form.get("decision", ""), form.get("reason", "").strip()
        text = form.get("arguments", "")
        entry = await asyncio.to_thread(self._services.ledger.get, approval_id)
        try:
            arguments = self._edits.read(text, entry) if decision == "edit" else None
            if decision not in ("approve", "edit", "reject"):
                raise InvalidArguments(f"{decision[:40]!r} is no answer: choose approve or reject")
            if decision == "reject" and not reason:
                raise InvalidArguments("Say why: the agent reads your reason and can do better")
            verdict: Verdict = "reject" if decision == "reject" else "approve"
            await self._services.decide(approval_id, verdict, visitor.approver, reason, arguments)
        except InvalidArguments as fault:
            return await self._page(request, entry, fault.message, form, 422)
        except NotDecidable as fault:
            entry = await asyncio.to_thread(self._services.ledger.get, approval_id)
            told = f"Your answer was not taken. {fault.message}"
            return await self._page(request, entry, told, form, fault.status)
        return see_other(f"/approvals/{approval_id}")

    async def _page(
        self, request: Request, entry: Entry, fault: str = "", typed: Mapping[str, str] | None = None, status: int = 200
    ) -> Response:
        names = await self._project_names()
        shown = shown_entry(entry)
        return await self._site.page(
            request,
            "approval.html",
            {
                "title": entry.request.title or entry.request.tool_id, "section": "approvals", "entry": entry,
                "asked": entry.request, "shown": shown, "project_name": names.get(entry.request.project_id, ""),
                "fault": fault, "typed": typed or {},
                "version_of_part": f"{entry.seq}-{entry.state}-{entry.on_dashboard}",
            },
            status=status,
            model=shown.has_shapes,
        )  # fmt: skip

    async def _project_names(self) -> dict[str, str]:
        rows, _ = await self._services.read(lambda view: list_projects(view, MAX_PROJECTS, 0))
        return {row["id"]: row["name"] for row in rows}


def _approval_id(request: Request) -> str:
    """Return the ledger's id; the API calls the same entry `tool:` and that id."""
    approval_id: str = request.path_params["approval_id"]
    return approval_id.removeprefix("tool:")


def _version(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]

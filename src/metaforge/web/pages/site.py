"""Render templates: one Jinja environment, the frame that all pages share, and answers with their headers."""

import asyncio
from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from metaforge import __version__
from metaforge.approvals.faults import LedgerUnavailable
from metaforge.core.clock import utc_now
from metaforge.web.pages import policy
from metaforge.web.pages.people import People
from metaforge.web.pages.words import FILTERS
from metaforge.web.services import Services

MAX_COUNTED = 100


class Site:
    """Everything that templates need beside their own values."""

    def __init__(self, services: Services, people: People) -> None:
        self._services = services
        self._people = people
        self._environment = Environment(
            loader=PackageLoader("metaforge.web.pages", "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update(FILTERS)
        self._environment.globals.update(version=__version__)

    async def page(
        self, request: Request, template: str, values: Mapping[str, Any], *, status: int = 200, model: bool = False
    ) -> Response:
        """Render a page, or only its changing part where a script asks for that.

        Args:
            request: whose headers say which is wanted.
            template: below `templates/`; it has a block `part` when it can be swapped.
            values: what it shows.
            status: of the answer.
            model: whether a 3-D view is on the page.
        """
        built, whole, visitor = policy.built(), not wants_part(request), self._people.visitor(request)
        frame = {
            "has_bundles": bool(built["sources"]),
            "bundle_mark": built["sources"],
            "build_command": _build_command(),
            "now": utc_now(),
            "whole": whole,
            "model": model,
            "visitor": visitor,
            "csrf": visitor.csrf,
            "events": True,
        } | dict(values)
        frame["waiting"] = await self.waiting() if whole and frame["events"] else ""
        text = self._environment.get_template(template).render(frame)
        answer = HTMLResponse(text, status, policy.page_headers(with_model=model))
        if visitor.cookie is not None:
            answer.raw_headers.append(visitor.cookie)
        return answer

    async def fault(self, request: Request, status: int, title: str, message: str, fix: str = "") -> Response:
        """Render a page that says what is wrong and what to do."""
        values = {"title": title, "message": message, "fix": fix, "section": ""}
        return await self.page(request, "fault.html", values, status=status)

    async def waiting(self) -> str:
        """Return how many entries wait for a person, as the navigation shows it: empty for none."""
        try:
            found = await asyncio.to_thread(lambda: self._services.ledger.heads(limit=MAX_COUNTED))
        except LedgerUnavailable:
            return "!"
        return f"{MAX_COUNTED - 1}+" if len(found) == MAX_COUNTED else str(len(found) or "")


def wants_part(request: Request) -> bool:
    """Whether a script swaps a part of the page, instead of a browser loading it."""
    headers = request.headers
    return headers.get("hx-request") == "true" and headers.get("hx-history-restore-request") != "true"


def see_other(url: str) -> Response:
    """Send the browser to another page after a form was taken."""
    return RedirectResponse(url, 303, policy.page_headers())


def _build_command() -> str:
    """Return what adds the bundled libraries: in a checkout, or to an installed package."""
    in_checkout = (policy.STATIC.parents[3] / "Makefile").is_file()
    return "make web" if in_checkout else "python -m metaforge.web.frontend"

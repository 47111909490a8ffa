"""Work sessions: what agents did, as they told it and as their calls show."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from metaforge.twin import sessions
from metaforge.twin.overview import list_projects
from metaforge.twin.view import View
from metaforge.web.pages.paging import Part
from metaforge.web.pages.site import Site
from metaforge.web.services import Services

PAGE_COUNT = 50
EVENT_COUNT = 200
STATUSES = ("active", "completed", "failed")
TONES = {"error": "bad", "result": "good", "decision": "accent", "action": "accent"}


class SessionPages:
    """The pages below `/sessions`."""

    def __init__(self, services: Services, site: Site) -> None:
        self._services = services
        self._site = site

    async def listed(self, request: Request) -> Response:
        """Show sessions, the latest first."""
        part = Part.of(request, PAGE_COUNT)
        query = request.query_params
        project_id, status = query.get("project", "")[:200], query.get("status", "")
        status = status if status in STATUSES else ""

        def look(view: View) -> dict[str, Any]:
            found, total = sessions.listed(view, project_id, status, part.count, part.start)
            projects, _ = list_projects(view, 500, 0)
            return {
                "sessions": found, "part": part.with_total(total), "names": {row["id"]: row["name"] for row in projects}
            }  # fmt: skip

        told = await self._services.read(look)
        values = told | {
            "title": "Sessions", "section": "sessions", "project_id": project_id, "status": status,
            "statuses": STATUSES,
        }  # fmt: skip
        return await self._site.page(request, "sessions.html", values)

    async def shown(self, request: Request) -> Response:
        """Show one session with its events."""
        session_id, start = request.path_params["session_id"], Part.of(request, EVENT_COUNT)

        def look(view: View) -> dict[str, Any]:
            session = sessions.get(view, session_id)
            project = view.project(session.project_id)
            return {
                "session": session, "events": sessions.events(view, session_id, start.start, EVENT_COUNT),
                "part": start.with_total(session.event_count), "project_name": project.name if project else "",
            }  # fmt: skip

        told = await self._services.read(look)
        session = told["session"]
        title = session.title or f"{session.client_name or session.agent_code or 'Session'}"
        values = told | {"title": title, "section": "sessions", "tones": TONES}
        return await self._site.page(request, "session.html", values)

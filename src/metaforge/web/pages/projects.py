"""Projects: what there is, how the requirements of one stand, and what changed since a baseline."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from metaforge.twin.baseline_diff import diff_baselines
from metaforge.twin.baselines import NOW, baselines
from metaforge.twin.links import doubts
from metaforge.twin.matrix import matrix
from metaforge.twin.model import ChangeEntry, Project
from metaforge.twin.overview import brief, list_projects
from metaforge.twin.unknown import unknown_project
from metaforge.twin.view import View
from metaforge.web.pages.approval_view import field_rows
from metaforge.web.pages.paging import Part, part_of
from metaforge.web.pages.site import Site
from metaforge.web.services import Services

RECENT_COUNT = 12
SUSPECT_COUNT = 8
PAGE_COUNT = 100


class ProjectPages:
    """The pages below `/projects`, items apart."""

    def __init__(self, services: Services, site: Site) -> None:
        self._services = services
        self._site = site

    async def listed(self, request: Request) -> Response:
        """Show all projects, the latest change first."""
        part = Part.of(request, PAGE_COUNT)
        rows, total = await self._services.read(lambda view: list_projects(view, part.count, part.start))
        values = {"title": "Projects", "section": "projects", "rows": rows, "part": part.with_total(total)}
        return await self._site.page(request, "projects.html", values)

    async def shown(self, request: Request) -> Response:
        """Show one project: what it holds, how it stands, and what happened lately."""
        project_id = request.path_params["project_id"]
        kind, text = request.query_params.get("kind", ""), request.query_params.get("q", "")[:200].strip()

        def look(view: View) -> dict[str, Any]:
            project = project_of(view, project_id)
            own = view.of_project(project_id)
            items = [item for item in own.items() if item.head_revision is not None]
            wanted = [item for item in items if _fits(item.key, item.name, item.kind, kind, text)]
            doubtful = doubts(own)
            shown = list(doubtful.items())[:SUSPECT_COUNT]
            return {
                "project": project, "brief": brief(view, project), "kinds": sorted({item.kind for item in items}),
                "items": wanted, "baselines": baselines(own), "changes": _recent(own),
                "suspects": [{"node": own.node(node_id), "why": each.why} for node_id, each in shown],
                "suspect_count": len(doubtful),
            }  # fmt: skip

        told = await self._services.read(look, project_id=project_id)
        shown, part = part_of(request, told["items"], PAGE_COUNT)
        values = told | {
            "title": told["project"].name, "section": "projects", "shown": shown, "part": part,
            "kind": kind, "text": text,
        }  # fmt: skip
        return await self._site.page(request, "project.html", values)

    async def trace(self, request: Request) -> Response:
        """Show the trace matrix: each requirement against what verifies it."""
        project_id = request.path_params["project_id"]

        def look(view: View) -> dict[str, Any]:
            return {"project": project_of(view, project_id), "matrix": matrix(view.of_project(project_id))}

        told = await self._services.read(look, project_id=project_id)
        values = told | {"title": f"{told['project'].name}: trace", "section": "projects"}
        return await self._site.page(request, "trace.html", values)

    async def compared(self, request: Request) -> Response:
        """Show what differs between two baselines, or one and the present."""
        project_id, query = request.path_params["project_id"], request.query_params

        def look(view: View) -> dict[str, Any]:
            project, own = project_of(view, project_id), view.of_project(project_id)
            names = [each.name for each in baselines(own)]
            before = query.get("from") or (names[-1] if names else NOW)
            diff = diff_baselines(own, before, query.get("to") or NOW)
            return {"project": project, "names": [*names, NOW], "diff": diff}

        told = await self._services.read(look, project_id=project_id)
        items = [{"item": item, "fields": field_rows(item.fields)} for item in told["diff"].items]
        values = told | {"title": f"{told['project'].name}: compare", "section": "projects", "items": items}
        return await self._site.page(request, "compare.html", values)


def project_of(view: View, project_id: str) -> Project:
    """Return a project.

    Raises:
        ToolError: `unknown_project`.
    """
    found = view.project(project_id)
    if found is None:
        raise unknown_project(view, project_id)
    return found


def _fits(key: str, name: str, kind: str, wanted_kind: str, text: str) -> bool:
    return (not wanted_kind or kind == wanted_kind) and (not text or text.casefold() in f"{key}\n{name}".casefold())


def _recent(view: View) -> list[ChangeEntry]:
    project_id = view.reader.project_id
    query = (
        "select coalesce(min(seq), 0) from "
        "(select seq from changelog where project_id = ? and kind <> 'link' order by seq desc limit ?) latest"
    )
    first = int(view.transaction.value(query, project_id, RECENT_COUNT))
    return [each for each in reversed(view.changes(first - 1, project_id=project_id)) if each.kind != "link"]

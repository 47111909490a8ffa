"""Which page lies where, and what all of them do the same: the frame's values, and faults told as pages."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from metaforge.approvals.faults import LedgerUnavailable, NotDecidable, UnknownApproval
from metaforge.core.errors import MetaForgeError, ToolError
from metaforge.store.location import StoreUnavailable
from metaforge.web.pages.approvals import ApprovalPages
from metaforge.web.pages.calls import CallPages
from metaforge.web.pages.contents import Contents
from metaforge.web.pages.health import HealthPages
from metaforge.web.pages.items import ItemPages
from metaforge.web.pages.people import Forbidden, People
from metaforge.web.pages.projects import ProjectPages
from metaforge.web.pages.sessions import SessionPages
from metaforge.web.pages.signing_in import SigningIn
from metaforge.web.pages.site import Site, see_other
from metaforge.web.services import Services

Handler = Callable[[Request], Awaitable[Response]]


def routes(services: Services) -> list[BaseRoute]:
    """Return every page of the dashboard, to be mounted at `/`."""
    people = People(services)
    site = Site(services, people)
    approvals, signing_in = ApprovalPages(services, site, people), SigningIn(people, site, services.access.mode)
    projects, items = ProjectPages(services, site), ItemPages(services, site)
    sessions, calls, health = SessionPages(services, site), CallPages(services, site), HealthPages(services, site)
    contents = Contents(services)
    pages: list[tuple[str, Handler, list[str]]] = [
        ("/", _home, ["GET"]),
        ("/sign-in", signing_in.asked, ["GET"]),
        ("/sign-in", signing_in.done, ["POST"]),
        ("/sign-out", signing_in.out, ["POST"]),
        ("/approvals", approvals.listed, ["GET"]),
        ("/approvals/{approval_id}", approvals.shown, ["GET"]),
        ("/approvals/{approval_id}", approvals.decided, ["POST"]),
        ("/projects", projects.listed, ["GET"]),
        ("/projects/{project_id}", projects.shown, ["GET"]),
        ("/projects/{project_id}/trace", projects.trace, ["GET"]),
        ("/projects/{project_id}/compare", projects.compared, ["GET"]),
        ("/projects/{project_id}/items/{ref}", items.shown, ["GET"]),
        ("/projects/{project_id}/items/{ref}/diff", items.compared, ["GET"]),
        ("/sessions", sessions.listed, ["GET"]),
        ("/sessions/{session_id}", sessions.shown, ["GET"]),
        ("/calls", calls.listed, ["GET"]),
        ("/calls/{call_id}", calls.shown, ["GET"]),
        ("/system", health.shown, ["GET"]),
        ("/pictures/{sha256}", contents.picture, ["GET"]),
        ("/models/{sha256}.glb", contents.model, ["GET"]),
        ("/files/{sha256}", contents.file, ["GET"]),
        ("/static/{path:path}", contents.static, ["GET"]),
    ]
    return [Route(path, _told(site, handler), methods=methods, include_in_schema=False)
            for path, handler, methods in pages]  # fmt: skip


async def _home(request: Request) -> Response:
    return see_other("/approvals")


def _told(site: Site, handler: Handler) -> Handler:
    """Return a handler whose faults are pages that say what to do."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except (LedgerUnavailable, StoreUnavailable) as fault:
            return await site.fault(request, 503, "The record cannot be read now", fault.message)
        except (UnknownApproval, KeyError) as fault:
            told = fault.message if isinstance(fault, MetaForgeError) else f"There is no {fault.args[0]}."
            return await site.fault(request, 404, "Not found", told)
        except ToolError as fault:
            status = 404 if fault.kind.startswith("unknown_") else 422
            return await site.fault(request, status, "Not found" if status == 404 else "Not possible",
                                    fault.message, fault.fix)  # fmt: skip
        except Forbidden as fault:
            return await site.fault(request, 403, "Not taken", str(fault))
        except NotDecidable as fault:
            return await site.fault(request, fault.status, "Not decided here", fault.message)
        except MetaForgeError as fault:
            return await site.fault(request, 422, "Not possible", fault.message)

    return answer

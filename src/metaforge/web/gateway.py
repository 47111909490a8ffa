"""The gateway: `/v1` with its OpenAPI document and the dashboard's pages, behind one shield."""

import asyncio
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.routing import BaseRoute, Route

from metaforge import __version__
from metaforge.approvals.faults import LedgerUnavailable
from metaforge.approvals.model import Approver, Entry
from metaforge.telemetry import logs
from metaforge.web.api import approvals, calls, items, projects, sessions, tool_approvals
from metaforge.web.api.approval_item import Looking, item_of
from metaforge.web.faults import FAULTS, add_handlers
from metaforge.web.feed import Feed
from metaforge.web.front import Receive, Scope, Send
from metaforge.web.services import Services
from metaforge.web.shield import Shield

PREFIX = "/v1"
EXPIRE_SECONDS = 10.0
"""How often entries are looked for that nobody waits for any more."""
_ROUTERS = (approvals.router, tool_approvals.router, projects.router, items.router, sessions.router, calls.router)
_EVERYBODY = Approver("", False, "dashboard")


class Gateway:
    """The ASGI application.

    Args:
        services: the server behind it.
        pages: routes of the dashboard.
    """

    def __init__(self, services: Services, pages: list[BaseRoute]) -> None:
        self._services = services
        self.feed = Feed(services, self._news)
        self.api = _api(services, self.feed, pages)
        self._shield = Shield(self.api, services.access, services.settings, services.browser)
        self._expiring: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        await self._shield(scope, receive, send)

    def start(self) -> None:
        """Begin to end what nobody waits for any more."""
        self._expiring = asyncio.get_running_loop().create_task(self._expire())

    def stop(self) -> None:
        """End every stream."""
        if self._expiring is not None:
            self._expiring.cancel()
        self.feed.close()

    async def _expire(self) -> None:
        while True:
            try:
                await asyncio.to_thread(self._services.ledger.expire)
            except LedgerUnavailable as fault:
                logs.event("approvals_not_expired", "warning", reason=fault.message)
            await asyncio.sleep(EXPIRE_SECONDS)

    def _news(self, entry: Entry) -> dict[str, Any]:
        looking = Looking(_EVERYBODY, self._services.agents_may_decide)
        return item_of(entry, looking).model_dump(mode="json")


def build(services: Services, pages: list[BaseRoute] | None = None) -> Gateway:
    """Return the gateway.

    Args:
        services: the server behind it.
        pages: routes of the dashboard.
    """
    return Gateway(services, pages or [])


def _api(services: Services, feed: Feed, pages: list[BaseRoute]) -> FastAPI:
    app = FastAPI(
        title="MetaForge",
        summary="Approvals, projects and their items, work sessions and calls.",
        version=__version__,
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
    )
    app.state.services, app.state.feed = services, feed
    version_one = APIRouter(prefix=PREFIX, responses=FAULTS)
    for router in _ROUTERS:
        version_one.include_router(router)
    app.include_router(version_one)
    if services.access.mode != "off":
        _declare_bearer(app)
    app.router.routes.extend(pages)
    app.state.operations = [
        *((PREFIX, route) for router in _ROUTERS for route in router.routes if isinstance(route, Route)),
        *(("", route) for route in pages if isinstance(route, Route)),
    ]
    add_handlers(app)
    return app


def _declare_bearer(app: FastAPI) -> None:
    """Say in the document that every operation wants a credential; the shield asks for it."""
    plain = app.openapi

    def with_bearer() -> dict[str, Any]:
        document = plain()
        document.setdefault("components", {})["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"bearer": []}]
        return document

    app.openapi = with_bearer  # type: ignore[method-assign]

"""The dashboard in process: a whole application behind the gateway's shield, and a browser without eyes."""

import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest

from metaforge.access.judge import Access
from metaforge.app import App
from metaforge.approvals.model import Entry, Request
from metaforge.core.ids import new_call_id
from metaforge.settings import Settings
from metaforge.tools.context import Caller, Trust
from metaforge.web.gateway import build
from metaforge.web.pages import routes
from metaforge.web.services import Services

HTML = {"accept": "text/html,*/*;q=0.8"}
ENGINEER = Caller("local", Trust.LOCAL, "engineer", "1", "s-local")


@dataclass
class Site:
    """The dashboard of one application, as one browser sees it."""

    app: App
    services: Services
    browser: httpx.AsyncClient
    make_call: Callable[..., Request]

    def hold(self, **changes: Any) -> Entry:
        """Hold a call."""
        return self.services.ledger.open(self.make_call(**changes))

    async def call(self, tool_id: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool as a local client and return its data."""
        outcome = await self.app.call_tool(tool_id, arguments, call_id=new_call_id(), caller=ENGINEER)
        return outcome.data

    async def get(self, path: str, status: int = 200, **headers: str) -> str:
        """Return a page's HTML."""
        answer = await self.browser.get(path, headers=headers)
        assert answer.status_code == status, answer.text
        return answer.text

    async def read(self, path: str, status: int = 200) -> str:
        """Return what a person reads on a page."""
        return text_of(await self.get(path, status))

    async def post(self, path: str, fields: dict[str, str], status: int = 303) -> httpx.Response:
        """Send a form of a page that this browser has open."""
        page = await self.get("/approvals" if path.startswith("/sign-out") else path)
        answer = await self.browser.post(path, data={"csrf": token_of(page), **fields})
        assert answer.status_code == status, answer.text
        return answer


def token_of(page: str) -> str:
    """Return the token that a page's forms carry."""
    found = re.search(r'name="csrf" value="([^"]+)"', page)
    assert found, "the page has no form"
    return found[1]


def text_of(page: str) -> str:
    """Return a page's text without its tags."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of a server without engineering adapters; a module or test may have others."""
    return Settings(home=tmp_path / "home", adapters=("none",), prestart=False)


@pytest.fixture
async def site(settings: Settings, make_call: Callable[..., Request]) -> AsyncIterator[Site]:
    app = App(settings, over_stdio=False)
    services = app.gateway_services(Access(settings, "127.0.0.1"))
    gateway = build(services, routes(services))
    transport = httpx.ASGITransport(app=gateway, client=("127.0.0.1", 5000))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=HTML) as browser:
        yield Site(app, services, browser, make_call)
    await app.close()


@pytest.fixture
def another_browser(site: Site) -> httpx.AsyncClient:
    """A browser that has none of the first one's cookies."""
    return httpx.AsyncClient(transport=site.browser._transport, base_url="http://127.0.0.1", headers=HTML)


@pytest.fixture
async def project_id(site: Site) -> str:
    """A project with a requirement in two revisions, a need, a decision and a baseline."""
    project_id: str = (await site.call("project.create", name="Camera <mount>", description="Below a drone"))["id"]
    within = {"project_id": project_id}
    await site.call("twin.record_engineering_entity", **within, entity_type="stakeholder_need",
                    title="Hold the camera", statement="2 kg at 1 g")  # fmt: skip
    limit = {"name": "mass", "metric": "mass", "operator": "<=", "limit": 50, "unit": "g",
             "parent_refs": ["NEED-HOLD-THE-CAMERA"]}  # fmt: skip
    await site.call("twin.record_constraint_set", **within, title="Mount", constraints=[limit])
    await site.call("twin.create_baseline", **within, name="first")
    await site.call("twin.record_constraint_set", **within, title="Mount", constraints=[{**limit, "limit": 40}],
                    change_reason="Batteries grew")  # fmt: skip
    await site.call("twin.record_decision", **within, title="Aluminium", rationale="Light enough",
                    alternatives=[{"option": "steel", "reason_rejected": "too heavy"}])  # fmt: skip
    return project_id


def with_key(settings: Settings) -> Settings:
    """Return the same settings with an API key."""
    return replace(settings, api_key="k" * 32)

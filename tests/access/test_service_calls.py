"""The worker of an approved run on a whole server over HTTP: its writes become the run's drafts, and are stamped."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from metaforge.app import App
from metaforge.settings import Settings
from metaforge.twin import sessions
from metaforge.twin.model import Reader, Run

KEY = "k" * 32
LIMIT = {"name": "mass", "metric": "mass", "operator": "<=", "limit": 50, "unit": "g"}
WRITE = "twin.record_constraint_set"
LIMITS = {"title": "Bracket", "constraints": [LIMIT]}


class Worker:
    """A client with the service key, on a server of its own."""

    def __init__(self, app: App, web: Any, project_id: str) -> None:
        self.app = app
        self.web = web
        self.project_id = project_id

    async def call(self, tool_id: str, arguments: dict[str, Any], key: str = KEY, run: str = "run-1") -> dict[str, Any]:
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": tool_id, "arguments": arguments},
        }
        told = {"x_metaforge_service_key": key, "x_metaforge_run": run, "x_metaforge_phase": "concept",
                "x_metaforge_model": "opus"}  # fmt: skip
        answer: dict[str, Any] = (await self.web.post(message, **told)).json()
        return answer

    async def refused(self, tool_id: str, arguments: dict[str, Any], **more: str) -> dict[str, Any]:
        answer = await self.call(tool_id, arguments, **more)
        assert "error" in answer, answer
        error: dict[str, Any] = answer["error"]
        assert error["code"] == -32001
        assert error["data"]["retryable"] is False
        return error

    def put_run(self, state: str = "running", version: str = "flowv_1", approved: bool = True) -> None:
        with self.app.twin_services.store.change(author="flow") as change:
            change.put_run(Run("run-1", self.project_id, state, version, approved, "concept", "G1"))


@pytest.fixture
async def worker(tmp_path: Path, make_web: Any) -> AsyncIterator[Worker]:
    settings = Settings.load(
        {
            "METAFORGE_HOME": str(tmp_path / "home"),
            "METAFORGE_WORKSPACE": str(tmp_path / "workspace"),
            "METAFORGE_PRESTART": "false",
            "METAFORGE_ADAPTERS": "health",
            "METAFORGE_MCP_API_KEY": "secret",
            "METAFORGE_MCP_SERVICE_KEY": KEY,
            "METAFORGE_APPROVAL_HOLD_SECONDS": "0.05",
        }
    )
    app = App(settings, over_stdio=False)
    with app.twin_services.store.change(author="anna") as change:
        project_id = change.create_project("Bracket").project_id
    web = make_web(app, settings)
    await web.open()
    web.http.headers["authorization"] = "Bearer secret"
    await web.initialize()
    found = Worker(app, web, project_id)
    found.put_run()
    yield found
    await web.close()
    await app.close()


async def test_its_writes_run_unasked_as_drafts_of_its_run(worker):
    answer = await worker.call(WRITE, LIMITS)
    recorded = answer["result"]["structuredContent"]
    with worker.app.twin_services.store.read(Reader("run-1", worker.project_id)) as view:
        drafts = view.drafts()
        node = view.nodes([drafts[0].node_id])[drafts[0].node_id]
    assert [(node.author, node.run_id, node.project_id)] == [("service:design-flow:run-1", "run-1", worker.project_id)]
    record = worker.app.calls.get_call(recorded["call_id"])
    assert (record.caller.trust, record.run_id, record.project_id) == ("service", "run-1", worker.project_id)
    assert (record.caller.service.phase, record.caller.service.model) == ("concept", "opus")


async def test_its_events_are_stamped(worker):
    answer = await worker.call(WRITE, LIMITS)
    record = worker.app.calls.get_call(answer["result"]["structuredContent"]["call_id"])
    with worker.app.twin_services.store.read() as view:
        events = sessions.events(view, record.work_session_id)
    assert events[-1].data["caller"] == "service"
    assert events[-1].data["service"] == {"run_id": "run-1", "phase": "concept", "model": "opus"}


async def test_without_the_key_the_same_call_is_held(worker):
    error = await worker.refused(WRITE, LIMITS | {"project_id": worker.project_id}, key="wrong" * 8)
    assert error["data"]["code"] == "approval_required"


async def test_a_run_from_a_template_is_held_too(worker):
    worker.put_run(version="", approved=False)
    assert (await worker.refused(WRITE, LIMITS))["data"]["code"] == "approval_required"


async def test_a_cancelled_run_writes_nothing(worker):
    worker.put_run(state="canceled")
    error = await worker.refused(WRITE, LIMITS)
    assert error["data"]["code"] == "service_refused"
    with worker.app.twin_services.store.read() as view:
        assert view.drafts("run-1") == []


async def test_a_run_nobody_knows_is_refused(worker):
    assert (await worker.refused(WRITE, LIMITS, run="run-9"))["data"]["code"] == "service_refused"


async def test_another_project_is_refused(worker):
    error = await worker.refused(WRITE, LIMITS | {"project_id": "p_other"})
    assert error["data"]["code"] == "service_other_project"


async def test_what_a_run_may_not_do_is_refused_and_not_held(worker):
    for tool_id, arguments in (
        ("project.create", {"name": "Mine"}),
        ("twin.attempt_promotion", {"gate": "G1"}),
    ):
        assert (await worker.refused(tool_id, arguments))["data"]["code"] == "service_scope"

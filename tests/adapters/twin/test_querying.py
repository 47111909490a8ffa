"""`twin.query_cypher` through the whole pipeline, and what a listing says of it."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from metaforge.app import App
from metaforge.core.errors import InvalidArguments, ToolError
from metaforge.core.ids import new_call_id
from metaforge.settings import Settings
from metaforge.tools.context import Caller, Outcome, Trust

CALLER = Caller(actor_id="agent-7", trust=Trust.LOCAL, client_name="test", client_version="1", session_id="s1")


def start(tmp_path: Path, **settings: str) -> App:
    given = {"HOME": "home", "METAFORGE_HOME": "home", "METAFORGE_WORKSPACE": "work"}
    paths = {name: str(tmp_path / folder) for name, folder in given.items()}
    told = paths | {"METAFORGE_ADAPTERS": "health", "METAFORGE_LOG_LEVEL": "error"} | settings
    return App(Settings.load(told), over_stdio=True)


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    app = start(tmp_path)
    yield app
    await app.close()


async def call(app: App, tool_id: str, caller: Caller = CALLER, **arguments: Any) -> Outcome:
    return await app.call_tool(tool_id, arguments, call_id=new_call_id(), caller=caller)


@pytest.fixture
def ask(app: App) -> Callable[..., Any]:
    async def ask(cypher: str, caller: Caller = CALLER, **params: Any) -> Outcome:
        return await call(app, "twin.query_cypher", caller, cypher=cypher, params=params)

    return ask


@pytest.fixture
async def project_id(app: App) -> str:
    """A project with a part of two revisions, opened by the caller."""
    project_id = str((await call(app, "project.create", name="Rover")).data["id"])
    with app.twin_services.store.change(author="agent", project_id=project_id) as change:
        change.define("cad_model", "Bracket", {"mass_g": 12.5})
        change.define("cad_model", "Bracket", {"mass_g": 13.5})
    await call(app, "project.open", query=project_id)
    return project_id


async def test_an_open_project_is_asked_in_cypher(ask, project_id):
    outcome = await ask(
        "MATCH (n:cad_model) WHERE n.project_id = $project_id AND n.is_current RETURN n.ref AS ref, n.mass_g AS mass_g",
        project_id=project_id,
    )
    assert outcome.data["rows"] == [{"ref": "CAD-BRACKET@2", "mass_g": 13.5}]
    assert (outcome.data["count"], outcome.data["truncated"]) == (1, False)
    assert outcome.summary == '1 row; the first: {"ref":"CAD-BRACKET@2","mass_g":13.5}'


async def test_an_open_project_must_be_bound(ask, project_id):
    with pytest.raises(ToolError) as refusal:
        await ask("MATCH (n) RETURN n")
    assert refusal.value.text().startswith(
        f"twin.query_cypher failed: call context is scoped to project {project_id} but no 'project_id' parameter was "
        "bound. Add WHERE n.project_id = $project_id and pass {'project_id': "
    )


async def test_a_remote_caller_may_read_and_nobody_may_write(ask, project_id):
    remote = Caller(actor_id="r", trust=Trust.UNTRUSTED)
    assert (await ask("MATCH (n:cad_model) RETURN count(n) AS n", remote, project_id=project_id)).data["rows"] == [
        {"n": 2}
    ]
    for caller in (remote, CALLER):
        with pytest.raises(ToolError) as refusal:
            await ask("MATCH (n) DETACH DELETE n", caller, project_id=project_id)
        assert refusal.value.kind == "query_writes"


async def test_an_empty_answer_names_its_columns_and_warns_of_names_that_match_nothing(ask, project_id):
    outcome = await ask("MATCH (n:CadModel) RETURN n.ref AS ref", project_id=project_id)
    assert outcome.summary == "0 rows of ref."
    assert "did you mean cad_model?" in outcome.warnings[0]


async def test_a_megabyte_of_text_is_refused(ask, project_id):
    with pytest.raises((ToolError, InvalidArguments)) as refusal:
        await ask("MATCH (n) RETURN n //" + "x" * (1 << 20), project_id=project_id)
    assert "4,000" in refusal.value.message


@pytest.mark.parametrize(("setting", "reads_only"), [("false", True), ("true", False)])
async def test_its_hint_follows_what_the_server_was_started_with(tmp_path, setting, reads_only):
    app = start(tmp_path, METAFORGE_ALLOW_TWIN_MUTATIONS=setting)
    try:
        hints = {tool.id: tool.annotations["readOnlyHint"] for tool in app.listed_tools()}
        assert hints["twin.query_cypher"] is reads_only
        assert hints["twin.get_node"] is True
    finally:
        await app.close()


async def test_closing_the_server_ends_the_processes_of_queries(app, ask, project_id):
    await ask("RETURN 1 AS one", project_id=project_id)
    queries = app.twin_services.queries
    graphs = list(queries._graphs.values())
    assert [graph.child.alive for graph in graphs] == [True]
    await app.close()
    assert [graph.child.alive for graph in graphs] == [False]

"""The tracing tools as a client calls them, through the server's whole pipeline."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from bracket_design import Design

from metaforge.app import App
from metaforge.core.errors import MetaForgeError
from metaforge.core.ids import new_call_id
from metaforge.settings import Settings
from metaforge.tools.context import Caller, Trust

CALLER = Caller(actor_id="agent-7", trust=Trust.LOCAL, client_name="test", client_version="1")


class Client:
    """Calls tools in one project."""

    def __init__(self, app: App, project_id: str) -> None:
        self.app = app
        self.project_id = project_id
        self.design = Design(app.twin_services.store, project_id)

    async def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        arguments = {"project_id": self.project_id, **arguments}
        outcome = await self.app.call_tool(f"twin.{tool}", arguments, call_id=new_call_id(), caller=CALLER)
        return dict(outcome.data)


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    given = {"HOME": "home", "METAFORGE_HOME": "home", "METAFORGE_WORKSPACE": "work"}
    paths = {name: str(tmp_path / folder) for name, folder in given.items()}
    app = App(Settings.load(paths | {"METAFORGE_ADAPTERS": "health", "METAFORGE_LOG_LEVEL": "error"}), over_stdio=True)
    with app.twin_services.store.change(author="owner") as change:
        client = Client(app, change.create_project("Quadcopter").project_id)
    client.design.define("stakeholder_need", "Carry the camera", {})
    client.design.requirements(answers="NEED-CARRY-THE-CAMERA")
    client.design.part(0.35)
    client.design.evidence({"max_von_mises_mpa": 150.0}, ("CS-BRACKET#stress",))
    client.design.evidence({"finding": "no burr"}, ("CS-BRACKET#finish",))
    yield client
    await app.close()


async def test_a_revision_is_traced_to_what_it_left_behind_and_cleared(client):
    assert (await client("check_release_gates"))["passed"] is True
    await client("create_baseline", name="PDR-1", note="review")
    client.design.part(0.3, reason="thinner web")

    told = await client("trace_matrix", status=["stale"])
    assert [row["requirement"] for row in told["requirements"]] == ["CS-BRACKET@1#stress", "CS-BRACKET@1#finish"]
    assert told["status_counts"]["pass"] == 1
    assert {row["why"] for row in told["suspect"]} == {"revised to CAD-BRACKET@2: thinner web"}
    for left, row in zip((1, 0), told["suspect"], strict=True):
        reviewed = await client("review_link", link_id=row["link_id"], reason="stress falls with the web")
        assert (reviewed["reviewed_revision"], reviewed["reviewed_by"]) == (2, "agent-7")
        assert reviewed["still_suspect_count"] == left
    assert (await client("check_release_gates"))["passed"] is True

    changed = await client("compare_baselines", before="PDR-1")
    assert changed["counts"] == {"added": 0, "removed": 0, "revised": 1}
    assert changed["items"][0]["revisions"][0]["change_reason"] == "thinner web"


async def test_what_verifies_is_no_more_than_the_matrix(client):
    assert (await client("what_verifies", node_id="CS-BRACKET"))["verified"] is True
    client.design.evidence({"max_von_mises_mpa": 250.0}, contradicts=("CS-BRACKET#stress",))
    told = await client("what_verifies", node_id="CS-BRACKET")
    assert (told["verified"], told["related_count"]) == (False, 3)
    client.design.part(0.3)
    assert (await client("what_verifies", node_id="CAD-BRACKET"))["verified"] is False


async def test_threads_users_and_impact(client):
    with client.design.change() as change:
        rig = change.define("assembly", "Rig", {})
        change.link("uses", rig, "CAD-BRACKET")
    assert (await client("where_used", node_id="CAD-BRACKET"))["note"] == "used by ASM-RIG@1"
    assert (await client("where_used", node_id="ASM-RIG"))["used"] is False
    thread = await client("thread_for", node_id="ASM-RIG")
    assert [node["ref"] for node in thread["nodes"]] == ["ASM-RIG@1", "CAD-BRACKET@1"]
    found = await client("impact_of", node_id="CAD-BRACKET")
    assert (found["hit_count"], found["requirements"]) == (3, ["CS-BRACKET#finish", "CS-BRACKET#stress"])


@pytest.mark.parametrize(
    ("tool", "arguments", "fix"),
    [
        ("impact_of", {"node_id": "CAD-BRAKET"}, "CAD-BRACKET"),
        ("compare_baselines", {"before": "PDR-9"}, "twin.create_baseline"),
        ("thread_for", {"node_id": "CAD-BRACKET", "depth": 11}, "10"),
        ("check_release_gates", {"gates": ["supsect"]}, "suspect"),
        ("review_link", {"link_id": "l0", "reason": "because"}, "no link"),
    ],
)
async def test_errors_say_what_there_is(client, tool, arguments, fix):
    with pytest.raises(MetaForgeError) as caught:
        await client(tool, **arguments)
    assert fix in str(getattr(caught.value, "fix", "")) + caught.value.message + str(caught.value.data)


async def test_a_long_matrix_is_read_page_by_page(client):
    entries = [{"name": f"r{number}", "acceptance_criteria": "seen"} for number in range(205)]
    with client.design.change() as change:
        change.define("constraint_set", "Long", {"constraints": entries})
    first = await client("trace_matrix", status=["no_data"])
    rest = await client("trace_matrix", status=["no_data"], offset=200)
    names = [row["requirement"] for row in first["requirements"] + rest["requirements"]]
    assert (len(first["requirements"]), len(rest["requirements"]), len(set(names))) == (200, 5, 205)
    assert len(rest["uncovered"]) == 5

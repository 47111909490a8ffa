"""The design record by the official Python client over stdio, in both eras of the protocol."""

import asyncio
import base64
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import jsonschema_rs
import pytest
import twin_walk as walk
from conversations import ERAS
from house import STDIO, House
from mcp import Client
from mcp.client.stdio import StdioServerParameters

WRITES_COUNT = 12
DECISIONS = {
    "twin.attempt_promotion",
    "twin.approve_engineering_entity",
    "twin.approve_engineering_change",
}
"""Held for a person whoever calls."""


class Agent:
    """Calls tools as a model would; every structured result is held to the schema that the tool announced."""

    def __init__(self, client: Client, schemas: dict[str, Any]) -> None:
        self.client = client
        self.schemas = schemas
        self.answered: set[str] = set()

    async def do(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, (tool, result.content)
        data: dict[str, Any] = result.structured_content
        jsonschema_rs.Draft202012Validator(self.schemas[tool]).validate(data)
        self.answered.add(tool)
        return data

    async def refused(self, tool: str, **arguments: Any) -> str:
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error, (tool, result.structured_content)
        text: str = getattr(result.content[0], "text", "")
        return text

    async def read(self, uri: str) -> str:
        text: str = getattr((await self.client.read_resource(uri)).contents[0], "text", "")
        return text


@asynccontextmanager
async def agent_in(house: House, era: str) -> AsyncIterator[Agent]:
    """Start a server process for one client."""
    server = StdioServerParameters(
        command=sys.executable, args=list(STDIO), env=house.environment, cwd=str(house.workspace)
    )
    async with Client(server, mode=ERAS[era], read_timeout_seconds=180) as client:
        listed = await client.list_tools()
        yield Agent(client, {tool.name: tool.output_schema for tool in listed.tools})


@pytest.fixture(params=list(ERAS))
def era(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.mark.slow
@pytest.mark.program("ccx", "cadquery", "gmsh", "kglite", "graphglot")
async def test_a_bracket_from_intent_to_a_revision_that_leaves_its_proof_behind(workshop: House, era: str) -> None:
    seen: dict[str, Any] = {}
    words: dict[str, str] = {}
    async with agent_in(workshop, era) as agent:
        for step in walk.STEPS:
            if step.refused:
                words[step.name] = await agent.refused(step.tool, **step.arguments(seen))
            else:
                seen[step.name] = await agent.do(step.tool, **step.arguments(seen))
        item = json.loads(await agent.read(walk.item_uri(seen, "CAD-BRACKET@1")))
        solve = json.loads(await agent.read(walk.solve_uri(seen)))
        prd = await agent.read(walk.prd_uri(seen))
    walk.check_what_is_wanted(seen)
    walk.check_the_part_and_its_proof(seen)
    walk.check_what_the_revision_left_behind(seen, words["stale"])
    walk.check_the_queries(seen, words["unbound"], words["theirs"])
    walk.check_resources(seen, item, solve, prd)


@pytest.mark.program("cadquery", "kglite", "graphglot")
async def test_every_tool_of_the_record_answers_as_its_schema_says(workshop: House, era: str) -> None:
    async with agent_in(workshop, era) as agent:
        do = agent.do
        project = await do("project.create", name="Lamp")
        await do("project.open", query="lamp")
        await do("project.get", id=project["id"])
        await do("project.list", limit=1)
        await do("project.update", id=project["id"], description="Gives light")
        session = await do("session.start", agent_code="mechanical", task_type="design", project_id=project["id"])
        await do(
            "session.log_event", session_id=session["session_id"], type="thought", message="Brass", data={"a": [1]}
        )
        need = await do(
            "twin.record_engineering_entity", entity_type="stakeholder_need", title="Light", statement="I can read"
        )
        await do("twin.constraint_violations")
        limits = await do(
            "twin.record_constraint_set",
            title="Lamp",
            constraints=[
                {"name": "mass", "metric": "mass", "operator": "<=", "limit": 2, "unit": "g",
                 "parent_refs": ["NEED-LIGHT"]},
                {"name": "size", "expression": "size_x <= 1 mm", "severity": "warning"},
                {"name": "looks", "acceptance_criteria": "A person likes it", "verification_method": "inspection"},
            ],
        )  # fmt: skip
        await do("twin.create_baseline", name="empty")
        lamp = await do(
            "twin.commit_geometry", name="Lamp", step_base64=await _cube(agent, workshop), depends_on=["CS-LAMP"],
            properties={"material": "aluminum-6061"},
        )  # fmt: skip
        await do("twin.stage_work_product_file", node_id=lamp["item_ref"])
        await do("constraint.validate", work_product_ids=["CAD-LAMP"])
        await do("twin.constraint_violations")
        await do(
            "twin.record_component_selection", mpn="LED-1", manufacturer="Bright", category="led", role="source",
            quantity=2, unit_cost_usd=0.5, specs={"power_w": 3},
        )  # fmt: skip
        await do("twin.record_document", name="Lamp", document_type="prd", content="At most 2 g and 5 EUR.")
        evidence = await do(
            "twin.record_evidence", evidence_type="test", result={"mass_kg": 0.0027}, producer={"tool": "scale"},
            contradicts=["CS-LAMP#mass"], valid_against=[{"ref": "CAD-LAMP"}],
        )  # fmt: skip
        await do(
            "twin.record_claim", requirement_ref="CS-LAMP#mass", artefact_ref="CAD-LAMP",
            evidence_refs=[evidence["node_id"]],
        )  # fmt: skip
        await do(
            "twin.record_decision", title="Brass", rationale="Warm", alternatives=[{"option": "steel"}],
            parent_refs=[need["item_ref"]], evidence_refs=[evidence["node_id"]], depends_on=["CAD-LAMP"],
        )  # fmt: skip
        await do(
            "twin.record_engineering_entity", entity_type="stakeholder_need", title="Light", statement="All can read",
            item_key=need["item_ref"], change_reason="guests",
        )  # fmt: skip
        matrix = await do("twin.trace_matrix")
        await do("twin.check_release_gates")
        await do("twin.review_link", link_id=matrix["suspect"][0]["link_id"], reason="Still so")
        await do("twin.compare_baselines", before="empty")
        await do("twin.impact_of", node_id="NEED-LIGHT")
        await do("twin.thread_for", node_id="CAD-LAMP", direction="both")
        await do("twin.what_verifies", node_id="CAD-LAMP")
        await do("twin.where_used", node_id=limits["item_ref"])
        await do("twin.item_history", item_key="NEED-LIGHT")
        await do("twin.get_node", node_id=evidence["node_id"])
        await do("twin.find_by_property", node_type="cad_model", property="name", value="Lamp")
        await do(
            "twin.query_cypher", cypher="MATCH (n) WHERE n.project_id = $project_id RETURN n, n.mass AS mass",
            params={"project_id": project["id"]},
        )  # fmt: skip
        await do("session.complete", session_id=session["session_id"], status="completed", summary="Lit")
        await do("project.delete", id=project["id"])
    offered = {name for name in agent.schemas if name.partition(".")[0] in {"twin", "project", "session", "constraint"}}
    assert offered - agent.answered == DECISIONS


async def _cube(agent: Agent, house: House) -> str:
    made = await agent.do(
        "cadquery.create_parametric", shape_type="box", output_path="cube.step",
        parameters={"width_mm": 10, "length_mm": 10, "height_mm": 10},
    )  # fmt: skip
    return base64.b64encode((house.workspace / made["cad_file"]).read_bytes()).decode()


async def test_two_agents_and_a_person_write_at_once_and_nothing_is_lost(workshop: House) -> None:
    async with agent_in(workshop, "handshake") as one, agent_in(workshop, "stateless") as two:
        project = await one.do("project.create", name="Shared")
        await two.do("project.open", query=project["id"])
        start = await one.do("twin.record_engineering_entity", entity_type="objective", title="Log", statement="start")
        key = start["item_key"]
        person = asyncio.create_task(_person(workshop, project["id"], key))
        by_one, by_two = await asyncio.gather(_revise(one, key, "one", person), _revise(two, key, "two", person))
        history = await one.do("twin.item_history", item_key=key)
        told = {start["item_ref"]: "start", await person: "a person"} | by_one | by_two
        kept = {ref: json.loads(await two.read(f"metaforge://items/{project['id']}/{ref}")) for ref in told}
    assert len(told) == 2 + len(by_one) + len(by_two), "two writers were told the same revision"
    revisions = sorted(row["revision"] for row in history["revisions"])
    assert revisions == list(range(1, len(told) + 1)), "a revision is missing, or one that was refused is there"
    assert {ref: each["content"]["statement"] for ref, each in kept.items()} == told


async def _revise(agent: Agent, key: str, who: str, person: "asyncio.Task[str]") -> dict[str, str]:
    """Write revisions until the person is done: read what is current, revise it, and read again when refused."""
    written: dict[str, str] = {}
    while len(written) < WRITES_COUNT or not person.done():
        head = (await agent.do("twin.item_history", item_key=key))["item"]["head_ref"]
        said = f"{who} {len(written)}"
        result = await agent.client.call_tool(
            "twin.record_engineering_entity",
            {"entity_type": "objective", "title": "Log", "statement": said, "item_key": head, "change_reason": who},
        )
        if result.is_error:
            assert "stale_revision" in getattr(result.content[0], "text", "")
        else:
            written[result.structured_content["item_ref"]] = said
    return written


async def _person(house: House, project_id: str, key: str) -> str:
    """Revise the item from a shell, whatever is current."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "metaforge", "call", "twin.record_engineering_entity", f"project_id={project_id}",
        "entity_type=objective", "title=Log", "statement=a person", f"item_key={key}",
        "change_reason=a person", "--json",
        env=house.environment, cwd=house.workspace, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    said, _ = await process.communicate()
    assert process.returncode == 0, said
    ref: str = json.loads(said)["item_ref"]
    return ref

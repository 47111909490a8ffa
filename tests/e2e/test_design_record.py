"""A bracket from intent to a revision that leaves its evidence behind, by the official client over stdio."""

import json
import sys
from typing import Any

import pytest
from house import STDIO, House
from mcp import Client
from mcp.client.stdio import StdioServerParameters

pytestmark = [pytest.mark.program("ccx", "cadquery", "gmsh"), pytest.mark.slow]


class Agent:
    """Calls tools as a client's model would, and keeps what came back."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def do(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, result.content[0]
        data = result.structured_content
        assert isinstance(data, dict)
        return data

    async def refused(self, tool: str, **arguments: Any) -> str:
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error
        text: str = getattr(result.content[0], "text", "")
        return text

    async def bracket(self, height_mm: float, path: str) -> dict[str, Any]:
        return await self.do(
            "cadquery.create_parametric",
            shape_type="box",
            parameters={"width_mm": 50, "length_mm": 30, "height_mm": height_mm},
            output_path=path,
        )


async def test_a_bracket_is_designed_proven_revised_and_its_evidence_left_behind(workshop: House) -> None:
    server = StdioServerParameters(
        command=sys.executable, args=list(STDIO), env=workshop.environment, cwd=str(workshop.workspace)
    )
    async with Client(server, mode="legacy", read_timeout_seconds=180) as client:
        agent = Agent(client)

        # What is wanted.
        project = await agent.do("project.create", name="Widget mount")
        intent = await agent.do(
            "twin.record_engineering_entity", entity_type="intent", title="Mount", statement="Hold a widget on a wall"
        )
        need = await agent.do(
            "twin.record_engineering_entity", entity_type="stakeholder_need", title="Light",
            statement="One person mounts it", parent_refs=[intent["item_ref"]],
        )  # fmt: skip
        objective = await agent.do(
            "twin.record_engineering_entity", entity_type="objective", title="Weight",
            statement="As light as strength allows", parent_refs=[need["item_ref"]],
        )  # fmt: skip
        limits = await agent.do(
            "twin.record_constraint_set",
            title="Bracket",
            constraints=[
                {"name": "max mass", "metric": "mass", "operator": "<=", "limit": 150, "unit": "g",
                 "parent_refs": [objective["item_ref"]]},
                {"name": "strength", "expression": "1.5 * max_von_mises <= 205 MPa"},
            ],
        )  # fmt: skip
        assert limits["item_ref"] == "CS-BRACKET@1"
        assert limits["constraint_ids"] == ["CS-BRACKET@1#max mass", "CS-BRACKET@1#strength"]
        prd = await agent.do(
            "twin.record_document", name="Widget mount", document_type="prd",
            content="Holds a widget. It may weigh 0.15 kg and cost $20.",
        )  # fmt: skip
        assert prd["stray_requirement_values"] == ["$20"], "0.15 kg is the 150 g of the constraint set"

        # The part, measured by the kernel: 50 x 30 x 10 mm of steel at 8000 kg/m3 are 15000 mm3 and 120 g.
        made = await agent.bracket(10, "out/bracket.step")
        first = await agent.do(
            "twin.commit_geometry", name="Bracket", file_path=made["cad_file"], properties={"material": "steel-316"},
            depends_on=["CS-BRACKET#max mass"],
        )  # fmt: skip
        assert first["item_ref"] == "CAD-BRACKET@1"
        assert first["measured"]["volume_mm3"] == pytest.approx(15000, rel=1e-6)
        assert first["measured"]["mass_kg"] == pytest.approx(0.12, rel=1e-6)
        before = await agent.do("constraint.validate", work_product_ids=["CAD-BRACKET"])
        assert before["verdict"] == "incomplete", "nothing says yet how strong it is"

        # The proof, valid against exactly this revision.
        solved = await agent.do(
            "calculix.run_fea", mesh_file=made["cad_file"], load_case="shelf", analysis_type="static_stress",
            material={"name": "steel-316"}, supports=[{"face": "-x"}], loads=[{"face": "+x", "force_n": [0, 0, -100]}],
        )  # fmt: skip
        evidence = await agent.do(
            "twin.record_evidence", evidence_type="simulation", statement="Stress under 100 N at the end",
            result={"max_von_mises_mpa": solved["max_von_mises_mpa"]}, call_ids=[solved["call_id"]],
            supports=["CS-BRACKET#strength"], valid_against=[{"ref": "CAD-BRACKET@1"}],
        )  # fmt: skip
        assert "warnings" not in evidence, "the cited call read the very file that was committed"
        claim = await agent.do(
            "twin.record_claim", requirement_ref="CS-BRACKET#strength", artefact_ref="CAD-BRACKET@1",
            evidence_refs=[evidence["node_id"]],
        )  # fmt: skip
        assert claim["status"] == "supported"
        proven = await agent.do("constraint.validate", work_product_ids=["CAD-BRACKET"])
        assert (proven["verdict"], proven["evaluated_count"]) == ("pass", 2)

        # A thinner one leaves the proof behind.
        await agent.bracket(8, "out/thin.step")
        second = await agent.do(
            "twin.commit_geometry", name="Bracket", file_path="out/thin.step", item_key="CAD-BRACKET@1",
            change_reason="thinner", properties={"material": "steel-316"},
        )  # fmt: skip
        assert second["item_ref"] == "CAD-BRACKET@2"
        assert {row["node_id"] for row in second["suspect"]} == {evidence["node_id"], claim["node_id"]}
        after = await agent.do("constraint.validate", work_product_ids=["CAD-BRACKET"])
        assert after["verdict"] == "incomplete", "evidence of @1 says nothing of @2"
        stale = await agent.refused(
            "twin.commit_geometry", name="Bracket", file_path="out/thin.step", item_key="CAD-BRACKET@1"
        )
        assert "CAD-BRACKET@2" in stale
        assert "state unchanged" in stale

        history = await agent.do("twin.item_history", item_key="CAD-BRACKET")
        assert [(each["revision"], each["change_reason"], each["is_head"]) for each in history["revisions"]] == [
            (1, None, False),
            (2, "thinner", True),
        ]
        opened = await agent.do("project.open", query="widget")
        assert opened["brief"]["suspect_count"] == 2
        item = await client.read_resource(f"metaforge://items/{project['id']}/CAD-BRACKET@1")
        kept = json.loads(getattr(item.contents[0], "text", ""))
        assert kept["content"]["content_hash"] == first["content_hash"]
        document = await client.read_resource(f"metaforge://prd/{project['id']}")
        assert "mass <= 150 g" in getattr(document.contents[0], "text", "")
        staged = await agent.do("twin.stage_work_product_file", node_id="CAD-BRACKET@1")
        assert (workshop.workspace / staged["file_path"]).read_bytes().startswith(b"ISO-10303-21;")
        assert "freecad.import_step" in staged["next_step"]


async def test_the_record_is_there_for_the_next_process(workshop: House) -> None:
    server = StdioServerParameters(
        command=sys.executable, args=list(STDIO), env=workshop.environment, cwd=str(workshop.workspace)
    )
    async with Client(server, mode="legacy", read_timeout_seconds=60) as client:
        agent = Agent(client)
        await agent.do("project.create", name="Kept")
        decision = await agent.do("twin.record_decision", title="Steel", rationale="r" * 300_000)
    async with Client(server, mode="legacy", read_timeout_seconds=60) as client:
        agent = Agent(client)
        await agent.do("project.open", query="kept")
        node = await agent.do("twin.get_node", node_id=decision["node_id"])
    assert node["node"]["properties"]["rationale"] == "r" * 300_000, "no text of a decision is ever cut"

"""Decisions, documents, entities and components are kept whole, pinned, and one item where they are one thing."""

from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("project_id")

LONG = "why " * 100_000


async def test_a_decision_pins_what_it_rests_on(bench: Any) -> None:
    await bench.commit()
    limits = [{"name": "max mass", "metric": "mass", "operator": "<=", "limit": 150, "unit": "g"}]
    await bench.do("twin.record_constraint_set", title="B", constraints=limits)
    made = await bench.do(
        "twin.record_decision", title="Steel", rationale=LONG, depends_on=["CS-B#max mass", "CAD-BRACKET"],
        alternatives=[{"option": "aluminium", "reason_rejected": "too soft"}],
    )  # fmt: skip
    assert made["depends_on"] == ["CS-B@1#max mass", "CAD-BRACKET@1"]
    node = (await bench.do("twin.get_node", node_id=made["node_id"]))["node"]
    assert node["properties"]["rationale"] == LONG
    assert node["properties"]["alternatives"] == [{"option": "aluminium", "reason_rejected": "too soft"}]


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"depends_on": ["CS-NOTHING"]}, "unknown_item"),
        ({"depends_on": ["CAD-BRACKET@7"]}, "unknown_revision"),
        ({"depends_on": ["CAD-BRACKET#max mass"]}, "unknown_requirement"),
        ({"parent_refs": ["n0"]}, "unknown_node"),
        ({"evidence_refs": ["n0"]}, "unknown_node"),
        ({"supersedes": "n0"}, "unknown_node"),
    ],
)
async def test_an_unknown_reference_fails_with_nothing_written(
    bench: Any, arguments: dict[str, Any], kind: str
) -> None:
    await bench.commit()
    refusal = await bench.refused("twin.record_decision", title="Steel", rationale="cheap", **arguments)
    assert refusal.kind == kind
    assert refusal.fix


async def test_a_project_has_one_prd_whatever_its_title(bench: Any) -> None:
    first = await bench.do("twin.record_document", name="Widget", content="It holds.", document_type="prd")
    second = await bench.do("twin.record_document", name="Other title", content="It holds well.", document_type="prd")
    assert (first["item_ref"], second["item_key"], second["revision"]) == ("PRD-WIDGET@1", "PRD-WIDGET", 2)
    assert "stray_requirement_values" not in first


async def test_stray_values_are_those_no_requirement_states_in_any_unit(bench: Any) -> None:
    constraints = [
        {"name": "mass", "metric": "mass", "operator": "<=", "limit": 15, "unit": "g"},
        {"name": "power", "expression": "power <= 2 W"},
    ]
    await bench.do("twin.record_constraint_set", title="Widget", constraints=constraints)
    made = await bench.do(
        "twin.record_document", name="W", document_type="prd",
        content="At most 0.015 kg and 2000 mW; 16 g would be too much. It costs $20.",
    )  # fmt: skip
    assert made["requirement_refs"] == ["CS-WIDGET@1"]
    assert made["stray_requirement_values"] == ["16 g", "$20"]
    assert "16 g, $20" in made["requirement_warning"]
    assert "twin.record_constraint_set" in made["requirements_home"]
    node = (await bench.do("twin.get_node", node_id=made["node_id"]))["node"]
    assert "16 g would be too much" in node["properties"]["content"], "nothing of the text is dropped"


async def test_at_most_twenty_stray_values_are_named(bench: Any) -> None:
    text = ", ".join(f"{number} mm" for number in range(1, 40))
    made = await bench.do("twin.record_document", name="W", document_type="prd", content=text)
    assert len(made["stray_requirement_values"]) == 20


async def test_other_documents_are_records_kept_whole(bench: Any) -> None:
    made = await bench.do(
        "twin.record_document", name="Notes", document_type="documentation", content=LONG, metadata={"page_count": 3}
    )
    assert "item_key" not in made
    assert made["size_bytes"] == len(LONG)
    found = await bench.do("twin.find_by_property", node_type="documentation", property="name", value="Notes")
    assert [row["node_id"] for row in found["nodes"]] == [made["node_id"]]


@pytest.mark.parametrize(
    "name", ['O\'Brien "the" bolt', "🚀 rocket", "مسمار", "x" * 10_000, "drop table nodes; --", "a\tb\nc"]
)
async def test_odd_names_come_back_as_they_were(bench: Any, name: str) -> None:
    made = await bench.do(
        "twin.record_engineering_entity", entity_type="objective", title=name, statement=f"about {name}"
    )
    node = (await bench.do("twin.get_node", item_key=made["item_ref"]))["node"]
    assert node["name"] == name.strip()
    assert node["properties"]["statement"] == f"about {name}"
    again = await bench.do("twin.record_engineering_entity", entity_type="objective", title=name, statement="more")
    assert (again["item_key"], again["revision"]) == (made["item_key"], 2)


async def test_an_item_keeps_its_identity_under_a_new_name(bench: Any) -> None:
    await bench.do("twin.record_engineering_entity", entity_type="intent", title="Mount", statement="x")
    made = await bench.do(
        "twin.record_engineering_entity",
        entity_type="intent",
        title="Wall mount",
        statement="y",
        item_key="INT-MOUNT@1",
    )
    assert made["item_ref"] == "INT-MOUNT@2"


async def test_a_risk_is_a_record_and_has_no_key(bench: Any) -> None:
    made = await bench.do("twin.record_engineering_entity", entity_type="risk", statement="it may rust")
    assert "item_key" not in made
    refusal = await bench.refused(
        "twin.record_engineering_entity", entity_type="risk", statement="it may rust", item_key="RISK-1"
    )
    assert "item_key" in refusal.data["fields"]


async def test_another_part_in_the_same_role_is_the_next_revision(bench: Any) -> None:
    first = await bench.do(
        "twin.record_component_selection", mpn="STM32", manufacturer="ST", category="mcu", role="MCU", quantity=2,
        unit_cost_usd=3.5,
    )  # fmt: skip
    assert (first["item_ref"], first["bom_ref"]) == ("CMP-MCU@1", "BOM-BILL-OF-MATERIALS@1")
    second = await bench.do(
        "twin.record_component_selection", mpn="nRF52", manufacturer="Nordic", category="mcu", role="MCU"
    )
    assert second["item_ref"] == "CMP-MCU@2"
    bom = (await bench.do("twin.get_node", item_key="BOM-BILL-OF-MATERIALS"))["node"]["properties"]
    assert [line["mpn"] for line in bom["lines"]] == ["nRF52"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("twin.record_engineering_entity", {"entity_type": "intent", "statement": "x"}),
        ("twin.record_decision", {"title": "x", "rationale": "y"}),
        ("twin.record_evidence", {"evidence_type": "test", "result": {"mass_kg": 1}, "producer": {"tool": "scale"}}),
        (
            "twin.record_constraint_set",
            {"title": "x", "constraints": [{"name": "m", "metric": "mass", "operator": "<=", "limit": 1, "unit": "g"}]},
        ),
    ],
)
async def test_what_belongs_to_no_project_says_so(bench: Any, tool: str, arguments: dict[str, Any]) -> None:
    other = bench.another("session-2")
    made = await other.do(tool, **arguments)
    assert made["project_linked"] is False
    assert "item_key" not in made
    assert any("belongs to no project" in warning for warning in made["warnings"])


async def test_a_node_is_read_by_id_key_or_revision_and_an_unknown_one_names_what_there_is(bench: Any) -> None:
    await bench.commit()
    second = await bench.commit(text="thin")
    for arguments in ({"node_id": second["node_id"]}, {"item_key": "CAD-BRACKET"}, {"node_id": "CAD-BRACKET@2"}):
        assert (await bench.do("twin.get_node", **arguments))["node"]["ref"] == "CAD-BRACKET@2"
    refusal = await bench.refused("twin.get_node", item_key="CAD-BRACKT")
    assert "CAD-BRACKET" in refusal.fix
    for arguments in ({}, {"node_id": "x", "item_key": "CAD-BRACKET"}):
        refusal = await bench.refused("twin.get_node", **arguments)
        assert set(refusal.data["fields"]) == {"node_id", "item_key"}


async def test_a_node_with_very_many_links_lists_some_and_says_so(bench: Any, project_id: str) -> None:
    await bench.commit()
    with bench.app.twin_services.store.change(author="x", project_id=project_id) as change:
        for number in range(150):
            change.link("depends_on", change.record("design_decision", {"n": number}), "CAD-BRACKET")
    told = await bench.do("twin.get_node", item_key="CAD-BRACKET")
    assert (len(told["edges"]), len(told["neighbours"])) == (100, 100)
    assert "More than 100 links" in told["warnings"][0]


async def test_a_nodes_links_tell_direction_requirement_and_doubt(bench: Any, project_id: str) -> None:
    limits = {"title": "B", "constraints": [{"name": "max mass", "expression": "mass < 1 kg"}]}
    await bench.do("twin.record_constraint_set", **limits)
    await bench.commit(depends_on=["CS-B#max mass"])
    made = await bench.do("twin.record_decision", title="Steel", rationale="cheap", depends_on=["CAD-BRACKET"])
    told = await bench.do("twin.get_node", item_key="CAD-BRACKET")
    down, up = told["edges"]
    assert (down["type"], down["target_ref"], down["requirement"]) == ("depends_on", "CS-B@1", "max mass")
    assert (up["source_id"], up["target_ref"]) == (made["node_id"], "CAD-BRACKET@1")
    assert not any("suspect" in edge for edge in told["edges"])
    bench.start_run("run-1", project_id)
    await bench.commit(text="thin")
    drafted = await bench.do("twin.get_node", node_id=made["node_id"])
    assert drafted["edges"][0]["suspect"] is True, "for the run that revised it"
    other = bench.another("session-2")
    settled = await other.do("twin.get_node", node_id=made["node_id"], project_id=project_id)
    assert "suspect" not in settled["edges"][0]


async def test_history_tells_every_documented_field(bench: Any, project_id: str) -> None:
    await bench.commit()
    await bench.commit(text="thin", change_reason="thinner")
    bench.start_run("run-1", project_id)
    await bench.commit(text="thinner still")
    told = await bench.do("twin.item_history", item_key="CAD-BRACKET")
    assert told["current"]["ref"] == "CAD-BRACKET@3"
    item = told["item"]
    assert (item["head_ref"], item["draft_ref"]) == ("CAD-BRACKET@2", "CAD-BRACKET@3")
    assert {
        "key",
        "item_type",
        "name",
        "project_id",
        "head_revision",
        "head_node_id",
        "created_at",
        "updated_at",
    } <= set(item)
    assert [(each["revision"], each["status"], each["is_head"]) for each in told["revisions"]] == [
        (1, "committed", False),
        (2, "committed", True),
        (3, "draft", False),
    ]
    last = told["revisions"][2]
    assert (last["change_set"], last["phase"], last["gate"], last["run_id"]) == ("run-1", "concept", "G1", "run-1")
    other = bench.another("session-2")
    seen = await other.do("twin.item_history", node_id=told["revisions"][0]["node_id"], project_id=project_id)
    assert [each["revision"] for each in seen["revisions"]] == [1, 2], "another run's draft is nobody else's"
    bench.close_run("run-1", "reject")
    closed = await other.do("twin.item_history", item_key="CAD-BRACKET", project_id=project_id)
    assert closed["revisions"][2]["status"] == "rejected"
    assert closed["current"]["ref"] == "CAD-BRACKET@2"


async def test_a_record_has_no_history(bench: Any) -> None:
    made = await bench.do("twin.record_decision", title="Steel", rationale="cheap")
    refusal = await bench.refused("twin.item_history", node_id=made["node_id"])
    assert made["node_id"] in refusal.message


async def test_items_and_the_prd_are_resources(bench: Any, project_id: str) -> None:
    await bench.commit()
    templates = {each["uriTemplate"] for each in bench.app.resource_templates()}
    assert {"metaforge://items/{project}/{ref}", "metaforge://prd/{project}"} <= templates
    (item,) = await bench.app.read_resource(f"metaforge://items/{project_id}/CAD-BRACKET%401")
    assert b'"ref": "CAD-BRACKET@1"' in item.content
    (prd,) = await bench.app.read_resource(f"metaforge://prd/{project_id}")
    assert prd.media_type == "text/markdown"
    assert prd.content.startswith(b"# Widget mount")
    for uri in (f"metaforge://items/{project_id}/CAD-NO", "metaforge://prd/nope", "metaforge://items/x"):
        with pytest.raises(Exception, match="No such resource"):
            await bench.app.read_resource(uri)


@pytest.mark.parametrize(
    ("tool_id", "arguments"),
    [
        ("twin.record_decision", {"title": "x", "rationale": "y"}),
        ("twin.record_document", {"name": "x", "content": "y", "document_type": "load_case"}),
        ("twin.record_engineering_entity", {"entity_type": "objective", "statement": "y"}),
        ("twin.record_component_selection", {"mpn": "x", "manufacturer": "y", "category": "z"}),
        ("twin.record_constraint_set", {"title": "x", "constraints": [{"name": "a", "expression": "mass < 1 g"}]}),
        ("twin.record_evidence", {"evidence_type": "test", "result": {"load_n": 5}, "producer": {"tool": "press"}}),
    ],
)
async def test_the_session_it_was_made_in_is_kept(bench: Any, tool_id: str, arguments: dict[str, Any]) -> None:
    made = await bench.do(tool_id, session_id="s1", **arguments)
    node = (await bench.do("twin.get_node", node_id=made["node_id"]))["node"]
    assert node["properties"]["session_id"] == "s1"

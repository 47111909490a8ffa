"""A bracket from intent to a second revision, as calls that any client's model can make; and what has to come back.

Each step's arguments may use what earlier steps returned. No step but the queries names the project: opening it is
enough.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest
from scripted_model import Json

Seen = Mapping[str, Json]
"""What each earlier step returned, by its name."""

PART = {"width_mm": 60, "length_mm": 30, "height_mm": 40, "fillet_radius_mm": 4}
"""An L of 60 x 30 x 40 mm outside; its thickness is what the revision changes."""
LOAD_N = 100.0
STEEL_KG_M3 = 8000.0
ROUNDING_MM2 = (1 - 3.141592653589793 / 4) * 4**2
"""What the fillet adds to the profile."""
SCOPED = "MATCH (n:cad_model) WHERE n.project_id = $project_id RETURN n.ref AS ref, n.is_head AS is_head ORDER BY ref"
EVERY_OBJECTIVE = "MATCH (n:objective) WHERE n.project_id = $project_id OR n.name <> '' RETURN n.ref AS ref"
UNSCOPED = "MATCH (n:objective) RETURN n.ref AS ref"


@dataclass(frozen=True)
class Step:
    """One call: the tool by its own name, and its arguments."""

    name: str
    tool: str
    arguments: Callable[[Seen], Json]
    refused: bool = False


def _step(name: str, tool: str, refused: bool = False, /, **arguments: object) -> Step:
    def bound(seen: Seen) -> Json:
        return {key: value(seen) if callable(value) else value for key, value in arguments.items()}

    return Step(name, tool, bound, refused)


def _make(name: str, thickness_mm: float, path: str) -> Step:
    return _step(
        name, "cadquery.create_parametric", shape_type="bracket", parameters={**PART, "thickness_mm": thickness_mm},
        output_path=path,
    )  # fmt: skip


def _commit(name: str, path: str, refused: bool = False, **also: object) -> Step:
    return _step(
        name, "twin.commit_geometry", refused, name="Bracket", file_path=path, properties={"material": "steel-316"},
        depends_on=["CS-BRACKET"], **also,
    )  # fmt: skip


STEPS = (
    _step("elsewhere", "project.create", name="Somebody else's"),
    _step("secret", "twin.record_engineering_entity", entity_type="objective", title="Secret", statement="Not yours"),
    _step("project", "project.create", name="Shelf", description="Carries books"),
    _step("session", "session.start", agent_code="mechanical", task_type="design", title="The bracket"),
    _step(
        "intent", "twin.record_engineering_entity", entity_type="intent", title="Shelf", statement="Books on a wall",
    ),
    _step(
        "need", "twin.record_engineering_entity", entity_type="stakeholder_need", title="Carry books",
        statement="A row of books stays up", parent_refs=lambda seen: [seen["intent"]["item_ref"]],
    ),
    _step(
        "objective", "twin.record_engineering_entity", entity_type="objective", title="Spare material",
        statement="No heavier than it must be", parent_refs=lambda seen: [seen["need"]["item_ref"]],
    ),
    _step(
        "limits", "twin.record_constraint_set", title="Bracket",
        constraints=lambda seen: [
            {"name": "strength", "metric": "max_von_mises", "operator": "<=", "limit": 102.5, "unit": "MPa",
             "parent_refs": [seen["need"]["item_ref"]]},
            {"name": "mass", "expression": "mass <= 150 g", "parent_refs": [seen["objective"]["item_ref"]]},
        ],
    ),
    _step(
        "prose", "twin.record_document", name="Shelf", document_type="prd",
        content="A pair of brackets carries one shelf. Each may weigh 0.15 kg and cost $7.",
    ),
    _make("made", 6, "out/bracket.step"),
    _commit("first", "out/bracket.step"),
    _step(
        "solved", "calculix.run_fea", analysis_type="static_stress", step_file="out/bracket.step", load_case="books",
        material="steel-316", supports=[{"face": "left"}], loads=[{"face": "right", "force_n": [0, 0, -LOAD_N]}],
    ),
    _step(
        "evidence", "twin.record_evidence", evidence_type="simulation", statement="Books at the tip of the base leg",
        call_ids=lambda seen: [seen["solved"]["call_id"]],
        result=lambda seen: {"max_von_mises_mpa": seen["solved"]["max_von_mises_mpa"]},
        supports=["CS-BRACKET#strength"], valid_against=[{"ref": "CAD-BRACKET@1"}],
    ),
    _step(
        "claim", "twin.record_claim", requirement_ref="CS-BRACKET#strength", artefact_ref="CAD-BRACKET@1",
        evidence_refs=lambda seen: [seen["evidence"]["node_id"]],
    ),
    _step("proven", "constraint.validate", work_product_ids=["CAD-BRACKET"]),
    _make("remade", 5, "out/thinner.step"),
    _commit("second", "out/thinner.step", item_key="CAD-BRACKET@1", change_reason="5 mm are enough"),
    _step("standing", "twin.trace_matrix"),
    _commit("stale", "out/bracket.step", refused=True, item_key="CAD-BRACKET@1", change_reason="back again"),
    _step("unproven", "constraint.validate", work_product_ids=["CAD-BRACKET"]),
    _step("history", "twin.item_history", item_key="CAD-BRACKET"),
    _step("matrix", "twin.trace_matrix"),
    _step("unbound", "twin.query_cypher", True, cypher=UNSCOPED),
    _step(
        "parts", "twin.query_cypher", cypher=SCOPED, params=lambda seen: {"project_id": seen["project"]["id"]},
    ),
    _step(
        "objectives", "twin.query_cypher", cypher=EVERY_OBJECTIVE,
        params=lambda seen: {"project_id": seen["project"]["id"]},
    ),
    _step(
        "theirs", "twin.query_cypher", True, cypher=SCOPED,
        params=lambda seen: {"project_id": seen["elsewhere"]["id"]},
    ),
    _step("ended", "session.complete", session_id=lambda seen: seen["session"]["session_id"], status="completed"),
)  # fmt: skip


def item_uri(seen: Seen, ref: str) -> str:
    return f"metaforge://items/{seen['project']['id']}/{ref}"


def prd_uri(seen: Seen) -> str:
    return f"metaforge://prd/{seen['project']['id']}"


def solve_uri(seen: Seen) -> str:
    return f"metaforge://calls/{seen['solved']['call_id']}"


def volume_mm3(thickness_mm: float) -> float:
    """Return the volume of the L."""
    profile_mm2 = thickness_mm * (PART["width_mm"] + PART["height_mm"] - thickness_mm) + ROUNDING_MM2
    return profile_mm2 * PART["length_mm"]


def check_what_is_wanted(seen: Seen) -> None:
    assert seen["intent"]["item_ref"] == "INT-SHELF@1"
    assert seen["need"]["item_ref"] == "NEED-CARRY-BOOKS@1"
    assert seen["objective"]["item_ref"] == "OBJ-SPARE-MATERIAL@1"
    assert seen["limits"]["item_ref"] == "CS-BRACKET@1"
    assert seen["limits"]["constraint_ids"] == ["CS-BRACKET@1#strength", "CS-BRACKET@1#mass"]
    assert seen["prose"]["stray_requirement_values"] == ["$7"], "0.15 kg are the 150 g of the constraint set"


def check_the_part_and_its_proof(seen: Seen) -> None:
    first = seen["first"]
    assert first["item_ref"] == "CAD-BRACKET@1"
    assert first["measured"]["volume_mm3"] == pytest.approx(volume_mm3(6), rel=1e-6)
    assert first["measured"]["mass_kg"] == pytest.approx(volume_mm3(6) * STEEL_KG_M3 * 1e-9, rel=1e-6)
    # The base leg is a cantilever of at least 50 mm from the end of the fillet: 6 F l / (b t2).
    beam_mpa = 6 * LOAD_N * 50 / (PART["length_mm"] * 6**2)
    assert beam_mpa < max(seen["solved"]["max_von_mises_mpa"].values()) < 3 * beam_mpa
    assert seen["solved"]["reactions_n"][2] == pytest.approx(LOAD_N, rel=0.01)
    assert seen["evidence"]["valid_against"] == ["CAD-BRACKET@1"]
    assert "warnings" not in seen["evidence"], "the cited call read exactly the file that was committed"
    assert seen["claim"]["status"] == "supported"
    assert (seen["proven"]["verdict"], seen["proven"]["evaluated_count"]) == ("pass", 2)


def check_what_the_revision_left_behind(seen: Seen, stale_words: str) -> None:
    second = seen["second"]
    assert second["item_ref"] == "CAD-BRACKET@2"
    assert second["measured"]["volume_mm3"] == pytest.approx(volume_mm3(5), rel=1e-6)
    left_behind = {seen["evidence"]["node_id"], seen["claim"]["node_id"]}
    assert {row["node_id"] for row in second["suspect"]} == left_behind
    assert any(seen["evidence"]["node_id"] in warning for warning in second["warnings"])
    assert "CAD-BRACKET@2" in stale_words
    assert "state unchanged" in stale_words
    assert seen["unproven"]["verdict"] == "incomplete", "evidence of @1 says nothing of @2"
    assert [(row["revision"], row["change_reason"], row["is_head"]) for row in seen["history"]["revisions"]] == [
        (1, None, False),
        (2, "5 mm are enough", True),
    ], "the refused revision left something behind"
    assert seen["matrix"]["seq"] == seen["standing"]["seq"], "the refusal wrote something"
    standing = {row["requirement"]: row["status"] for row in seen["matrix"]["requirements"]}
    assert standing == {"CS-BRACKET@1#strength": "stale", "CS-BRACKET@1#mass": "pass"}
    assert {row["source"]["node_id"] for row in seen["matrix"]["suspect"]} == left_behind


def check_the_queries(seen: Seen, unbound_words: str, theirs_words: str) -> None:
    assert seen["parts"]["rows"] == [
        {"ref": "CAD-BRACKET@1", "is_head": False},
        {"ref": "CAD-BRACKET@2", "is_head": True},
    ]
    assert seen["objectives"]["rows"] == [{"ref": "OBJ-SPARE-MATERIAL@1"}], "another project's rows are within reach"
    assert "project_id" in unbound_words
    assert "open the other project" in theirs_words
    assert "SECRET" not in unbound_words + theirs_words


def check_resources(seen: Seen, item: Json, solve: Json, prd: str) -> None:
    assert item["content"]["content_hash"] == seen["first"]["content_hash"]
    assert solve["tool_id"] == "calculix.run_fea"
    assert solve["arguments"]["load_case"] == "books"
    assert "A pair of brackets carries one shelf." in prd
    assert "NEED-CARRY-BOOKS@1" in prd
    assert "max_von_mises <= 102.5 MPa" in prd
    assert "Not yours" not in prd

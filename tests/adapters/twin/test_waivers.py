"""A waiver clears an obstacle only once a person has approved it, and only while the design stays as it was."""

from dataclasses import replace
from typing import Any

import pytest

from metaforge.adapters.twin.promotion import Promotions
from metaforge.core.errors import InvalidArguments
from metaforge.tools.context import Invocation

MASS = {"name": "mass", "metric": "mass", "operator": "<=", "limit": 100, "unit": "g"}
FINISH = {"name": "finish", "acceptance_criteria": "no burr", "verification_method": "inspection"}
REASON = "The prototype may weigh 20 g more: it flies once."


@pytest.fixture
async def heavy(bench: Any, project_id: str) -> str:
    """A bracket of 120 g where 100 g are allowed."""
    await bench.do("twin.record_constraint_set", title="B", constraints=[MASS])
    await bench.commit()
    return project_id


async def waive(bench: Any, *refs: str, **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = await bench.do(
        "twin.record_engineering_entity", entity_type="waiver", statement=REASON, parent_refs=list(refs), **more
    )
    return made


async def approve(bench: Any, node_id: str, state: str = "approved", approver: str = "carol") -> None:
    tools = Promotions(bench.app.twin_services)
    approved = Invocation("c1", bench.caller, 60.0, project_id=bench.project, approver=approver)
    await tools.approve_engineering_entity(approved, node_id, state)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _named_project(bench: Any, project_id: str) -> None:
    bench.project = project_id


async def gate(bench: Any, name: str = "unverified") -> dict[str, Any]:
    told = await bench.do("twin.check_release_gates", gates=[name])
    (row,) = told["gates"]
    return dict(row)


async def test_an_unapproved_waiver_changes_nothing_and_says_what_it_waits_for(bench: Any, heavy: str) -> None:
    made = await bench.outcome(
        "twin.record_engineering_entity", entity_type="waiver", statement=REASON, parent_refs=["CS-B#mass"]
    )
    assert "changes nothing until a person has approved it" in made.summary
    assert "twin.approve_engineering_entity" in made.next_step
    row = await gate(bench)
    assert (row["passed"], row["obstacle_count"], row["waived_count"]) == (False, 1, 0)
    assert f"Waiver {made.data['node_id']} waits for a person's approval" in row["obstacles"][0]["note"]


async def test_a_review_is_no_approval(bench: Any, heavy: str) -> None:
    made = await waive(bench, "CS-B#mass")
    await approve(bench, made["node_id"], "reviewed")
    assert (await gate(bench))["passed"] is False


async def test_an_approved_waiver_clears_the_gate_and_is_told_with_reason_and_approver(bench: Any, heavy: str) -> None:
    made = await waive(bench, "CS-B#mass")
    await approve(bench, made["node_id"])
    row = await gate(bench)
    assert (row["passed"], row["obstacles"], row["waived_count"]) == (True, [], 1)
    (told,) = row["waived"]
    assert (told["ref"], told["waiver"], told["reason"]) == ("CS-B@1#mass", made["node_id"], REASON)
    assert (told["recorded_by"], told["approved_by"], told["approver_verified"]) == ("anna", "carol", False)
    said = await bench.outcome("twin.check_release_gates", gates=["unverified"])
    assert said.summary == "Nothing is in the way of a release. 1 obstacle is waived."
    # What was waived still does not hold.
    assert (await bench.do("twin.trace_matrix"))["status_counts"]["fail"] == 1
    assert (await bench.do("twin.constraint_violations"))["passed"] is False


async def test_it_expires_when_the_part_is_revised(bench: Any, heavy: str) -> None:
    await approve(bench, (await waive(bench, "CS-B#mass"))["node_id"])
    await bench.commit(text="thinner")
    row = await gate(bench)
    assert row["passed"] is False
    assert (
        "covers it no more: it is open on CAD-BRACKET@2, the waiver was given for CAD-BRACKET@1"
        in (row["obstacles"][0]["note"])
    )


async def test_it_expires_when_the_requirement_says_something_else(bench: Any, heavy: str) -> None:
    await approve(bench, (await waive(bench, "CS-B#mass"))["node_id"])
    await bench.do("twin.record_constraint_set", title="B", constraints=[MASS, FINISH])
    assert "mass" not in str((await gate(bench))["obstacles"]), "another requirement was added, this one is the same"
    await bench.do("twin.record_constraint_set", title="B", constraints=[{**MASS, "limit": 80}])
    row = await gate(bench)
    assert row["passed"] is False
    assert "the requirement changed since CS-B@1#mass" in row["obstacles"][0]["note"]


async def test_it_does_not_cover_another_part(bench: Any, heavy: str) -> None:
    await approve(bench, (await waive(bench, "CS-B#mass"))["node_id"])
    await bench.commit("Lid", text="lid")
    row = await gate(bench)
    assert row["passed"] is False
    assert "open on CAD-LID@1" in row["obstacles"][0]["note"]


async def test_it_does_not_cover_a_violation_that_grew(bench: Any, heavy: str) -> None:
    await approve(bench, (await waive(bench, "CS-B#mass"))["node_id"])
    await bench.do(
        "twin.record_evidence", evidence_type="test", result={"mass_g": 180}, producer={"tool": "scale"},
        contradicts=["CS-B#mass"], valid_against=[{"ref": "CAD-BRACKET"}],
    )  # fmt: skip
    row = await gate(bench)
    assert row["passed"] is False
    assert "its margin is -80 %, the waiver was given at -20 %" in row["obstacles"][0]["note"]


async def test_a_waiver_of_missing_evidence_does_not_cover_evidence_against_it(bench: Any, project_id: str) -> None:
    await bench.do("twin.record_constraint_set", title="B", constraints=[FINISH])
    await bench.commit()
    await approve(bench, (await waive(bench, "CS-B#finish"))["node_id"])
    assert (await gate(bench))["passed"] is True
    assert (await gate(bench, "uncovered"))["passed"] is True
    await bench.do(
        "twin.record_evidence", evidence_type="inspection", result={"finding": "a burr"}, producer={"tool": "eye"},
        contradicts=["CS-B#finish"],
    )  # fmt: skip
    assert (await gate(bench))["passed"] is False


async def test_a_need_that_nothing_answers_can_be_waived_until_it_is_revised(bench: Any, project_id: str) -> None:
    need = {"entity_type": "stakeholder_need", "title": "Light"}
    await bench.do("twin.record_engineering_entity", **need, statement="x")
    made = await waive(bench, "NEED-LIGHT")
    assert (await gate(bench, "uncovered"))["passed"] is False, "a waiver that waits answers no need either"
    await approve(bench, made["node_id"])
    assert (await gate(bench, "uncovered"))["passed"] is True
    await bench.do("twin.record_engineering_entity", **need, statement="y")
    row = await gate(bench, "uncovered")
    assert row["passed"] is False
    assert "given for NEED-LIGHT@1, and NEED-LIGHT@2 is current" in row["obstacles"][0]["note"]
    assert (await gate(bench, "suspect"))["passed"] is True, "an expired waiver is no obstacle itself"


async def test_a_suspect_link_can_be_waived_until_its_target_is_revised_again(bench: Any, project_id: str) -> None:
    await bench.commit()
    decision = await bench.do("twin.record_decision", title="D", rationale="r", depends_on=["CAD-BRACKET"])
    await bench.commit(text="thin")
    await approve(bench, (await waive(bench, decision["node_id"]))["node_id"])
    assert (await gate(bench, "suspect"))["passed"] is True
    await bench.commit(text="thinner")
    row = await gate(bench, "suspect")
    assert row["passed"] is False
    assert "it does not know CAD-BRACKET@3" in row["obstacles"][0]["note"]


async def test_a_replaced_waiver_counts_no_more(bench: Any, heavy: str) -> None:
    first = await waive(bench, "CS-B#mass")
    await approve(bench, first["node_id"])
    await waive(bench, "CS-B#mass", supersedes=first["node_id"])
    assert (await gate(bench))["passed"] is False


async def test_a_waiver_names_what_it_waives(bench: Any, heavy: str) -> None:
    nothing = await bench.refused("twin.record_engineering_entity", entity_type="waiver", statement=REASON)
    assert isinstance(nothing, InvalidArguments)
    whole = await bench.refused(
        "twin.record_engineering_entity", entity_type="waiver", statement=REASON, parent_refs=["CS-B"]
    )
    assert (whole.kind, "CS-B#mass" in whole.fix) == ("unknown_requirement", True)
    needless = await waive(bench, "CAD-BRACKET")
    assert any("Nothing stands in the way of CAD-BRACKET@1" in each for each in needless["warnings"])


async def test_a_promotion_over_a_waiver_says_so(bench: Any, heavy: str) -> None:
    strength = {"name": "strength", "metric": "max_von_mises", "operator": "<=", "limit": 200, "unit": "MPa"}
    await bench.do("twin.record_constraint_set", title="S", constraints=[strength])
    proof = await bench.do(
        "twin.record_evidence", evidence_type="test", result={"max_von_mises_mpa": 120}, producer={"tool": "press"},
        supports=["CS-S#strength"], valid_against=[{"ref": "CAD-BRACKET"}],
    )  # fmt: skip
    claim = await bench.do(
        "twin.record_claim", requirement_ref="CS-S#strength", artefact_ref="CAD-BRACKET",
        evidence_refs=[proof["node_id"]],
    )  # fmt: skip
    tools = Promotions(bench.app.twin_services)
    ctx = Invocation("c1", bench.caller, 60.0, project_id=heavy, approver="carol", approver_verified=True)

    async def promote() -> Any:
        return await tools.attempt_promotion(replace(ctx), heavy, "released", [claim["node_id"]])

    made = await waive(bench, "CS-B#mass")
    blocked = (await promote()).data
    assert blocked.promoted is False
    assert "CS-B@1#mass is violated on CAD-BRACKET@1" in blocked.blocked_reason
    await approve(bench, made["node_id"])
    passed = await promote()
    assert (passed.data.promoted, passed.data.blocked_reason) == (True, None)
    assert passed.summary == "promoted to released over 1 waived obstacle, decided by carol."
    assert [each["waiver"] for each in passed.data.waived] == [made["node_id"]]
    kept = (await bench.do("twin.get_node", node_id=passed.data.gate_id))["node"]["properties"]
    assert kept["waived"][0]["reason"] == REASON

"""A promotion is a person's decision: known from the approval, never from arguments, and never over an open claim."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from metaforge.adapters.twin.promotion import Promotions
from metaforge.core.errors import NotApproved, ToolError
from metaforge.tools.context import Invocation, Trust
from metaforge.twin.model import Run

PROMOTE = "twin.attempt_promotion"


@pytest.mark.parametrize("name", ["approver", "decided_by", "approved_by"])
@pytest.mark.parametrize("tool_id", [PROMOTE, "twin.approve_engineering_entity"])
async def test_a_caller_cannot_name_the_approver(bench: Any, project_id: str, name: str, tool_id: str) -> None:
    refusal = await bench.refused(tool_id, project_id=project_id, level="concept", **{name: "boss"})
    assert isinstance(refusal, ToolError)
    assert (refusal.kind, refusal.data["field"]) == ("approver_not_caller_supplied", name)


@pytest.mark.parametrize("trust", [Trust.LOCAL, Trust.REMOTE])
async def test_without_a_person_nothing_is_decided_whoever_calls(bench: Any, project_id: str, trust: Trust) -> None:
    caller = bench.another("session-2", trust=trust)
    call = caller.refused(PROMOTE, project_id=project_id, level="concept")
    refusal = await bench.decided(call, "reject")
    assert isinstance(refusal, NotApproved)
    assert refusal.data["decided_by"] == "anna"


async def test_whoever_approves_the_call_is_who_decided(bench: Any, project_id: str) -> None:
    made = await bench.decided(bench.do(PROMOTE, project_id=project_id, level="concept"), "approve")
    assert (made["promoted"], made["decided_by"]) == (True, "anna")


@pytest.fixture
def decide(bench: Any, project_id: str) -> Any:
    """Run a promotion as the pipeline does once a person has approved the call."""
    tools = Promotions(bench.app.twin_services)
    approved = Invocation("c1", bench.caller, 60.0, project_id=project_id, approver="carol", approver_verified=True)

    async def run(level: str = "sim_validated", approver: str = "carol", **more: Any) -> Any:
        answer = await tools.attempt_promotion(replace(approved, approver=approver), project_id, level, **more)
        return answer.data

    return run


async def proven(bench: Any, result: dict[str, Any], evidence_type: str = "simulation") -> str:
    strength = {"name": "strength", "metric": "max_von_mises", "operator": "<=", "limit": 200, "unit": "MPa"}
    await bench.do("twin.record_constraint_set", title="B", constraints=[strength])
    await bench.commit()
    proof = await bench.do(
        "twin.record_evidence", evidence_type=evidence_type, result=result, producer={"tool": "press"},
        supports=["CS-B#strength"], valid_against=[{"ref": "CAD-BRACKET"}],
    )  # fmt: skip
    claim = await bench.do(
        "twin.record_claim", requirement_ref="CS-B#strength", artefact_ref="CAD-BRACKET",
        evidence_refs=[proof["node_id"]],
    )  # fmt: skip
    node_id: str = claim["node_id"]
    return node_id


async def test_the_tool_itself_refuses_without_an_approver(decide: Any) -> None:
    with pytest.raises(ToolError) as refusal:
        await decide(approver="")
    assert refusal.value.kind == "human_authority_required"


async def test_a_proven_claim_promotes_and_the_approver_is_on_the_record(bench: Any, decide: Any) -> None:
    claim = await proven(bench, {"max_von_mises_mpa": 120})
    made = await decide(required_claim_ids=[claim], comment="looks right")
    assert (made.promoted, made.decided_by, made.blocked_reason) == (True, "carol", None)
    assert made.results[0]["margin_ratio"] == pytest.approx(0.4)
    kept = (await bench.do("twin.get_node", node_id=made.gate_id))["node"]
    assert (kept["node_type"], kept["properties"]["decided_by"]) == ("approval", "carol")
    assert kept["properties"]["approver_verified"] is True


async def test_without_claims_or_with_a_rejection_nothing_is_promoted(bench: Any, decide: Any) -> None:
    claim = await proven(bench, {"max_von_mises_mpa": 120})
    assert "at least one claim" in (await decide()).blocked_reason
    rejected = await decide(required_claim_ids=[claim], reject=True)
    assert (rejected.promoted, rejected.blocked_reason) == (False, "the approver rejected it")


async def test_a_simulation_is_not_enough_for_the_physical_level(bench: Any, decide: Any) -> None:
    claim = await proven(bench, {"max_von_mises_mpa": 120})
    made = await decide("physically_validated", required_claim_ids=[claim])
    assert (made.promoted, made.results[0]["status"]) == (False, "insufficient")


async def test_a_stale_claim_blocks(bench: Any, decide: Any) -> None:
    claim = await proven(bench, {"max_von_mises_mpa": 120})
    await bench.commit(text="thin")
    made = await decide(required_claim_ids=[claim])
    assert (made.promoted, made.results[0]["status"]) == (False, "stale")


async def test_an_uncertainty_that_reaches_the_limit_blocks(bench: Any, decide: Any) -> None:
    claim = await proven(bench, {"max_von_mises_mpa": 180, "max_von_mises_uncertainty_mpa": 15})
    assert (await decide(required_claim_ids=[claim], k=1.0)).promoted
    made = await decide(required_claim_ids=[claim], k=2.0)
    assert (made.promoted, made.results[0]["status"]) == (False, "uncertain")


async def test_a_violated_requirement_blocks_whatever_is_claimed(bench: Any, decide: Any) -> None:
    claim = await proven(bench, {"max_von_mises_mpa": 120})
    mass = {"name": "mass", "metric": "mass", "operator": "<=", "limit": 1, "unit": "g"}
    await bench.do("twin.record_constraint_set", title="Mass", constraints=[mass])
    made = await decide(required_claim_ids=[claim])
    assert made.promoted is False
    assert "CS-MASS@1#mass is violated on CAD-BRACKET@1" in made.blocked_reason


async def test_a_release_needs_every_gate_to_be_empty(bench: Any, decide: Any) -> None:
    claim = await proven(bench, {"max_von_mises_mpa": 120}, "test")
    await bench.do("twin.record_engineering_entity", entity_type="stakeholder_need", title="Light", statement="x")
    made = await decide("released", required_claim_ids=[claim])
    assert made.promoted is False
    assert "gate uncovered" in made.blocked_reason
    assert "NEED-LIGHT@1" in made.blocked_reason
    assert (await decide("physically_validated", required_claim_ids=[claim])).promoted


async def test_what_is_no_claim_is_refused(bench: Any, decide: Any) -> None:
    decision = await bench.do("twin.record_decision", title="Steel", rationale="cheap")
    with pytest.raises(ToolError, match="no claim"):
        await decide(required_claim_ids=[decision["node_id"]])


async def test_a_review_is_of_exactly_one_revision(bench: Any, project_id: str) -> None:
    await bench.do("twin.record_engineering_entity", entity_type="intent", title="Mount", statement="x")
    tools = Promotions(bench.app.twin_services)
    approved = Invocation("c1", bench.caller, 60.0, project_id=project_id, approver="carol")
    made = (await tools.approve_engineering_entity(approved, "INT-MOUNT", "approved")).data
    assert (made.target_ref, made.decided_by) == ("INT-MOUNT@1", "carol")


@pytest.fixture
async def drafted(bench: Any, project_id: str) -> str:
    """A run that drafted the second revision of a need."""
    await bench.do("twin.record_engineering_entity", entity_type="stakeholder_need", statement="carry 5 kg", title="N")
    with bench.app.twin_services.store.change(author="flow") as change:
        change.put_run(Run("r1", project_id, "running"))
    worker = bench.another("worker")
    bench.app.scopes.bind_run(worker.caller, "r1", project_id)
    made = await worker.do(
        "twin.record_engineering_entity", entity_type="stakeholder_need", statement="carry 7 kg", title="N"
    )
    assert made["item_ref"] == "NEED-N@2"
    return "r1"


async def head(bench: Any) -> tuple[str, str]:
    node = (await bench.do("twin.get_node", node_id="NEED-N"))["node"]
    return node["ref"], node["status"]


@pytest.mark.parametrize(("reject", "ref", "word"), [(False, "NEED-N@2", "approved"), (True, "NEED-N@1", "rejected")])
async def test_a_person_releases_a_change_set_or_rejects_it_whole(
    bench: Any, drafted: str, reject: bool, ref: str, word: str
) -> None:
    assert (await head(bench))[0] == "NEED-N@1"
    call = bench.do("twin.approve_engineering_change", ect_id=drafted, reject=reject, comment="seen")
    made = await bench.decided(call, "approve")
    assert (made["decision"], made["refs"], made["decided_by"]) == (word, ["NEED-N@2"], "anna")
    assert (await head(bench))[0] == ref
    (entry,) = await asyncio.to_thread(bench.app.approvals.ledger.entries, "all")
    if not reject:
        assert entry.request.change["now"]["NEED-N"]["statement"] == "carry 5 kg"
        assert entry.request.change["after"]["NEED-N"]["statement"] == "carry 7 kg"


async def test_a_change_set_with_nothing_in_it_is_refused_before_anyone_is_asked(bench: Any, drafted: str) -> None:
    await bench.decided(bench.do("twin.approve_engineering_change", ect_id=drafted), "approve")
    again = await bench.refused("twin.approve_engineering_change", ect_id=drafted)
    assert again.kind == "nothing_to_decide"
    unknown = await bench.refused("twin.approve_engineering_change", ect_id="r9")
    assert unknown.kind == "unknown_run"

"""The trace matrix says how every requirement stands, and never better than the evidence."""

import pytest
from bracket_design import FINISH, MASS, STRESS, Design

from metaforge.twin.gates import GATES, check_gates
from metaforge.twin.matrix import Matrix, matrix


def found(design: Design, run_id: str = "") -> Matrix:
    with design.view(run_id) as view:
        return matrix(view)


def standing(design: Design, run_id: str = "") -> dict[str, str]:
    return {row.name: str(row.status) for row in found(design, run_id).rows}


def test_a_verified_design_passes(verified):
    assert standing(verified) == {"stress": "pass", "mass": "pass", "finish": "pass"}
    whole = found(verified)
    assert whole.uncovered == ()
    assert whole.unverified == ()
    assert whole.counts()["pass"] == 3
    row = whole.rows[0]
    assert row.answers == ("NEED-CARRY-THE-CAMERA@1",)
    said = {each.kind: each for each in row.verifications}
    assert said["evidence"].actual == 150.0
    assert said["evidence"].margin_ratio == pytest.approx(0.25)
    assert said["evidence"].against == ("CAD-BRACKET@1",)


def test_without_evidence_there_is_no_data(design):
    design.requirements()
    design.part(0.35)
    assert standing(design) == {"stress": "no_data", "mass": "pass", "finish": "no_data"}
    assert [gap.ref for gap in found(design).uncovered] == ["CS-BRACKET@1#stress", "CS-BRACKET@1#finish"]


def test_a_measured_value_over_its_limit_fails(design):
    design.requirements(MASS)
    design.part(0.41)
    assert standing(design) == {"mass": "fail"}


def test_a_revised_part_makes_what_was_verified_stale(verified):
    verified.part(0.3, reason="thinner web")
    assert standing(verified) == {"stress": "stale", "mass": "pass", "finish": "stale"}
    assert found(verified).rows[0].why == "revised to CAD-BRACKET@2: thinner web"


def test_new_evidence_for_the_revision_passes_again(verified):
    verified.part(0.3)
    verified.evidence({"max_von_mises_mpa": 180.0}, ("CS-BRACKET#stress",))
    assert standing(verified)["stress"] == "pass"


def test_a_tightened_limit_is_judged_at_once_but_only_by_what_was_looked_at_again(verified):
    verified.requirements(dict(STRESS, limit=120), MASS, FINISH)
    row = found(verified).rows[0]
    assert (str(row.status), row.ref) == ("fail", "CS-BRACKET@2#stress")


def test_evidence_against_a_requirement_fails_it(verified):
    verified.evidence({"max_von_mises_mpa": 230.0}, contradicts=("CS-BRACKET#stress",))
    assert standing(verified)["stress"] == "fail"


def test_a_failure_that_was_superseded_counts_no_more(verified):
    failed = verified.evidence({"max_von_mises_mpa": 230.0}, contradicts=("CS-BRACKET#stress",))
    verified.evidence({"max_von_mises_mpa": 190.0}, ("CS-BRACKET#stress",), supersedes=failed.node_id)
    assert standing(verified)["stress"] == "pass"


def test_support_without_the_value_is_uncertain(design):
    design.requirements(STRESS)
    design.part(0.35)
    design.evidence({"max_displacement_mm": 0.1}, ("CS-BRACKET#stress",))
    row = found(design).rows[0]
    assert (str(row.status), row.why) == ("uncertain", "no value of max_von_mises_mpa")


def test_support_that_names_no_revision_is_uncertain(design):
    design.requirements(FINISH)
    design.evidence({"finding": "no burr"}, ("CS-BRACKET#finish",), against=())
    row = found(design).rows[0]
    assert (str(row.status), row.why) == ("uncertain", "it does not say with which revision it was made")


def test_a_claim_counts_as_far_as_its_evidence(design):
    design.requirements(STRESS)
    design.part(0.35)
    evidence = design.evidence({"max_von_mises_mpa": 150.0})
    claim = design.claim("CS-BRACKET#stress", evidence)
    assert standing(design) == {"stress": "pass"}
    design.part(0.3)
    row = found(design).rows[0]
    assert str(row.status) == "stale"
    assert [each.ref for each in row.verifications] == [claim.node_id]


def test_a_claim_without_evidence_is_uncertain(design):
    design.requirements(STRESS)
    design.part(0.35)
    other = design.evidence({"finding": "no burr"}, against=("CS-BRACKET",))
    design.claim("CS-BRACKET#stress", other)
    assert standing(design) == {"stress": "uncertain"}


@pytest.mark.parametrize("relation", ["verifies", "derives_from"])
def test_a_planned_verification_covers_and_does_not_verify(design, relation):
    design.requirements(FINISH)
    design.part(0.35)
    with design.change() as change:
        case = change.record("verification_case", {"statement": "look at every edge"}, name="Edges")
        change.link(relation, case, "CS-BRACKET", {"requirement": "finish"})
    whole = found(design)
    assert whole.uncovered == ()
    assert [(row.name, row.why) for row in whole.unverified] == [("finish", "verification is planned, not done")]


def test_needs_and_objectives_without_a_requirement_are_uncovered(design):
    design.define("stakeholder_need", "Carry the camera", {})
    design.define("objective", "Be light", {})
    design.requirements(FINISH, answers="OBJ-BE-LIGHT")
    gaps = [gap.ref for gap in found(design).uncovered if gap.kind != "requirement"]
    assert gaps == ["NEED-CARRY-THE-CAMERA@1"]
    design.requirements(FINISH, MASS)  # its next revision answers nothing any more
    gaps = [gap.ref for gap in found(design).uncovered if gap.kind != "requirement"]
    assert gaps == ["NEED-CARRY-THE-CAMERA@1", "OBJ-BE-LIGHT@1"]


def test_evidence_with_a_draft_proves_nothing_to_others_before_approval(verified, start_run):
    run_id = start_run("run-1")
    verified.part(0.3, run_id)
    verified.evidence({"max_von_mises_mpa": 190.0}, ("CS-BRACKET#stress",), run_id=run_id)
    stress = found(verified).rows[0]
    assert [str(each.standing) for each in stress.verifications if each.kind == "evidence"] == ["current", "ahead"]
    assert standing(verified, run_id)["stress"] == "pass"
    assert standing(verified, run_id)["finish"] == "stale"
    with verified.change() as change:
        change.close_run(run_id, "approve")
    assert standing(verified)["stress"] == "pass"


def gates(design: Design) -> dict[str, list[str]]:
    with design.view() as view:
        return {result.name: [each.ref for each in result.obstacles] for result in check_gates(view)}


def test_a_release_passes_every_gate_when_nothing_is_in_the_way(verified):
    assert gates(verified) == {name: [] for name in GATES}


def test_each_gate_names_what_is_in_the_way(verified, start_run):
    verified.define("objective", "Be light", {})
    verified.part(0.45)
    run_id = start_run("run-1")
    verified.part(0.3, run_id)
    told = gates(verified)
    assert len(told["suspect"]) == 2
    assert told["uncovered"] == ["OBJ-BE-LIGHT@1"]
    assert told["unverified"] == ["CS-BRACKET@1#stress", "CS-BRACKET@1#mass", "CS-BRACKET@1#finish"]
    assert told["open_drafts"] == ["CAD-BRACKET@3"]


def test_a_project_without_requirements_passes_no_release(design):
    design.part(0.3)
    assert gates(design)["unverified"] == [design.project_id]


def test_what_need_not_hold_blocks_no_release(design):
    design.requirements(dict(FINISH, severity="info"))
    design.part(0.3)
    assert gates(design)["unverified"] == []


def test_an_unknown_gate_is_told_with_those_there_are(design):
    with pytest.raises(Exception, match="no gate 'supsect'"), design.view() as view:
        check_gates(view, ["supsect"])


def test_evidence_does_not_hide_what_was_measured_of_the_part_itself(design):
    design.requirements(MASS)
    design.part(0.5)
    design.evidence({"mass_kg": 0.3}, ("CS-BRACKET#mass",))
    assert standing(design) == {"mass": "fail"}

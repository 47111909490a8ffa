"""Links are suspect once their target has moved on, until somebody looks at them again."""

import pytest
from bracket_design import FINISH, MASS, STRESS, Design

from metaforge.core.errors import ToolError
from metaforge.twin.links import doubts, suspects


def suspect_refs(design: Design, run_id: str = "") -> list[tuple[str, str]]:
    with design.view(run_id) as view:
        return [(each.link.type, each.pinned_ref) for each in suspects(view)]


def test_nothing_is_suspect_while_nothing_was_revised(verified):
    assert suspect_refs(verified) == []


def test_evidence_is_suspect_once_its_part_is_revised(verified):
    verified.part(0.3, reason="thinner web")
    assert suspect_refs(verified) == [("valid_against", "CAD-BRACKET@1")] * 2
    with verified.view() as view:
        found = suspects(view)[0]
    assert found.why == "revised to CAD-BRACKET@2: thinner web"
    assert found.current is not None
    assert found.current.ref == "CAD-BRACKET@2"


def test_a_review_clears_a_link_until_the_next_revision(verified):
    verified.part(0.3)
    with verified.view() as view:
        links = [each.link.link_id for each in suspects(view)]
    with verified.change(author="reviewer") as change:
        assert change.review(links[0]).reviewed_revision == 2
    assert len(suspect_refs(verified)) == 1
    verified.part(0.29)
    assert suspect_refs(verified) == [("valid_against", "CAD-BRACKET@2"), ("valid_against", "CAD-BRACKET@1")]


def test_new_evidence_that_supersedes_the_old_clears_it(verified):
    verified.part(0.3)
    with verified.view() as view:
        old = {each.source.node_id for each in suspects(view)}
    for node_id in old:
        verified.evidence({"max_von_mises_mpa": 170.0}, supersedes=node_id)
    assert suspect_refs(verified) == []


def test_only_what_names_the_changed_requirement_becomes_suspect(verified):
    verified.requirements(dict(STRESS, limit=180), MASS, FINISH)
    with verified.view() as view:
        found = suspects(view)
    assert [each.link.body for each in found] == [{"requirement": "stress"}]
    assert found[0].why == "requirement stress changed in CS-BRACKET@2"


def test_a_link_to_the_whole_set_becomes_suspect_with_any_change(verified):
    verified.evidence({"mass_kg": 0.3}, ("CS-BRACKET",))
    verified.requirements(dict(STRESS, limit=180))
    assert ("supports", "CS-BRACKET@1") in suspect_refs(verified)


def test_a_removed_requirement_is_told(verified):
    verified.requirements(MASS)
    with verified.view() as view:
        told = {each.why for each in suspects(view)}
    assert "CS-BRACKET@2 has no requirement stress any more" in told


def test_claims_on_suspect_evidence_are_in_doubt_through_it(verified):
    evidence = verified.evidence({"max_von_mises_mpa": 150.0}, ("CS-BRACKET#stress",))
    claim = verified.claim("CS-BRACKET#stress", evidence)
    with verified.change() as change:
        decision = change.record("design_decision", {"title": "keep it"})
        change.link("cites", decision, claim)
    with verified.view() as view:
        assert doubts(view) == {}
    verified.part(0.3, reason="thinner web")
    with verified.view() as view:
        found = doubts(view)
    assert found[evidence.node_id].through == ()
    assert found[claim.node_id].why == "revised to CAD-BRACKET@2: thinner web"
    assert found[decision.node_id].through[-1] in (claim.node_id, evidence.node_id)


def test_an_item_told_apart_from_others(verified):
    verified.part(0.3)
    verified.define("cad_model", "Lid", {})
    with verified.view() as view:
        assert len(suspects(view, view.item("CAD-BRACKET").item_id)) == 2
        assert suspects(view, view.item("CAD-LID").item_id) == []


def test_links_of_an_earlier_revision_of_the_source_do_not_count(design):
    design.part(0.4)
    for _ in range(2):
        with design.change() as change:
            assembly = change.define("assembly", "Rig", {})
            change.link("uses", assembly, "CAD-BRACKET")
        design.part(0.3)
    assert suspect_refs(design) == [("uses", "CAD-BRACKET@2")]


def test_a_draft_makes_links_suspect_for_its_run_alone(verified, start_run):
    run_id = start_run("run-1")
    verified.part(0.3, run_id)
    assert suspect_refs(verified) == []
    assert len(suspect_refs(verified, run_id)) == 2
    with verified.change() as change:
        change.close_run(run_id, "approve")
    assert len(suspect_refs(verified)) == 2


def test_evidence_made_with_a_rejected_draft_is_suspect_at_once(verified, start_run):
    run_id = start_run("run-1")
    verified.part(0.3, run_id)
    verified.evidence({"max_von_mises_mpa": 150.0}, run_id=run_id)
    assert suspect_refs(verified) == []
    with verified.change() as change:
        change.close_run(run_id, "reject", reason="too thin")
    assert suspect_refs(verified) == [("valid_against", "CAD-BRACKET@2")]
    with verified.view() as view:
        assert "was rejected and never became part of the design" in suspects(view)[0].why


def test_a_review_of_a_revision_that_does_not_exist_is_refused(verified):
    verified.part(0.3)
    with verified.view() as view:
        link = suspects(view)[0].link
    with pytest.raises(ToolError, match="not between"), verified.change() as change:
        change.review(link.link_id, 7)

"""Requirement values have one home; judging nothing is no pass; a revision of a need leaves its requirements behind."""

from dataclasses import replace
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("project_id")

MASS = {"name": "max mass", "metric": "mass", "operator": "<=", "limit": 150, "unit": "g"}
STRENGTH = {"name": "strength", "expression": "1.5 * max_von_mises <= 205 MPa"}


async def test_a_set_is_recorded_with_refs_for_each_requirement(bench: Any) -> None:
    need = await bench.do(
        "twin.record_engineering_entity", entity_type="stakeholder_need", title="Light", statement="x"
    )
    made = await bench.do(
        "twin.record_constraint_set", title="Bracket", constraints=[{**MASS, "parent_refs": ["NEED-LIGHT"]}, STRENGTH]
    )
    assert made["item_ref"] == "CS-BRACKET@1"
    assert made["constraint_ids"] == ["CS-BRACKET@1#max mass", "CS-BRACKET@1#strength"]
    assert made["constraint_parents"] == {"max mass": [need["item_ref"]]}
    assert {row["name"] for row in made["incomplete"]} == {"max mass", "strength"}


@pytest.mark.parametrize(
    ("constraint", "kind"),
    [
        ({**MASS, "unit": "Mpa"}, "unknown_unit"),
        ({"name": "x", "expression": "__import__('os').system('touch /tmp/x')"}, "bad_expression"),
        ({**MASS, "parent_refs": ["NEED-NOTHING"]}, "unknown_item"),
        ({**MASS, "applies_to": ["CAD-NOTHING"]}, "unknown_item"),
    ],
)
async def test_one_bad_requirement_fails_the_set_with_nothing_written(
    bench: Any, constraint: dict[str, Any], kind: str
) -> None:
    refusal = await bench.refused("twin.record_constraint_set", title="Bracket", constraints=[STRENGTH, constraint])
    assert refusal.kind == kind


async def test_a_limit_of_another_kind_than_its_metric_is_told_when_it_is_recorded_and_never_passes(bench: Any) -> None:
    await bench.commit()
    wrong = {**MASS, "unit": "mm"}
    made = await bench.do("twin.record_constraint_set", title="Bracket", constraints=[wrong])
    (told,) = [each for each in made["warnings"] if "no value can pass it" in each]
    assert told.startswith("max mass: mass is measured in kg (mass) in CAD-BRACKET@1, its limit 150 is in mm (length)")
    judged = await bench.do("constraint.validate", work_product_ids=["CAD-BRACKET"])
    assert (judged["passed"], judged["evaluated_count"]) == (False, 0)
    await bench.do(
        "twin.record_evidence", evidence_type="test", result={"mass_kg": 0.1}, producer={"tool": "scale"},
        supports=["CS-BRACKET#max mass"], valid_against=[{"ref": "CAD-BRACKET"}],
    )  # fmt: skip
    matrix = await bench.do("twin.trace_matrix")
    assert matrix["status_counts"]["pass"] == 0
    right = await bench.do("twin.record_constraint_set", title="Bracket", constraints=[MASS])
    assert not any("no value can pass it" in each for each in right["warnings"])


async def test_one_requirement_is_not_said_as_several(bench: Any) -> None:
    said = [(await bench.outcome("twin.record_constraint_set", title="B", constraints=some)).summary
            for some in ([MASS], [MASS, STRENGTH])]  # fmt: skip
    assert said == ["CS-B@1: 1 requirement recorded.", "CS-B@2: 2 requirements recorded."]


async def test_validating_nothing_is_no_pass(bench: Any) -> None:
    nothing = await bench.do("constraint.validate", work_product_ids=[])
    assert (nothing["passed"], nothing["verdict"]) == (False, "nothing_evaluated")
    assert "no pass" in nothing["warnings"][0]
    await bench.commit()
    unruled = await bench.do("constraint.validate", work_product_ids=["CAD-BRACKET"])
    assert (unruled["passed"], unruled["evaluated_count"]) == (False, 0)
    await bench.do("twin.record_constraint_set", title="Bracket", constraints=[STRENGTH])
    unknown = await bench.do("constraint.validate", work_product_ids=["CAD-BRACKET"])
    assert (unknown["passed"], unknown["skipped_count"]) == (False, 1)
    assert "max_von_mises" in unknown["not_evaluated"][0]["reason"]


async def test_a_measured_part_meets_or_violates_a_limit_whatever_its_unit(bench: Any) -> None:
    await bench.do("twin.record_constraint_set", title="Bracket", constraints=[MASS])
    await bench.commit()
    met = await bench.do("constraint.validate", work_product_ids=["CAD-BRACKET"])
    assert (met["passed"], met["verdict"]) == (True, "pass")
    await bench.do("twin.record_constraint_set", title="Bracket", constraints=[{**MASS, "limit": 0.1, "unit": "kg"}])
    broken = await bench.do("constraint.validate", work_product_ids=["CAD-BRACKET"])
    (violation,) = broken["violations"]
    assert broken["passed"] is False
    assert (violation["constraint"], violation["work_product"]) == ("CS-BRACKET@2#max mass", "CAD-BRACKET@1")
    assert (violation["actual"], violation["limit"], violation["unit"]) == (pytest.approx(0.12), 0.1, "kg")
    assert violation["margin_ratio"] == pytest.approx(-0.2)


async def test_a_warning_does_not_fail_the_design(bench: Any) -> None:
    await bench.do("twin.record_constraint_set", title="B", constraints=[{**MASS, "limit": 1, "severity": "warning"}])
    await bench.commit()
    found = await bench.do("constraint.validate", work_product_ids=["CAD-BRACKET"])
    assert (found["passed"], len(found["warnings_found"])) == (True, 1)


async def test_a_requirement_may_name_what_it_applies_to(bench: Any) -> None:
    await bench.commit()
    await bench.commit(name="Base", text="base")
    await bench.do(
        "twin.record_constraint_set", title="B", constraints=[{**MASS, "limit": 1, "applies_to": ["CAD-BASE@1"]}]
    )
    found = await bench.do("twin.constraint_violations")
    assert [row["work_product"] for row in found["violations"]] == ["CAD-BASE@1"]


async def test_components_and_the_bill_are_judged_where_a_requirement_is_about_them(bench: Any) -> None:
    await bench.do(
        "twin.record_constraint_set", title="Cost",
        constraints=[{"name": "bom cost", "metric": "cost", "operator": "<=", "limit": 5, "unit": "USD",
                      "target_node_type": "bom"}],
    )  # fmt: skip
    first = await bench.do(
        "twin.record_component_selection", mpn="A1", manufacturer="M", category="mcu", role="MCU", unit_cost_usd=3
    )
    assert first["bom_ref"] == "BOM-BILL-OF-MATERIALS@1"
    assert (await bench.do("twin.constraint_violations"))["verdict"] == "pass"
    second = await bench.do(
        "twin.record_component_selection", mpn="B2", manufacturer="M", category="ldo", unit_cost_usd=2, quantity=2
    )
    assert second["bom_ref"] == "BOM-BILL-OF-MATERIALS@2"
    found = await bench.do("twin.constraint_violations")
    assert found["violations"][0]["actual"] == 7


async def test_a_revised_need_makes_the_requirements_that_answer_it_suspect(bench: Any) -> None:
    entity = {"entity_type": "stakeholder_need", "title": "Light"}
    await bench.do("twin.record_engineering_entity", statement="x", **entity)
    await bench.do("twin.record_constraint_set", title="B", constraints=[{**MASS, "parent_refs": ["NEED-LIGHT"]}])
    revised = await bench.do("twin.record_engineering_entity", statement="y", **entity)
    assert [row["ref"] for row in revised["suspect"]] == ["CS-B@1"]
    assert "NEED-LIGHT@2" in revised["suspect"][0]["why"]


async def test_without_a_project_there_is_nothing_to_judge(bench: Any) -> None:
    other = bench.another("session-2")
    refusal = await other.refused("twin.constraint_violations")
    assert refusal.kind == "no_project"
    refusal = await bench.refused("twin.constraint_violations", branch="dev")
    assert refusal.kind == "unknown_branch"


async def test_the_worst_of_several_pieces_of_evidence_counts_until_it_is_replaced(bench: Any) -> None:
    await bench.do("twin.record_constraint_set", title="B", constraints=[STRENGTH])
    await bench.commit()
    test = {"evidence_type": "test", "producer": {"tool": "press"}, "valid_against": [{"ref": "CAD-BRACKET"}]}
    await bench.do("twin.record_evidence", result={"max_von_mises_mpa": 100}, **test)
    bad = await bench.do("twin.record_evidence", result={"max_von_mises_mpa": 150}, **test)
    assert (await bench.do("twin.constraint_violations"))["verdict"] == "fail"
    await bench.do("twin.record_evidence", result={"max_von_mises_mpa": 120}, supersedes=bad["node_id"], **test)
    assert (await bench.do("twin.constraint_violations"))["verdict"] == "pass"
    bench.scale.answer = replace(bench.scale.answer)
    await bench.commit(text="thin")
    assert (await bench.do("twin.constraint_violations"))["verdict"] == "nothing_evaluated", "evidence was for @1"

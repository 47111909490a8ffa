"""However many parts there are, all are judged, and what is told of them stays short."""

import pytest
from bracket_design import FINISH, MASS, Design

from metaforge.twin.evaluation import KEPT_COUNT, evaluate, products_of
from metaforge.twin.matrix import MAX_VERIFICATIONS, matrix
from metaforge.twin.requirements import current_sets

PARTS = 450


def many(design: Design, *, heavy: set[int], evidence: bool = False) -> None:
    design.requirements(MASS, FINISH)
    with design.change() as change:
        for number in range(PARTS):
            measured = {"mass_kg": 0.5 if number in heavy else 0.3}
            part = change.define("cad_model", f"Part {number}", {"measured": measured}, item_key=f"CAD-P{number}")
            if evidence:
                proof = change.record("evidence", {"result": {"mass_kg": 0.3}}, name="weighed")
                change.link("valid_against", proof, part)
                change.link("supports", proof, "CS-BRACKET", {"requirement": "mass"})


@pytest.mark.parametrize("which", [0, 399, 400, 449])
def test_one_part_that_violates_a_limit_is_found_among_hundreds(design: Design, which: int) -> None:
    many(design, heavy={which})
    with design.view() as view:
        found = evaluate(view, products_of(view), current_sets(view))
        row = next(row for row in matrix(view).rows if row.name == "mass")
    assert [each.work_product for each in found.violations] == [f"CAD-P{which}@1"]
    assert (found.evaluated_count, found.violation_count, found.verdict) == (PARTS, 1, "fail")
    assert (row.status, row.open_on, row.open_count, row.judged_count) == ("fail", (f"CAD-P{which}@1",), 1, PARTS)


def test_many_violations_are_counted_and_the_first_are_listed(design: Design) -> None:
    many(design, heavy=set(range(PARTS)))
    with design.view() as view:
        found = evaluate(view, products_of(view), current_sets(view))
    assert (found.violation_count, len(found.violations)) == (PARTS, KEPT_COUNT)
    assert "450 violated" in found.summary()
    assert f"violated on 450 work products: the first {KEPT_COUNT} are listed" in " ".join(found.caveats())


def test_what_does_not_pass_comes_first_where_not_all_verifications_are_told(design: Design) -> None:
    many(design, heavy={440}, evidence=True)
    with design.view() as view:
        row = next(row for row in matrix(view).rows if row.name == "mass")
    told = row.as_json()
    assert len(told["verifications"]) == MAX_VERIFICATIONS
    assert (told["verifications"][0]["says"], told["judged_count"], told["open_count"]) == ("fail", PARTS, 1)


def test_two_revisions_of_a_part_are_judged_each_by_its_own_evidence(design: Design) -> None:
    design.requirements(MASS)
    first = design.part(0.3)
    design.evidence({"mass_kg": 0.45})
    second = design.part(0.35)
    with design.view() as view:
        found = evaluate(view, [first, second], current_sets(view))
    assert [each.work_product for each in found.violations] == ["CAD-BRACKET@1"]
    assert found.evaluated_count == 2

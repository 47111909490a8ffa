"""Requirements are checked when they are written and judged by numbers whose units are known."""

from typing import Any

import pytest

from metaforge.core.errors import ToolError
from metaforge.twin.expressions import Undetermined
from metaforge.twin.judging import judge
from metaforge.twin.metrics import Metrics, value_in
from metaforge.twin.requirements import checked, words

MEASURED = {
    "mass_kg": 0.12,
    "volume_mm3": 15000.0,
    "bounding_box_mm": {"min_mm": [0, 0, 0], "size_mm": [50.0, 30.0, 10.0]},
    "is_valid": True,
}
FEA = {
    "max_von_mises_mpa": {"rib": 80.0, "base": 120.0},
    "min_gap_mm": {"a": 0.2, "b": 0.1},
    "tip": {"value": 2, "unit": "cm"},
}


def sources() -> list[Metrics]:
    return [Metrics(MEASURED, "CAD-X@1"), Metrics(FEA, "evidence")]


@pytest.mark.parametrize(
    ("entry", "status", "actual"),
    [
        ({"metric": "mass", "operator": "<=", "limit": 150, "unit": "g"}, "pass", 120),
        ({"metric": "mass_kg", "operator": "<=", "limit": 0.1}, "fail", 0.12),
        ({"metric": "mass_kg", "operator": "<=", "limit": 119, "unit": "g"}, "fail", 120),
        ({"metric": "size_x", "operator": "<=", "limit": 5, "unit": "cm"}, "pass", 5),
        ({"metric": "bounding_box.size_z", "operator": ">=", "limit": 11, "unit": "mm"}, "fail", 10),
        ({"metric": "max_von_mises", "operator": "<", "limit": 100, "unit": "MPa"}, "fail", 120),
        ({"metric": "max_von_mises.rib", "operator": "<", "limit": 100, "unit": "MPa"}, "pass", 80),
        ({"metric": "min_gap", "operator": ">=", "limit": 0.15, "unit": "mm"}, "fail", 0.1),
        ({"metric": "tip", "operator": "<=", "limit": 20, "unit": "mm"}, "pass", 20),
        ({"metric": "mass", "operator": "<=", "limit": 5, "unit": "mm"}, "no_data", None),
        ({"metric": "colour", "operator": "<=", "limit": 5, "unit": "mm"}, "no_data", None),
        ({"acceptance_criteria": "looks nice"}, "no_data", None),
    ],
)
def test_a_limit_is_judged_in_its_own_unit(entry: dict[str, Any], status: str, actual: float | None) -> None:
    judged = judge({"name": "x", **entry}, sources())
    assert judged.status == status
    assert judged.actual == (None if actual is None else pytest.approx(actual))


def test_the_margin_is_a_share_of_the_limit_and_negative_where_violated() -> None:
    met = judge({"metric": "mass", "operator": "<=", "limit": 150, "unit": "g"}, sources())
    assert met.margin_ratio == pytest.approx(0.2)
    broken = judge({"metric": "mass", "operator": "<=", "limit": 100, "unit": "g"}, sources())
    assert broken.margin_ratio == pytest.approx(-0.2)


def test_an_expression_may_speak_of_several_sources() -> None:
    judged = judge({"expression": "mass * max_von_mises <= 15 kg*MPa"}, sources())
    assert judged.status == "pass"
    assert "mass of CAD-X@1" in judged.reason
    assert "max_von_mises of evidence" in judged.reason


def test_a_name_that_two_numbers_have_is_not_guessed() -> None:
    metrics = Metrics({"bare": {"mass_g": 3.0}, "packed": {"mass_g": 5.0}}, "evidence")
    with pytest.raises(Undetermined, match=r"bare.mass_g, packed.mass_g"):
        value_in([metrics], "mass")
    assert value_in([metrics], "bare.mass")[0].value == pytest.approx(0.003)


@pytest.mark.parametrize(
    ("entry", "kind", "said"),
    [
        ({"name": "a", "metric": "mass", "operator": "<="}, "bad_constraint", "no limit"),
        ({"name": "a", "metric": "mass", "expression": "mass < 1 g"}, "bad_constraint", "an expression and metric"),
        ({"name": "a", "expression": "__import__('os')"}, "bad_expression", "not in the language"),
        ({"name": "a", "expression": "mass"}, "bad_expression", "no condition"),
        ({"name": "a", "metric": "mass", "operator": "<=", "limit": 1, "unit": "Mpa"}, "unknown_unit", "no unit"),
        ({"name": "a", "metric": "mass_kg", "operator": "<=", "limit": 1, "unit": "mm"}, "bad_constraint", "in kg"),
        ({"name": " "}, "bad_constraint", "the name"),
        ({"name": "a#b"}, "bad_constraint", "the name"),
    ],
)
def test_a_bad_requirement_is_refused_by_number_and_name(entry: dict[str, Any], kind: str, said: str) -> None:
    good = {"name": "good", "metric": "mass", "operator": "<=", "limit": 1, "unit": "g"}
    with pytest.raises(ToolError, match=said) as refusal:
        checked([good, entry])
    assert refusal.value.kind == kind
    assert "constraints[1]" in refusal.value.message + refusal.value.where


def test_two_requirements_of_one_name_are_refused() -> None:
    with pytest.raises(ToolError, match="second requirement"):
        checked([{"name": "a", "expression": "mass < 1 g"}, {"name": "a", "expression": "mass < 2 g"}])


def test_what_is_missing_is_listed_by_name() -> None:
    kept, incomplete = checked(
        [
            {"name": "full", "expression": "mass < 1 g", "acceptance_criteria": "a", "verification_method": "b",
             "expected_evidence": "c"},
            {"name": "bare", "metric": "mass", "operator": "≤", "limit": 1},
            {"name": "text", "acceptance_criteria": "is blue"},
        ]
    )  # fmt: skip
    assert incomplete == [
        {"name": "bare", "missing": ["unit", "acceptance_criteria", "verification_method", "expected_evidence"]},
        {
            "name": "text",
            "missing": ["metric, operator, limit or expression", "verification_method", "expected_evidence"],
        },
    ]
    assert [words(each) for each in kept] == ["mass < 1 g", "mass <= 1", "is blue"]

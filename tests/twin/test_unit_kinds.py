"""A limit of another kind than its metric is told: no value will ever pass it."""

import pytest

from metaforge.twin.judging import judge
from metaforge.twin.metrics import Metrics
from metaforge.twin.requirements import checked
from metaforge.twin.unit_kinds import wrong_kinds

PART = Metrics({"mass_kg": 0.12, "wall": {"value": 3, "unit": "mm"}, "gap_mm": 0.0}, "CAD-X@1")


def told(metric: str = "", limit: float = 15, unit: str = "", expression: str = "", part: Metrics | None = None) -> str:
    entry = {"expression": expression} if expression else {"metric": metric, "operator": "<=", "limit": limit}
    kept, _ = checked([{"name": "light", **entry, **({"unit": unit} if unit else {})}])
    return " ".join(wrong_kinds(kept, [part] if part else []))


@pytest.mark.parametrize(
    ("metric", "unit", "both"),
    [
        ("mass", "mm", ("in kg (mass)", "in mm (length)", "Give the limit in kg")),
        ("total_mass", "N", ("in kg (mass)", "in N (")),
        ("max_von_mises", "g", ("in MPa", "in g (mass)")),
        ("size_x", "kg", ("in mm (length)", "in kg (mass)")),
        ("tip_displacement_z", "MPa", ("in mm (length)", "in MPa")),
        ("first_frequency", "degC", ("in Hz or rpm", "in degC")),
        ("mass", "", ("in kg (mass)", "without a unit")),
    ],
)
def test_a_name_tells_what_is_measured(metric: str, unit: str, both: tuple[str, ...]) -> None:
    found = told(metric, unit=unit)
    assert found.startswith(f"light: {metric} ")
    assert all(each in found for each in both)


@pytest.mark.parametrize(
    ("metric", "unit"),
    [
        ("mass", "g"), ("mass", "lb"), ("weight", "N"), ("weight", "g"), ("size_x", "inch"), ("bulk", "g"),
        ("unit_cost", "EUR"), ("colour_index", "mm"), ("strength", "kV/mm"), ("temperature", "K"),
        ("max_von_mises", "N/mm^2"), ("safety_factor", ""),
    ],
)  # fmt: skip
def test_what_can_pass_and_what_nobody_knows_is_not_doubted(metric: str, unit: str) -> None:
    assert told(metric, unit=unit) == ""


def test_values_that_there_are_tell_more_than_names() -> None:
    assert "measured in mm (length) in CAD-X@1" in told("wall", unit="g", part=PART)
    assert told("wall", unit="cm", part=PART) == ""
    assert told("wall", unit="g") == ""


@pytest.mark.parametrize(
    ("expression", "part", "said"),
    [
        ("mass <= 15 mm", None, "mass is measured in kg (mass)"),
        ("wall >= 2 g", PART, "wall is measured in mm (length) of CAD-X@1"),
        ("max_von_mises <= 250 MPa and mass <= 15 mm", None, "mass"),
        ("not (mass > 3 mm)", None, "mass"),
        ("1 <= mass <= 2 kg", None, "no unit cannot be compared with mass"),
        ("mass + 3 mm <= 2 kg", None, "cannot be added"),
        ("mass_kg <= 2 kg", PART, "no unit"),
        ("gap <= 1 g", PART, "length cannot be compared with mass"),
        ("2 g <= 3 mm", None, "mass cannot be compared with length"),
    ],
)
def test_each_comparison_of_an_expression_is_checked(expression: str, part: Metrics | None, said: str) -> None:
    found = told(expression=expression, part=part)
    assert said in found
    assert "no value can pass it" in found


@pytest.mark.parametrize(
    "expression",
    ["mass <= 15 g", "1.5 * max_von_mises <= 250 MPa", "unheard / 3 <= 5 mm", "sqrt(area) <= 3 mm", "mass_kg <= 2",
     "weight <= 3 N", "mass * 9.81 m/s^2 <= 3 N"],
)  # fmt: skip
def test_an_expression_that_can_hold_is_not_doubted(expression: str) -> None:
    assert told(expression=expression) == ""
    assert told(expression=expression, part=PART) == ""


@pytest.mark.parametrize("operator", ["<=", "<", ">=", ">", "==", "!="])
def test_a_limit_of_the_wrong_kind_is_never_passed(operator: str) -> None:
    entry = {"name": "light", "metric": "mass", "operator": operator, "limit": 15, "unit": "mm"}
    assert judge(entry, [PART]).status == "no_data"
    assert judge({"name": "light", "expression": f"mass {operator} 15 mm"}, [PART]).status == "no_data"

"""The guard on numbers alone."""

from dataclasses import replace

import pytest

from metaforge.core.errors import ToolError
from metaforge.engineering.solid_guard import Change, SolidFacts, check_change, check_solid, largest_that_works

CUBE = SolidFacts(1000.0, 600.0, 1, 1, 6, True, (0, 0, 0, 10, 10, 10))
NOTHING = SolidFacts(0.0, 0.0, 0, 0, 0, True, None)


def test_a_sound_solid_passes_without_a_word() -> None:
    assert check_solid(CUBE, "box") == []


@pytest.mark.parametrize(
    ("facts", "kind", "said"),
    [
        (NOTHING, "empty_result", "result is empty"),
        (replace(CUBE, solids_count=0), "no_solid", "has no solid"),
        (replace(CUBE, is_valid=False), "invalid_solid", "not a valid solid"),
        (replace(CUBE, volume_mm3=-1000.0), "invalid_solid", "inside out"),
    ],
)
def test_what_is_no_solid_is_refused_by_kind(facts: SolidFacts, kind: str, said: str) -> None:
    with pytest.raises(ToolError, match=said) as caught:
        check_solid(facts, "fillet")
    assert caught.value.kind == kind


def test_more_solids_than_expected_is_a_warning_with_both_numbers() -> None:
    two = replace(CUBE, solids_count=2)
    assert check_solid(two, "union") == ["union: solids_count=2, expected 1"]
    assert check_solid(two, "union", expected_solids_count=None) == []


@pytest.mark.parametrize("change", [Change.BLEND, Change.REMOVE])
def test_a_blend_or_cut_may_not_reach_outside_the_part(change: Change) -> None:
    grown = replace(CUBE, volume_mm3=900.0, bounds_mm=(0, 0, 0, 10, 10, 111))
    with pytest.raises(ToolError, match="reaches 101 mm outside"):
        check_change(CUBE, grown, change, "fillet")


def test_a_cut_that_removes_everything_is_told_so() -> None:
    with pytest.raises(ToolError, match="the cut removed all material"):
        check_change(CUBE, NOTHING, Change.REMOVE, "subtract")


def test_volume_must_move_the_right_way() -> None:
    smaller, larger = replace(CUBE, volume_mm3=900.0), replace(CUBE, volume_mm3=1100.0)
    with pytest.raises(ToolError, match="shrank by 100"):
        check_change(CUBE, smaller, Change.ADD, "union")
    with pytest.raises(ToolError, match="grew by 100"):
        check_change(CUBE, larger, Change.REMOVE, "subtract")
    assert check_change(CUBE, larger, Change.ADD, "union") == []
    assert check_change(CUBE, smaller, Change.REMOVE, "subtract") == []


def test_an_operation_that_changes_nothing_is_a_warning() -> None:
    assert "does not touch the part" in check_change(CUBE, CUBE, Change.REMOVE, "subtract")[0]


@pytest.mark.parametrize("limit", [4.99937, 0.01234, 777.7])
@pytest.mark.parametrize("likely", [0.0, 1.0, 0.3, 1.8])
def test_the_largest_that_works_is_found_from_below(limit: float, likely: float) -> None:
    tried = []

    def works(value: float) -> bool:
        tried.append(value)
        return value < limit

    found = largest_that_works(works, limit * 1.7, likely=likely * limit)
    assert limit * 0.98 < found < limit
    assert len(tried) <= 14


def test_a_good_guess_saves_tries() -> None:
    tried = []

    def works(value: float) -> bool:
        tried.append(value)
        return value < 5

    assert largest_that_works(works, 6.0, likely=5.0) == 4.99
    assert len(tried) <= 3


def test_nothing_that_works_is_zero() -> None:
    assert largest_that_works(lambda value: False, 3.0) == 0.0

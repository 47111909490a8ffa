"""Counts are said as people say them."""

import pytest

from metaforge.core.counts import counted


@pytest.mark.parametrize(
    ("count", "words", "said"),
    [
        (0, ("requirement",), "0 requirements"),
        (1, ("requirement",), "1 requirement"),
        (2, ("requirement",), "2 requirements"),
        (12000, ("row",), "12,000 rows"),
        (1, ("record rests", "records rest"), "1 record rests"),
        (3, ("record rests", "records rest"), "3 records rest"),
    ],
)
def test_one_thing_is_not_said_as_several(count: int, words: tuple[str, ...], said: str) -> None:
    assert counted(count, *words) == said

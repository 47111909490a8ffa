"""No limit that is claimed gives way to the probe that tries to break it."""

from collections.abc import Callable
from typing import Any

import pytest
from probe_table import COLUMNS, HELD, PAGE, PROBES, Column, Probe, expected, page


def test_the_page_says_what_the_table_claims() -> None:
    assert PAGE.read_text() == page(), "run `make probes ARGS=--write-page`"


@pytest.mark.slow
@pytest.mark.parametrize("column", COLUMNS, ids=[column.name for column in COLUMNS])
@pytest.mark.parametrize("probe", PROBES, ids=[probe.name for probe in PROBES])
def test_a_limit_holds_where_it_is_claimed(
    probe: Probe,
    column: Column,
    measured: Callable[[Column], dict[str, Any]],
    record_property: Callable[[str, object], None],
) -> None:
    result = measured(column)["results"][probe.name]
    record_property("told", result["told"])
    record_property("held", result["held"])
    if expected(probe, column) == HELD:
        assert result["held"], result["told"]

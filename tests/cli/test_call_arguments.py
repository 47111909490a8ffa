"""`metaforge call` turns what a person types into arguments."""

import pytest

from metaforge.cli.call import BadUsage, parse_arguments


@pytest.mark.parametrize(
    ("pairs", "arguments"),
    [
        (["width_mm=50"], {"width_mm": 50}),
        (["path=out/a.step"], {"path": "out/a.step"}),
        (["picture=true", "note="], {"picture": True, "note": ""}),
        (["force_n=[0,0,-1000]"], {"force_n": [0, 0, -1000]}),
        (["parameters.width=50", "parameters.height=10"], {"parameters": {"width": 50, "height": 10}}),
        (["script=result = 1"], {"script": "result = 1"}),
        (['name="50"'], {"name": "50"}),
    ],
)
def test_pairs_become_arguments(pairs, arguments):
    assert parse_arguments(pairs, {}) == arguments


def test_pairs_come_after_those_of_a_file():
    assert parse_arguments(["a=2"], {"a": 1, "b": 3}) == {"a": 2, "b": 3}


@pytest.mark.parametrize("pair", ["width", "=5", ""])
def test_a_pair_without_a_name_or_value_is_told(pair):
    with pytest.raises(BadUsage, match="KEY=VALUE"):
        parse_arguments([pair], {})


def test_a_key_cannot_go_through_a_number():
    with pytest.raises(BadUsage, match="already has the value 5"):
        parse_arguments(["a=5", "a.b=1"], {})

from collections.abc import Callable

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaforge.record.call_record import MAX_ARGUMENTS_BYTES, CallRecord
from metaforge.tools.context import Artefact, Caller, Trust

Make = Callable[..., CallRecord]
STEP = Artefact("out/bracket.step", "/w/out/bracket.step", "a" * 64, 1234, "model/step", "geometry")


def test_a_record_comes_back_as_it_was_written(make: Make) -> None:
    record = make(
        adapter_id="cadquery",
        adapter_version="0.1.0",
        error_kind="fillet_too_large",
        error_message="radius 6 mm exceeds the limit, 4.99 mm",
        arguments={"parameters": {"width_mm": 50.5, "names": ["a", "é \u2028"], "none": None}},
        inputs=(Artefact("in.step", "/w/in.step", "b" * 64, 9, "model/step"),),
        artefacts=(STEP,),
        programs={"cadquery": "2.6.0"},
        warnings=("the peak touches a support",),
        summary="Box, 15000 mm3",
        caller=Caller("anna", Trust.REMOTE, "claude-code", "2.1.332", "f" * 32),
        project_id="P",
        run_id="R",
        trace_id="c" * 32,
    )
    assert CallRecord.parse(record.line()) == record


def test_a_record_is_one_line_whatever_is_in_it(make: Make) -> None:
    assert b"\n" not in make(summary="two\nlines", arguments={"code": "a = 1\nb = 2\r\n"}).line()


def test_secrets_in_arguments_and_errors_are_not_written(make: Make) -> None:
    line = make(
        arguments={"api_key": "k-1", "nested": [{"Password": "k-2"}], "url": "postgresql://u:k-3@host/db"},
        error_message="cannot reach https://u:k-4@host",
    ).line()
    assert b"k-" not in line
    assert orjson.loads(line)["arguments"] == {
        "api_key": "[redacted]",
        "nested": [{"Password": "[redacted]"}],
        "url": "postgresql://u:[redacted]@host/db",
    }


def test_a_long_script_is_cut_and_the_other_arguments_stay(make: Make) -> None:
    code = "x = 1\n" * 50_000
    arguments = orjson.loads(make(arguments={"code": code, "output_path": "out/a.step"}).line())["arguments"]
    assert arguments["output_path"] == "out/a.step"
    assert arguments["code"].startswith("x = 1\n")
    assert arguments["code"].endswith("... [300000 characters]")
    assert "arguments of" in arguments["_cut"]
    assert "SHA-256" in arguments["_cut"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"rows": list(range(100_000))},
        {f"name{i}": "v" for i in range(20_000)},
        [{"a": "x" * 500}] * 2000,
        "x" * 1_000_000,
    ],
)
def test_arguments_of_any_shape_stay_within_the_limit(make: Make, arguments: object) -> None:
    line = make(arguments=arguments).line()
    assert len(line) < MAX_ARGUMENTS_BYTES + 1000
    assert "_cut" in orjson.loads(line)["arguments"]


def test_text_from_clients_is_bounded(make: Make) -> None:
    huge = "n" * 1_000_000
    caller = Caller(huge, Trust.UNTRUSTED, huge, huge, huge)
    record = make(tool_id=huge, caller=caller, trace_id=huge, error_kind=huge, error_message=huge, summary=huge)
    assert len(record.line()) < 12_000


deep: object = "bottom"
for _ in range(500):
    deep = [deep]


@pytest.mark.parametrize(
    "odd", [{"n": 2**80}, {"s": "\ud800 alone"}, {1: "x"}, {"o": object()}, {"d": deep}, float("nan")]
)
def test_values_that_json_does_not_know_do_not_stop_a_record(make: Make, odd: object) -> None:
    assert CallRecord.parse(make(arguments=odd).line()).call_id == "0123456789abcdef"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_any_json_can_be_written_and_read(arguments: object) -> None:
    record = CallRecord("id", "t.x", "2026-01-01T00:00:00.000Z", 1.0, "ok", arguments=arguments)
    assert CallRecord.parse(CallRecord.parse(record.line()).line()) == CallRecord.parse(record.line())


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "{}", '{"call_id": "x"}', '{"call_id":"x","caller":{"trust":"king"}}']
)
def test_what_is_no_record_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"call record|JSON|king|unexpected|line"):
        CallRecord.parse(text)


def test_fields_of_a_later_version_are_ignored(make: Make) -> None:
    body = orjson.loads(make().line()) | {"colour": "red"}
    assert CallRecord.parse(orjson.dumps(body)) == make()

import pytest

from metaforge.telemetry.trace_context import parse, render, trace_id_of

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"00-{TRACE}-{SPAN}-01", (TRACE, SPAN, True)),
        (f"00-{TRACE}-{SPAN}-00", (TRACE, SPAN, False)),
        (f" 00-{TRACE.upper()}-{SPAN}-01 ", (TRACE, SPAN, True)),
        (f"01-{TRACE}-{SPAN}-03-more", (TRACE, SPAN, True)),
        (TRACE, (TRACE, "", True)),
        ("4bf92f35-77b3-4da6-a3ce-929d0e0e4736", (TRACE, "", True)),
    ],
)
def test_trace_contexts_and_bare_trace_ids_are_read(text: str, expected: tuple[str, str, bool]) -> None:
    assert parse(text) == expected
    assert trace_id_of(text) == TRACE


@pytest.mark.parametrize(
    "text",
    [
        "", "abc-123-def", f"ff-{TRACE}-{SPAN}-01", f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-01-more", f"00-{TRACE}-{SPAN}", "0" * 32, TRACE[:-1], "g" * 32,
    ],
)  # fmt: skip
def test_anything_else_is_the_callers_own_id_and_only_echoed(text: str) -> None:
    assert parse(text) is None
    assert trace_id_of(text) == text


def test_what_is_written_can_be_read() -> None:
    assert parse(render(TRACE, SPAN, recorded=True)) == (TRACE, SPAN, True)
    assert parse(render(TRACE, SPAN, recorded=False)) == (TRACE, SPAN, False)

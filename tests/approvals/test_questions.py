"""The question a person gets, and how replies are read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaforge.approvals.hold import Answered
from metaforge.approvals.questions import question, read_answer


def test_a_question_says_who_asks_for_what_and_by_when(make_request) -> None:
    text = question(make_request(arguments={"name": "Leg", "token": "abc", "n": 1}))
    assert '- name: "Leg"' in text
    assert '- token: "[redacted]"' in text
    assert "Answer within" in text


def test_more_than_eight_arguments_are_counted_and_named(make_request) -> None:
    text = question(make_request(arguments={f"a{n}": n for n in range(11)}))
    assert "- a7: 7" in text
    assert "- and 3 more: a8, a9, a10" in text


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=600), max_size=12))
def test_no_argument_can_add_a_line_or_hide_a_character(arguments) -> None:
    from metaforge.approvals.questions import _argument_lines

    lines = _argument_lines(arguments)
    for line in lines[1:]:
        assert line.startswith("- ")
        assert line.isprintable()
        assert len(line) < 1400


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ({"action": "accept", "content": {"approve": True, "note": "ok"}}, Answered("accept", True, "ok")),
        ({"action": "accept", "content": {"approve": 1}}, Answered("accept", None)),
        ({"action": "accept", "content": "yes"}, Answered("accept", None)),
        ({"action": "accept", "content": {"approve": True, "note": "x" * 500}}, Answered("accept", True, "x" * 280)),
        ({"action": "accept", "content": {"approve": True, "note": 5}}, Answered("accept", True)),
        ({"action": "decline"}, Answered("decline")),
        ({}, Answered("")),
    ],
)
def test_only_a_true_yes_is_one(reply, answer) -> None:
    assert read_answer(reply) == answer

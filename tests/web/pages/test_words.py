"""Values read as a person expects, and nothing on a page is invisible or turns what is around it."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from metaforge.web.pages import words

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("before", "told"),
    [(0.2, "now"), (12, "12 s ago"), (200, "3 min ago"), (7300, "2 h ago"), (90_000, "1 day ago"),
     (500_000, "5 days ago"), (5_000_000, "2026-01-02")],
)  # fmt: skip
def test_a_time_is_told_by_how_long_ago_it_was(before, told):
    assert words.ago((NOW - timedelta(seconds=before)).isoformat(), NOW) == told


def test_what_is_no_time_is_told_as_it_is():
    assert words.ago("soon", NOW) == "soon"
    assert words.moment("soon") == "soon"


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(-1, "0.0 s"), (0.42, "0.4 s"), (59, "59 s"), (100, "1 min 40 s"), (7500, "2 h 5 min"), (400_000, "4 days")],
)
def test_a_duration_has_one_or_two_units(seconds, told):
    assert words.duration(seconds) == told


def test_exact_arguments_stay_exact_and_show_what_would_not_be_seen():
    value = {"a\u202eb": "c\u200bd\x00\x7f", "n": 1.0, "emoji": "👩\u200d🔧", "wide": "\U000e0041"}
    shown = words.pretty(value)
    assert json.loads(shown) == value
    assert not set(shown) & set("\u202e\u200b\u200d\x00\x7f\U000e0041")
    assert "\\u202e" in shown


def test_names_keep_the_joiners_that_people_and_emoji_need():
    name = "👩\u200d🔧 \u0645\u06cc\u200c\u062e"
    assert words.seen(name) == name
    assert words.seen("a\u202eb\x07") == "a[U+202E]b[U+0007]"


def test_texts_of_several_lines_keep_their_lines():
    assert words.seen_block("a\r\nb\u2028c") == "a\nb[U+2028]c"


def test_long_texts_are_cut_in_lists_alone():
    assert words.short("word " * 100, 10) == "word word…"
    assert words.inline("x" * 300).endswith("… (300 characters)")


def test_numbers_and_flags_are_told_shortly():
    told = {name: text for name, text, _ in words.rows({"v": 18740.955350999113, "ok": True, "c": [1.0, None]})}
    assert told == {"v": "18740.96", "ok": "yes", "c": "1, null"}

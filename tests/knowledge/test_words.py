"""Words as they are looked up."""

import pytest

from metaforge.knowledge.words import Question, share_found, share_identified, terms_of


@pytest.mark.parametrize(
    ("text", "identifiers"),
    [
        ("the LM317T regulator", ("lm317t",)),
        ("M3x12 screws", ("m3x12",)),
        ("drawing AISI-304 or aisi304", ("aisi304",)),
        ("part 1234-567-89", ("123456789",)),
        ("40 V at 1.5A and 3.3V, 10 kΩ, 12mm", ()),
        ("version 2 of 1,500 parts", ()),
        ("USB cable", ()),
    ],
)
def test_identifiers_are_told_from_words_and_quantities(text: str, identifiers: tuple[str, ...]) -> None:
    assert Question(text).identifiers == identifiers


@pytest.mark.parametrize("text", ["40 V", "40V", "40  V", "a limit of 40V."])
def test_a_number_and_its_unit_are_one_word_however_they_are_written(text: str) -> None:
    assert {"40", "40v"} <= set(terms_of(text))


def test_a_decimal_comma_is_a_decimal_point() -> None:
    assert terms_of("1,5 mm") == terms_of("1.5 mm")
    assert "1500" in terms_of("1,500,000 and 1500")


def test_words_meet_in_their_stems_and_common_ones_are_left_out() -> None:
    assert terms_of("the failing bolts") == terms_of("failed bolt")
    assert terms_of("what is it about") == []


def test_a_longer_part_number_is_most_of_the_one_asked_for() -> None:
    named = set(terms_of("the LM317T regulator"))
    assert share_identified(Question("LM317T"), named) == 1
    assert share_identified(Question("LM317"), named) == 0.75
    assert share_identified(Question("LM337"), named) == 0


def test_rare_words_count_for_more() -> None:
    question = Question("regulator torque")
    weights = dict(zip(question.terms, (1.0, 3.0), strict=True))
    assert share_found(question, set(terms_of("torque")), weights) == pytest.approx(0.75)
    assert share_found(question, set(), weights) == 0

"""Documents are cut by their own structure, and never inside a sentence that fits."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metaforge.knowledge.blocks import Paragraph
from metaforge.knowledge.chunking import WORDS, chunk, count_words
from metaforge.knowledge.passages import join_row, split_row
from metaforge.knowledge.reading import passages_of_text
from metaforge.knowledge.sentences import sentences

SENTENCE = "The regulator number {} holds its output within two percent over the whole range of load."


def said(text):
    return [each for _, each in sentences(text)]


@pytest.mark.parametrize(
    "text",
    [
        "Use approx. 5 V here.",
        "See Fig. 3 and Table 2 for the limits.",
        "Parts, e.g. Resistors, are listed below.",
        "Torque is 1.2 Nm at max. 40 rpm.",
        "Version 2.1.3 is shipped with U. S. Plugs only.",
    ],
)
def test_an_abbreviation_or_a_decimal_ends_no_sentence(text):
    assert said(text) == [text]


def test_sentences_end_where_a_reader_would_end_them():
    assert said('It is hot. Is it? "Yes!" 3 V are enough. It takes 5 min. Then stop. The current is max. 5 A.') == [
        "It is hot.", "Is it?", '"Yes!"', "3 V are enough.", "It takes 5 min.", "Then stop.",
        "The current is max. 5 A.",
    ]  # fmt: skip


def test_sentences_without_blanks_between_them_end_too():
    assert said("输出电压为五伏。负载电流不得超过一安。") == ["输出电压为五伏。", "负载电流不得超过一安。"]


def test_no_passage_is_over_the_limit_and_no_sentence_is_torn():
    text = " ".join(SENTENCE.format(number) for number in range(40))
    passages = passages_of_text(text)
    assert len(passages) >= 6
    assert all(count_words(each.text) <= WORDS for each in passages)
    assert all(each.text.startswith("The regulator") and each.text.endswith("load.") for each in passages)
    assert " ".join(each.text for each in passages) == text


def test_a_long_paragraph_is_shared_out_evenly():
    text = " ".join(SENTENCE.format(number) for number in range(7))
    sizes = [len(each.text.split()) for each in passages_of_text(text)]
    assert len(sizes) == 2
    assert min(sizes) > 0.6 * max(sizes)


def test_where_a_paragraph_is_cut_the_sentence_before_is_context_and_not_quoted_again():
    text = " ".join(SENTENCE.format(number) for number in range(12))
    first, second, *_ = passages_of_text(text)
    assert first.context == ""
    assert second.context == re.split(r"(?<=\.) ", first.text)[-1]
    assert second.context not in second.text


def test_a_sentence_over_the_limit_is_cut_after_a_comma():
    clause = "the output of stage number {} is fed back through a divider of two resistors"
    text = ", ".join(clause.format(number) for number in range(20)) + "."
    passages = passages_of_text(text)
    assert len(passages) > 2
    assert all(count_words(each.text) <= WORDS for each in passages)
    assert all(each.text.endswith((",", ".")) for each in passages)
    assert "".join(each.text for each in passages).replace(" ", "") == text.replace(" ", "")


def test_headings_are_a_path_and_no_passage_crosses_one():
    passages = passages_of_text("# Power\n\nA supply.\n\n## Regulator\n\nIt regulates.\n\n# Motor\n\nIt turns.\n")
    assert [(each.heading, each.text, each.line) for each in passages] == [
        ("Power", "A supply.", 3), ("Power > Regulator", "It regulates.", 7), ("Motor", "It turns.", 11),
    ]  # fmt: skip


def test_a_heading_with_nothing_below_it_can_be_found():
    passages = passages_of_text("# Open points\n\n## Is the fan needed above 40 C?\n\n## Who pays?\n\nThe customer.\n")
    assert [(each.heading, each.text) for each in passages] == [
        ("Open points", "Is the fan needed above 40 C?"), ("Open points > Who pays?", "The customer."),
    ]  # fmt: skip


def test_each_row_of_a_table_is_a_passage_with_the_header_beside_it():
    text = "# Ratings\n\n| Part | Vmax (V) |\n|---|---|\n| LM317T | 40 |\n| LM7805 | 35 |\n\nAll at 25 C.\n"
    first, second, after = passages_of_text(text)
    assert (first.text, first.context, first.kind, first.heading) == (
        "LM317T | 40", "Part | Vmax (V)", "table_row", "Ratings",
    )  # fmt: skip
    assert (second.text, second.line) == ("LM7805 | 35", 6)
    assert (after.text, after.kind, after.line) == ("All at 25 C.", "prose", 8)


def test_a_row_too_wide_to_read_at_once_repeats_the_cell_that_names_it():
    header = ["Part", *(f"Property {number}" for number in range(60))]
    cells = ["LM317T", *(f"value {number} of this part" for number in range(60))]
    text = "\n".join([",".join(header), ",".join(cells)])
    passages = passages_of_text(text, "text/csv")
    assert len(passages) > 2
    told = {}
    for each in passages:
        names, values = split_row(each.context), split_row(each.text)
        assert values[0] == "LM317T"
        told |= dict(zip(names, values, strict=True))
    assert told == dict(zip(header, cells, strict=True))


def test_a_cell_that_holds_a_text_is_cut_between_sentences():
    story = " ".join(SENTENCE.format(number) for number in range(30))
    passages = passages_of_text(f'Id,Finding\nF-7,"{story}"\n', "text/csv")
    assert len(passages) > 3
    assert all(split_row(each.text)[0] == "F-7" and each.text.endswith("load.") for each in passages)


def test_an_item_of_a_list_keeps_what_introduces_the_list():
    items = "\n".join(f"- {SENTENCE.format(number)}" for number in range(14))
    passages = passages_of_text(f"Never combine these:\n\n{items}\n")
    assert len(passages) > 2
    assert all(each.context == "Never combine these:" for each in passages[1:])
    assert passages[-1].text.endswith(SENTENCE.format(13))


def test_code_keeps_its_lines():
    passages = passages_of_text("Run it:\n\n```sh\nmake all\n  make test\n```\n")
    assert passages[0].text == "Run it:\nmake all\n  make test"


def test_what_is_no_word_is_shortened():
    passage = passages_of_text("See ![](data:image/png;base64," + "iVBOR" * 5000 + ") and the pump.")[0]
    assert len(passage.text) < 400
    assert passage.text.endswith("and the pump.")


@given(st.lists(st.text(max_size=60), max_size=6))
def test_cells_come_back_as_they_were_but_for_blanks(cells):
    wanted = [" ".join(cell.split()) for cell in cells] or [""]
    if not any(cell.endswith("\\") or "\\|" in cell for cell in wanted):
        assert split_row(join_row(cells)) == wanted


@settings(deadline=None, max_examples=100)
@given(st.lists(st.text(alphabet="abC .!?\n1,;\u00e9\u3002\u4e2d", max_size=1200), max_size=4))
def test_no_letter_of_a_text_is_lost_moved_or_said_twice(texts):
    passages = list(chunk(Paragraph(text) for text in texts))
    assert "".join("".join(each.text.split()) for each in passages) == "".join("".join(each.split()) for each in texts)
    assert all(count_words(each.text) <= WORDS + 20 for each in passages)

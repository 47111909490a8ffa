"""The questions of the evaluation: what is asked, what answers it, and which half it belongs to."""

import hashlib
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
CORPUS = HERE / "corpus"
KINDS = ("paraphrase", "identifier", "numeric", "negative", "near_miss")
WITHOUT_ANSWER = ("negative", "near_miss")


@dataclass(frozen=True)
class Answer:
    """A section that answers a question; of a table, the row that holds `contains`."""

    source: str
    heading: str
    contains: str = ""

    @classmethod
    def parse(cls, text: str) -> "Answer":
        source, heading, *contains = text.split("#", 2)
        return cls(source, heading, *contains)

    def is_in(self, source: str, heading: str, text: str) -> bool:
        """Tell whether a passage of `source` under `heading` is this answer."""
        lowest = heading.rpartition(" > ")[2]
        return source == self.source and self.heading in (lowest, "") and self.contains in text


@dataclass(frozen=True)
class Question:
    id: str
    kind: str
    query: str
    answers: tuple[Answer, ...]


def read_questions(path: Path = HERE / "queries.toml") -> list[Question]:
    """Return all questions in the order of the file."""
    tables = tomllib.loads(path.read_text("utf-8"))
    return [
        Question(each["id"], kind, each["query"], tuple(map(Answer.parse, each.get("answers", ()))))
        for kind in KINDS
        for each in tables[kind]
    ]


def split(questions: Sequence[Question]) -> tuple[list[Question], list[Question]]:
    """Return the half that weights and thresholds may be chosen on, and the half that is held out.

    The rule was fixed before anything was measured and knows nothing but ids: within each kind the questions are put
    in the order of the SHA-256 of their id, and every second one is held out.
    """
    tuning: list[Question] = []
    held_out: list[Question] = []
    for kind in KINDS:
        shuffled = sorted(
            (each for each in questions if each.kind == kind),
            key=lambda each: hashlib.sha256(each.id.encode()).digest(),
        )
        tuning += shuffled[0::2]
        held_out += shuffled[1::2]
    return tuning, held_out

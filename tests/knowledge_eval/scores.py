"""What a search is worth: recall, rank and refusals, for each kind of question."""

from collections.abc import Sequence
from dataclasses import dataclass

from questions import KINDS, WITHOUT_ANSWER, Question

BOUNDS = {("paraphrase", "recall_at_3"): 0.9, ("identifier", "recall_at_3"): 1.0, ("negative", "refused"): 0.9}
"""What each half is held to. Numbers and near misses are told."""


@dataclass(frozen=True)
class Found:
    """One passage of an answer."""

    source: str
    heading: str
    text: str
    similarity: float


@dataclass(frozen=True)
class Asked:
    """A question, and what the library returned for it: nothing where it refused."""

    question: Question
    hits: tuple[Found, ...]

    @property
    def rank(self) -> int | None:
        """The place of the first passage that answers, counted from 1."""
        for place, hit in enumerate(self.hits, 1):
            if any(answer.is_in(hit.source, hit.heading, hit.text) for answer in self.question.answers):
                return place
        return None


@dataclass(frozen=True)
class Score:
    """One kind of question in one half."""

    kind: str
    count: int
    recall_at_1: float
    recall_at_3: float
    mrr: float
    refused: float
    """The share of questions that got no passage: right without an answer, wrong with one."""

    def misses(self) -> list[str]:
        """Name each bound this does not reach."""
        return [
            f"{kind}: {what} is {getattr(self, what):.2f}, bound {bound:.2f}"
            for (kind, what), bound in BOUNDS.items()
            if kind == self.kind and getattr(self, what) < bound
        ]


def score(asked: Sequence[Asked]) -> list[Score]:
    """Return a score for each kind that was asked."""
    found = []
    for kind in KINDS:
        ranks = [each.rank for each in asked if each.question.kind == kind]
        empty = [not each.hits for each in asked if each.question.kind == kind]
        if not ranks:
            continue
        count = len(ranks)
        found.append(
            Score(
                kind,
                count,
                sum(rank == 1 for rank in ranks) / count,
                sum(rank is not None and rank <= 3 for rank in ranks) / count,
                sum(1 / rank for rank in ranks if rank) / count,
                sum(empty) / count,
            )
        )
    return found


def table(half: str, scores: Sequence[Score]) -> str:
    """Return the lines that a person reads."""
    lines = [f"{half:<12} {'asked':>5} {'recall@1':>9} {'recall@3':>9} {'MRR':>6} {'refused':>8}"]
    for each in scores:
        ranks = f"{'-':>9} {'-':>9} {'-':>6}"
        if each.kind not in WITHOUT_ANSWER:
            ranks = f"{each.recall_at_1:>9.2f} {each.recall_at_3:>9.2f} {each.mrr:>6.2f}"
        verdict = "" if not each.misses() else "  MISSED"
        lines.append(f"{each.kind:<12} {each.count:>5} {ranks} {each.refused:>8.2f}{verdict}")
    return "\n".join(lines)

"""What a search is worth: recall, rank and refusals, for each kind of question."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import orjson
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
    ordered_at_3: float
    """Recall@3 if nothing were refused: what the order alone is worth."""
    refused: float
    """The share of questions that got no passage: right without an answer, wrong with one."""

    def misses(self) -> list[str]:
        """Name each bound this does not reach."""
        return [
            f"{kind}: {what} is {getattr(self, what):.2f}, bound {bound:.2f}"
            for (kind, what), bound in BOUNDS.items()
            if kind == self.kind and getattr(self, what) < bound
        ]


def score(asked: Sequence[Asked], ordered: Sequence[Asked]) -> list[Score]:
    """Return a score for each kind that was asked.

    Args:
        asked: the answers.
        ordered: answers to the same questions, nothing refused.
    """
    found = []
    for kind in KINDS:
        answers = [each for each in asked if each.question.kind == kind]
        if not answers:
            continue
        ranks = [each.rank for each in answers]
        found.append(
            Score(
                kind,
                len(ranks),
                _share_within(ranks, 1),
                _share_within(ranks, 3),
                sum(1 / rank for rank in ranks if rank) / len(ranks),
                _share_within([each.rank for each in ordered if each.question.kind == kind], 3),
                sum(not each.hits for each in answers) / len(ranks),
            )
        )
    return found


def _share_within(ranks: Sequence[int | None], most: int) -> float:
    return sum(rank is not None and rank <= most for rank in ranks) / len(ranks)


def table(half: str, scores: Sequence[Score]) -> str:
    """Return the lines that a person reads."""
    lines = [f"{half:<12} {'asked':>5} {'recall@1':>9} {'recall@3':>9} {'MRR':>6} {'ordered@3':>10} {'refused':>8}"]
    for each in scores:
        ranks = f"{'-':>9} {'-':>9} {'-':>6} {'-':>10}"
        if each.kind not in WITHOUT_ANSWER:
            ranks = f"{each.recall_at_1:>9.2f} {each.recall_at_3:>9.2f} {each.mrr:>6.2f} {each.ordered_at_3:>10.2f}"
        verdict = "  MISSED" if each.misses() else ""
        lines.append(f"{each.kind:<12} {each.count:>5} {ranks} {each.refused:>8.2f}{verdict}")
    return "\n".join(lines)


def report(halves: Mapping[str, Sequence[Score]], passage_count: int, missed: Sequence[str]) -> str:
    """Return the figures as one JSON object."""
    told = {half: [asdict(each) for each in scores] for half, scores in halves.items()}
    found = {"passage_count": passage_count, "halves": told, "missed": missed}
    return orjson.dumps(found, option=orjson.OPT_INDENT_2).decode()

"""Find the passages that answer a question: by meaning, by word and by part number, and say when none does."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metaforge.knowledge import rows
from metaforge.knowledge.model import Hit, Source, Stored
from metaforge.knowledge.vectors import Shelf
from metaforge.knowledge.words import LEAST_PREFIX, Question, share_found, share_identified, terms_of
from metaforge.store.transaction import Transaction

if TYPE_CHECKING:
    from metaforge.knowledge.embedder import Vectors


@dataclass(frozen=True)
class Weights:
    """How near a passage is to a question. Fusion only adds: words never make a passage less near.

    Chosen on the tuning half of the evaluation and its practice questions: `make eval`.
    """

    words: float = 0.10
    """What a passage gains that holds all of the question's words, on top of its cosine."""
    identified: float = 0.60
    """What one gains that names every part number of the question."""
    threshold: float = 0.385
    """Where even the nearest is less near, there is no answer."""
    slack: float = 0.10
    """What else comes with an answer may be this much less near than the threshold."""
    unknown_part: float = 0.20
    """How much nearer it must be where the question is about a part that nothing here names."""
    unknown_word: float = 0.04
    """How much nearer for each word of the question, up to three, that no passage has."""
    words_alone: float = 0.95
    """How near a passage without a vector is that holds all words."""
    threshold_words_alone: float = 0.45


WEIGHTS = Weights()
CANDIDATES = 48
"""By meaning, and as many by word."""
POINTERS = 3
"""How many passages are pointed at where none is near enough."""
_LARGE = 400
"""Passages of a library whose words are most of what its field uses."""
_LEAST_COMMON = 3001
_COMMON_PART = 20
"""A word that a twentieth of all passages have is a common one: it is not counted how common."""
_MOST_MATCHES = 3000
"""Words that more passages have than this are no use in finding them; they still count for what is found."""


@dataclass(frozen=True)
class Ranked:
    """What was found, the nearest first, and whether it was near enough."""

    near: list[Hit]
    nearest: list[Hit]
    """Those that came nearest, where none was near enough."""
    threshold: float


@dataclass(frozen=True)
class Asked:
    """A question, and where its answer may come from."""

    question: Question
    vector: "Vectors | None"
    allowed: Collection[str]
    """Sources."""
    scopes: Sequence[str]
    is_narrowed: bool
    """Whether `allowed` leaves out sources of the scopes."""


def rank(transaction: Transaction, shelf: Shelf, asked: Asked, top_k: int) -> Ranked:
    """Return the passages that are near enough to a question, the nearest first."""
    weights_of_words = _weights(transaction, shelf, asked)
    cosines = {} if asked.vector is None else shelf.nearest(asked.vector, asked.allowed, CANDIDATES)
    by_word = _having_words(transaction, shelf, asked)
    wanted = {*cosines, *by_word}
    if asked.vector is not None:
        cosines |= shelf.cosines_of(asked.vector, wanted - cosines.keys())
    hits: list[tuple[float, str, int, Hit]] = []
    is_named = False
    for stored, terms in rows.candidates(transaction, shelf.project_id, wanted):
        source = shelf.sources.get(stored.source_id)
        if source is None or source.source_id not in asked.allowed:
            continue
        similarity, named = _similarity(asked, terms, source, cosines.get(stored.passage_id), weights_of_words)
        is_named = is_named or named > 0
        hits.append((-round(similarity, 6), source.source_path, stored.ordinal, _hit(stored, source, similarity)))
    # Ties fall the same way on either database.
    hits.sort(key=lambda each: each[:3])
    found = [hit for *_, hit in hits]
    threshold = _threshold(transaction, shelf, asked, is_named)
    if found and found[0].similarity < threshold:
        return Ranked([], found[: min(top_k, POINTERS)], threshold)
    return Ranked([hit for hit in found if hit.similarity >= threshold - WEIGHTS.slack][:top_k], [], threshold)


def _threshold(transaction: Transaction, shelf: Shelf, asked: Asked, is_named: bool) -> float:
    """Return how near the nearest must be.

    Vectors of part numbers lie close together: what is said of one part would answer for another that nobody described.
    And a question with words that nothing here has is likelier about something that nothing here describes.
    """
    if asked.question.identifiers and not is_named:
        return _plain_threshold(asked) + WEIGHTS.unknown_part
    if asked.vector is None:
        return _plain_threshold(asked)
    unknown = sum(not _count(transaction, shelf, asked.scopes, term) for term in asked.question.terms)
    # In a small library a word that is missing says little.
    size = sum(each.passage_count for each in shelf.sources.values())
    return _plain_threshold(asked) + WEIGHTS.unknown_word * min(unknown, 3) * min(1.0, size / _LARGE)


def _plain_threshold(asked: Asked) -> float:
    return WEIGHTS.threshold_words_alone if asked.vector is None else WEIGHTS.threshold


def _similarity(
    asked: Asked, terms: Collection[str], source: Source, cosine: float | None, weights: Mapping[str, float]
) -> tuple[float, float]:
    """Return how near a passage is, and how many of the question's part numbers it names, 0 to 1."""
    named = share_identified(asked.question, terms)
    if not named and asked.question.identifiers:
        # A datasheet names its part once, in its name or title, and means it in every row.
        named = share_identified(asked.question, terms_of(f"{source.source_path} {_values(source.metadata)}"))
        named *= 0.5
    found = share_found(asked.question, terms, dict(weights))
    base = WEIGHTS.words_alone * found if cosine is None else cosine + WEIGHTS.words * found
    return max(0.0, min(1.0, base + WEIGHTS.identified * named)), named


def _values(metadata: Mapping[str, Any]) -> str:
    return " ".join(str(each) for each in metadata.values() if isinstance(each, str | int | float))


def _weights(transaction: Transaction, shelf: Shelf, asked: Asked) -> dict[str, float]:
    """Return how much each word of the question tells: one that half of all passages have tells little."""
    total = max(1, sum(each.passage_count for each in shelf.sources.values()))
    return {
        term: math.log(1 + total / (1 + _count(transaction, shelf, asked.scopes, term)))
        for term in asked.question.terms
    }


def _count(transaction: Transaction, shelf: Shelf, scopes: Sequence[str], term: str) -> int:
    key = (*scopes, term)
    if key not in shelf.counts:
        total = sum(each.passage_count for each in shelf.sources.values())
        most = max(_LEAST_COMMON, total // _COMMON_PART)
        shelf.counts[key] = rows.count_having(transaction, scopes, term, most)
    return shelf.counts[key]


def _having_words(transaction: Transaction, shelf: Shelf, asked: Asked) -> list[int]:
    """Return candidates by word: those that name its identifiers, then those with its rarest words."""
    question = asked.question
    limit = CANDIDATES * (4 if asked.is_narrowed else 1)
    prefixes = [each for each in question.identifiers if len(each) >= LEAST_PREFIX]
    found = rows.having(transaction, asked.scopes, question.identifiers, prefixes, limit)
    rare: list[str] = []
    matches = 0
    for term in sorted(question.terms, key=lambda each: (_count(transaction, shelf, asked.scopes, each), each)):
        matches += _count(transaction, shelf, asked.scopes, term)
        if matches > _MOST_MATCHES and (rare or asked.vector is not None):
            break
        rare.append(term)
    return list(dict.fromkeys([*found, *rows.having(transaction, asked.scopes, rare, [], limit)]))


def _hit(stored: Stored, source: Source, similarity: float) -> Hit:
    return Hit(
        text=stored.text, source_path=source.source_path, heading=stored.heading, page=stored.page, line=stored.line,
        similarity=round(similarity, 4), knowledge_type=source.knowledge_type, project_id=source.project_id,
        entry_id=stored.entry_id, source_id=source.source_id, revision=source.revision,
        is_historical=source.is_historical, context=stored.context, kind=stored.kind, metadata=source.metadata,
    )  # fmt: skip


def allowed_sources(
    every: Mapping[str, Source],
    knowledge_type: str | None,
    filters: Mapping[str, Any],
    *,
    include_historical: bool,
) -> list[str]:
    """Return the sources that a search may answer from.

    Args:
        filters: `source_path`, `source_work_product_id`, or names of metadata; a list means any of its values.
    """
    return [
        each.source_id
        for each in every.values()
        if (include_historical or not each.is_historical)
        and (knowledge_type is None or each.knowledge_type == knowledge_type)
        and all(_fits(each, name, value) for name, value in filters.items())
    ]


def unknown_filters(every: Mapping[str, Source], filters: Mapping[str, Any]) -> list[str]:
    """Return the names among filters that no source of a project has."""
    known = {name for each in every.values() for name in each.metadata} | set(_OWN)
    return [name for name in filters if name not in known]


_OWN: dict[str, Callable[[Source], Any]] = {
    "source_path": lambda each: each.source_path,
    "source_work_product_id": lambda each: each.work_product_id,
    "source_id": lambda each: each.source_id,
    "knowledge_type": lambda each: each.knowledge_type,
}


def _fits(source: Source, name: str, value: Any) -> bool:
    own = _OWN.get(name)
    has = own(source) if own else source.metadata.get(name)
    wanted = value if isinstance(value, list) else [value]
    return has in wanted or (isinstance(has, list) and any(each in wanted for each in has))

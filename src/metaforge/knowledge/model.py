"""What the library takes in and gives back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Mode = Literal["hybrid", "full_text"]

TYPES = ("component", "constraint", "design_decision", "failure", "session")
"""What a document can be about."""


@dataclass(frozen=True)
class Source:
    """One revision of a document."""

    source_id: str
    project_id: str
    source_path: str
    revision: int
    knowledge_type: str
    content_sha256: str
    digest: str
    metadata: Mapping[str, Any]
    work_product_id: str
    request_id: str
    passage_count: int
    author: str
    session_id: str
    created_at: str
    superseded_at: str = ""
    superseded_by: str = ""

    @property
    def is_historical(self) -> bool:
        return bool(self.superseded_at)


@dataclass(frozen=True)
class Stored:
    """A passage in the store."""

    passage_id: int
    source_id: str
    ordinal: int
    text: str
    heading: str
    page: int | None
    line: int | None
    kind: str
    context: str

    @property
    def entry_id(self) -> str:
        return entry_id(self.source_id, self.ordinal)


def entry_id(source_id: str, ordinal: int) -> str:
    """Return the id of a passage, by its number within its source, from 1."""
    return f"{source_id}.{ordinal}"


@dataclass(frozen=True)
class Ingested:
    """What became of a document."""

    source_id: str
    source_path: str
    revision: int
    chunks_indexed: int
    is_unchanged: bool = False
    """Whether it was there already, word for word, and nothing was written."""
    superseded: str = ""
    """The revision that searches found until now."""
    embedded_count: int = 0

    @property
    def entry_ids(self) -> list[str]:
        return [entry_id(self.source_id, number) for number in range(1, self.chunks_indexed + 1)]


@dataclass(frozen=True)
class Hit:
    """A passage that answers, and where it stands."""

    text: str
    source_path: str
    heading: str
    page: int | None
    line: int | None
    similarity: float
    """How near it is to the question, 0 to 1: what hits are ordered by, and what the threshold is for."""
    knowledge_type: str
    project_id: str
    entry_id: str
    source_id: str
    revision: int
    is_historical: bool
    context: str = ""
    kind: str = "prose"
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Nearest:
    """A passage that came nearest where none is near enough to be an answer: where to look, and no answer."""

    similarity: float
    threshold: float
    source_path: str
    heading: str = ""
    entry_id: str = ""


@dataclass(frozen=True)
class Found:
    """The answer to a question."""

    hits: list[Hit]
    mode: Mode
    query_ms: float
    pointers: tuple[Nearest, ...] = ()
    """The three that came nearest, where there are no hits."""
    passage_count: int = 0
    """How many passages were looked through."""
    notes: tuple[str, ...] = ()

    @property
    def nearest(self) -> Nearest | None:
        """The one that came nearest, where there are no hits."""
        return self.pointers[0] if self.pointers else None

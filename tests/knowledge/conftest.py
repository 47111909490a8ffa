"""Libraries on either database, with the real embedder or with one that is quick and simple."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from metaforge.knowledge.embedder import Embedder, find_embedder
from metaforge.knowledge.library import Library
from metaforge.knowledge.passages import Passage
from metaforge.store.database import Database


class SimpleEmbedder(Embedder):
    """Puts texts of the same words into the same place: each word is a direction of its own."""

    dim = 512

    def __init__(self, model_id: str = "simple") -> None:
        self.model_id = model_id  # type: ignore[misc]
        self.texts_count = 0

    def load(self) -> None:
        """Nothing to load."""

    def embed(self, texts: Sequence[str], *, progress: Callable[[int], None] | None = None) -> Any:
        import numpy as np

        made = np.zeros((len(texts), self.dim), np.float32)
        for row, text in zip(made, texts, strict=True):
            for word in text.lower().split():
                row[int(hashlib.sha256(word.encode()).hexdigest(), 16) % self.dim] += 1
            row /= max(float(np.linalg.norm(row)), 1e-9)
        self.texts_count += len(texts)
        if progress is not None:
            progress(len(texts))
        return made


@pytest.fixture(scope="session")
def real_embedder() -> Embedder:
    """The model that ships; tests that use it name its packages as programs."""
    found = find_embedder()
    if found is None:
        pytest.skip("the extra `knowledge` is not installed")
    return found


@pytest.fixture
def simple_embedder() -> type[SimpleEmbedder]:
    """What makes quick and simple embedders."""
    return SimpleEmbedder


@pytest.fixture
def database(database_url: str, tmp_path: Path) -> Iterator[Database]:
    made = Database(database_url, tmp_path / "home")
    (tmp_path / "home").mkdir()
    yield made
    made.close()


@pytest.fixture
def library(database: Database) -> Iterator[Library]:
    made = Library(database, SimpleEmbedder())
    yield made
    made.close()


@pytest.fixture
def passages() -> list[Passage]:
    """A few of each kind."""
    return [
        Passage("The twin has three layers: geometry, requirements, evidence.", "Architecture > Twin", line=3),
        Passage("The bolt sheared since its torque was set for a dry thread.", "Failures", line=9),
        Passage("LM317T | 37 | 1.5", "Regulators", 2, None, "table_row", "Part | Input voltage (V) | Current (A)"),
    ]


@pytest.fixture
def ingest(passages: list[Passage]) -> Callable[..., Any]:
    """Put passages into a library, by default those above."""

    def put(library: Library, path: str = "docs/a.md", those: Sequence[Passage] | None = None, **named: Any) -> Any:
        given = {"project_id": "p", "knowledge_type": "design_decision", **named}
        return library.ingest(source_path=path, passages=passages if those is None else those, **given)

    return put

"""A library that holds the corpus, and what it answers."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from questions import CORPUS, Question
from scores import Asked, Found

from metaforge.knowledge import search
from metaforge.knowledge.embedder import find_embedder
from metaforge.knowledge.library import Library
from metaforge.knowledge.reading import passages_of_text
from metaforge.store.database import Database

PROJECT = "evaluation"
TOP_K = 10
MEDIA = {".md": "text/markdown", ".csv": "text/csv"}
TYPES = {
    "field-failures": "failure",
    "production-failures": "failure",
    "tern-logger-decisions": "design_decision",
    "marlin-drive-decisions": "design_decision",
    "kestrel-stage-decisions": "design_decision",
    "requirements": "constraint",
    "metals": "constraint",
    "polymers-and-seals": "constraint",
    "assembly-notes": "constraint",
    "test-reports": "session",
}
"""What each document is about; the others are of components."""


def fill(library: Library) -> tuple[int, int]:
    """Put the corpus in, and return how many passages it has and how many of them are prose."""
    total = prose = 0
    for path in sorted(CORPUS.iterdir()):
        passages = passages_of_text(path.read_text("utf-8"), MEDIA[path.suffix], path.name)
        library.ingest(
            project_id=PROJECT,
            source_path=path.name,
            passages=passages,
            knowledge_type=TYPES.get(path.stem, "component"),
        )
        total += len(passages)
        prose += sum(each.kind == "prose" for each in passages)
    return total, prose


@contextmanager
def filled_library(*, database_url: str = "", has_embedder: bool = True) -> Iterator[tuple[Library, int, int]]:
    """Yield a library with the corpus in it, and its counts of passages and of prose.

    Args:
        database_url: Postgres, say; without one, SQLite in a folder that is removed.
        has_embedder: whether the installed embedder is used; without, it is words alone.
    """
    with tempfile.TemporaryDirectory() as temporary:
        database = Database(database_url, Path(temporary))
        library = Library(database, find_embedder() if has_embedder else None)
        try:
            yield library, *fill(library)
        finally:
            library.close()
            database.close()


def ask(library: Library, questions: Sequence[Question]) -> list[Asked]:
    """Ask everything, and return what came back."""
    return [
        Asked(
            each,
            tuple(
                Found(hit.source_path, hit.heading, hit.text, hit.similarity)
                for hit in library.search(project_id=PROJECT, query=each.query, top_k=TOP_K).hits
            ),
        )
        for each in questions
    ]


@contextmanager
def refusing_nothing() -> Iterator[None]:
    """Let searches return what is nearest, however far: what order alone is worth."""
    kept = search.WEIGHTS
    search.WEIGHTS = replace(kept, threshold=0.0, threshold_words_alone=0.0)
    try:
        yield
    finally:
        search.WEIGHTS = kept

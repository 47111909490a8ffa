"""The library: documents go in whole or not at all, and answers come out with where they stand."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from metaforge.core.clock import elapsed_ms, utc_now
from metaforge.core.errors import FailureMode, OverLimit, ToolError
from metaforge.core.ids import new_session_id, sha256_bytes
from metaforge.knowledge import rows
from metaforge.knowledge.embedder import INSTALL, Embedder, EmbedderUnavailable
from metaforge.knowledge.limits import MAX_PASSAGES
from metaforge.knowledge.model import TYPES, Found, Ingested, Mode, Nearest, Source, Stored
from metaforge.knowledge.passages import Passage
from metaforge.knowledge.search import Asked, Ranked, allowed_sources, rank, unknown_filters
from metaforge.knowledge.vectors import Shelves
from metaforge.knowledge.words import Question, indexed_text, terms_of
from metaforge.store.database import Database
from metaforge.store.transaction import Transaction
from metaforge.telemetry import logs, metrics

if TYPE_CHECKING:
    from metaforge.knowledge.embedder import Vectors

Progress = Callable[[int, int], None]
"""Told how many passages of how many are ready; what it raises ends the work before anything is written."""

MOST_HITS = 50
MOST_QUERY_CHARS = 4000
_STEP = 64
"""Passages embedded anew between two commits."""
_WORDS_ONLY = "Searched by words only, not by meaning"


def _no_progress(done: int, total: int) -> None:
    """Tell nobody."""


class Library:
    """What the documents of all projects say. Its methods block; several threads may use it.

    Args:
        database: the store.
        embedder: what finds by meaning; without it searches go by words.
    """

    def __init__(self, database: Database, embedder: Embedder | None) -> None:
        self.database = database
        self._embedder = embedder
        self._problem = "" if embedder else f"no embedder is installed: {INSTALL}"
        self._shelves = Shelves(embedder.model_id if embedder else "", embedder.dim if embedder else 0)
        self._closing = threading.Event()
        self._reembedding: threading.Thread | None = None

    @property
    def problem(self) -> str:
        """Why nothing is found by meaning, and what to do; empty where it is."""
        return self._problem

    def close(self) -> None:
        """End what runs in the background; it goes on where it was the next time."""
        self._closing.set()
        if self._reembedding is not None:
            self._reembedding.join()

    # -- putting in ----------------------------------------------------------------------------------------------

    def ingest(
        self,
        *,
        project_id: str,
        source_path: str,
        passages: Sequence[Passage],
        knowledge_type: str,
        content_sha256: str = "",
        metadata: Mapping[str, Any] | None = None,
        source_work_product_id: str = "",
        request_id: str = "",
        author: str = "",
        session_id: str = "",
        progress: Progress = _no_progress,
    ) -> Ingested:
        """Put a document in: on disk when this returns, or not at all.

        The same document again changes nothing; another one under the same path supersedes what was there, which is
        kept for history.

        Args:
            source_path: what it is called in answers.
            passages: the whole document.
            knowledge_type: one of `model.TYPES`.
            content_sha256: of the file that was read.

        Raises:
            ToolError: it has no passages or too many, or its type is unknown; nothing was written.
            StoreUnavailable: the store cannot be written.
        """
        _check(source_path, passages, knowledge_type)
        about = [knowledge_type, dict(metadata or {}), source_work_product_id]
        made = Source(
            source_id=f"k{new_session_id()[:19]}", project_id=project_id, source_path=source_path, revision=1,
            knowledge_type=knowledge_type, content_sha256=content_sha256, digest=_digest(passages, about),
            metadata=dict(metadata or {}), work_product_id=source_work_product_id, request_id=request_id,
            passage_count=len(passages), author=author, session_id=session_id, created_at=utc_now(),
        )  # fmt: skip
        with self.database.transaction(write=False) as transaction:
            old = rows.current(transaction, project_id, source_path)
        if old is not None and old.digest == made.digest:
            return _unchanged(old)
        vectors = self._vectors(passages, progress)
        words = [terms_of(indexed_text(each)) for each in passages]
        with self.database.transaction(write=True) as transaction:
            done = self._write(transaction, made, passages, words, vectors)
        metrics.passages_indexed(0 if done.is_unchanged else done.chunks_indexed)
        return done

    def _write(
        self,
        transaction: Transaction,
        made: Source,
        passages: Sequence[Passage],
        words: Sequence[Sequence[str]],
        vectors: "Vectors | None",
    ) -> Ingested:
        rows.count_change(transaction, made.project_id)
        old = rows.current(transaction, made.project_id, made.source_path)
        if old is not None and old.digest == made.digest:
            return _unchanged(old)  # another process was quicker
        if old is not None:
            rows.supersede(transaction, old, made.source_id, made.created_at)
            made = replace(made, revision=old.revision + 1)
        rows.insert_source(transaction, made)
        ids = rows.new_passage_ids(transaction, len(passages))
        for number, (passage_id, each, terms) in enumerate(zip(ids, passages, words, strict=True), 1):
            stored = Stored(
                passage_id, made.source_id, number, each.text, each.heading, each.page, each.line, each.kind,
                each.context,
            )  # fmt: skip
            rows.insert_passage(transaction, stored, made.project_id, terms)
            if vectors is not None:
                self._insert_vector(transaction, passage_id, made.project_id, vectors[number - 1])
        return Ingested(
            made.source_id, made.source_path, made.revision, len(passages), False, old.source_id if old else "",
            0 if vectors is None else len(passages),
        )  # fmt: skip

    def _insert_vector(self, transaction: Transaction, passage_id: int, project_id: str, vector: Any) -> None:
        assert self._embedder is not None
        transaction.run(
            "insert into knowledge_vectors (passage_id, project_id, model_id, dim, vector) values (?, ?, ?, ?, ?) "
            "on conflict (passage_id) do update set model_id = excluded.model_id, dim = excluded.dim, "
            "vector = excluded.vector",
            passage_id, project_id, self._embedder.model_id, self._embedder.dim, vector.astype("<f4").tobytes(),
        )  # fmt: skip

    def _vectors(self, passages: Sequence[Passage], progress: Progress) -> "Vectors | None":
        texts = [indexed_text(each) for each in passages]
        progress(0, len(texts))
        return self._embed(texts, lambda done: progress(done, len(texts)))

    def _embed(self, texts: Sequence[str], progress: Callable[[int], None] | None = None) -> "Vectors | None":
        if self._embedder is None:
            return None
        try:
            return self._embedder.embed(texts, progress=progress)
        except EmbedderUnavailable as fault:
            self._problem = str(fault)
            self._embedder = None
            logs.event("embedder_unavailable", "warning", problem=self._problem)
            return None

    # -- asking --------------------------------------------------------------------------------------------------

    def search(
        self,
        *,
        project_id: str,
        query: str,
        top_k: int = 5,
        knowledge_type: str | None = None,
        filters: Mapping[str, Any] | None = None,
        include_historical: bool = False,
    ) -> Found:
        """Return the passages of a project that answer a question, the nearest first.

        Args:
            top_k: how many at most.
            filters: see `search.allowed_sources`.
            include_historical: whether superseded revisions answer too.

        Raises:
            ToolError: the question is empty or longer than 4,000 characters.
        """
        started = time.perf_counter()
        if knowledge_type is not None and knowledge_type not in TYPES:
            raise _unknown_type(knowledge_type)
        question = Question(_checked(query))
        embedded = self._embed([question.text])
        mode: Mode = "full_text" if embedded is None else "hybrid"
        top_k = max(1, min(top_k, MOST_HITS))
        with self._shelves.lock, self.database.transaction(write=False) as transaction:
            shelf = self._shelves.of(transaction, project_id)
            allowed = allowed_sources(
                shelf.sources, knowledge_type, filters or {}, include_historical=include_historical
            )
            scopes = [rows.scope_of(project_id, is_current=True)]
            if include_historical:
                scopes.append(rows.scope_of(project_id, is_current=False))
            asked = Asked(
                question, None if embedded is None else embedded[0], frozenset(allowed), scopes,
                bool(knowledge_type or filters),
            )  # fmt: skip
            ranked = rank(transaction, shelf, asked, top_k) if allowed else Ranked([], [], 0.0)
            looked = sum(shelf.sources[each].passage_count for each in allowed)
            total = sum(each.passage_count for each in shelf.sources.values())
            notes = [
                f"no source of this project has {name!r} in its metadata"
                for name in unknown_filters(shelf.sources, filters or {})
            ]
            missing = total - shelf.count if embedded is not None else 0
        if self._problem:
            notes.append(f"{_WORDS_ONLY}: {self._problem}")
        if missing > 0:
            notes.append(f"{missing:,} of {total:,} passages were found by words only until they are embedded, now")
            self._reembed_beside(project_id)
        found = Found(
            ranked.near, mode, elapsed_ms(started),
            tuple(
                Nearest(each.similarity, ranked.threshold, each.source_path, each.heading, each.entry_id)
                for each in ranked.nearest
            ),
            looked, tuple(notes),
        )  # fmt: skip
        metrics.retrieved(mode, bool(found.hits), found.query_ms / 1000, len(found.hits))
        return found

    # -- keeping -------------------------------------------------------------------------------------------------

    def sources(self, project_id: str, *, include_historical: bool = False) -> list[Source]:
        """Return a project's documents by path, their current revisions or all."""
        with self.database.transaction(write=False) as transaction:
            found = rows.sources(transaction, project_id)
        return [each for each in found if include_historical or not each.is_historical]

    def source(self, project_id: str, source_id: str) -> tuple[Source, list[Stored]] | None:
        """Return one revision of a document with its passages, or None where the project has none of that id."""
        with self.database.transaction(write=False) as transaction:
            found = rows.source(transaction, project_id, source_id)
            return None if found is None else (found, rows.passages_of(transaction, project_id, source_id))

    def remove(self, project_id: str, source_path: str) -> int:
        """Remove a document with its history, for good, and return how many passages went.

        Raises:
            ToolError: the project has no document of that path.
        """
        with self.database.transaction(write=True) as transaction:
            rows.count_change(transaction, project_id, reload=True)
            revisions = [each for each in rows.sources(transaction, project_id) if each.source_path == source_path]
            if not revisions:
                raise unknown_source(source_path, [each.source_path for each in rows.sources(transaction, project_id)])
            for each in revisions:
                rows.delete_source(transaction, each)
        return sum(each.passage_count for each in revisions)

    def reembed(self, project_id: str, progress: Progress = _no_progress) -> int:
        """Give every passage of a project a vector of the present model; return how many had none.

        Each step is kept as soon as it is done: ended at any point, it goes on from there.
        """
        if self._embedder is None:
            return 0
        total, done = self._missing_count(project_id), 0
        while not self._closing.is_set():
            with self.database.transaction(write=False) as transaction:
                part = transaction.rows(
                    f"select {', '.join(f'p.{name}' for name in rows.PASSAGE_COLUMNS.split(', '))} "
                    "from knowledge_passages as p left join knowledge_vectors as v on v.passage_id = p.passage_id "
                    "and v.model_id = ? where p.project_id = ? and v.passage_id is null order by p.passage_id limit ?",
                    self._embedder.model_id, project_id, _STEP,
                )  # fmt: skip
            if not part:
                break
            stored = [Stored(*row) for row in part]
            vectors = self._embed([_embedded_text(each) for each in stored])
            if vectors is None:
                break
            with self.database.transaction(write=True) as transaction:
                rows.count_change(transaction, project_id, reload=True)
                for each, vector in zip(stored, vectors, strict=True):
                    # It may have been removed meanwhile.
                    if transaction.value("select 1 from knowledge_passages where passage_id = ?", each.passage_id):
                        self._insert_vector(transaction, each.passage_id, project_id, vector)
            done += len(part)
            progress(done, max(total, done))
        if done:
            logs.event("knowledge_reembedded", project_id=project_id, passage_count=done)
        return done

    def _missing_count(self, project_id: str) -> int:
        assert self._embedder is not None
        with self.database.transaction(write=False) as transaction:
            return int(
                transaction.value(
                    "select (select count(*) from knowledge_passages where project_id = ?) - "
                    "(select count(*) from knowledge_vectors where project_id = ? and model_id = ?)",
                    project_id, project_id, self._embedder.model_id,
                )
            )  # fmt: skip

    def _reembed_beside(self, project_id: str) -> None:
        if self._reembedding is None or not self._reembedding.is_alive():
            self._reembedding = threading.Thread(
                target=self.reembed, args=(project_id,), name="knowledge-reembedding", daemon=True
            )
            self._reembedding.start()


def unknown_source(source_path: str, there: Sequence[str]) -> ToolError:
    """Say that a project has no document of a path."""
    import difflib

    near = difflib.get_close_matches(source_path, there, n=3, cutoff=0.3) or sorted(there)[:3]
    return ToolError(
        f"there is no knowledge source {source_path!r} in this project",
        kind="unknown_source",
        fix=f"there is {', '.join(near)}" if near else "nothing was ingested here yet: knowledge.ingest",
    )


def _unchanged(old: Source) -> Ingested:
    return Ingested(old.source_id, old.source_path, old.revision, old.passage_count, is_unchanged=True)


def _embedded_text(stored: Stored) -> str:
    return indexed_text(Passage(stored.text, stored.heading, context=stored.context))


def _digest(passages: Sequence[Passage], about: Sequence[Any]) -> str:
    said = [[each.text, each.heading, each.page, each.line, each.kind, each.context] for each in passages]
    return sha256_bytes(orjson.dumps([said, about], option=orjson.OPT_SORT_KEYS))


def _checked(query: str) -> str:
    if not query.strip():
        raise ToolError("the query is empty", kind="empty_query", fix="ask in words, or give a part number")
    if len(query) > MOST_QUERY_CHARS:
        raise ToolError(
            f"the query has {len(query):,} characters; the most are {MOST_QUERY_CHARS:,}",
            kind="query_too_long", fix="ask for one thing in a sentence",
        )  # fmt: skip
    return query


def _unknown_type(knowledge_type: str) -> ToolError:
    return ToolError(
        f"there is no knowledge_type {knowledge_type!r}", kind="unknown_type", fix=f"one of {', '.join(TYPES)}"
    )


def _check(source_path: str, passages: Sequence[Passage], knowledge_type: str) -> None:
    if not source_path.strip():
        raise ToolError("source_path is empty", kind="no_source_path", fix="name the document, such as docs/power.md")
    if knowledge_type not in TYPES:
        raise _unknown_type(knowledge_type)
    if not passages:
        raise ToolError(f"{source_path} holds no text", kind="document_empty", fix="give a document with words in it")
    if len(passages) > MAX_PASSAGES:
        raise OverLimit(
            f"{source_path} has {len(passages):,} passages; the most are {MAX_PASSAGES:,}",
            kind="document_too_large", failure_mode=FailureMode.LIMIT, fix="split it",
        )  # fmt: skip

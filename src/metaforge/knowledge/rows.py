"""Statements on the tables of knowledge. Every one that reads names the project."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import orjson

from metaforge.knowledge.model import Source, Stored
from metaforge.store.transaction import Transaction

SOURCE_COLUMNS = (
    "source_id, project_id, source_path, revision, knowledge_type, content_sha256, digest, metadata, work_product_id, "
    "request_id, passage_count, author, session_id, created_at, superseded_at, superseded_by"
)
PASSAGE_COLUMNS = "passage_id, source_id, ordinal, text, heading, page, line, kind, context"
_PART = 400


def source_of(row: Sequence[Any]) -> Source:
    """Return a row of SOURCE_COLUMNS as a source."""
    fields = list(row)
    fields[7] = orjson.loads(fields[7])
    return Source(*fields)


def sources(transaction: Transaction, project_id: str) -> list[Source]:
    """Return every revision of every source of a project."""
    found = transaction.rows(
        f"select {SOURCE_COLUMNS} from knowledge_sources where project_id = ? order by source_path, revision",
        project_id,
    )
    return [source_of(row) for row in found]


def source(transaction: Transaction, project_id: str, source_id: str) -> Source | None:
    """Return one revision of a source."""
    row = transaction.row(
        f"select {SOURCE_COLUMNS} from knowledge_sources where project_id = ? and source_id = ?", project_id, source_id
    )
    return None if row is None else source_of(row)


def current(transaction: Transaction, project_id: str, source_path: str) -> Source | None:
    """Return the revision of a document that is not superseded."""
    row = transaction.row(
        f"select {SOURCE_COLUMNS} from knowledge_sources where project_id = ? and source_path = ? "
        "and superseded_at = ''",
        project_id, source_path,
    )  # fmt: skip
    return None if row is None else source_of(row)


def insert_source(transaction: Transaction, made: Source) -> None:
    """Add one revision of a source."""
    marks = ", ".join("?" * (SOURCE_COLUMNS.count(",") + 1))
    values = [getattr(made, name) for name in SOURCE_COLUMNS.split(", ")]
    values[7] = orjson.dumps(dict(made.metadata)).decode()
    transaction.run(f"insert into knowledge_sources ({SOURCE_COLUMNS}) values ({marks})", *values)


def passages_of(transaction: Transaction, project_id: str, source_id: str) -> list[Stored]:
    """Return a source's passages in the document's order."""
    found = transaction.rows(
        f"select {PASSAGE_COLUMNS} from knowledge_passages where project_id = ? and source_id = ? order by ordinal",
        project_id, source_id,
    )  # fmt: skip
    return [Stored(*row) for row in found]


def passages(transaction: Transaction, project_id: str, passage_ids: Iterable[int]) -> Iterator[Stored]:
    """Yield passages by id."""
    ids = sorted(set(passage_ids))
    for start in range(0, len(ids), _PART):
        part = ids[start : start + _PART]
        rows = transaction.rows(
            f"select {PASSAGE_COLUMNS} from knowledge_passages where project_id = ? "
            f"and passage_id in ({', '.join('?' * len(part))})",
            project_id, *part,
        )  # fmt: skip
        yield from (Stored(*row) for row in rows)


def candidates(
    transaction: Transaction, project_id: str, passage_ids: Iterable[int]
) -> Iterator[tuple[Stored, frozenset[str]]]:
    """Yield passages by id, each with the words it is found by: as they were made when it was put in."""
    ids = sorted(set(passage_ids))
    terms = "array_to_string(tsvector_to_array(terms), ' ')" if transaction.postgres else "terms"
    for start in range(0, len(ids), _PART):
        part = ids[start : start + _PART]
        found = transaction.rows(
            f"select {PASSAGE_COLUMNS}, {terms} from knowledge_passages where project_id = ? "
            f"and passage_id in ({', '.join('?' * len(part))})",
            project_id, *part,
        )  # fmt: skip
        for *fields, text in found:
            yield Stored(*fields), frozenset(text.split(" "))


def new_passage_ids(transaction: Transaction, count: int) -> list[int]:
    """Return ids for so many passages, each given out once."""
    if transaction.postgres:
        return [
            number
            for (number,) in transaction.rows(
                "select nextval(pg_get_serial_sequence('knowledge_passages', 'passage_id')) from generate_series(1, ?)",
                count,
            )
        ]
    last = transaction.value("select seq from sqlite_sequence where name = 'knowledge_passages'") or 0
    return list(range(last + 1, last + count + 1))


def insert_passage(
    transaction: Transaction, made: Stored, project_id: str, terms: Sequence[str], *, is_current: bool = True
) -> None:
    """Add a passage and the words it is found by."""
    scope = scope_of(project_id, is_current=is_current)
    postgres = transaction.postgres
    transaction.run(
        f"insert into knowledge_passages ({PASSAGE_COLUMNS}, project_id, scope, terms) "
        f"values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {'array_to_tsvector(?::text[])' if postgres else '?'})",
        made.passage_id, made.source_id, made.ordinal, made.text, made.heading, made.page, made.line, made.kind,
        made.context, project_id, scope, sorted(set(terms)) if postgres else " ".join(terms),
    )  # fmt: skip
    if not postgres:
        transaction.run(
            "insert into knowledge_words (rowid, scope, terms) values (?, ?, ?)",
            made.passage_id,
            scope,
            " ".join(terms),
        )


def supersede(transaction: Transaction, old: Source, by: str, at: str) -> None:
    """Keep a revision for history only."""
    transaction.run(
        "update knowledge_sources set superseded_at = ?, superseded_by = ? where project_id = ? and source_id = ?",
        at, by, old.project_id, old.source_id,
    )  # fmt: skip
    _forget_words(transaction, old)
    transaction.run(
        "update knowledge_passages set scope = ? where project_id = ? and source_id = ?",
        scope_of(old.project_id, is_current=False), old.project_id, old.source_id,
    )  # fmt: skip
    if not transaction.postgres:
        transaction.run(
            "insert into knowledge_words (rowid, scope, terms) select passage_id, scope, terms "
            "from knowledge_passages where project_id = ? and source_id = ?",
            old.project_id, old.source_id,
        )  # fmt: skip


def delete_source(transaction: Transaction, old: Source) -> None:
    """Remove a revision with all that was made of it."""
    _forget_words(transaction, old)
    of_source = "project_id = ? and source_id = ?"
    transaction.run(
        "delete from knowledge_vectors where passage_id in "
        f"(select passage_id from knowledge_passages where {of_source})",
        old.project_id, old.source_id,
    )  # fmt: skip
    transaction.run(f"delete from knowledge_passages where {of_source}", old.project_id, old.source_id)
    transaction.run(f"delete from knowledge_sources where {of_source}", old.project_id, old.source_id)


def _forget_words(transaction: Transaction, old: Source) -> None:
    """Take a source's passages out of SQLite's index, which must be told exactly what is in it."""
    if not transaction.postgres:
        transaction.run(
            "insert into knowledge_words (knowledge_words, rowid, scope, terms) select 'delete', passage_id, scope, "
            "terms from knowledge_passages where project_id = ? and source_id = ?",
            old.project_id, old.source_id,
        )  # fmt: skip


def count_change(transaction: Transaction, project_id: str, *, reload: bool = False) -> int:
    """Note that a project's passages change; the first statement of a write: others of the project then wait.

    Args:
        reload: whether something vanishes or is replaced, so that caches must begin anew.
    """
    seq: int = transaction.value(
        "insert into knowledge_state (project_id, seq, reload_seq) values (?, 1, ?) on conflict (project_id) do update "
        f"set seq = knowledge_state.seq + 1{', reload_seq = knowledge_state.seq + 1' if reload else ''} returning seq",
        project_id, int(reload),
    )  # fmt: skip
    return seq


def state(transaction: Transaction, project_id: str) -> tuple[int, int]:
    """Return how often a project's passages changed, and at which change caches had to begin anew."""
    row = transaction.row("select seq, reload_seq from knowledge_state where project_id = ?", project_id)
    return (0, 0) if row is None else (row[0], row[1])


def scope_of(project_id: str, *, is_current: bool) -> str:
    """Return the word that passages of a project have in common."""
    return ("now" if is_current else "was") + hashlib.sha256(project_id.encode()).hexdigest()[:20]


def having(
    transaction: Transaction, scopes: Sequence[str], terms: Sequence[str], prefixes: Sequence[str], limit: int
) -> list[int]:
    """Return passages of a project that have any of some words, those with more and rarer ones first.

    Args:
        scopes: of the project.
        prefixes: words that a passage's may also only begin with.
    """
    if not terms and not prefixes:
        return []
    if transaction.postgres:
        asked = " | ".join([*(_lexeme(each) for each in terms), *(f"{_lexeme(each)}:*" for each in prefixes)])
        query = (
            "select passage_id from knowledge_passages, (select ?::tsquery as asked) as query "
            f"where terms @@ asked and scope in ({', '.join('?' * len(scopes))}) "
            "order by ts_rank(terms, asked) desc, passage_id limit ?"
        )
        return [row[0] for row in transaction.rows(query, asked, *scopes, limit)]
    asked = " OR ".join([*(f'"{each}"' for each in terms), *(f'"{each}" *' for each in prefixes)])
    query = (
        "select rowid from knowledge_words where knowledge_words match ? "
        "order by bm25(knowledge_words, 0.0, 1.0) limit ?"
    )
    return [row[0] for row in transaction.rows(query, f"{_scoped(scopes)} AND terms:({asked})", limit)]


def count_having(transaction: Transaction, scopes: Sequence[str], term: str, most: int) -> int:
    """Return how many passages of a project have a word, counted no further than `most`."""
    if transaction.postgres:
        having = f"knowledge_passages where terms @@ ?::tsquery and scope in ({', '.join('?' * len(scopes))})"
        values = [_lexeme(term), *scopes]
    else:
        having = "knowledge_words where knowledge_words match ?"
        values = [f'{_scoped(scopes)} AND terms:"{term}"']
    counted = f"select count(*) from (select 1 from {having} limit ?) as few"
    return int(transaction.value(counted, *values, most))


def _scoped(scopes: Sequence[str]) -> str:
    return "scope:(" + " OR ".join(f'"{each}"' for each in scopes) + ")"


def _lexeme(term: str) -> str:
    return "'" + term.replace("\\", "\\\\").replace("'", "''") + "'"

"""What the knowledge tools return."""

from dataclasses import dataclass
from typing import Any

from metaforge.knowledge.extraction import PartFacts, Property, Value
from metaforge.knowledge.model import Found, Hit
from metaforge.knowledge.selection import Suggestion
from metaforge.knowledge.services import Taken

Row = dict[str, Any]

MOST_IDS = 100
"""Passages of a document that are named one by one; the resource of the source has them all."""


@dataclass(frozen=True)
class IngestAnswer:
    entry_ids: list[str]
    chunks_indexed: int
    source_path: str
    files_ingested: int
    files: list[Row]


@dataclass(frozen=True)
class SearchAnswer:
    hits: list[Row]
    mode: str
    nearest: list[Row]
    """Where to look, where nothing is near enough to be an answer."""


@dataclass(frozen=True)
class ExtractAnswer:
    mpn: str
    mpn_found: bool
    properties: list[Row]
    datasheet_revision: str | None = None
    datasheet_published_at: str | None = None
    datasheet_source_path: str | None = None


@dataclass(frozen=True)
class BomAnswer:
    suggestions: list[Row]
    candidates_evaluated: int
    total_search_hits: int
    query_time_ms: float


def file_row(taken: Taken) -> Row:
    """Return one document as an answer tells it."""
    done = taken.ingested
    return {
        "source_path": done.source_path, "source_id": done.source_id, "revision": done.revision,
        "chunks_indexed": done.chunks_indexed, "unchanged": done.is_unchanged, "supersedes": done.superseded or None,
        "content_sha256": taken.content_sha256, "uri": f"metaforge://knowledge/sources/{done.source_id}",
    }  # fmt: skip


def hit_row(hit: Hit) -> Row:
    """Return a hit; what does not apply is left out."""
    row: Row = {
        "text": hit.text, "source_path": hit.source_path, "heading": hit.heading, "page": hit.page, "line": hit.line,
        "similarity": hit.similarity, "knowledge_type": hit.knowledge_type, "project_id": hit.project_id,
        "entry_id": hit.entry_id, "table_header": hit.context if hit.kind == "table_row" else "",
    }  # fmt: skip
    row = {name: value for name, value in row.items() if value not in ("", None)}
    if hit.is_historical:
        row |= {"is_historical": True, "revision": hit.revision}
    return row


def search_answer(found: Found) -> SearchAnswer:
    """Return what a search found."""
    pointers = [
        {"similarity": each.similarity, "threshold": each.threshold, "source_path": each.source_path,
         "heading": each.heading, "entry_id": each.entry_id}
        for each in found.pointers
    ]  # fmt: skip
    return SearchAnswer([hit_row(hit) for hit in found.hits], found.mode, pointers)


def property_row(found: Property) -> Row:
    """Return a property with the line that it stands in."""
    best = found.best
    if best is None:
        return {"name": found.name, "found": False, "value": None, "unit": None, "quote": None}
    row: Row = {"name": found.name, "found": True, **_value_row(best)}
    if not found.is_agreed:
        row |= {"value": None, "unit": None}
        row["note"] = (
            "the documents disagree" if found.also else "the row holds several values: see cells, and ask for one"
        )
    if found.also:
        row["values"] = [_value_row(each) for each in (best, *found.also)]
    return row


def _value_row(found: Value) -> Row:
    row: Row = {
        "value": found.value or None, "unit": found.unit or None, "quote": found.quote, "label": found.label,
        "source_path": found.source_path, "page": found.page, "line": found.line, "entry_id": found.entry_id,
    }  # fmt: skip
    if found.cells:
        row["cells"] = found.cells
    return row


def extract_answer(facts: PartFacts) -> ExtractAnswer:
    """Return what the documents say of a part."""
    return ExtractAnswer(
        facts.mpn, facts.is_found, [property_row(each) for each in facts.properties], facts.revision,
        facts.published_at, facts.source_path,
    )  # fmt: skip


def suggestion_row(suggestion: Suggestion) -> Row:
    """Return a part and how it stands against each limit."""
    return {
        "mpn": suggestion.mpn,
        "verdict": suggestion.verdict,
        "similarity": suggestion.similarity,
        "datasheet_source_path": suggestion.facts.source_path,
        "checks": [
            {
                "property": each.limit.property, "operator": each.limit.operator, "limit": each.limit.value,
                "limit_unit": each.limit.unit or None, "verdict": each.verdict, "why": each.why,
                "quote": each.found.best.quote if each.found.best else None,
                "source_path": each.found.best.source_path if each.found.best else None,
            }
            for each in suggestion.checks
        ],
    }  # fmt: skip

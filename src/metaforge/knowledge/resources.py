"""`metaforge://knowledge/sources` and `metaforge://knowledge/sources/{source_id}`: what was ingested, as resources."""

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import orjson

from metaforge.core.errors import ResourceNotFound, ResourceUnreadable
from metaforge.record.resources import Content, Resources
from metaforge.store.location import StoreUnavailable

if TYPE_CHECKING:
    from metaforge.knowledge.library import Library
    from metaforge.knowledge.model import Source

TEMPLATES = (
    {
        "uriTemplate": "metaforge://knowledge/sources",
        "name": "knowledge sources",
        "description": "The documents that were ingested into the project this client has opened.",
        "mimeType": "application/json",
    },
    {
        "uriTemplate": "metaforge://knowledge/sources/{source_id}",
        "name": "knowledge source",
        "description": "One revision of an ingested document of that project, with its passages as they are quoted.",
        "mimeType": "application/json",
    },
)


def add_resources(resources: Resources, library: "Callable[[], Library]") -> None:
    """Let a server serve the documents of a reader's own project.

    Args:
        library: returns the library, which is not made before it is asked.
    """

    def read(uri: str, name: str, project_id: str) -> Content:
        kind, _, source_id = name.partition("/")
        if kind != "sources":
            raise ResourceNotFound(f"No such resource: {uri}. There are metaforge://knowledge/sources[/ID]", uri=uri)
        try:
            return _listed(library(), project_id) if not source_id else _whole(library(), project_id, source_id, uri)
        except (StoreUnavailable, orjson.JSONDecodeError) as fault:
            told = fault.message if isinstance(fault, StoreUnavailable) else f"its record is damaged: {fault}"
            raise ResourceUnreadable(f"{uri} cannot be read: {told}", uri=uri) from None

    resources.add_scoped("knowledge", TEMPLATES, read)


def source_row(source: "Source") -> dict[str, Any]:
    """Return a source as JSON tells it."""
    row: dict[str, Any] = {
        "source_id": source.source_id, "source_path": source.source_path, "revision": source.revision,
        "knowledge_type": source.knowledge_type, "project_id": source.project_id,
        "passage_count": source.passage_count, "content_sha256": source.content_sha256,
        "metadata": dict(source.metadata), "source_work_product_id": source.work_product_id,
        "author": source.author, "created_at": source.created_at,
    }  # fmt: skip
    if source.is_historical:
        row |= {"superseded_at": source.superseded_at, "superseded_by": source.superseded_by}
    return row


def _listed(library: "Library", project_id: str) -> Content:
    rows = [
        {"uri": f"metaforge://knowledge/sources/{each.source_id}", **source_row(each)}
        for each in library.sources(project_id, include_historical=True)
    ]
    return _json({"project_id": project_id, "sources": rows})


def _whole(library: "Library", project_id: str, source_id: str, uri: str) -> Content:
    found = library.source(project_id, source_id)
    if found is None:
        raise ResourceNotFound(
            f"No such resource: {uri} (the project that this client has opened has no source of that id; "
            "metaforge://knowledge/sources lists them)",
            uri=uri,
        )
    source, passages = found
    told = [{"entry_id": each.entry_id, **asdict(each)} for each in passages]
    for row in told:
        del row["passage_id"], row["source_id"]
    return _json({**source_row(source), "passages": told})


def _json(data: Any) -> Content:
    return Content("application/json", orjson.dumps(data, option=orjson.OPT_INDENT_2))

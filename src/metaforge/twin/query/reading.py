"""Rows of the design record for a graph of it: all that a reader may see, or what changed since it was read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from metaforge.core.errors import FailureMode, MetaForgeError, OverLimit
from metaforge.store.blobs import Blobs
from metaforge.store.transaction import Row
from metaforge.twin.model import ChangeKind
from metaforge.twin.query.projection import ITEM_FIELDS, LINK_FIELDS, NODE_FIELDS
from metaforge.twin.unknown import unknown_project
from metaforge.twin.view import VISIBLE, View

BATCH_COUNT = 5000
MAX_NODES_COUNT = 200_000
MAX_CHANGES_COUNT = 5000
"""With more changes than this the graph is made anew."""

Positions = Mapping[str, int]
"""The changelog's position in each project; within a project it grows in the order of commits."""

_NODES = f"select {', '.join(NODE_FIELDS)}, body, body_sha256 from nodes where {{}} and {VISIBLE}"
_ITEMS = (
    "select {columns} from items left join drafts on drafts.item_id = items.item_id and drafts.run_id = ? "
    "where {{}} and exists (select 1 from nodes where nodes.item_id = items.item_id and {visible})"
).format(
    columns=", ".join(f"items.{'key' if name == 'item_key' else name}" for name in ITEM_FIELDS[:-2])
    + ", coalesce(drafts.revision, items.head_revision), coalesce(drafts.node_id, items.head_node_id)",
    visible=VISIBLE,
)
_LINKS = f"select {', '.join(LINK_FIELDS)}, body from links where {{}} and change_set in ('', ?)"
_OF_NODES = frozenset((
    ChangeKind.DEFINE, ChangeKind.DRAFT, ChangeKind.RECORD, ChangeKind.ADOPT, ChangeKind.APPROVE, ChangeKind.REJECT,
    ChangeKind.ABANDON,
))  # fmt: skip
_OF_LINKS = frozenset((ChangeKind.LINK, ChangeKind.REVIEW))


@dataclass
class Batch:
    """Rows for `Projection.put`."""

    items: list[Row] = field(default_factory=list)
    nodes: list[Row] = field(default_factory=list)
    links: list[Row] = field(default_factory=list)
    settle: bool = False
    clear: bool = False
    """Whether what was put before is forgotten first."""
    touched: list[str] = field(default_factory=list)
    """Nodes that changed, whether or not the reader sees them now."""
    damaged: list[str] = field(default_factory=list)
    """Why the body of a node could not be read."""

    @property
    def is_empty(self) -> bool:
        return not (self.items or self.nodes or self.links or self.touched or self.clear)

    def request(self) -> dict[str, Any]:
        return {
            "do": "put", "items": self.items, "nodes": self.nodes, "links": self.links, "settle": self.settle,
            "clear": self.clear, "touched": self.touched,
        }  # fmt: skip


def projects_of(view: View, project_id: str) -> list[str]:
    """Return the projects a query is about: the one it names, or all that were not deleted and what has no project.

    Raises:
        ToolError: there is no such project.
    """
    if not project_id:
        return ["", *(project.project_id for project in view.projects())]
    if view.project(project_id) is None:
        raise unknown_project(view, project_id)
    return [project_id]


def positions(view: View, projects: Sequence[str]) -> dict[str, int]:
    """Return where the changelog stands in each of some projects."""
    return {project_id: view.seq(project_id) for project_id in projects}


def everything(view: View, blobs: Blobs, projects: Sequence[str]) -> Iterator[Batch]:
    """Yield all rows that the reader may see: items, nodes, then links.

    Raises:
        OverLimit: there are more nodes than a graph in memory should hold.
    """
    count = sum(
        int(view.transaction.value("select count(*) from nodes where project_id = ?", each)) for each in projects
    )
    if count > MAX_NODES_COUNT:
        raise OverLimit(
            f"{count:,} nodes are more than the {MAX_NODES_COUNT:,} that one query may be asked of",
            kind="graph_too_large", failure_mode=FailureMode.LIMIT,
            fix="Open one project, or use twin.find_by_property, twin.where_used or twin.thread_for",
        )  # fmt: skip
    run_id = view.reader.run_id
    yield Batch(clear=True)
    for each in projects:
        for rows in _batches(view, _ITEMS.format("items.project_id = ?"), run_id, each, run_id):
            yield Batch(items=rows)
    for each in projects:
        for rows in _batches(view, _NODES.format("project_id = ?"), each, run_id):
            yield _with_bodies(blobs, Batch(nodes=rows))
    yield Batch(settle=True)
    for each in projects:
        for rows in _batches(view, _LINKS.format("project_id = ?"), each, run_id):
            yield Batch(links=rows)


def changed(view: View, blobs: Blobs, since: Positions) -> Batch | None:
    """Return the rows that changed after some positions, or None where reading everything anew is better."""
    nodes: dict[str, None] = {}
    links: dict[str, None] = {}
    sources: dict[str, None] = {}
    for project_id, seq in since.items():
        entries = view.transaction.rows(
            "select kind, ref, node_id from changelog where project_id = ? and seq > ? order by seq limit ?",
            project_id, seq, MAX_CHANGES_COUNT + 1,
        )  # fmt: skip
        if len(entries) > MAX_CHANGES_COUNT:
            return None
        for kind, ref, node_id in entries:
            if kind in _OF_NODES:
                nodes[node_id] = None
            elif kind in _OF_LINKS:
                links[ref] = None
            elif kind == ChangeKind.SHOW_LINKS:
                sources[node_id] = None
    batch = Batch(touched=list(nodes), settle=True)
    run_id = view.reader.run_id
    batch.nodes = _by_ids(view, _NODES, "node_id", list(nodes), run_id)
    _with_bodies(blobs, batch)
    item_ids = {row[NODE_FIELDS.index("item_id")]: None for row in batch.nodes if row[NODE_FIELDS.index("item_id")]}
    batch.items = _by_ids(view, _ITEMS, "items.item_id", list(item_ids), run_id, before=(run_id,))
    found = _by_ids(view, _LINKS, "link_id", list(links), run_id)
    for column, ids in (("source_node_id", [*nodes, *sources]), ("target_node_id", list(nodes))):
        found += _by_ids(view, _LINKS, column, ids, run_id)
    batch.links = list({row[0]: row for row in found}.values())
    return batch


def _batches(view: View, query: str, *values: Any) -> Iterator[list[Row]]:
    rows: list[Row] = []
    for row in view.transaction.each(query, *values):
        rows.append(row)
        if len(rows) == BATCH_COUNT:
            yield rows
            rows = []
    if rows:
        yield rows


def _by_ids(
    view: View, query: str, column: str, ids: Sequence[str], run_id: str, before: tuple[str, ...] = ()
) -> list[Row]:
    found: list[Row] = []
    for start in range(0, len(ids), 500):
        part = ids[start : start + 500]
        condition = f"{column} in ({', '.join('?' * len(part))})"
        found += view.transaction.rows(query.format(condition), *before, *part, run_id)
    return found


def _with_bodies(blobs: Blobs, batch: Batch) -> Batch:
    """Replace each row's digest by the body it names, where the body is a content of its own."""
    for place, (*columns, body, body_sha256) in enumerate(batch.nodes):
        if body_sha256:
            try:
                body = blobs.read(body_sha256).decode()
            except MetaForgeError as fault:
                batch.damaged.append(f"{columns[0]}: {fault.message}")
                body = "{}"
        batch.nodes[place] = (*columns, body)
    return batch

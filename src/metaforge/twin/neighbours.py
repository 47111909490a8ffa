"""A node and what is linked to it, in two queries: what is read most often."""

from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from metaforge.twin import rows
from metaforge.twin.bodies import load
from metaforge.twin.links import NEVER_SUSPECT, REQUIREMENT
from metaforge.twin.model import Node, Status

if TYPE_CHECKING:
    from metaforge.twin.view import View

Row = dict[str, Any]
_COMMITTED = Status.COMMITTED.value
_KEPT_CHARS = 16 * 1024
_LINK_ID = itemgetter("link_id")
_CURRENT = (
    f"select {rows.prefixed(rows.NODE_COLUMNS, 'nodes')} from items "
    "left join drafts on drafts.item_id = items.item_id and drafts.run_id = ? "
    "join nodes on nodes.node_id = coalesce(drafts.node_id, items.head_node_id) "
    "where items.key = ? and items.project_id = ?"
)
_LINKED = (
    "select links.link_id, links.type, links.source_node_id, links.target_node_id, links.body, links.source_subject, "
    "links.target_subject, links.target_revision, links.reviewed_revision, other.node_id, other.kind, other.name, "
    "other.item_key, other.revision, other.status, coalesce(draft.revision, target.head_revision) from links "
    "join nodes other on other.node_id = "
    "case when links.source_node_id = ? then links.target_node_id else links.source_node_id end "
    "left join items target on target.item_id = links.target_subject "
    "left join drafts draft on draft.item_id = links.target_subject and draft.run_id = ? "
    "where (links.source_node_id = ? or links.target_node_id = ?) and links.change_set in ('', ?) "
    "and (other.status <> 'draft' or other.change_set = ?) limit ?"
)


@dataclass(frozen=True)
class Neighbourhood:
    """A node, those linked to it without their content, and the links; `more` where there are others."""

    node: Node
    neighbours: list[Row]
    edges: list[Row]
    more: bool


def look_around(view: "View", ref: str, limit: int) -> Neighbourhood:
    """Read a node and its links; not to be changed: read again before anybody writes, it comes from memory.

    Args:
        view: the caller's view.
        ref: KEY, KEY@n or a node id.
        limit: how many links at most.

    Raises:
        ToolError: there is no such node that the caller sees; it names what there is.
    """
    memory, key = view.transaction.memory, (view.reader, ref, limit)
    if memory is not None and (kept := memory.get(key)) is not None:
        return kept  # type: ignore[no-any-return]
    node = _node(view, ref)
    run_id, node_id = view.reader.run_id, node.node_id
    found = view.transaction.rows(_LINKED, node_id, run_id, node_id, node_id, run_id, run_id, limit + 1)
    neighbours: dict[str, Row] = {}
    edges = [_edge(node_id, node.ref, row, neighbours) for row in found[:limit]]
    edges.sort(key=_LINK_ID)
    result = Neighbourhood(node, list(neighbours.values()), edges, len(found) > limit)
    if memory is not None and len(str(node.body)) <= _KEPT_CHARS:
        memory[key] = result
    return result


def _node(view: "View", ref: str) -> Node:
    project_id = view.reader.project_id
    if project_id:  # a text that is no KEY finds nothing here
        row = view.transaction.row(_CURRENT, view.reader.run_id, ref, project_id)
        if row is not None:
            return view.node_of(row)
    return view[ref]


def _edge(node_id: str, ref: str, row: tuple[Any, ...], neighbours: dict[str, Row]) -> Row:
    (
        link_id, kind, source_id, target_id, body, source_subject, target_subject, pinned, reviewed,
        other_id, other_kind, name, key, revision, status, current,
    ) = row  # fmt: skip
    other_ref = other_id if revision is None else f"{key}@{revision}"
    if other_id not in neighbours:
        told = neighbours[other_id] = {"node_id": other_id, "ref": other_ref, "kind": other_kind, "name": name}
        if status != _COMMITTED:
            told["status"] = status
    source_ref, target_ref = (ref, other_ref) if source_id == node_id else (other_ref, ref)
    edge: Row = {
        "link_id": link_id, "type": kind, "source_id": source_id, "target_id": target_id,
        "source_ref": source_ref, "target_ref": target_ref,
    }  # fmt: skip
    if body != "{}" and (requirement := load(body).get(REQUIREMENT)):
        edge["requirement"] = requirement
    rests = pinned is not None and kind not in NEVER_SUSPECT and source_subject != target_subject
    if rests and max(pinned, reviewed or 0) < (current or 0):
        edge["suspect"] = True
    return edge

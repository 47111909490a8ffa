"""Follow links through the design record, in SQL: the thread of a node, where it is used, what verifies it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metaforge.core.errors import ToolError
from metaforge.twin import rows
from metaforge.twin.links import NEVER_SUSPECT, LinkType
from metaforge.twin.links import live as live_only
from metaforge.twin.model import Link, Node, Status
from metaforge.twin.view import Direction

if TYPE_CHECKING:
    from metaforge.twin.view import View

MAX_DEPTH = 10
MAX_USED_DEPTH = 5
MAX_SUBJECTS = 10_000
_PART = 400
"""Values of one `in (...)`; both databases take more, and plans stay the same."""

USED_BY = (LinkType.DEPENDS_ON, "uses", "contains", "realizes", LinkType.CLAIMS)
"""Types whose source uses its target."""
VERIFYING = (
    LinkType.SUPPORTS, LinkType.CONTRADICTS, LinkType.VALID_AGAINST, LinkType.VERIFIES, LinkType.SATISFIES,
    LinkType.CLAIMS, LinkType.CITES,
)  # fmt: skip
"""Types that lead from a requirement or a part to what speaks about it."""
VERIFYING_KINDS = frozenset({"evidence", "verification_case", "claim", "simulation_result"})


@dataclass(frozen=True)
class Edge:
    """A link between two nodes of a thread, and whether its target has moved on since."""

    link: Link
    source_ref: str
    target_ref: str
    suspect: bool


@dataclass(frozen=True)
class Thread:
    """The nodes that a walk met, nearest first, and the links between them.

    `depths` tells how many links each node's item or record is from the root. `truncated` is set where there was more.
    """

    root: Node
    depth: int
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    depths: Mapping[str, int]
    truncated: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the wire form: nodes, edges, root_id, depth."""
        return {
            "root_id": self.root.node_id,
            "root_ref": self.root.ref,
            "depth": self.depth,
            "nodes": [node_row(node, self.depths.get(node.subject)) for node in self.nodes],
            "edges": [edge_row(edge) for edge in self.edges],
            **({"truncated": True} if self.truncated else {}),
        }


def node_row(node: Node, depth: int | None = None) -> dict[str, Any]:
    """Return what a list tells of a node: not its body."""
    row: dict[str, Any] = {"node_id": node.node_id, "ref": node.ref, "kind": node.kind, "name": node.name}
    if node.status is not Status.COMMITTED:
        row["status"] = str(node.status)
    return row if depth is None else row | {"depth": depth}


def edge_row(edge: Edge) -> dict[str, Any]:
    """Return a link as a list tells it."""
    row = {
        "link_id": edge.link.link_id, "type": edge.link.type, "source_id": edge.link.source_node_id,
        "source_ref": edge.source_ref, "target_id": edge.link.target_node_id, "target_ref": edge.target_ref,
    }  # fmt: skip
    return (
        row | ({"suspect": True} if edge.suspect else {}) | ({"about": dict(edge.link.body)} if edge.link.body else {})
    )


def thread_for(
    view: "View",
    ref: str,
    depth: int = 3,
    edge_types: Sequence[str] = (),
    direction: Direction = "outgoing",
    limit: int = 1000,
) -> Thread:
    """Follow links from a node, through every revision of what they lead to.

    Args:
        view: the reader's view.
        ref: a node id, KEY or KEY@n.
        depth: how many links far, 1 to 10.
        edge_types: only links of these types; all by default.
        direction: outgoing to what it rests on, incoming to what rests on it, or both.
        limit: how many items and records at most.

    Raises:
        ToolError: there is no such node; `depth_out_of_range`.
    """
    _check_depth(depth, MAX_DEPTH)
    root = view[ref]
    found = reach(view, root.subject, direction, depth, types=edge_types, live=False, limit=limit + 1)
    truncated = len(found) > limit
    kept = dict(sorted(found.items(), key=lambda each: each[1])[:limit])
    links = _links_among(view, kept, depth, direction, edge_types)
    return _thread(view, root, depth, kept, links, truncated)


def where_used(view: "View", ref: str, depth: int = 2) -> tuple[Thread, list[Node]]:
    """Return what uses a node, and the thread that leads there.

    Args:
        view: the reader's view.
        ref: a node id, KEY or KEY@n.
        depth: how many links far, 1 to 5.

    Returns:
        The thread of incoming links, and those of its nodes that use the root, directly or through others.

    Raises:
        ToolError: there is no such node; `depth_out_of_range`.
    """
    _check_depth(depth, MAX_USED_DEPTH)
    thread = thread_for(view, ref, depth, direction="incoming")
    users = {edge.link.source_subject for edge in thread.edges if edge.link.type in USED_BY}
    return thread, [node for node in thread.nodes if node.subject in users and node.subject != thread.root.subject]


def what_verifies(view: "View", ref: str, depth: int = 2) -> tuple[Thread, list[Node]]:
    """Return the evidence, verification cases and claims that speak about a node, and the thread that leads there.

    Records that others have superseded are in the thread alone.

    Args:
        view: the reader's view.
        ref: a node id, KEY or KEY@n.
        depth: how many links far, 1 to 5.

    Raises:
        ToolError: there is no such node; `depth_out_of_range`.
    """
    _check_depth(depth, MAX_USED_DEPTH)
    thread = thread_for(view, ref, depth, VERIFYING, "incoming")
    return thread, [
        node for node in thread.nodes if node.kind in VERIFYING_KINDS and node.subject != thread.root.subject
    ]


def reach(
    view: "View",
    subject: str,
    direction: Direction,
    depth: int,
    *,
    types: Sequence[str] = (),
    live: bool = True,
    limit: int = MAX_SUBJECTS,
) -> dict[str, int]:
    """Return the items and records that links lead to, with how many links far; the start itself is at 0.

    Args:
        view: the reader's view.
        subject: where to start: an item's id, or a record's node id.
        direction: as `thread_for`.
        depth: how many links far.
        types: of these types only; by default of all but supersedes.
        live: whether only links count whose source is current, not those of earlier revisions and replaced records.
        limit: stop after this many steps.
    """
    query, values = walk(view.reader.run_id, subject, direction, depth, types, live=live)
    found: dict[str, int] = {}
    for each, far in view.transaction.each(f"{query} select subject, depth from reach limit ?", *values, limit):
        if far < found.get(each, MAX_SUBJECTS):
            found[each] = far
    return found


def walk(
    run_id: str, subject: str, direction: Direction, depth: int, types: Sequence[str] = (), *, live: bool
) -> tuple[str, list[Any]]:
    """Return the table expression `reach (subject, depth)` of a walk along links, nearest first, and its values.

    What several ways of different length lead to is in it once for each length.
    """
    start, condition = _STEPS[direction]
    conditions = ["reach.depth < ?", "links.change_set in ('', ?)"]
    values: list[Any] = [subject, depth, run_id]
    if types:
        conditions.append(f"links.type in ({', '.join('?' * len(types))})")
        values += types
    else:
        conditions.append("links.type <> 'supersedes'")
    if live:
        counts, more = live_only(run_id)
        conditions.append(counts)
        values += more
    query = (
        "with recursive reach (subject, depth) as (select cast(? as varchar), 0 union "
        f"select {start}, reach.depth + 1 from reach join links on {condition} where {' and '.join(conditions)})"
    )
    return query, values


_STEPS = {
    "outgoing": ("links.target_subject", "links.source_subject = reach.subject"),
    "incoming": ("links.source_subject", "links.target_subject = reach.subject"),
    "both": (
        "case when links.source_subject = reach.subject then links.target_subject else links.source_subject end",
        "(links.source_subject = reach.subject or links.target_subject = reach.subject)",
    ),
}


def _links_among(
    view: "View", depths: Mapping[str, int], depth: int, direction: Direction, types: Sequence[str]
) -> list[Link]:
    """Return the links that the walk took: from items within reach to items within reach."""
    starts = [subject for subject, far in depths.items() if far < depth]
    found: dict[str, Link] = {}
    for column in {"outgoing": ("source",), "incoming": ("target",), "both": ("source", "target")}[direction]:
        for start in range(0, len(starts), _PART):
            part = starts[start : start + _PART]
            marks = ", ".join("?" * len(part))
            query = (
                f"select {rows.LINK_COLUMNS} from links where {column}_subject in ({marks}) and change_set in ('', ?) "
                "order by created_at, link_id"
            )
            for row in view.transaction.rows(query, *part, view.reader.run_id):
                link = rows.link_of(row)
                wanted = link.type in types if types else link.type != LinkType.SUPERSEDES
                if wanted and link.source_subject in depths and link.target_subject in depths:
                    found[link.link_id] = link
    return list(found.values())


def _thread(
    view: "View", root: Node, depth: int, depths: Mapping[str, int], links: Sequence[Link], truncated: bool
) -> Thread:
    wanted = {root.node_id: root.subject}
    for link in links:
        wanted[link.source_node_id] = link.source_subject
        wanted[link.target_node_id] = link.target_subject
    nodes = view.nodes(list(wanted)) | {root.node_id: root}
    heads = current_revisions(view, set(wanted.values()))
    edges = tuple(
        Edge(link, nodes[link.source_node_id].ref, nodes[link.target_node_id].ref, is_suspect(link, heads))
        for link in links
        if link.source_node_id in nodes and link.target_node_id in nodes
    )
    ordered = sorted(nodes.values(), key=lambda node: (depths.get(node.subject, depth), node.created_at, node.node_id))
    first = [node for node in ordered if node.node_id != root.node_id]
    return Thread(root, depth, (root, *first), edges, depths, truncated)


def is_suspect(link: Link, heads: Mapping[str, int]) -> bool:
    """Whether a link's target was revised after it was made or last reviewed, given the current revisions."""
    if link.type in NEVER_SUSPECT or link.target_revision is None or link.source_subject == link.target_subject:
        return False
    return max(link.target_revision, link.reviewed_revision or 0) < heads.get(link.target_subject, 0)


def current_revisions(view: "View", subjects: set[str]) -> dict[str, int]:
    """Return the current revision, as the reader reads it, of each item among some items and records."""
    found: dict[str, int] = {}
    ids = sorted(subjects)
    for start in range(0, len(ids), _PART):
        part = ids[start : start + _PART]
        query = (
            "select items.item_id, coalesce(drafts.revision, items.head_revision) from items "
            "left join drafts on drafts.item_id = items.item_id and drafts.run_id = ? "
            f"where items.item_id in ({', '.join('?' * len(part))})"
        )
        found |= {
            item_id: number for item_id, number in view.transaction.rows(query, view.reader.run_id, *part) if number
        }
    return found


def replaced(view: "View", node_ids: Sequence[str]) -> set[str]:
    """Return those of some records that another has superseded."""
    found: set[str] = set()
    for start in range(0, len(node_ids), _PART):
        part = node_ids[start : start + _PART]
        query = (
            f"select target_node_id from links where target_node_id in ({', '.join('?' * len(part))}) "
            "and type = 'supersedes' and change_set in ('', ?)"
        )
        found |= {row[0] for row in view.transaction.rows(query, *part, view.reader.run_id)}
    return found


def _check_depth(depth: int, most: int) -> None:
    if not 1 <= depth <= most:
        raise ToolError(
            f"depth {depth} is outside 1 to {most}", kind="depth_out_of_range", where="depth", fix=f"Give 1 to {most}"
        )

"""What a change affects, and what a thing rests on: links followed as far as they lead, in one query."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from metaforge.core.errors import ToolError
from metaforge.twin.bodies import load
from metaforge.twin.links import REQUIREMENT, LinkType
from metaforge.twin.model import Node
from metaforge.twin.trace import node_row, walk
from metaforge.twin.view import VISIBLE, Direction

if TYPE_CHECKING:
    from metaforge.twin.view import View

DEFAULT_DEPTH = 8
MAX_DEPTH = 32
_PART = 400

Way = Literal["up", "down"]
"""Up: what rests on it and has to be looked at when it changes. Down: what it rests on itself."""


class Hit(NamedTuple):
    """An item or record that an impact met: its current node, without the body, and how many links far it is."""

    subject: str
    node_id: str
    kind: str
    name: str
    item_key: str
    revision: int | None
    depth: int

    @property
    def ref(self) -> str:
        """KEY@n, or the node id of a record."""
        return self.node_id if self.revision is None else f"{self.item_key}@{self.revision}"


@dataclass(frozen=True)
class Impact:
    """What rests on a node, or what it rests on, nearest first.

    `requirements` are those whose verification goes through what was met. `truncated` is set where there is more.
    """

    root: Node
    way: Way
    depth: int
    hits: tuple[Hit, ...]
    requirements: tuple[str, ...]
    truncated: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the wire form."""
        hits = [{"ref": hit.ref, "node_id": hit.node_id, "kind": hit.kind, "name": hit.name, "depth": hit.depth}
                for hit in self.hits]  # fmt: skip
        return {
            "root": node_row(self.root), "way": self.way, "depth": self.depth, "hit_count": len(hits), "hits": hits,
            "requirements": list(self.requirements), "truncated": self.truncated,
        }  # fmt: skip


def impact(view: "View", ref: str, way: Way = "up", depth: int = DEFAULT_DEPTH, limit: int = 1000) -> Impact:
    """Follow the links of what is current as far as they lead.

    Args:
        view: the reader's view.
        ref: a node id, KEY or KEY@n; links of its whole item count.
        way: up to what rests on it, down to what it rests on.
        depth: how many links far, 1 to 32.
        limit: how many items and records at most.

    Raises:
        ToolError: there is no such node; `depth_out_of_range`.
    """
    if not 1 <= depth <= MAX_DEPTH:
        raise ToolError(
            f"depth {depth} is outside 1 to {MAX_DEPTH}", kind="depth_out_of_range", fix=f"Give 1 to {MAX_DEPTH}"
        )
    root = view[ref]
    found = _hits(view, root.subject, "incoming" if way == "up" else "outgoing", depth, 20 * limit)
    hits = sorted(found, key=_order)[:limit]
    touched = _requirements(view, [hit.node_id for hit in hits if hit.revision is None]) if way == "up" else ()
    return Impact(root, way, depth, tuple(hits), touched, len(found) > limit)


_order = itemgetter(*(Hit._fields.index(name) for name in ("depth", "kind", "item_key", "node_id")))

_ITEMS = (
    " select reach.subject, items.head_node_id, items.kind, items.name, items.key, items.head_revision, reach.depth "
    "from reach left join items on items.item_id = reach.subject limit ?"
)
_ITEMS_IN_RUN = (
    " select reach.subject, nodes.node_id, nodes.kind, nodes.name, nodes.item_key, nodes.revision, reach.depth "
    "from reach left join items on items.item_id = reach.subject "
    "left join drafts on drafts.item_id = reach.subject and drafts.run_id = ? "
    "left join nodes on nodes.node_id = coalesce(drafts.node_id, items.head_node_id) limit ?"
)


def _hits(view: "View", subject: str, direction: Direction, depth: int, limit: int) -> list[Hit]:
    run_id = view.reader.run_id
    query, values = walk(run_id, subject, direction, depth, live=True)
    tail, last = (_ITEMS_IN_RUN, [run_id, limit]) if run_id else (_ITEMS, [limit])
    made: dict[str, Hit] = {}
    for hit in map(Hit._make, view.transaction.rows(query + tail, *values, *last)):
        before = made.get(hit.subject)
        if before is None or hit.depth < before.depth:
            made[hit.subject] = hit
    made.pop(subject, None)
    records = {subject: hit.depth for subject, hit in made.items() if hit.node_id is None}
    subjects = list(records)
    for start in range(0, len(subjects), _PART):
        part = subjects[start : start + _PART]
        query = (
            f"select node_id, kind, name, item_key from nodes where item_id is null and {VISIBLE} "
            f"and node_id in ({', '.join('?' * len(part))})"
        )
        for node_id, kind, name, key in view.transaction.rows(query, run_id, *part):
            made[node_id] = Hit(node_id, node_id, kind, name, key, None, records[node_id])
    return [hit for hit in made.values() if hit.node_id is not None]


def _requirements(view: "View", node_ids: Sequence[str]) -> tuple[str, ...]:
    """Return the requirements that evidence and claims speak about."""
    types = (LinkType.SATISFIES, LinkType.SUPPORTS, LinkType.VERIFIES)
    found: set[str] = set()
    for start in range(0, len(node_ids), _PART):
        part = node_ids[start : start + _PART]
        query = (
            "select items.key, links.body from links join items on items.item_id = links.target_subject "
            f"where links.source_node_id in ({', '.join('?' * len(part))}) "
            f"and links.type in ({', '.join('?' * len(types))}) and links.change_set in ('', ?)"
        )
        for key, body in view.transaction.rows(query, *part, *types, view.reader.run_id):
            name = load(body).get(REQUIREMENT)
            found.add(f"{key}#{name}" if name else key)
    return tuple(sorted(found))

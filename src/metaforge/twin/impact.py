"""What a change affects, and what a thing rests on: links followed as far as they lead, in one query."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from metaforge.core.errors import ToolError
from metaforge.twin.bodies import load
from metaforge.twin.links import REQUIREMENT, LinkType
from metaforge.twin.model import Node
from metaforge.twin.trace import node_row, reach
from metaforge.twin.view import VISIBLE

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
    found = reach(view, root.subject, "incoming" if way == "up" else "outgoing", depth, limit=20 * limit)
    found.pop(root.subject, None)
    nearest = sorted(found, key=lambda subject: (found[subject], subject))
    hits = _hits(view, nearest[:limit], found)
    touched = _requirements(view, [hit.node_id for hit in hits if hit.revision is None]) if way == "up" else ()
    return Impact(root, way, depth, hits, touched, len(nearest) > limit)


_ITEMS = (
    "select item_id, head_node_id, kind, name, key, head_revision from items "
    "where head_node_id is not null and item_id in "
)
_ITEMS_IN_RUN = (
    "select items.item_id, nodes.node_id, nodes.kind, nodes.name, nodes.item_key, nodes.revision from items "
    "left join drafts on drafts.item_id = items.item_id and drafts.run_id = ? "
    "join nodes on nodes.node_id = coalesce(drafts.node_id, items.head_node_id) where items.item_id in "
)


def _hits(view: "View", subjects: Sequence[str], depths: dict[str, int]) -> tuple[Hit, ...]:
    run_id = view.reader.run_id
    queries = [
        (_ITEMS_IN_RUN if run_id else _ITEMS, [run_id] if run_id else []),
        ("select node_id, node_id, kind, name, item_key, revision from nodes where item_id is null "
         f"and {VISIBLE} and node_id in ", [run_id]),
    ]  # fmt: skip
    made: list[Hit] = []
    for query, values in queries:
        for start in range(0, len(subjects), _PART):
            part = subjects[start : start + _PART]
            found = view.transaction.rows(f"{query}({', '.join('?' * len(part))})", *values, *part)
            made += [Hit._make((*row, depths[row[0]])) for row in found]
        there = {hit.subject for hit in made}
        subjects = [subject for subject in subjects if subject not in there]
    made.sort(key=lambda hit: (hit.depth, hit.kind, hit.ref))
    return tuple(made)


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

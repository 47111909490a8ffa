"""The graph that queries see, made of rows of the design record. No I/O.

Every revision and record that the reader may see is a node, labelled with its kind; every item is an `Item` node.
A revision is `REVISION_OF` its item and `SUPERSEDES` the one before; an item's `HEAD` is what everybody reads.
Links are relationships of their own type in capitals, between exactly the revisions they were made of.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import orjson

from metaforge.twin.query.graph_engine import GraphEdge, GraphEngine, GraphNode

ITEM = "Item"
REVISION_OF, HEAD, SUPERSEDES = "REVISION_OF", "HEAD", "SUPERSEDES"
STRUCTURE = (REVISION_OF, HEAD, SUPERSEDES)

_ALWAYS = ("node_id", "kind", "name", "project_id", "status", "author", "created_at")
_OF_REVISIONS = ("item_id", "item_key", "revision", "prior_node_id")
_SELDOM = (
    "change_set", "phase", "gate", "change_reason", "run_id", "decided_by", "approved_at", "status_reason", "closed_at",
    "adopted",
)  # fmt: skip
NODE_FIELDS = (*_ALWAYS, *_OF_REVISIONS, *_SELDOM)
"""Columns of a node's row; its body, as text, comes after them."""
ITEM_FIELDS = (
    "item_id", "item_key", "kind", "name", "project_id", "head_revision", "head_node_id", "current_revision",
    "current_node_id",
)  # fmt: skip
"""Columns of an item's row; the last two are of what this reader reads as current."""
LINK_FIELDS = (
    "link_id", "type", "source_node_id", "target_node_id", "target_revision", "author", "created_at",
    "reviewed_revision", "reviewed_by",
)  # fmt: skip
"""Columns of a link's row; its body, as text, comes after them."""
PROPERTIES = frozenset(
    (*NODE_FIELDS, *ITEM_FIELDS, *LINK_FIELDS, "id", "title", "ref", "is_head", "is_current", "left_out")
)
"""Names that queries may use whether or not a node here has them."""

LONG_BYTES = 32 * 1024
"""A longer value of a body stays out of the graph; the node's `left_out` names it."""
_INT64 = 1 << 63
_NOBODY = ("", "")

Row = Sequence[Any]


class Projection:
    """Keeps one graph equal to the rows it was told of.

    Args:
        engine: an empty graph.
    """

    def __init__(self, engine: GraphEngine) -> None:
        self.engine = engine
        self.label_of: dict[str, str] = {}
        self.types: set[str] = set()
        self.names: set[str] = set()
        """Of properties, nested ones included."""
        self.own_type: set[str] = set()
        self.own_title: set[str] = set()
        """Nodes whose body has such a property; engines give one to every node."""
        self._pointers: dict[str, tuple[str, str]] = {}
        self._links: set[str] = set()
        self._structure: list[GraphEdge] = []
        self._replaced: set[str] = set()

    @property
    def nodes_count(self) -> int:
        return len(self.label_of)

    def put(self, items: Collection[Row] = (), nodes: Collection[Row] = (), links: Collection[Row] = ()) -> None:
        """Add or renew what rows tell: items before their nodes, nodes before their links; any number of times."""
        if items:
            self._put_items(items)
        if nodes:
            self._put(self._node(*row) for row in nodes)
        if links:
            self._put_links(links)

    def settle(self) -> None:
        """Connect what was put: revisions to their items and to those before them, items to their heads."""
        waiting, self._structure = self._structure, []
        there = self.label_of
        edges = [edge for edge in waiting if edge.source_id in there and edge.target_id in there]
        self.engine.add_edges(there, edges)
        self.types.update(edge.type for edge in edges)

    # -- items -----------------------------------------------------------------------------------------------------

    def _put_items(self, items: Iterable[Row]) -> None:
        made = []
        flags: dict[str, dict[str, Any]] = {}
        for row in items:
            item_id, key, kind, name, project_id, head_revision, head_node_id, revision, node_id = row
            properties: dict[str, Any] = {
                "id": item_id, "node_id": item_id, "item_key": key, "kind": kind, "name": name,
                "project_id": project_id,
            }  # fmt: skip
            if head_node_id:
                properties |= {"head_revision": head_revision, "head_node_id": head_node_id}
            if node_id:
                properties["current_revision"] = revision
            now = (head_node_id or "", node_id or "")
            made.append(GraphNode(ITEM, properties))
            if self._pointers.get(item_id) != now:
                self._move(item_id, now, flags)
        self._put(made)
        self.engine.set_properties(self.label_of, flags)

    def _move(self, item_id: str, now: tuple[str, str], flags: dict[str, dict[str, Any]]) -> None:
        before = self._pointers.get(item_id, _NOBODY)
        self._pointers[item_id] = now
        for node_id in {*before, *now} - {""}:
            if node_id in self.label_of:
                flags[node_id] = {"is_head": node_id == now[0], "is_current": node_id == now[1]}
        if before[0] == now[0]:
            return
        if before[0]:
            self._structure = [edge for edge in self._structure if edge[:2] != (HEAD, item_id)]
            if item_id in self.label_of and before[0] in self.label_of:
                self.engine.remove_edges(self.label_of, [GraphEdge(HEAD, item_id, before[0], {})])
        if now[0]:
            self._structure.append(GraphEdge(HEAD, item_id, now[0], {}))

    # -- nodes -----------------------------------------------------------------------------------------------------

    def _node(
        self, node_id: str, kind: str, name: str, project_id: str, status: str, author: str, created_at: str,
        item_id: str | None, item_key: str, revision: int | None, prior_node_id: str, *rest: Any,
    ) -> GraphNode:  # fmt: skip
        properties: dict[str, Any] = {
            "id": node_id, "node_id": node_id, "kind": kind, "name": name, "project_id": project_id, "status": status,
            "created_at": created_at,
        }  # fmt: skip
        if author:
            properties["author"] = author
        if any(rest[:-1]):
            properties.update((column, value) for column, value in zip(_SELDOM, rest, strict=False) if value)
            if "adopted" in properties:
                properties["adopted"] = True
        if item_id:
            head, current = self._pointers.get(item_id, _NOBODY)
            properties |= {
                "item_key": item_key, "revision": revision, "ref": f"{item_key}@{revision}",
                "is_head": node_id == head, "is_current": node_id == current,
            }  # fmt: skip
            if node_id not in self.label_of:
                self._structure.append(GraphEdge(REVISION_OF, node_id, item_id, {}))
                if prior_node_id:
                    self._structure.append(GraphEdge(SUPERSEDES, node_id, prior_node_id, {}))
        else:
            properties |= {"ref": node_id, "is_current": node_id not in self._replaced}
        if rest[-1] != "{}":
            self._add_body(properties, rest[-1])
            if "type" in properties:
                self.own_type.add(node_id)
            if "title" in properties:
                self.own_title.add(node_id)
        return GraphNode(kind, properties)

    def _put(self, nodes: Iterable[GraphNode]) -> None:
        # The last of several rows of one node is how it stands.
        latest = {node.properties["id"]: node for node in nodes}
        self.names.update(chain.from_iterable(node.properties for node in latest.values()))
        known = latest.keys() & self.label_of.keys()
        self.engine.add_nodes([node for node_id, node in latest.items() if node_id not in known])
        self.engine.replace_nodes([latest[node_id] for node_id in known])
        self.label_of.update((node_id, node.label) for node_id, node in latest.items())

    # -- links -----------------------------------------------------------------------------------------------------

    def _put_links(self, links: Iterable[Row]) -> None:
        new: dict[str, GraphEdge] = {}
        known: dict[str, GraphEdge] = {}
        for link_id, type, source_id, target_id, revision, author, created_at, reviewed, reviewer, body in links:
            if source_id not in self.label_of or target_id not in self.label_of:
                continue
            properties: dict[str, Any] = {"link_id": link_id, "author": author, "created_at": created_at}
            if revision is not None:
                properties["target_revision"] = revision
            if reviewed is not None:
                properties |= {"reviewed_revision": reviewed, "reviewed_by": reviewer}
            if body != "{}":
                self._add_body(properties, body)
            edge = GraphEdge(relationship_type(type), source_id, target_id, properties)
            (known if link_id in self._links else new)[link_id] = edge
        self.engine.add_edges(self.label_of, list(new.values()))
        self.engine.replace_edges(self.label_of, list(known.values()))
        self._links.update(new)
        self.types.update(edge.type for edge in new.values())
        self.names.update(chain.from_iterable(edge.properties for edge in chain(new.values(), known.values())))
        self._mark_replaced(new.values())

    def _mark_replaced(self, edges: Iterable[GraphEdge]) -> None:
        """A record that another supersedes is current no more."""
        replaced = {
            edge.target_id for edge in edges if edge.type == SUPERSEDES and "target_revision" not in edge.properties
        }
        self._replaced |= replaced
        self.engine.set_properties(self.label_of, {node_id: {"is_current": False} for node_id in sorted(replaced)})

    # -- bodies ----------------------------------------------------------------------------------------------------

    def _add_body(self, properties: dict[str, Any], body: str) -> None:
        """Add a body's own fields to a node's; a field named like a column is `body_<name>`."""
        left_out = []
        is_long = len(body) > LONG_BYTES
        for name, value in orjson.loads(body).items():
            kind = type(value)
            if is_long and len(orjson.dumps(value)) > LONG_BYTES:
                left_out.append(name)
                continue
            if kind is dict or kind is list:
                self._note_names(value)
            if value is not None and name:
                fit = value if kind is str or kind is float or kind is bool else _fitting(value)
                properties[f"body_{name}" if name in _TAKEN else name] = fit
        if left_out:
            properties["left_out"] = left_out

    def _note_names(self, value: Any) -> None:
        if isinstance(value, dict):
            self.names.update(value)
            value = value.values()
        for each in value:
            if isinstance(each, dict | list):
                self._note_names(each)


_TAKEN = PROPERTIES - {"title", "type"} | {"node_type", "labels"}


@lru_cache(maxsize=1024)
def relationship_type(link_type: str) -> str:
    """Return how a link's type is written in the graph: `depends_on` is DEPENDS_ON."""
    return "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in link_type).upper() or "LINK"


def _fitting(value: Any) -> Any:
    """Return a JSON value with whole numbers beyond 64 signed bits as floating ones: the graph knows no others."""
    if isinstance(value, int) and not isinstance(value, bool) and not -_INT64 <= value < _INT64:
        return float(value)
    if isinstance(value, list):
        return [_fitting(each) for each in value]
    if isinstance(value, dict):
        return {name: _fitting(each) for name, each in value.items()}
    return value

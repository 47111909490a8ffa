"""The graph that queries see, made of rows of the design record. No I/O.

Every revision and record that the reader may see is a node, labelled with its kind; every item is an `Item` node.
A revision is `REVISION_OF` its item and `SUPERSEDES` the one before; an item's `HEAD` is what everybody reads.
Links are relationships of their own type in capitals, between exactly the revisions they were made of.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from metaforge.twin.query.graph_engine import GraphEdge, GraphEngine, GraphNode

ITEM = "Item"
REVISION_OF, HEAD, SUPERSEDES = "REVISION_OF", "HEAD", "SUPERSEDES"
STRUCTURE = (REVISION_OF, HEAD, SUPERSEDES)

NODE_FIELDS = (
    "node_id", "kind", "name", "project_id", "item_id", "item_key", "revision", "status", "change_set", "phase", "gate",
    "change_reason", "author", "run_id", "prior_node_id", "decided_by", "approved_at", "status_reason", "closed_at",
    "adopted", "created_at",
)  # fmt: skip
"""Columns of a node's row; its body, as text, comes after them."""
ITEM_FIELDS = (
    "item_id", "item_key", "kind", "family", "name", "project_id", "head_revision", "head_node_id",
    "created_at", "updated_at", "current_node_id", "current_revision",
)  # fmt: skip
"""Columns of an item's row; the last two are what this reader reads as current."""
LINK_FIELDS = (
    "link_id", "type", "source_node_id", "source_revision", "target_node_id", "target_revision", "reviewed_revision",
    "reviewed_by", "author", "run_id", "created_at",
)  # fmt: skip
"""Columns of a link's row; its body, as text, comes after them."""

LONG_BYTES = 32 * 1024
"""A longer value of a body stays out of the graph; the node's `left_out` names it."""
_INT64 = 1 << 63

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
        self._edges: dict[str, GraphEdge] = {}
        self._structure: list[GraphEdge] = []
        self._replaced: set[str] = set()

    @property
    def nodes_count(self) -> int:
        return len(self.label_of)

    def put(self, items: Iterable[Row] = (), nodes: Iterable[Row] = (), links: Iterable[Row] = ()) -> None:
        """Add or renew what rows tell: items before their nodes, nodes before their links; any number of times."""
        self._put_items([dict(zip(ITEM_FIELDS, row, strict=True)) for row in items])
        self._put_nodes([(dict(zip(NODE_FIELDS, row[:-1], strict=True)), row[-1]) for row in nodes])
        self._put_links([(dict(zip(LINK_FIELDS, row[:-1], strict=True)), row[-1]) for row in links])

    def settle(self) -> None:
        """Connect what was put: revisions to their items and to those before them, items to their heads."""
        waiting, self._structure = self._structure, []
        self._add_edges(edge for edge in waiting if edge.source_id in self.label_of and edge.target_id in self.label_of)

    # -- items -----------------------------------------------------------------------------------------------------

    def _put_items(self, items: list[dict[str, Any]]) -> None:
        made = []
        flags: dict[str, dict[str, Any]] = {}
        for item in items:
            item_id, head, current = item["item_id"], item["head_node_id"] or "", item.pop("current_node_id") or ""
            properties = _present({"id": item_id, "node_id": item_id, **item})
            made.append(GraphNode(ITEM, properties))
            self._move(item_id, (head, current), flags)
        self._put(made)
        self.engine.set_properties(self.label_of, flags)

    def _move(self, item_id: str, now: tuple[str, str], flags: dict[str, dict[str, Any]]) -> None:
        before = self._pointers.get(item_id, ("", ""))
        if before == now:
            return
        self._pointers[item_id] = now
        for node_id in {*before, *now} - {""}:
            if node_id in self.label_of:
                flags[node_id] = {"is_head": node_id == now[0], "is_current": node_id == now[1]}
        if before[0] != now[0]:
            if before[0]:
                self._remove_edge(f"{HEAD} {item_id}")
            if now[0]:
                self._structure.append(_tie(HEAD, item_id, now[0], f"{HEAD} {item_id}"))

    # -- nodes -----------------------------------------------------------------------------------------------------

    def _put_nodes(self, nodes: list[tuple[dict[str, Any], str]]) -> None:
        made = []
        for columns, body in nodes:
            node_id, item_id = columns["node_id"], columns["item_id"] or ""
            columns["adopted"] = bool(columns["adopted"])
            if item_id:
                head, current = self._pointers.get(item_id, ("", ""))
                columns |= {"ref": f"{columns['item_key']}@{columns['revision']}"}
                columns |= {"is_head": node_id == head, "is_current": node_id == current}
            else:
                columns |= {"ref": node_id, "is_current": node_id not in self._replaced}
            properties = self._with_body({"id": node_id, **columns}, body)
            properties["name"] = columns["name"]
            if "type" in properties:
                self.own_type.add(node_id)
            if "title" in properties:
                self.own_title.add(node_id)
            if node_id not in self.label_of:
                self._tie_revision(node_id, item_id, columns["prior_node_id"])
            made.append(GraphNode(columns["kind"], properties))
        self._put(made)

    def _tie_revision(self, node_id: str, item_id: str, prior_node_id: str) -> None:
        if not item_id:
            return
        self._structure.append(_tie(REVISION_OF, node_id, item_id, f"{REVISION_OF} {node_id}"))
        if prior_node_id:
            self._structure.append(_tie(SUPERSEDES, node_id, prior_node_id, f"{SUPERSEDES} {node_id}"))

    def _put(self, nodes: list[GraphNode]) -> None:
        # The last of several rows of one node is how it stands.
        latest = {node.properties["id"]: node for node in nodes}
        for node in latest.values():
            self.names.update(node.properties)
        self.engine.add_nodes([node for node_id, node in latest.items() if node_id not in self.label_of])
        self.engine.replace_nodes([node for node_id, node in latest.items() if node_id in self.label_of])
        self.label_of.update((node_id, node.label) for node_id, node in latest.items())

    # -- links -----------------------------------------------------------------------------------------------------

    def _put_links(self, links: list[tuple[dict[str, Any], str]]) -> None:
        new: dict[str, GraphEdge] = {}
        known: dict[str, GraphEdge] = {}
        for columns, body in links:
            source, target = columns["source_node_id"], columns["target_node_id"]
            if source not in self.label_of or target not in self.label_of:
                continue
            type = relationship_type(columns.pop("type"))
            edge = GraphEdge(type, source, target, self._with_body(columns, body))
            (known if edge.properties["link_id"] in self._edges else new)[edge.properties["link_id"]] = edge
        self._add_edges(new.values())
        self.engine.replace_edges(self.label_of, list(known.values()))
        self._edges.update(known)
        self._mark_replaced(new.values())

    def _mark_replaced(self, edges: Iterable[GraphEdge]) -> None:
        """A record that another supersedes is current no more."""
        replaced = {
            edge.target_id for edge in edges
            if edge.type == SUPERSEDES and edge.properties.get("target_revision") is None
        }  # fmt: skip
        self._replaced |= replaced
        self.engine.set_properties(self.label_of, {each: {"is_current": False} for each in sorted(replaced)})

    def _add_edges(self, edges: Iterable[GraphEdge]) -> None:
        added = list(edges)
        for edge in added:
            self._edges[edge.properties["link_id"]] = edge
            self.types.add(edge.type)
            self.names.update(edge.properties)
        self.engine.add_edges(self.label_of, added)

    def _remove_edge(self, link_id: str) -> None:
        if (edge := self._edges.pop(link_id, None)) is not None:
            self.engine.remove_edges(self.label_of, [edge])
        self._structure = [each for each in self._structure if each.properties["link_id"] != link_id]

    # -- bodies ----------------------------------------------------------------------------------------------------

    def _with_body(self, columns: dict[str, Any], body: str) -> dict[str, Any]:
        """Return columns and a body's own fields; a field named like a column is `body_<name>`."""
        properties = _present(columns)
        left_out = []
        for name, value in orjson.loads(body).items():
            key = f"body_{name}" if name in _TAKEN or name in columns else name
            if len(body) > LONG_BYTES and len(orjson.dumps(value)) > LONG_BYTES:
                left_out.append(name)
            elif value is not None and key:
                properties[key] = _fitting(value)
                if isinstance(value, dict | list):
                    self._note_names(value)
        if left_out:
            properties["left_out"] = left_out
        return properties

    def _note_names(self, value: Any) -> None:
        if isinstance(value, dict):
            self.names.update(value)
            for each in value.values():
                self._note_names(each)
        elif isinstance(value, list):
            for each in value:
                if isinstance(each, dict | list):
                    self._note_names(each)


_TAKEN = frozenset(("id", "name", "is_head", "is_current", "ref", "left_out", "node_type", "labels", "link_id"))


def relationship_type(link_type: str) -> str:
    """Return how a link's type is written in the graph: `depends_on` is DEPENDS_ON."""
    return "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in link_type).upper() or "LINK"


def _present(columns: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in columns.items() if value is not None and value != ""}


def _tie(type: str, source_id: str, target_id: str, link_id: str) -> GraphEdge:
    ends = {"source_node_id": source_id, "target_node_id": target_id}
    return GraphEdge(type, source_id, target_id, {"link_id": link_id, **ends})


def _fitting(value: Any) -> Any:
    """Return a JSON value with whole numbers beyond 64 signed bits as floating ones: the graph knows no others."""
    if isinstance(value, int) and not isinstance(value, bool) and not -_INT64 <= value < _INT64:
        return float(value)
    if isinstance(value, list):
        return [_fitting(each) for each in value]
    if isinstance(value, dict):
        return {name: _fitting(each) for name, each in value.items()}
    return value

"""The graph that queries see, made of rows of the design record. No I/O.

Every revision and record that the reader may see is a node, labelled with its kind; every item is an `Item` node.
A revision is `REVISION_OF` its item and `SUPERSEDES` the one before; an item's `HEAD` is what everybody reads.
Links are relationships of their own type in capitals, between exactly the revisions they were made of.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from metaforge.twin.query.bodies import Bodies
from metaforge.twin.query.graph_engine import Column, EdgeTable, Ends, GraphEngine, NodeTable

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

_NOBODY = ("", "")

Row = Sequence[Any]
_Any = TypeVar("_Any")


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
        self._heads: dict[str, str] = {}
        self._structure: dict[str, list[tuple[str, str]]] = {REVISION_OF: [], SUPERSEDES: []}
        """What waits to be connected: items with their heads, and pairs of nodes."""
        self._replaced: set[str] = set()

    @property
    def nodes_count(self) -> int:
        return len(self.label_of)

    def put(self, items: Collection[Row] = (), nodes: Collection[Row] = (), links: Collection[Row] = ()) -> None:
        """Add or renew what rows tell: items before their nodes, nodes before their links; any number of times."""
        if items:
            self._put_items(items)
        if nodes:
            self._put_nodes(nodes)
        if links:
            self._put_links(links)

    def settle(self) -> None:
        """Connect what was put: revisions to their items and to those before them, items to their heads."""
        waiting, self._structure = self._structure, {REVISION_OF: [], SUPERSEDES: []}
        heads, self._heads = self._heads, {}
        there = self.label_of
        for type, pairs in ((HEAD, list(heads.items())), *waiting.items()):
            if not pairs:
                continue
            starts, ends = zip(*pairs, strict=True)
            for (source, target), some in _grouped((map(there.get, starts), map(there.get, ends)), pairs):
                if source is None or target is None:
                    continue
                sources, targets = zip(*some, strict=True)
                self.engine.add_edges(EdgeTable(Ends(source, type, target), sources, targets))
                self.types.add(type)

    # -- items -----------------------------------------------------------------------------------------------------

    def _put_items(self, items: Collection[Row]) -> None:
        flags: dict[str, dict[str, Any]] = {}
        latest = _latest(items)
        for item_id, _, _, _, _, _, head_id, _, current_id in latest:
            now = (head_id or "", current_id or "")
            before = self._pointers.get(item_id, _NOBODY)
            if before != now:
                self._pointers[item_id] = now
                self._move(item_id, before, now, flags)
        for rows in self._new_and_known(latest):
            if not rows:
                continue
            ids, keys, kinds, names, projects, head_revisions, head_ids, revisions, node_ids = zip(*rows, strict=True)
            columns: dict[str, Column] = {
                "id": ids, "node_id": ids, "item_key": keys, "kind": kinds, "name": names, "project_id": projects,
                "head_revision": _where(head_ids, head_revisions), "head_node_id": _where(head_ids, head_ids),
                "current_revision": _where(node_ids, revisions),
            }  # fmt: skip
            self._give(NodeTable(ITEM, columns))
        self.engine.set_properties(self.label_of, flags)

    def _move(
        self, item_id: str, before: tuple[str, str], now: tuple[str, str], flags: dict[str, dict[str, Any]]
    ) -> None:
        there = self.label_of
        for node_id in {*before, *now}:
            if node_id in there:
                flags[node_id] = {"is_head": node_id == now[0], "is_current": node_id == now[1]}
        if before[0] == now[0]:
            return
        waited = self._heads.pop(item_id, None) if before[0] else None
        if before[0] and waited is None and item_id in there and before[0] in there:
            self.engine.remove_edges(EdgeTable(Ends(ITEM, HEAD, there[before[0]]), [item_id], [before[0]]))
        if now[0]:
            self._heads[item_id] = now[0]

    # -- nodes -----------------------------------------------------------------------------------------------------

    def _put_nodes(self, nodes: Collection[Row]) -> None:
        for rows in self._new_and_known(_latest(nodes)):
            for (kind,), alike in _grouped(([row[1] for row in rows],), rows):
                self._give(self._table(kind, alike))

    def _new_and_known(self, rows: list[Row]) -> tuple[list[Row], list[Row]]:
        there = self.label_of
        return [row for row in rows if row[0] not in there], [row for row in rows if row[0] in there]

    def _give(self, table: NodeTable) -> None:
        """Hand a table of nodes to the engine; they are all new, or all there."""
        ids = table.columns["id"]
        self.names.update(name for name, column in table.columns.items() if any(_is_there(column)))
        for some in table.seldom.values():
            self.names.update(some)
        if ids[0] in self.label_of:
            self.engine.replace_nodes(table)
        else:
            self.engine.add_nodes(table)
        self.label_of.update(dict.fromkeys(ids, table.label))

    def _table(self, kind: str, rows: list[Row]) -> NodeTable:
        (
            ids, kinds, names, projects, statuses, authors, times, item_ids, keys, revisions, priors, *seldom, bodies,
        ) = zip(*rows, strict=True)  # fmt: skip
        columns: dict[str, Column] = {
            "id": ids, "node_id": ids, "kind": kinds, "name": names, "project_id": projects, "status": statuses,
            "created_at": times, "author": _where(authors, authors),
        }  # fmt: skip
        for name, column in zip(_SELDOM, seldom, strict=True):
            if any(column):
                columns[name] = (
                    [True if value else None for value in column] if name == "adopted" else _where(column, column)
                )
        columns |= self._standing(ids, item_ids, keys, revisions)
        self._wait_for_items(ids, item_ids, priors)
        if all(body == "{}" for body in bodies):
            return NodeTable(kind, columns)
        own = Bodies.read(ids, bodies, _TAKEN)
        self.names |= own.inner_names
        self.own_type.update(own.ids_with("type"))
        self.own_title.update(own.ids_with("title"))
        return NodeTable(kind, {**columns, **own.columns}, own.seldom)

    def _standing(
        self, ids: Sequence[str], item_ids: Sequence[str | None], keys: Sequence[str], revisions: Sequence[int | None]
    ) -> dict[str, Column]:
        """Return what tells where revisions stand in their items, and records in the project."""
        if not any(item_ids):
            return {"ref": ids, "is_current": [node_id not in self._replaced for node_id in ids]}
        pointers = [self._pointers.get(item_id, _NOBODY) if item_id else None for item_id in item_ids]
        alike = list(zip(ids, pointers, strict=True))
        return {
            "item_key": _where(item_ids, keys), "revision": _where(item_ids, revisions),
            "ref": [
                f"{key}@{revision}" if item_id else node_id
                for node_id, item_id, key, revision in zip(ids, item_ids, keys, revisions, strict=True)
            ],
            "is_head": [None if now is None else node_id == now[0] for node_id, now in alike],
            "is_current": [
                node_id not in self._replaced if now is None else node_id == now[1] for node_id, now in alike
            ],
        }  # fmt: skip

    def _wait_for_items(self, ids: Sequence[str], item_ids: Sequence[str | None], prior_ids: Sequence[str]) -> None:
        if ids[0] in self.label_of:
            return
        for node_id, item_id, prior_id in zip(ids, item_ids, prior_ids, strict=True):
            if item_id:
                self._structure[REVISION_OF].append((node_id, item_id))
                if prior_id:
                    self._structure[SUPERSEDES].append((node_id, prior_id))

    # -- links -----------------------------------------------------------------------------------------------------

    def _put_links(self, links: Collection[Row]) -> None:
        there = self.label_of
        latest = _latest(links)
        ids, types, sources, targets, *_ = zip(*latest, strict=True)
        alike = (map(self._links.__contains__, ids), map(there.get, sources), types, map(there.get, targets))
        for (known, source, type, target), rows in _grouped(alike, latest):
            if source is None or target is None:
                continue
            ends = Ends(source, relationship_type(type), target)
            ids, _, sources, targets, revisions, authors, times, reviewed, reviewers, bodies = zip(*rows, strict=True)
            columns: dict[str, Column] = {
                "link_id": ids, "author": authors, "created_at": times, "target_revision": revisions,
                "reviewed_revision": reviewed,
                "reviewed_by": [None if now is None else by for now, by in zip(reviewed, reviewers, strict=True)],
            }  # fmt: skip
            if any(body != "{}" for body in bodies):
                own = Bodies.read(ids, bodies, _TAKEN, seldom_ratio=0.0)
                self.names |= own.inner_names
                columns |= own.columns
            table = EdgeTable(ends, sources, targets, columns)
            (self.engine.replace_edges if known else self.engine.add_edges)(table)
            self._links.update(ids)
            self.types.add(ends.type)
            self.names.update(name for name, column in columns.items() if any(_is_there(column)))
            if ends.type == SUPERSEDES and not known:
                self._mark_replaced(targets, revisions)

    def _mark_replaced(self, targets: Sequence[str], revisions: Sequence[int | None]) -> None:
        """A record that another supersedes is current no more."""
        replaced = {target for target, revision in zip(targets, revisions, strict=True) if revision is None}
        self._replaced |= replaced
        self.engine.set_properties(self.label_of, {node_id: {"is_current": False} for node_id in sorted(replaced)})


_TAKEN = PROPERTIES - {"title", "type"} | {"node_type", "labels"}


@lru_cache(maxsize=1024)
def relationship_type(link_type: str) -> str:
    """Return how a link's type is written in the graph: `depends_on` is DEPENDS_ON."""
    return "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in link_type).upper() or "LINK"


def _latest(rows: Collection[Row]) -> list[Row]:
    """Return the last of several rows of one thing: it is how the thing stands."""
    return list({row[0]: row for row in rows}.values())


def _grouped(keys: Sequence[Iterable[Any]], rows: list[_Any]) -> Iterator[tuple[tuple[Any, ...], list[_Any]]]:
    """Yield rows with equal keys together, in the order in which keys come first.

    Args:
        keys: columns, one value a row each.
        rows: at least one, unless all columns are empty.
    """
    columns = [list(column) for column in keys]
    if all(len(set(column)) == 1 for column in columns):
        yield tuple(column[0] for column in columns), rows
        return
    groups: dict[tuple[Any, ...], list[_Any]] = defaultdict(list)
    for key, row in zip(zip(*columns, strict=True), rows, strict=True):
        groups[key].append(row)
    yield from groups.items()


def _where(conditions: Iterable[Any], values: Iterable[Any]) -> list[Any]:
    return [value if condition else None for condition, value in zip(conditions, values, strict=True)]


def _is_there(column: Column) -> Iterable[bool]:
    return (value is not None for value in column)

"""What runs Cypher over a copy of the graph: the shape of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

Column = Sequence[Any]
"""One value a row; None where a row has none."""


@dataclass(frozen=True)
class NodeTable:
    """Nodes of one label, by columns.

    Attributes:
        label: of all of them; a node's never changes.
        columns: values by property. `id` is a node's identity, and every row has one.
        seldom: properties that few of the nodes have, by id.
    """

    label: str
    columns: Mapping[str, Column]
    seldom: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def rows(self) -> list[dict[str, Any]]:
        """Return the same by rows, each with what it has."""
        rows = _rows(self.columns, len(self.columns["id"]))
        for row in rows if self.seldom else ():
            row.update(self.seldom.get(row["id"], {}))
        return rows


class Ends(NamedTuple):
    """What a table of relationships goes from, is, and goes to."""

    source_label: str
    type: str
    target_label: str


@dataclass(frozen=True)
class EdgeTable:
    """Relationships of one type from nodes of one label to nodes of one label, all there, by columns.

    One with a `link_id` is told from others by it; of those without there is one of a type between two nodes.
    """

    ends: Ends
    source_ids: Sequence[str]
    target_ids: Sequence[str]
    columns: Mapping[str, Column] = field(default_factory=dict)

    def rows(self) -> list[tuple[str, str, dict[str, Any]]]:
        """Return the same by rows: source, target, and the properties each has."""
        properties = _rows(self.columns, len(self.source_ids))
        return list(zip(self.source_ids, self.target_ids, properties, strict=True))


@dataclass(frozen=True)
class Caps:
    """How far one query may go.

    Attributes:
        rows_count: rows that are kept; all are counted.
        seconds: how long it may run.
        work_units_count: rows and list items it may hold on the way.
    """

    rows_count: int = 1000
    seconds: float = 10.0
    work_units_count: int = 5_000_000


@dataclass(frozen=True)
class Found:
    """What a query gave: columns, the rows kept, and how many there were in all."""

    columns: list[str]
    rows: list[dict[str, Any]]
    total_count: int


class GraphEngine(Protocol):
    """Holds one graph and answers reading queries on it. What it holds is a copy that can be made again."""

    def add_nodes(self, nodes: NodeTable) -> None:
        """Add nodes whose ids are new."""
        ...

    def replace_nodes(self, nodes: NodeTable) -> None:
        """Give nodes that are there all their properties anew."""
        ...

    def set_properties(self, label_of: Mapping[str, str], values: Mapping[str, Mapping[str, Any]]) -> None:
        """Set some properties of nodes that are there, by id; `label_of` tells the label of each."""
        ...

    def add_edges(self, edges: EdgeTable) -> None:
        """Add relationships."""
        ...

    def replace_edges(self, edges: EdgeTable) -> None:
        """Give relationships that are there all their properties anew."""
        ...

    def remove_edges(self, edges: EdgeTable) -> None:
        """Remove relationships without a `link_id`."""
        ...

    def run(self, cypher: str, params: Mapping[str, Any], caps: Caps) -> Found:
        """Run one reading query.

        Raises:
            Refused: it is over a cap, or the engine does not know what it uses.
        """
        ...


def _rows(columns: Mapping[str, Column], count: int) -> list[dict[str, Any]]:
    if not columns:
        return [{} for _ in range(count)]
    names = tuple(columns)
    return [
        {name: value for name, value in zip(names, values, strict=True) if value is not None}
        for values in zip(*columns.values(), strict=True)
    ]

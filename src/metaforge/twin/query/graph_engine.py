"""What runs Cypher over a copy of the graph: the shape of it, and the engine that does it in memory."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple, Protocol

from metaforge.twin.query.frames import Refused

BATCH_COUNT = 5000


class GraphNode(NamedTuple):
    """A node. Its identity is `properties["id"]`, its label never changes."""

    label: str
    properties: dict[str, Any]


class GraphEdge(NamedTuple):
    """A relationship between two nodes that are there. One with a `link_id` is told from others of its type by it;
    of those without there is one of a type between two nodes."""

    type: str
    source_id: str
    target_id: str
    properties: dict[str, Any]


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

    def add_nodes(self, nodes: Sequence[GraphNode]) -> None:
        """Add nodes whose ids are new."""
        ...

    def replace_nodes(self, nodes: Sequence[GraphNode]) -> None:
        """Give nodes that are there all their properties anew."""
        ...

    def set_properties(self, label_of: Mapping[str, str], values: Mapping[str, Mapping[str, Any]]) -> None:
        """Set some properties of nodes that are there, by id."""
        ...

    def add_edges(self, label_of: Mapping[str, str], edges: Sequence[GraphEdge]) -> None:
        """Add relationships; `label_of` tells the label of each node by its id."""
        ...

    def replace_edges(self, label_of: Mapping[str, str], edges: Sequence[GraphEdge]) -> None:
        """Give relationships that are there all their properties anew."""
        ...

    def remove_edges(self, label_of: Mapping[str, str], edges: Sequence[GraphEdge]) -> None:
        """Remove relationships without a `link_id`."""
        ...

    def run(self, cypher: str, params: Mapping[str, Any], caps: Caps) -> Found:
        """Run one reading query.

        Raises:
            Refused: it is over a cap, or the engine does not know what it uses.
        """
        ...


class KgliteEngine:
    """A GraphEngine in this process's memory, on kglite."""

    def __init__(self) -> None:
        import kglite

        self._kglite = kglite
        self._graph = kglite.KnowledgeGraph()
        self._names_of: dict[str, set[str]] = {}
        """Names of properties that nodes of a label were made with."""

    def add_nodes(self, nodes: Sequence[GraphNode]) -> None:
        by_label: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for node in nodes:
            by_label[node.label].append(node.properties)
        for label, rows in by_label.items():
            for part in _parts(rows):
                self._create(label, part)

    def _create(self, label: str, rows: list[dict[str, Any]]) -> None:
        # A literal map is four times as fast as setting whole maps. In one the engine takes, for a label it knows,
        # only names it has seen there; the others are set after it.
        names = set(chain.from_iterable(rows))
        known = self._names_of.setdefault(label, set())
        literal = sorted(name for name in names if _PLAIN.fullmatch(name) and (name in known or not known))
        known |= names
        written = ", ".join(f"{_quoted(name)}: r.{_quoted(name)}" for name in literal)
        query = f"UNWIND $rows AS r CREATE (n:{_quoted(label)} {{{written}}})"
        if more := names.difference(literal):
            rows = [{**row, _MORE: {name: row[name] for name in more & row.keys()}} for row in rows]
            query += f" SET n += r.{_MORE}"
        self._write(query, rows)

    def replace_nodes(self, nodes: Sequence[GraphNode]) -> None:
        by_label: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for node in nodes:
            by_label[node.label].append({"id": node.properties["id"], "all": node.properties})
        for label, rows in by_label.items():
            self._write(f"UNWIND $rows AS r MATCH (n:{_quoted(label)} {{id: r.id}}) SET n = r.all", rows)

    def set_properties(self, label_of: Mapping[str, str], values: Mapping[str, Mapping[str, Any]]) -> None:
        by_label: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for node_id, some in values.items():
            by_label[label_of[node_id]].append({"id": node_id, "some": dict(some)})
        for label, rows in by_label.items():
            self._write(f"UNWIND $rows AS r MATCH (n:{_quoted(label)} {{id: r.id}}) SET n += r.some", rows)

    def add_edges(self, label_of: Mapping[str, str], edges: Sequence[GraphEdge]) -> None:
        for (source, type, target), alike in _grouped(label_of, edges).items():
            names = set(chain.from_iterable(edge.properties for edge in alike))
            literal = ", ".join(f"{_quoted(name)}: r.{_quoted(name)}" for name in names if _PLAIN.fullmatch(name))
            ends = f"(a:{_quoted(source)} {{id: r.{_SOURCE}}}), (b:{_quoted(target)} {{id: r.{_TARGET}}})"
            query = f"UNWIND $rows AS r MATCH {ends} CREATE (a)-[x:{_quoted(type)} {{{literal}}}]->(b)"
            rows = [{_SOURCE: edge.source_id, _TARGET: edge.target_id, **edge.properties} for edge in alike]
            if not all(map(_PLAIN.fullmatch, names)):
                query += f" SET x = r.{_MORE}"
                rows = [{**row, _MORE: edge.properties} for row, edge in zip(rows, alike, strict=True)]
            self._write(query, rows)

    def replace_edges(self, label_of: Mapping[str, str], edges: Sequence[GraphEdge]) -> None:
        self._on_edges(label_of, edges, " WHERE x.link_id = r.__more.link_id SET x = r.__more")

    def remove_edges(self, label_of: Mapping[str, str], edges: Sequence[GraphEdge]) -> None:
        self._on_edges(label_of, edges, " DELETE x")

    def _on_edges(self, label_of: Mapping[str, str], edges: Sequence[GraphEdge], action: str) -> None:
        for (source, type, target), alike in _grouped(label_of, edges).items():
            start, end = f"(a:{_quoted(source)} {{id: r.{_SOURCE}}})", f"(b:{_quoted(target)} {{id: r.{_TARGET}}})"
            rows = [{_SOURCE: edge.source_id, _TARGET: edge.target_id, _MORE: edge.properties} for edge in alike]
            self._write(f"UNWIND $rows AS r MATCH {start}-[x:{_quoted(type)}]->{end}{action}", rows)

    def _write(self, query: str, rows: list[dict[str, Any]]) -> None:
        for part in _parts(rows):
            self._graph.cypher(query, params={"rows": part})

    def run(self, cypher: str, params: Mapping[str, Any], caps: Caps) -> Found:
        kglite = self._kglite
        try:
            # A frozen graph has no way to change, whatever the text says.
            result = self._graph.freeze().cypher(
                cypher, params=dict(params), timeout_ms=max(1, int(caps.seconds * 1000)), row_limit=caps.rows_count,
                max_work_units=caps.work_units_count,
            )  # fmt: skip
        except kglite.CypherTimeoutError:
            raise Refused(
                "query_timeout", f"The query ran longer than {caps.seconds:g} s and was stopped",
                "Start from one node (MATCH (n {item_key: ...})), bound paths (*1..4), or drop the cross join",
            ) from None  # fmt: skip
        except (kglite.CypherError, kglite.KgError, OverflowError) as fault:
            raise _explained(fault, caps) from None
        rows = result.to_list()
        total = result.diagnostics.get("total_rows")
        return Found(list(result.columns), rows, len(rows) if total is None else int(total))


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SOURCE, _TARGET, _MORE = "__source", "__target", "__more"
"""Names in the rows of a statement, beside those of properties."""


def _explained(fault: Exception, caps: Caps) -> Refused:
    text = str(fault).split("\n")[0][:400]
    if "max_work_units" in text or "safety limit" in text:
        return Refused(
            "query_too_large", f"The query holds more than {caps.work_units_count:,} rows on the way: {text[:200]}",
            "Bound paths (*1..4), filter earlier, or aggregate",
        )  # fmt: skip
    return Refused("query_failed", f"The query cannot be run: {text}", "Change the expression or clause it names")


def _quoted(name: str) -> str:
    return f"`{name}`" if not _PLAIN.fullmatch(name) or name.upper() in _RESERVED else name


_RESERVED = frozenset(
    """
    ALL AND ANY AS ASC BY CALL CASE CONTAINS COUNT CREATE DELETE DESC DETACH DISTINCT ELSE END ENDS EXISTS FALSE FILTER
    FINISH FOR IN IS LIMIT MATCH MERGE NOT NULL ON OPTIONAL OR ORDER REMOVE RETURN SET SKIP STARTS THEN TRUE TYPE UNION
    UNWIND WHEN WHERE WITH XOR YIELD
    """.split()  # noqa: SIM905
)


def _parts(rows: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    for start in range(0, len(rows), BATCH_COUNT):
        yield rows[start : start + BATCH_COUNT]


def _grouped(label_of: Mapping[str, str], edges: Iterable[GraphEdge]) -> dict[tuple[str, str, str], list[GraphEdge]]:
    groups: dict[tuple[str, str, str], list[GraphEdge]] = defaultdict(list)
    for edge in edges:
        groups[label_of[edge.source_id], edge.type, label_of[edge.target_id]].append(edge)
    return groups

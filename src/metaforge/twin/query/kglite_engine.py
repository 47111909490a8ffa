"""A graph in this process's memory, on kglite."""

import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from metaforge.twin.query.frames import Refused
from metaforge.twin.query.graph_engine import Caps, Column, EdgeTable, Ends, Found, NodeTable

BATCH_COUNT = 5000


class KgliteEngine:
    """A GraphEngine in this process's memory, on kglite.

    Tables are given to its bulk loader, which takes a fifth of the time of statements. What that loader would take
    differently from a statement goes by statements: a second relationship of a type between two nodes, which it would
    join with the first, and properties that few nodes have.
    """

    def __init__(self) -> None:
        import kglite

        self._kglite = kglite
        self._graph = kglite.KnowledgeGraph()
        self._joined: dict[str, set[int]] = defaultdict(set)
        """By type, digests of the pairs of nodes that a relationship connects."""

    def add_nodes(self, nodes: NodeTable) -> None:
        first = _Frame()
        later: list[tuple[str, type]] = []
        columns = _titled(nodes.columns)
        for name, column in columns.items():
            kinds, has_gaps = _kinds(column)
            if kinds:
                several = len(kinds) > 1
                first.add(name, _only(column, kinds[0]) if several else column, kinds[0], has_gaps=has_gaps or several)
            later += [(name, kind) for kind in kinds[1:]]
        self._load(nodes.label, first)
        for name, kind in later:
            places = [place for place, value in enumerate(columns[name]) if type(value) is kind]
            some = _Frame()
            some.add("id", [columns["id"][place] for place in places], str, has_gaps=False)
            some.add(name, [columns[name][place] for place in places], kind, has_gaps=False)
            self._load(nodes.label, some)
        self.set_properties(dict.fromkeys(nodes.seldom, nodes.label), nodes.seldom)

    def _load(self, label: str, frame: "_Frame") -> None:
        with warnings.catch_warnings():
            # A property whose values are of several types is told as a warning; it is loaded all the same.
            warnings.simplefilter("ignore")
            self._graph.add_nodes(frame, label, "id", column_types=frame.column_types)

    def replace_nodes(self, nodes: NodeTable) -> None:
        rows = [{"id": row["id"], "all": row} for row in nodes.rows()]
        self._write(f"UNWIND $rows AS r MATCH (n:{_quoted(nodes.label)} {{id: r.id}}) SET n = r.all", rows)

    def set_properties(self, label_of: Mapping[str, str], values: Mapping[str, Mapping[str, Any]]) -> None:
        by_label: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for node_id, some in values.items():
            by_label[label_of[node_id]].append({"id": node_id, "some": dict(some)})
        for label, rows in by_label.items():
            self._write(f"UNWIND $rows AS r MATCH (n:{_quoted(label)} {{id: r.id}}) SET n += r.some", rows)

    def add_edges(self, edges: EdgeTable) -> None:
        joined = self._joined[edges.ends.type]
        pairs = list(map(hash, zip(edges.source_ids, edges.target_ids, strict=True)))
        alone, more = edges, None
        if len(set(pairs)) < len(pairs) or not joined.isdisjoint(pairs):
            once = {pair for pair, count in Counter(pairs).items() if count == 1 and pair not in joined}
            alone = _part(edges, [place for place, pair in enumerate(pairs) if pair in once])
            more = _part(edges, [place for place, pair in enumerate(pairs) if pair not in once])
        joined.update(pairs)
        slow = self._load_edges(alone)
        for some in (slow, more):
            if some is not None and some.source_ids:
                self._create_edges(some)

    def _load_edges(self, edges: EdgeTable) -> EdgeTable | None:
        """Load relationships in bulk; return those that have to be made one by one."""
        kinds = {name: _kinds(column) for name, column in edges.columns.items()}
        slow = {
            place
            for name, (several, _) in kinds.items()
            if len(several) > 1
            for place, value in enumerate(edges.columns[name])
            if value is not None and type(value) is not several[0]
        }
        rest = _part(edges, sorted(slow)) if slow else None
        if slow:
            edges = _part(edges, [place for place in range(len(edges.source_ids)) if place not in slow])
        if not edges.source_ids:
            return rest
        frame = _Frame()
        source, target = _free("source", edges.columns), _free("target", edges.columns)
        frame.add(source, edges.source_ids, str, has_gaps=False)
        frame.add(target, edges.target_ids, str, has_gaps=False)
        for name, column in edges.columns.items():
            some, has_gaps = kinds[name]
            if some:
                frame.add(name, column, some[0], has_gaps=has_gaps)
        start, type_, end = edges.ends
        report = self._graph.add_relationships(
            frame, type_, start, source, end, target, column_types=frame.column_types
        )
        if report["connections_created"] != len(edges.source_ids):
            raise RuntimeError(f"{report['connections_created']} of {len(edges.source_ids)} relationships were made")
        return rest

    def _create_edges(self, edges: EdgeTable) -> None:
        query = f"UNWIND $rows AS r MATCH {_start(edges.ends)}, {_end(edges.ends)} CREATE (a)-[x:"
        self._write(f"{query}{_quoted(edges.ends.type)}]->(b) SET x = r.all", _statement_rows(edges))

    def replace_edges(self, edges: EdgeTable) -> None:
        self._on_edges(edges, " WHERE x.link_id = r.all.link_id SET x = r.all")

    def remove_edges(self, edges: EdgeTable) -> None:
        self._on_edges(edges, " DELETE x")

    def _on_edges(self, edges: EdgeTable, action: str) -> None:
        pattern = f"{_start(edges.ends)}-[x:{_quoted(edges.ends.type)}]->{_end(edges.ends)}"
        self._write(f"UNWIND $rows AS r MATCH {pattern}{action}", _statement_rows(edges))

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


def _explained(fault: Exception, caps: Caps) -> Refused:
    text = str(fault).split("\n")[0][:400]
    if "max_work_units" in text or "safety limit" in text:
        return Refused(
            "query_too_large", f"The query holds more than {caps.work_units_count:,} rows on the way: {text[:200]}",
            "Bound paths (*1..4), filter earlier, or aggregate",
        )  # fmt: skip
    return Refused("query_failed", f"The query cannot be run: {text}", "Change the expression or clause it names")


# -- tables for the bulk loader ------------------------------------------------------------------------------------

_COLUMN_TYPES: dict[type, str] = {
    str: "string", int: "integer", float: "float", bool: "boolean", list: "list", dict: "map",
}  # fmt: skip


class _Frame:
    """What kglite asks of a table: the few words of a pandas frame, without pandas."""

    def __init__(self) -> None:
        self.column_types: dict[str, str] = {}
        """What each column holds: the loader need not guess, and reads no text as anything else."""
        self.attrs: dict[str, Any] = {}
        self._columns: dict[str, Column] = {}
        self._gaps: dict[str, bool] = {}

    def add(self, name: str, column: Column, kind: type, *, has_gaps: bool) -> None:
        """Add a column whose values are all of one type, or None where it has gaps."""
        self._columns[name] = column
        self._gaps[name] = has_gaps
        self.column_types[name] = _COLUMN_TYPES[kind]

    @property
    def columns(self) -> list[str]:
        return list(self._columns)

    @property
    def index(self) -> range:
        return range(len(self))

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __getitem__(self, name: str) -> "_Series":
        return _Series(name, self._columns[name], self._gaps[name])

    def copy(self, *_: Any, **__: Any) -> "_Frame":
        return self

    def reset_index(self, *_: Any, **__: Any) -> "_Frame":
        return self


class _Series:
    """One column, as a frame gives it."""

    dtype = "object"

    def __init__(self, name: str, values: Column, has_gaps: bool) -> None:
        self.name = name
        self.index = range(len(values))
        self.attrs: dict[str, Any] = {}
        self._values = values
        self._has_gaps = has_gaps

    def __len__(self) -> int:
        return len(self._values)

    def isna(self) -> "_Series":
        values = self._values
        gaps = [value is None for value in values] if self._has_gaps else [False] * len(values)
        return _Series(self.name, gaps, has_gaps=False)

    def dropna(self) -> "_Series":
        values = self._values
        there = [value for value in values if value is not None] if self._has_gaps else values
        return _Series(self.name, there, has_gaps=False)

    def tolist(self) -> list[Any]:
        return list(self._values)


def _titled(columns: Mapping[str, Column]) -> dict[str, Column]:
    """Give each node a title, its name where it has none of its own: the engine would take the id."""
    names = columns["name"]
    own = columns.get("title")
    titles = names if own is None else [b if a is None else a for a, b in zip(own, names, strict=True)]
    return {**columns, "title": titles}


def _kinds(column: Column) -> tuple[list[type], bool]:
    """Return the types of a column's values, the most frequent one first, and whether it has gaps."""
    every = set(map(type, column))
    kinds = every - {type(None)}
    has_gaps = len(kinds) < len(every)
    if len(kinds) < 2:
        return list(kinds), has_gaps
    counts = Counter(map(type, column))
    return sorted(kinds, key=lambda kind: (-counts[kind], kind.__name__)), has_gaps


def _only(column: Column, kind: type) -> Column:
    return [value if type(value) is kind else None for value in column]


def _free(name: str, taken: Mapping[str, Any]) -> str:
    while name in taken:
        name += "_"
    return name


def _part(edges: EdgeTable, places: Sequence[int]) -> EdgeTable:
    def of(column: Column) -> list[Any]:
        return [column[place] for place in places]

    columns = {name: of(column) for name, column in edges.columns.items()}
    return EdgeTable(edges.ends, of(edges.source_ids), of(edges.target_ids), columns)


# -- statements ----------------------------------------------------------------------------------------------------

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _start(ends: Ends) -> str:
    return f"(a:{_quoted(ends.source_label)} {{id: r.source}})"


def _end(ends: Ends) -> str:
    return f"(b:{_quoted(ends.target_label)} {{id: r.target}})"


def _statement_rows(edges: EdgeTable) -> list[dict[str, Any]]:
    return [{"source": source, "target": target, "all": properties} for source, target, properties in edges.rows()]


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

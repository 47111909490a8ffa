"""Loading whole tables makes the graph that saying each thing by itself makes."""

from itertools import islice
from typing import Any

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.twin.query import plain_loader

from metaforge.twin.query.bodies import LONG_BYTES
from metaforge.twin.query.graph_engine import Caps, EdgeTable, Ends, NodeTable
from metaforge.twin.query.kglite_engine import KgliteEngine
from metaforge.twin.query.projection import Projection

NODES = "MATCH (n) RETURN labels(n) AS labels, properties(n) AS properties, n.id AS id"
EDGES = "MATCH (a)-[r]->(b) RETURN type(r) AS type, properties(r) AS properties, a.id AS a, b.id AS b"

texts = st.sampled_from(("", " x ", "5", "true", "2026-01-02", "null", "\u202eabc", "😀'\"`\\", "A\x00B"))
numbers = st.one_of(st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False, allow_infinity=False))
scalars = st.one_of(st.none(), st.booleans(), numbers, texts)
names = st.sampled_from(
    ("mass_g", "type", "title", "name", "id", "status", "body_status", "a b", "größe", "", "source", "target",
     "source_", "left_out", "link_id", "author", "to", "from", "geometry", "Null", "__more", "node_type", "labels",
     "ref")
)  # fmt: skip
values = st.recursive(
    scalars, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
    max_leaves=5,
)  # fmt: skip
bodies = st.dictionaries(names, values, max_size=5)
kinds = st.sampled_from(("cad_model", "note", "evidence"))
time = "2026-01-02T03:04:05.000Z"


@st.composite
def rows(draw: st.DrawFn) -> tuple[list[Any], list[Any], list[Any]]:
    items, nodes = [], []
    for number in range(draw(st.integers(0, 4))):
        item_id, kind, prior = f"i{number}", draw(kinds), ""
        revisions = range(1, draw(st.integers(1, 3)) + 1)
        ids = [f"n{number}-{revision}" for revision in revisions]
        head, current = draw(st.sampled_from(["", *ids])), draw(st.sampled_from(["", *ids]))
        items.append([
            item_id, f"K-{number}", kind, draw(texts), "p", len(ids) if head else None, head or None,
            len(ids) if current else None, current or None,
        ])  # fmt: skip
        for revision, node_id in zip(revisions, ids, strict=True):
            nodes.append(_node(draw, node_id, kind, item_id, f"K-{number}", revision, prior))
            prior = node_id
    nodes += [_node(draw, f"r{number}", draw(kinds), None, "", None, "") for number in range(draw(st.integers(0, 4)))]
    links = []
    for number in range(draw(st.integers(0, 12)) if nodes else 0):
        ends = [draw(st.sampled_from(nodes))[0] for _ in range(2)]
        reviewed = draw(st.sampled_from((None, 1)))
        links.append([
            f"l{number}", draw(st.sampled_from(("depends_on", "supersedes", "head"))), *ends,
            draw(st.sampled_from((None, 1, 2))), draw(texts), time, reviewed, "someone" if reviewed else "",
            _body(draw),
        ])  # fmt: skip
    return items, nodes, links


def _node(
    draw: st.DrawFn, node_id: str, kind: str, item_id: str | None, key: str, revision: int | None, prior: str
) -> list[Any]:
    seldom = [draw(st.sampled_from(("", "", "x"))) for _ in range(9)]
    adopted = draw(st.sampled_from((0, 1)))
    head = [node_id, kind, draw(texts), "p", "committed", draw(texts), time, item_id, key, revision, prior]
    return [*head, *seldom, adopted, _body(draw)]


def _body(draw: st.DrawFn) -> str:
    return orjson.dumps(draw(bodies)).decode()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(rows(), st.integers(1, 30))
def test_tables_make_the_graph_that_single_statements_make(
    told: tuple[list[Any], list[Any], list[Any]], batch: int
) -> None:
    items, nodes, links = told
    projection = Projection(KgliteEngine())
    for part in _parts(items, batch):
        projection.put(items=part)
    for part in _parts(nodes, batch):
        projection.put(nodes=part)
    projection.settle()
    for part in _parts(links, batch):
        projection.put(links=part)
    plain = plain_loader.load(items, nodes, links)
    for query in (NODES, EDGES):
        found = projection.engine.run(query, {}, Caps(rows_count=10_000)).rows
        assert sorted(map(repr, found)) == sorted(map(repr, plain.cypher(query).to_list()))


def _parts(rows: list[Any], count: int) -> Any:
    waiting = iter(rows)
    while part := list(islice(waiting, count)):
        yield part


def test_a_property_that_few_nodes_have_is_theirs_alone() -> None:
    projection = Projection(KgliteEngine())
    nodes = [
        ["n" + str(n), "note", "N", "p", "committed", "", time, None, "", None, "", *[""] * 9, 0, f'{{"own_{n}": {n}}}']
        for n in range(60)
    ]
    projection.put(nodes=nodes)
    rows = projection.engine.run("MATCH (n:note) RETURN n.id AS id, keys(n) AS keys, n.own_7 AS seven", {}, Caps()).rows
    assert all({each for each in row["keys"] if each.startswith("own_")} == {f"own_{row['id'][1:]}"} for row in rows)
    assert [row["id"] for row in rows if row["seven"] == 7] == ["n7"]
    assert {f"own_{n}" for n in range(60)} <= projection.names


def test_a_value_that_is_too_long_stays_out_of_the_graph_and_is_named() -> None:
    projection = Projection(KgliteEngine())
    body = orjson.dumps({"text": "x" * LONG_BYTES, "mass_g": 2, "left_out": "own"}).decode()
    projection.put(nodes=[["n", "note", "N", "p", "s", "", time, None, "", None, "", *[""] * 9, 0, body]])
    found = projection.engine.run(
        "MATCH (n:note) RETURN n.left_out AS out, n.text AS text, n.mass_g AS mass, n.body_left_out AS own", {}, Caps()
    )
    assert found.rows == [{"out": ["text"], "text": None, "mass": 2, "own": "own"}]


def test_a_second_relationship_between_two_nodes_is_one_of_its_own_however_they_are_added() -> None:
    engine = KgliteEngine()
    engine.add_nodes(NodeTable("part", {"id": ["a", "b", "c"], "name": ["A", "B", "C"]}))
    ends = Ends("part", "NEEDS", "part")
    engine.add_edges(EdgeTable(ends, ["a", "a"], ["b", "c"], {"link_id": ["1", "2"]}))
    engine.add_edges(EdgeTable(ends, ["a", "b", "b"], ["b", "c", "c"], {"link_id": ["3", "4", "5"]}))
    rows = engine.run("MATCH (a)-[r:NEEDS]->(b) RETURN r.link_id AS link, a.id + b.id AS ends", {}, Caps()).rows
    assert sorted((row["link"], row["ends"]) for row in rows) == [
        ("1", "ab"), ("2", "ac"), ("3", "ab"), ("4", "bc"), ("5", "bc"),
    ]  # fmt: skip

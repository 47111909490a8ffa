# ruff: noqa: E501 - a query is easier to read in one piece
"""What the gate lets pass, and the reason it gives for the rest."""

import pytest

from metaforge.twin.query.frames import Refused
from metaforge.twin.query.grammar import examine

READS = (
    "MATCH (n:cad_model) WHERE n.project_id = $project_id RETURN n",
    "MATCH (n:cad_model {name: 'x'})-[r:DEPENDS_ON*1..8]->(m) RETURN DISTINCT m.item_key AS key ORDER BY key DESC SKIP 1 LIMIT 5",
    "MATCH (a)-[r]->(b) RETURN type(r), count(*) AS c",
    "OPTIONAL MATCH (a)<-[:VERIFIES]-(e) WITH a, count(e) AS c WHERE c = 0 RETURN a.name",
    "MATCH (a) WHERE NOT EXISTS { MATCH (a)<-[:VERIFIES]-(e) } RETURN a",
    "MATCH (a) WHERE NOT (a)<-[:VERIFIES]-() RETURN a",
    "MATCH p = shortestPath((a {item_key: 'A'})-[*..8]->(b {item_key: 'B'})) RETURN p",
    "MATCH (a {name: 'A'}), (b {name: 'B'}), p = allShortestPaths((a)-[*..4]-(b)) RETURN length(p)",
    "MATCH p = (a)-[*1..3]-(b) RETURN [x IN nodes(p) | x.name] AS names, reduce(s = 0, x IN nodes(p) | s + x.v)",
    "UNWIND [1, 2, 3] AS x RETURN x, CASE WHEN x > 1 THEN 'a' ELSE 'b' END, CASE x WHEN 1 THEN 'one' END",
    "MATCH (a) RETURN a.name UNION MATCH (b) RETURN b.name UNION ALL MATCH (c) RETURN c.name",
    "MATCH (a) WHERE a.name STARTS WITH 'x' AND a.name CONTAINS 'y' OR a.name ENDS WITH 'z' OR a.name =~ '.*q' RETURN a",
    "MATCH (a) WHERE a.x IN [1, 2] AND a.y IS NOT NULL AND a.z IS NULL AND NOT a.q XOR true RETURN collect(DISTINCT a.x)",
    "MATCH (a) RETURN avg(a.x), min(a.x), max(a.x), sum(a.x), stdev(a.x), percentileCont(a.x, 0.5), count(DISTINCT a.x)",
    "MATCH (a) RETURN keys(a), labels(a), properties(a), id(a), elementId(a), a['name'], a.tags[0], a.tags[1..3]",
    "MATCH (a:cad_model|assembly)-[:X|Y]->(b:Item&!cad_model) WHERE a:Item RETURN a",
    "MATCH (a) WHERE any(x IN a.tags WHERE x = 'q') AND none(x IN a.tags WHERE x <> 'q') RETURN [(a)-[:X]->(b) | b.name]",
    "RETURN 'it''s', \"q\", -3, 1.5e3, null, true, $x, [1, 'a'], {a: 1}",
    "MATCH (a)-[r:X {q: 1}]->(b) WHERE r.q > $p AND 1 < a.x <= 3 RETURN startNode(r), endNode(r), r",
    "WITH 1 AS x MATCH (a) WITH a, x ORDER BY a.name LIMIT 3 RETURN *",
    "MATCH (a)--(b)-->(c)<--(d) RETURN a.x + b.x * 2 - c.x / 3 % 4 ^ 2",
    "RETURN range(1, 10), head([1]), last([1]), tail([1]), size([1]), split('a,b', ','), substring('abc', 1, 2)",
    "RETURN replace('a', 'b', 'c'), trim(' a '), toString(1), toInteger('1'), toFloat('1'), round(1.5), ceil(1.2)",
    "RETURN floor(1.2), abs(-1), sqrt(4), sign(-1), left('abc', 1), right('abc', 1), reverse('abc'), coalesce(null, 1)",
    "RETURN toLower('A'), toUpper('a'), date('2020-01-01'), datetime('2020-01-01T00:00:00Z'), duration('P1D')",
    "MATCH (n) RETURN n // LOAD CSV FROM 'x' AS y",
    "MATCH (n) /* CREATE (m) */ RETURN n;",
    "MATCH (n) WHERE n.name = 'LOAD CSV; COPY FOREACH ( CALL x() DELETE' RETURN n.`set`, n.load",
    "MATCH (n:`a b`) RETURN n",
)
REFUSED = (
    ("LOAD CSV FROM 'file:///etc/passwd' AS line RETURN line", "query_reaches_outside", "LOAD CSV"),
    ("MATCH (n) LOAD CSV WITH HEADERS FROM 'http://a/b' AS line RETURN line", "query_reaches_outside", "LOAD CSV"),
    ("load /* */ csv from 'file:///etc/passwd' as line return line", "query_reaches_outside", "LOAD CSV"),
    ("COPY (MATCH (n) RETURN n) TO '/tmp/x.csv'", "query_reaches_outside", "COPY"),
    ("EXPORT DATABASE '/tmp/x'", "query_reaches_outside", "EXPORT"),
    ("LOAD FROM '/etc/passwd' RETURN *", "query_reaches_outside", "LOAD FROM"),
    ("CREATE (n:x {a: 1})", "query_writes", "CREATE"),
    ("INSERT (n:x)", "query_writes", "INSERT"),
    ("MATCH (n) SET n.x = 1", "query_writes", "SET"),
    ("MATCH (n) SET n.x = 1 RETURN n", "query_writes", "SET"),
    ("MATCH (n) REMOVE n.x", "query_writes", "REMOVE"),
    ("MATCH (n) DETACH DELETE n", "query_writes", "DELETE"),
    ("MERGE (n:x {a: 1}) ON CREATE SET n.b = 2", "query_writes", ""),
    ("MATCH (n) FOREACH (x IN [1] | SET n.x = x)", "query_writes", "FOREACH"),
    ("CREATE INDEX FOR (n:x) ON (n.a)", "query_writes", "CREATE INDEX"),
    ("DROP INDEX x", "query_writes", "DROP INDEX"),
    ("CALL db.labels()", "query_calls", "CALL"),
    ("MATCH (n) CALL (n) { MATCH (n)-->(m) RETURN m } RETURN m", "query_calls", "CALL"),
    ("CALL { MATCH (n) RETURN n } RETURN n", "query_calls", "CALL"),
    ("CALL apoc.load.json('file:///etc/passwd') YIELD value RETURN value", "query_calls", "CALL"),
    ("MATCH (m) RETURN m; MATCH (n) RETURN n", "several_statements", "2 statements"),
    ("MATCH (m) RETURN m; MATCH (n) DETACH DELETE n", "several_statements", "2 statements"),
    ("MATCH (n) RETURN apoc.load.json('file:///etc/passwd')", "unknown_function", "apoc.load.json"),
    ("MATCH (n) RETURN text_score(n, 'name', 'x')", "unknown_function", "text_score"),
    ("EXPLAIN MATCH (n) RETURN n", "query_not_allowed", "EXPLAIN"),
    ("PROFILE MATCH (n) RETURN n", "query_not_allowed", "PROFILE"),
    ("USE other MATCH (n) RETURN n", "query_not_allowed", "USE"),
    ("SHOW INDEXES", "query_not_allowed", "SHOW"),
    ("FOR VALID_TIME ALL MATCH (n) RETURN n", "query_syntax", ""),
    ("MATCH (n) FINISH", "query_not_allowed", "finish"),
    ("MATCH (n RETURN n", "query_syntax", "Line 1"),
    ("which parts are heavy?", "query_syntax", ""),
    ("RETURN " + "(" * 1500 + "1" + ")" * 1500, "query_nested_too_deeply", "nested"),
)  # fmt: skip


@pytest.mark.parametrize("text", READS)
def test_a_query_that_only_reads_passes(text: str) -> None:
    assert isinstance(examine(text).as_json()["labels"], list)


@pytest.mark.parametrize(("text", "kind", "said"), REFUSED, ids=[text[:40] for text, *_ in REFUSED])
def test_everything_else_is_refused_with_its_reason(text: str, kind: str, said: str) -> None:
    with pytest.raises(Refused) as refusal:
        examine(text)
    assert refusal.value.kind == kind
    assert said in refusal.value.message


def test_a_text_tells_what_it_names() -> None:
    found = examine("MATCH (n:cad_model {name: $name})-[:VERIFIES]->(m) WHERE m.mass_g > $limit RETURN m.item_key")
    assert found.as_json() == {
        "parameters": ["limit", "name"],
        "labels": ["VERIFIES", "cad_model"],
        "properties": ["item_key", "mass_g", "name"],
    }


def test_a_refusal_of_the_parser_says_where_without_control_characters() -> None:
    with pytest.raises(Refused) as refusal:
        examine("MATCH (a) RETURN a {.name}")
    assert "\x1b" not in refusal.value.message
    assert "Line 1" in refusal.value.message
    assert "n.name" in refusal.value.fix


def test_a_path_search_hides_nothing_from_the_gate() -> None:
    with pytest.raises(Refused) as refusal:
        examine("MATCH p = shortestPath((a)-[*]->(b)) DELETE p RETURN shortestPath((a)-[*]->(b))")
    assert refusal.value.kind in ("query_writes", "query_syntax")

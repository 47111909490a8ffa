# ruff: noqa: E501 - a query is easier to read in one piece
"""A corpus of queries, each answered twice: in Cypher by the graph, and in SQL or plain Python by the record itself."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from tests.twin.query.test_projection import Follower

from metaforge.store.blobs import BlobStore
from metaforge.store.database import Database
from metaforge.twin.model import Reader
from metaforge.twin.query.grammar import examine
from metaforge.twin.query.graph_engine import Caps
from metaforge.twin.store import TwinStore

SQL_CURRENT = "join items on items.item_id = nodes.item_id and items.head_node_id = nodes.node_id"
SQL_IMPACT = (
    "with recursive hit(node_id, depth) as (select node_id, 0 from nodes where node_id = ? "
    "union select links.source_node_id, hit.depth + 1 from links join hit on links.target_node_id = hit.node_id "
    "where links.type = 'depends_on' and hit.depth < ?) select distinct node_id from hit where depth > 0 order by node_id"
)


@dataclass
class Design:
    """Some hundred parts that depend on each other without a circle, requirements, and evidence for some of them."""

    store: TwinStore
    graph: Follower
    project_id: str
    parts: list[str]

    def cypher(self, text: str, **params: Any) -> list[tuple[Any, ...]]:
        examine(text)
        rows = self.graph.projection.engine.run(
            text, {"project_id": self.project_id, **params}, Caps(100_000, 60.0)
        ).rows
        return [tuple(row.values()) for row in rows]

    def sql(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.store.read(Reader("", self.project_id)) as view:
            return [tuple(row) for row in view.transaction.rows(text, *values)]


@pytest.fixture(scope="module")
def design(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Design]:
    home = tmp_path_factory.mktemp("corpus")
    database, blobs = Database("", home), BlobStore(home / "blobs")
    store = TwinStore(database, blobs)
    chance = random.Random(7)
    with store.change(author="owner") as change:
        project_id = change.create_project("Rover").project_id
        other = change.create_project("Other").project_id
    for place in (project_id, other):
        _fill(store, place, chance)
    graph = Follower(store, blobs, Reader("", project_id))
    made = Design(store, graph, project_id, [])
    made.parts = [row[0] for row in made.sql(
        "select node_id from nodes where project_id = ? and kind = 'cad_model' order by node_id", project_id
    )]  # fmt: skip
    yield made
    database.close()


def _fill(store: TwinStore, project_id: str, chance: random.Random) -> None:
    with store.change(author="agent", project_id=project_id) as change:
        parts: list[Any] = []
        for number in range(120):
            body = {"mass_g": chance.choice((1, 2.5, 40, "unknown", None)), "material": chance.choice(("al", "steel"))}
            body["tags"] = chance.sample(["hot", "cold", "wet"], chance.randint(0, 3))
            part = change.define("cad_model", f"Part {number}", body)
            for below in chance.sample(parts, min(len(parts), 2)):
                change.link("depends_on", part, below)
            parts.append(part)
        for number in chance.sample(range(120), 30):
            change.define("cad_model", f"Part {number}", {"mass_g": 7, "material": "al", "tags": []})
        for number in range(40):
            need = change.define("stakeholder_need", f"Need {number}", {"text": f"Shall do {number}"})
            for part in chance.sample(parts, chance.randint(0, 2)):
                change.link("satisfies", part, need, {"margin": number / 4})
        for number in range(20):
            proof = change.record("evidence", {"result": chance.choice(("pass", "fail")), "load_n": number * 10})
            change.link("valid_against", proof, chance.choice(parts))


CORPUS: tuple[tuple[str, str], ...] = (
    (
        "MATCH (n) WHERE n.project_id = $project_id AND n.ref IS NOT NULL RETURN count(n) AS n",
        "select count(*) from nodes where project_id = :p",
    ),
    (
        "MATCH (n:cad_model) WHERE n.is_current RETURN n.ref AS ref ORDER BY ref",
        f"select nodes.item_key || '@' || nodes.revision as ref from nodes {SQL_CURRENT} "
        "where nodes.project_id = :p and nodes.kind = 'cad_model' order by ref",
    ),
    (
        "MATCH (n:cad_model) RETURN n.material AS material, count(*) AS c ORDER BY material",
        "select json_extract(body, '$.material') m, count(*) from nodes where project_id = :p and kind = 'cad_model' "
        "group by m order by m",
    ),
    (
        "MATCH (n:cad_model) WHERE n.mass_g > 2 RETURN n.node_id AS id ORDER BY id",
        "select node_id from nodes where project_id = :p and kind = 'cad_model' and "
        "json_type(body, '$.mass_g') in ('integer', 'real') and json_extract(body, '$.mass_g') > 2 order by node_id",
    ),
    (
        "MATCH (n:cad_model) WHERE n.mass_g IS NULL RETURN count(n) AS c",
        "select count(*) from nodes where project_id = :p and kind = 'cad_model' "
        "and json_extract(body, '$.mass_g') is null",
    ),
    (
        "MATCH (n:cad_model) WHERE n.mass_g = 'unknown' OR n.mass_g = 40 RETURN count(n) AS c",
        "select count(*) from nodes where project_id = :p and kind = 'cad_model' "
        "and json_extract(body, '$.mass_g') in ('unknown', 40)",
    ),
    (
        "MATCH (n:cad_model) WHERE n.mass_g < 100 RETURN sum(n.mass_g) AS s, avg(n.mass_g) AS a, max(n.mass_g) AS m",
        "select sum(m), avg(m), max(m) from (select json_extract(body, '$.mass_g') m from nodes where project_id = :p "
        "and kind = 'cad_model' and json_type(body, '$.mass_g') in ('integer', 'real'))",
    ),
    (
        "MATCH (n:cad_model) WHERE 'hot' IN n.tags RETURN n.node_id AS id ORDER BY id",
        "select node_id from nodes where project_id = :p and kind = 'cad_model' and exists "
        "(select 1 from json_each(body, '$.tags') where value = 'hot') order by node_id",
    ),
    (
        "MATCH (n:cad_model) RETURN n.node_id AS id, size(n.tags) AS c ORDER BY c DESC, id LIMIT 10",
        "select node_id, json_array_length(body, '$.tags') c from nodes where project_id = :p and kind = 'cad_model' "
        "order by c desc, node_id limit 10",
    ),
    (
        "MATCH (n:cad_model) WHERE n.name STARTS WITH 'Part 1' AND n.name ENDS WITH '7' RETURN DISTINCT n.name AS name "
        "ORDER BY name SKIP 1 LIMIT 3",
        "select distinct name from nodes where project_id = :p and kind = 'cad_model' and name like 'Part 1%7' "
        "order by name limit 3 offset 1",
    ),
    (
        "MATCH (a)-[r]->(b) WHERE r.link_id STARTS WITH 'l' RETURN type(r) AS t, count(*) AS c ORDER BY t",
        "select upper(type), count(*) from links where project_id = :p group by type order by 1",
    ),
    (
        "MATCH (a:cad_model)-[r:SATISFIES]->(b:stakeholder_need) WHERE r.margin >= 5 "
        "RETURN a.node_id AS a, b.item_key AS b ORDER BY a, b",
        "select source_node_id, nodes.item_key from links join nodes on nodes.node_id = target_node_id "
        "where links.project_id = :p and type = 'satisfies' and json_extract(links.body, '$.margin') >= 5 order by 1, 2",
    ),
    (
        "MATCH (n:stakeholder_need) WHERE NOT (n)<-[:SATISFIES]-() RETURN n.item_key AS key ORDER BY key",
        "select item_key from nodes where project_id = :p and kind = 'stakeholder_need' and not exists (select 1 from "
        "links where target_node_id = nodes.node_id and type = 'satisfies') order by 1",
    ),
    (
        "MATCH (n:stakeholder_need) WHERE NOT EXISTS { MATCH (n)<-[:SATISFIES]-(:cad_model {material: 'steel'}) } "
        "RETURN count(n) AS c",
        "select count(*) from nodes where project_id = :p and kind = 'stakeholder_need' and not exists (select 1 from "
        "links join nodes part on part.node_id = source_node_id where target_node_id = nodes.node_id "
        "and type = 'satisfies' and json_extract(part.body, '$.material') = 'steel')",
    ),
    (
        "MATCH (n:stakeholder_need) OPTIONAL MATCH (n)<-[:SATISFIES]-(p) WITH n, count(p) AS c WHERE c <> 1 "
        "RETURN c, count(n) AS needs ORDER BY c",
        "select c, count(*) from (select (select count(*) from links where target_node_id = nodes.node_id "
        "and type = 'satisfies') c from nodes where project_id = :p and kind = 'stakeholder_need') "
        "where c <> 1 group by c order by c",
    ),
    (
        "MATCH (e:evidence)-[r:VALID_AGAINST]->(n)-[:REVISION_OF]->(i:Item) WHERE r.target_revision < i.head_revision "
        "RETURN e.node_id AS id ORDER BY id",
        "select source_node_id from links join items on items.item_id = target_subject where links.project_id = :p "
        "and type = 'valid_against' and target_revision < head_revision order by 1",
    ),
    (
        "MATCH (i:Item)<-[:REVISION_OF]-(n:cad_model) WITH i, count(n) AS c WHERE c > 1 RETURN i.item_key AS key, c "
        "ORDER BY key",
        "select item_key, count(*) c from nodes where project_id = :p and kind = 'cad_model' group by item_id "
        "having c > 1 order by item_key",
    ),
    (
        "MATCH (a:cad_model)-[:DEPENDS_ON]->(b:cad_model)-[:DEPENDS_ON]->(c:cad_model) RETURN count(*) AS c",
        "select count(*) from links one join links two on two.source_node_id = one.target_node_id "
        "where one.project_id = :p and one.type = 'depends_on' and two.type = 'depends_on'",
    ),
    (
        "MATCH (a:cad_model {material: 'al'}), (b:evidence {result: 'pass'}) RETURN count(*) AS c",
        "select (select count(*) from nodes where project_id = :p and json_extract(body, '$.material') = 'al') * "
        "(select count(*) from nodes where project_id = :p and json_extract(body, '$.result') = 'pass')",
    ),
    (
        "MATCH (n:evidence) RETURN CASE WHEN n.load_n < 50 THEN 'low' WHEN n.load_n < 120 THEN 'mid' ELSE 'high' END "
        "AS band, count(*) AS c ORDER BY band",
        "select case when l < 50 then 'low' when l < 120 then 'mid' else 'high' end band, count(*) from (select "
        "json_extract(body, '$.load_n') l from nodes where project_id = :p and kind = 'evidence') group by 1 order by 1",
    ),
    (
        "MATCH (n:evidence) WHERE n.result = 'pass' RETURN n.node_id AS id UNION MATCH (n:evidence) "
        "WHERE n.load_n > 100 RETURN n.node_id AS id",
        "select node_id from nodes where project_id = :p and kind = 'evidence' and (json_extract(body, '$.result') = "
        "'pass' or json_extract(body, '$.load_n') > 100)",
    ),
    (
        "MATCH (n:cad_model)-[:SUPERSEDES]->(m) RETURN n.revision - m.revision AS step, count(*) AS c",
        "select 1, count(*) from nodes where project_id = :p and kind = 'cad_model' and revision > 1",
    ),
)  # fmt: skip


@pytest.mark.parametrize(("cypher", "sql"), CORPUS, ids=range(len(CORPUS)))
def test_the_graph_answers_what_sql_answers(design: Design, cypher: str, sql: str) -> None:
    values = [design.project_id] * sql.count(":p")
    got, wanted = design.cypher(cypher), design.sql(sql.replace(":p", "?"), *values)
    if "ORDER BY" not in cypher:
        got, wanted = sorted(got, key=repr), sorted(wanted, key=repr)
    assert got == [tuple(_near(value) for value in row) for row in wanted]
    assert wanted


def _near(value: Any) -> Any:
    return pytest.approx(value) if isinstance(value, float) else value


@pytest.mark.parametrize("depth", [1, 3, 8])
def test_an_impact_is_what_a_recursive_query_finds(design: Design, depth: int) -> None:
    text = f"MATCH (a)-[:DEPENDS_ON*1..{depth}]->(b {{node_id: $id}}) RETURN DISTINCT a.node_id AS id ORDER BY id"
    met = 0
    for part in design.parts[::7]:
        found = design.cypher(text, id=part)
        assert found == design.sql(SQL_IMPACT, part, depth)
        met += len(found)
    assert met > 20


def test_a_shortest_path_is_as_long_as_the_first_level_that_meets_its_end(design: Design) -> None:
    text = (
        "MATCH p = shortestPath((a:cad_model {node_id: $start})-[:DEPENDS_ON*..12]->(b:cad_model {node_id: $end})) "
        "RETURN length(p) AS length"
    )
    neighbours: dict[str, set[str]] = {}
    for source, target in design.sql(
        "select source_node_id, target_node_id from links where project_id = ? and type = 'depends_on'",
        design.project_id,
    ):
        neighbours.setdefault(source, set()).add(target)
    chance = random.Random(3)
    found = 0
    for _ in range(40):
        start, end = chance.sample(design.parts, 2)
        wanted = _distance(neighbours, start, end)
        got = design.cypher(text, start=start, end=end)
        assert got == ([(wanted,)] if wanted is not None else [])
        found += bool(got)
    assert found > 3


def _distance(neighbours: dict[str, set[str]], start: str, end: str) -> int | None:
    level, seen, depth = {start}, {start}, 0
    while level:
        if end in level:
            return depth
        level = {after for node in level for after in neighbours.get(node, ())} - seen
        seen |= level
        depth += 1
    return None

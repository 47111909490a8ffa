"""`TwinQueries`: whose rows a query sees, what it may cost, and what it never does."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.twin.query.conftest import Ask

from metaforge.core.errors import OverLimit, ToolError
from metaforge.store.blobs import BlobStore
from metaforge.twin.model import Decision
from metaforge.twin.query.service import Limits, TwinQueries
from metaforge.twin.store import TwinStore

ALL_REFS = "MATCH (n) WHERE n.project_id = $project_id AND n.ref IS NOT NULL RETURN n.ref AS ref ORDER BY ref"
CURRENT = "MATCH (n:cad_model) WHERE n.is_current RETURN n.ref AS ref, n.mass_g AS mass_g ORDER BY ref"


@pytest.fixture
def bracket(twin: TwinStore, project_id: str) -> str:
    """A bracket of two revisions and a decision that rests on the first; the bracket's key."""
    with twin.change(author="agent", project_id=project_id) as change:
        first = change.define("cad_model", "Bracket", {"mass_g": 12.5, "measured": {"volume_mm3": 4600}})
        decision = change.record("design_decision", {"title": "Aluminium"}, name="Material")
        change.link("depends_on", decision, first, {"why": "stiffness"})
        change.define("cad_model", "Bracket", {"mass_g": 13})
    return first.item_key


async def test_every_revision_is_a_node_of_its_kind_and_the_current_one_says_so(ask: Ask, bracket: str) -> None:
    found = await ask("MATCH (n:cad_model) RETURN n.ref AS ref, n.is_current AS now, n.is_head AS head ORDER BY ref")
    assert found.rows == [
        {"ref": "CAD-BRACKET@1", "now": False, "head": False},
        {"ref": "CAD-BRACKET@2", "now": True, "head": True},
    ]
    assert found.warnings == ()


async def test_links_items_and_bodies_can_be_followed(ask: Ask, bracket: str) -> None:
    found = await ask(
        "MATCH (d:design_decision)-[r:DEPENDS_ON]->(n)-[:REVISION_OF]->(i:Item {item_key: $key})-[:HEAD]->(h) "
        "MATCH (h)-[:SUPERSEDES]->(n) "
        "RETURN d.title AS title, r.why AS why, n.measured.volume_mm3 AS volume_mm3, h.ref AS head",
        key=bracket,
    )
    assert found.rows == [
        {"title": "Aluminium", "why": "stiffness", "volume_mm3": 4600, "head": "CAD-BRACKET@2"},
    ]


async def test_nodes_relationships_and_paths_come_back_whole(ask: Ask, bracket: str) -> None:
    found = await ask("MATCH p = (d:design_decision)-[r]->(n:cad_model) RETURN d, r, p")
    row = found.rows[0]
    assert row["d"]["labels"] == ["design_decision"]
    assert row["d"]["properties"]["title"] == "Aluminium"
    assert "type" not in row["d"]["properties"]
    assert row["r"]["type"] == "DEPENDS_ON"
    assert row["r"]["properties"]["target_revision"] == 1
    assert [node["properties"]["name"] for node in row["p"]["nodes"]] == ["Material", "Bracket"]


async def test_writes_are_seen_by_the_next_query(ask: Ask, twin: TwinStore, project_id: str, bracket: str) -> None:
    assert (await ask(CURRENT)).rows == [{"ref": "CAD-BRACKET@2", "mass_g": 13}]
    with twin.change(author="agent", project_id=project_id) as change:
        change.define("cad_model", "Bracket", {"mass_g": 14})
        change.define("cad_model", "Plate", {"mass_g": 2})
    assert (await ask(CURRENT)).rows == [
        {"ref": "CAD-BRACKET@3", "mass_g": 14}, {"ref": "CAD-PLATE@1", "mass_g": 2},
    ]  # fmt: skip
    heads = await ask("MATCH (i:Item)-[:HEAD]->(n) RETURN i.item_key AS key, n.ref AS ref ORDER BY key")
    assert [row["ref"] for row in heads.rows] == ["CAD-BRACKET@3", "CAD-PLATE@1"]


async def test_a_run_sees_its_own_drafts_and_nobody_elses(
    ask: Ask, twin: TwinStore, project_id: str, bracket: str, start_run: Callable[[str], str]
) -> None:
    mine, other = start_run("r-mine"), start_run("r-other")
    with twin.change(author="agent", run_id=mine) as change:
        change.define("cad_model", "Bracket", {"mass_g": 99})
    with twin.change(author="agent", run_id=other) as change:
        change.define("cad_model", "Secret", {"mass_g": 1})
    assert (await ask(CURRENT)).rows == [{"ref": "CAD-BRACKET@2", "mass_g": 13}]
    assert (await ask(CURRENT, run_id=mine)).rows == [{"ref": "CAD-BRACKET@3", "mass_g": 99}]
    assert (await ask("MATCH (i:Item {name: 'Secret'}) RETURN i", run_id=mine)).rows == []
    with twin.change(author="gate") as change:
        change.close_run(mine, Decision.APPROVE)
    assert (await ask(CURRENT)).rows == [{"ref": "CAD-BRACKET@3", "mass_g": 99}]


async def test_a_scoped_call_must_bind_its_project(queries: TwinQueries, project_id: str) -> None:
    with pytest.raises(ToolError) as refusal:
        await queries.query("MATCH (n) RETURN n", {}, project_id=project_id)
    assert refusal.value.message.startswith(
        f"call context is scoped to project {project_id} but no 'project_id' parameter was bound. "
        "Add WHERE n.project_id = $project_id and pass {'project_id': "
    )
    assert refusal.value.text().startswith("twin.query_cypher failed: call context is scoped to project")


async def test_a_scoped_call_may_not_name_another_project(queries: TwinQueries, project_id: str) -> None:
    with pytest.raises(ToolError) as refusal:
        await queries.query("MATCH (n) RETURN n", {"project_id": "p-other"}, project_id=project_id)
    assert refusal.value.kind == "other_project"


@pytest.mark.parametrize(
    "cypher",
    [
        "MATCH (n) WHERE n.project_id = $project_id OR true RETURN n.name AS name",
        "MATCH (n) RETURN n.name AS name",
        "MATCH (m) WHERE m.project_id = $project_id WITH count(m) AS c MATCH (n) RETURN n.name AS name",
        "MATCH (n) WHERE n.project_id <> $project_id RETURN n.name AS name",
        "MATCH (a) OPTIONAL MATCH (n) WHERE n.project_id <> a.project_id RETURN n.name AS name",
        "MATCH (a)-[*0..]-(n) RETURN n.name AS name",
    ],
)
async def test_no_text_reaches_another_project(
    ask: Ask, twin: TwinStore, project_id: str, bracket: str, cypher: str
) -> None:
    with twin.change(author="owner") as change:
        other = change.create_project("Other").project_id
    with twin.change(author="agent", project_id=other) as change:
        secret = change.define("cad_model", "Secret", {"mass_g": 1})
        change.link("depends_on", "CAD-SECRET", secret.node_id)
    names = {row["name"] for row in (await ask(cypher)).rows}
    assert "Secret" not in names


async def test_a_call_without_a_project_sees_all_of_them_but_deleted_ones(
    queries: TwinQueries, twin: TwinStore, project_id: str, bracket: str
) -> None:
    made = {}
    for name in ("Kept", "Gone"):
        with twin.change(author="owner") as change:
            made[name] = change.create_project(name).project_id
        with twin.change(author="agent", project_id=made[name]) as change:
            change.define("cad_model", f"Part of {name}", {})
    names = "MATCH (n:cad_model) WHERE n.is_current RETURN n.name AS name ORDER BY name"
    assert [row["name"] for row in (await queries.query(names)).rows] == ["Bracket", "Part of Gone", "Part of Kept"]
    with twin.change(author="owner") as change:
        change.delete_project(made["Gone"])
    assert [row["name"] for row in (await queries.query(names)).rows] == ["Bracket", "Part of Kept"]
    bound = await queries.query(names, {"project_id": made["Kept"]})
    assert [row["name"] for row in bound.rows] == ["Part of Kept"]
    with pytest.raises(ToolError) as refusal:
        await queries.query(names, {"project_id": made["Gone"]})
    assert refusal.value.kind == "unknown_project"


async def test_a_megabyte_of_text_is_refused_before_it_is_read(queries: TwinQueries) -> None:
    with pytest.raises(ToolError) as refusal:
        await queries.query("MATCH (n) RETURN n //" + "x" * (1 << 20))
    assert refusal.value.kind == "query_too_long"
    assert "4,000" in refusal.value.message


async def test_a_write_is_refused_with_the_tools_that_do_it(queries: TwinQueries) -> None:
    with pytest.raises(ToolError) as refusal:
        await queries.query("CREATE (n:design_decision {title: 'x'})")
    assert refusal.value.kind == "query_writes"
    assert "twin.record_decision" in refusal.value.fix


async def test_with_mutations_allowed_a_write_is_still_refused_and_says_so(twin: TwinStore, tmp_path: Path) -> None:
    queries = TwinQueries(twin, BlobStore(tmp_path / "blobs"), mutations_allowed=True)
    try:
        with pytest.raises(ToolError) as refusal:
            await queries.query("MATCH (n) SET n.name = 'x'")
        assert "--allow-twin-mutations" in refusal.value.message
    finally:
        await queries.close()


async def test_whether_a_text_only_reads_can_be_asked_beforehand(queries: TwinQueries) -> None:
    assert await queries.reads_only("MATCH (n) RETURN n")
    assert not await queries.reads_only("MATCH (n) DELETE n")


async def test_a_missing_parameter_is_named(queries: TwinQueries) -> None:
    with pytest.raises(ToolError) as refusal:
        await queries.query("MATCH (n) WHERE n.mass_g > $limit RETURN n")
    assert "$limit" in refusal.value.message


async def test_an_answer_is_cut_at_its_rows_and_says_how_many_there_were(ask: Ask) -> None:
    found = await ask("UNWIND range(1, 2500) AS x RETURN x")
    assert len(found.rows) == 1000
    assert found.total_count == 2500
    assert "1,000 of 2,500" in found.warnings[0]


async def test_an_answer_is_cut_at_its_bytes(twin: TwinStore, tmp_path: Path) -> None:
    queries = TwinQueries(twin, BlobStore(tmp_path / "blobs"), limits=Limits(answer_bytes=2000))
    try:
        found = await queries.query("UNWIND range(1, 500) AS x RETURN x, 'some words to fill the row' AS words")
        assert 0 < len(found.rows) < 100
        assert found.total_count == 500
    finally:
        await queries.close()


async def test_names_that_match_nothing_are_told_with_those_that_do(ask: Ask, bracket: str) -> None:
    found = await ask("MATCH (n:CAD_Model)-[:depends_on]->(m) RETURN m.weight_g")
    assert found.rows == []
    assert "did you mean cad_model?" in found.warnings[0]
    assert "DEPENDS_ON" in found.warnings[0]
    assert "weight_g" in found.warnings[1]


async def test_a_cross_join_without_end_is_stopped(twin: TwinStore, tmp_path: Path, project_id: str) -> None:
    with twin.change(author="agent", project_id=project_id) as change:
        for number in range(300):
            change.record("note", {"number": number})
    queries = TwinQueries(twin, BlobStore(tmp_path / "blobs"), limits=Limits(seconds=0.5))
    try:
        for cypher in (
            "MATCH (a), (b), (c), (d) RETURN count(*) AS n",
            "MATCH (a), (b), (c), (d) RETURN a.name, b.name, c.name, d.name",
            "MATCH (a), (b), (c), (d) WHERE a.number + b.number + c.number = d.number RETURN sum(a.number) AS n",
        ):
            with pytest.raises(ToolError) as refusal:
                await queries.query(cypher, {"project_id": project_id})
            assert refusal.value.kind in ("query_timeout", "query_too_large")
        assert (await queries.query("MATCH (n:note) RETURN count(n) AS n")).rows == [{"n": 300}]
    finally:
        await queries.close()


async def test_a_query_that_eats_memory_ends_its_own_process_and_the_next_one_works(
    twin: TwinStore, tmp_path: Path, project_id: str, bracket: str
) -> None:
    queries = TwinQueries(twin, BlobStore(tmp_path / "blobs"), limits=Limits(memory_mb=300))
    try:
        with pytest.raises(OverLimit) as refusal:
            await queries.query("RETURN reduce(s = 'x', i IN range(1, 40) | s + s) AS s")
        assert refusal.value.kind == "query_memory"
        assert (await queries.query("MATCH (n:cad_model) RETURN count(n) AS n")).rows == [{"n": 2}]
    finally:
        await queries.close()


async def test_a_cancelled_query_leaves_no_process_and_no_wrong_answer_behind(
    queries: TwinQueries, twin: TwinStore, project_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with twin.change(author="agent", project_id=project_id) as change:
        for number in range(400):
            change.record("note", {"number": number})
    await queries.query("MATCH (n) RETURN count(n) AS n")
    graph = next(iter(queries._graphs.values()))
    pid = graph.child.pid
    slow = "MATCH (a:note), (b:note), (c:note), (d:note) WHERE a.number * b.number = -1 - c.number RETURN count(d) AS n"
    sent = asyncio.Event()
    exchange = graph.child._exchange

    async def told(request: bytes) -> dict[str, Any]:
        sent.set()
        return await exchange(request)

    monkeypatch.setattr(graph.child, "_exchange", told)
    asking = asyncio.ensure_future(queries.query(slow))
    await sent.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert pid is not None
    assert not _runs(pid)
    assert (await queries.query("MATCH (n:note) RETURN count(n) AS n")).rows == [{"n": 400}]


async def test_a_graph_whose_process_was_killed_is_made_again(ask: Ask, queries: TwinQueries, bracket: str) -> None:
    await ask(CURRENT)
    graph = next(iter(queries._graphs.values()))
    await graph.child.end()
    assert (await ask(CURRENT)).rows == [{"ref": "CAD-BRACKET@2", "mass_g": 13}]


async def test_only_so_many_graphs_are_kept(twin: TwinStore, tmp_path: Path) -> None:
    queries = TwinQueries(twin, BlobStore(tmp_path / "blobs"), limits=Limits(graphs_count=2))
    try:
        for number in range(4):
            with twin.change(author="owner") as change:
                project_id = change.create_project(f"P{number}").project_id
            await queries.query("RETURN 1 AS one", {"project_id": project_id})
        assert len(queries._graphs) == 2
    finally:
        await queries.close()


async def test_queries_at_once_all_get_their_own_answers(ask: Ask, bracket: str) -> None:
    found = await asyncio.gather(*(ask("UNWIND $xs AS x RETURN sum(x) AS s", xs=[n, 1]) for n in range(12)))
    assert [answer.rows[0]["s"] for answer in found] == [n + 1 for n in range(12)]


async def test_a_long_value_stays_out_of_the_graph_and_is_named(ask: Ask, twin: TwinStore, project_id: str) -> None:
    with twin.change(author="agent", project_id=project_id) as change:
        change.record("documentation", {"content": "x" * 200_000, "pages_count": 3}, name="Manual")
    found = await ask(
        "MATCH (n:documentation) RETURN n.content AS content, n.pages_count AS pages, n.left_out AS left_out"
    )
    assert found.rows == [{"content": None, "pages": 3, "left_out": ["content"]}]


async def test_a_damaged_content_is_named_and_the_rest_still_answers(
    ask: Ask, twin: TwinStore, project_id: str, tmp_path: Path, bracket: str
) -> None:
    with twin.change(author="agent", project_id=project_id) as change:
        change.record("documentation", {"content": "x" * 200_000}, name="Manual")
    for path in (tmp_path / "blobs").rglob("*"):
        if path.is_file() and path.stat().st_size > 100_000:
            path.chmod(0o600)
            path.write_bytes(b"y" * path.stat().st_size)
    found = await ask("MATCH (n) WHERE n.project_id = $project_id AND n.ref IS NOT NULL RETURN count(n) AS n")
    assert found.rows == [{"n": 4}]
    assert "1 node" in found.warnings[0]


@pytest.mark.parametrize("name", ['O\'Brien "the" `part`', "🛠️ 部品", "قطعة", "a\nb\\c", "x" * 10_000, "$project_id"])
async def test_any_name_can_be_kept_and_asked_for(ask: Ask, twin: TwinStore, project_id: str, name: str) -> None:
    with twin.change(author="agent", project_id=project_id) as change:
        change.record("note", {name[:200]: name}, name=name)
    found = await ask("MATCH (n:note {name: $name}) RETURN n.name AS name, n AS node", name=name)
    assert found.rows[0]["name"] == name
    assert found.rows[0]["node"]["properties"][name[:200]] == name


async def test_values_keep_their_types_whatever_others_of_their_name_are(
    ask: Ask, twin: TwinStore, project_id: str
) -> None:
    values = [1, 1.0, "1", True, [1, "a", None], {"a": {"b": [2]}}, 2**53 + 1, "", 0.1, -(2**63), [{"x": 1.5}]]
    with twin.change(author="agent", project_id=project_id) as change:
        for place, value in enumerate(values):
            change.record("note", {"value": value, "place": place})
    found = await ask("MATCH (n:note) RETURN n.value AS value ORDER BY n.place")
    got = [row["value"] for row in found.rows]
    assert got == values
    assert [type(value) for value in got] == [type(value) for value in values]


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True

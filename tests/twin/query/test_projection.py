"""A graph that is brought forward by what changed is the graph that is made anew."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from metaforge.store.blobs import BlobStore
from metaforge.store.database import Database
from metaforge.twin.model import Decision, Reader, Run
from metaforge.twin.query import reading
from metaforge.twin.query.graph_engine import Caps
from metaforge.twin.query.kglite_engine import KgliteEngine
from metaforge.twin.query.projection import Projection, relationship_type
from metaforge.twin.query.reading import Batch
from metaforge.twin.store import TwinStore

RUNS = ("r-one", "r-two")
BODIES: list[dict[str, Any]] = [
    {"mass_g": 1}, {"mass_g": "light", "title": "T"}, {"type": "x", "a b": [1, {"c": None}]}, {"id": 7, "größe": 2.5},
    {"mass_g": None}, {"measured": {"volume_mm3": 1.0}, "status": "own"}, {},
]  # fmt: skip

names = st.sampled_from(("Leg", "Arm", "Hub"))
bodies = st.sampled_from(BODIES)
runs = st.sampled_from(("", *RUNS))
steps = st.one_of(
    st.tuples(st.just("define"), names, bodies, runs),
    st.tuples(st.just("record"), names, bodies, st.booleans()),
    st.tuples(st.just("link"), st.integers(0, 50), st.integers(0, 50), st.sampled_from(("depends_on", "verifies"))),
    st.tuples(st.just("review"), st.integers(0, 50)),
    st.tuples(st.just("close"), st.sampled_from(RUNS), st.sampled_from(list(Decision))),
    st.tuples(st.just("look")),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(steps, max_size=25))
def test_any_changes_leave_the_graph_that_reading_everything_makes(script: list[tuple[Any, ...]]) -> None:
    with _record() as (store, blobs, project_id):
        readers = [Reader("", project_id), Reader("r-one", project_id)]
        followers = [Follower(store, blobs, reader) for reader in readers]
        for step in [*script, ("look",)]:
            if step[0] == "look":
                for follower, reader in zip(followers, readers, strict=True):
                    follower.follow()
                    assert follower.contents() == Follower(store, blobs, reader).contents()
            else:
                _perform(store, project_id, step)


class Follower:
    """A projection in this process, brought forward the way a graph's process is."""

    def __init__(self, store: TwinStore, blobs: BlobStore, reader: Reader) -> None:
        self.store, self.blobs, self.reader = store, blobs, reader
        self.projection = Projection(KgliteEngine())
        with store.read(reader) as view:
            self.at = reading.positions(view, [reader.project_id])
            for batch in reading.everything(view, blobs, [reader.project_id]):
                self.put(batch)

    def put(self, batch: Batch) -> None:
        self.projection.put(batch.items, batch.nodes)
        if batch.settle:
            self.projection.settle()
        self.projection.put(links=batch.links)

    def follow(self) -> None:
        with self.store.read(self.reader) as view:
            batch = reading.changed(view, self.blobs, self.at)
            self.at = reading.positions(view, [self.reader.project_id])
        assert batch is not None
        self.put(batch)

    def contents(self) -> tuple[list[Any], list[Any]]:
        return (
            sorted(self.rows("MATCH (n) RETURN labels(n) AS labels, properties(n) AS properties"), key=repr),
            sorted(
                self.rows(
                    "MATCH (a)-[r]->(b) RETURN type(r) AS type, properties(r) AS properties, a.id AS a, b.id AS b"
                ),
                key=repr,
            ),
        )

    def rows(self, cypher: str, **params: Any) -> list[dict[str, Any]]:
        return self.projection.engine.run(cypher, params, Caps(rows_count=100_000)).rows


@contextmanager
def _record() -> Iterator[tuple[TwinStore, BlobStore, str]]:
    with TemporaryDirectory() as folder:
        home = Path(folder)
        database, blobs = Database("", home), BlobStore(home / "blobs")
        store = TwinStore(database, blobs)
        with store.change(author="owner") as change:
            project_id = change.create_project("P").project_id
        with store.change(author="flow") as change:
            for run_id in RUNS:
                change.put_run(Run(run_id, project_id, "running", "flow-1", True, "concept", "G1"))
        yield store, blobs, project_id
        database.close()


def _perform(store: TwinStore, project_id: str, step: tuple[Any, ...]) -> None:
    """Do one step; one that the record refuses changes nothing, which is a step as good as any."""
    from metaforge.core.errors import ToolError

    perform: dict[str, Callable[..., None]] = {
        "define": _define, "record": _add_record, "link": _link, "review": _review, "close": _close,
    }  # fmt: skip
    try:
        perform[step[0]](store, project_id, *step[1:])
    except ToolError:
        return


def _define(store: TwinStore, project_id: str, name: str, body: dict[str, Any], run_id: str) -> None:
    with store.change(author="a", run_id=run_id, project_id=project_id) as change:
        change.define("cad_model", name, body)


def _add_record(store: TwinStore, project_id: str, name: str, body: dict[str, Any], replaces: bool) -> None:
    with store.change(author="a", project_id=project_id) as change:
        earlier = [node.node_id for node in change.view.current_nodes("note")] if replaces else []
        change.record("note", body, name=name, supersedes=earlier[0] if earlier else "")


def _link(store: TwinStore, project_id: str, source: int, target: int, type: str) -> None:
    with store.change(author="a", project_id=project_id) as change:
        nodes = sorted(
            change.transaction.rows("select node_id, change_set from nodes where project_id = ?", project_id)
        )
        if nodes:
            start, end = nodes[source % len(nodes)], nodes[target % len(nodes)]
            change.link(type, start[0], end[0], {"type": "inner", "weight": 1})


def _review(store: TwinStore, project_id: str, which: int) -> None:
    with store.change(author="a", project_id=project_id) as change:
        links = change.view.links()
        if links:
            change.review(links[which % len(links)].link_id)


def _close(store: TwinStore, project_id: str, run_id: str, decision: Decision) -> None:
    with store.change(author="gate") as change:
        change.close_run(run_id, decision)


def test_a_name_of_the_body_that_a_column_has_is_kept_beside_it() -> None:
    with _record() as (store, blobs, project_id):
        with store.change(author="a", project_id=project_id) as change:
            change.record("note", {"status": "mine", "name": "inner", "id": 7, "type": "t", "title": "T"}, name="outer")
        rows = Follower(store, blobs, Reader("", project_id)).rows(
            "MATCH (n:note) RETURN n.status AS s, n.body_status AS bs, n.name AS n, n.body_name AS bn, n.body_id AS bi"
            ", n.type AS t, n.title AS title, n.node_id = id(n) AS same"
        )
    assert rows == [
        {"s": "committed", "bs": "mine", "n": "outer", "bn": "inner", "bi": 7, "t": "t", "title": "T", "same": True}
    ]


def test_a_whole_number_beyond_64_signed_bits_becomes_a_floating_one() -> None:
    with _record() as (store, blobs, project_id):
        with store.change(author="a", project_id=project_id) as change:
            change.record("note", {"big": 2**64 - 1, "list": [2**63]})
        rows = Follower(store, blobs, Reader("", project_id)).rows("MATCH (n:note) RETURN n.big AS big, n.list AS list")
    assert rows == [{"big": float(2**64), "list": [float(2**63)]}]


@pytest.mark.parametrize(
    ("link_type", "written"), [("depends_on", "DEPENDS_ON"), ("valid against", "VALID_AGAINST"), ("größe", "GR__E")]
)
def test_link_types_are_written_in_capitals(link_type: str, written: str) -> None:
    assert relationship_type(link_type) == written

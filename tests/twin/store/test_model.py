"""The store against a plain in-memory model of it, under sequences of operations that nobody thought of."""

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from metaforge.core.errors import ToolError
from metaforge.store.blobs import BlobStore
from metaforge.store.database import Database
from metaforge.twin.model import Reader, Run
from metaforge.twin.store import TwinStore

IDENTITY = {"Leg": "leg", "LEG!": "leg", "Arm": "arm", "arm": "arm", "Foot": "foot"}
NAMES = st.sampled_from(sorted(IDENTITY))
RUNS = ("r1", "r2")


@dataclass
class PlainRevision:
    name: str
    status: str
    run: str
    value: int


@dataclass
class PlainItem:
    key: str
    name: str
    revisions: list[PlainRevision] = field(default_factory=list)
    head: int = 0
    drafts: dict[str, tuple[int, int]] = field(default_factory=dict)
    """run -> revision, base"""

    def current(self, run: str) -> int:
        return self.drafts.get(run, (self.head, 0))[0]

    def seen(self, run: str) -> list[tuple[int, str, str, int]]:
        numbered = enumerate(self.revisions, start=1)
        return [(n, r.status, r.name, r.value) for n, r in numbered if r.status != "draft" or r.run == run]


class PlainTwin:
    """What the store promises, in the fewest words."""

    def __init__(self) -> None:
        self.items: list[PlainItem] = []

    def by_key(self, key: str) -> PlainItem | None:
        return next((item for item in self.items if item.key == key), None)

    def by_name(self, name: str) -> PlainItem | None:
        same = [item for item in self.items if IDENTITY[item.name] == IDENTITY[name]]
        exact = [item for item in same if item.name == name]
        return (exact or same or [self.by_key(f"CAD-{IDENTITY[name].upper()}")])[0]

    def define(
        self, name: str, run: str, value: int, key: str = "", pin: int = 0, item: PlainItem | None = None
    ) -> str:
        item = item or (self.by_key(key) if key else self.by_name(name))
        if pin and (item is None or pin not in {item.head, item.drafts.get(run, (0, 0))[0]} - {0}):
            return "refused"
        if item is None:
            base, number = f"CAD-{IDENTITY[name].upper()}", 2
            key = key or base
            while not key or self.by_key(key):
                key, number = f"{base}-{number}", number + 1
            item = PlainItem(key, name)
            self.items.append(item)
        item.revisions.append(PlainRevision(name, "draft" if run else "committed", run, value))
        number = len(item.revisions)
        if not run:
            item.head, item.name = number, name
        elif run in item.drafts and not (pin and pin == item.head and pin != item.drafts[run][0]):
            item.drafts[run] = number, item.drafts[run][1]
        else:
            item.drafts[run] = number, item.head
        return f"{item.key}@{number}"

    def close(self, run: str, decision: str) -> list[str] | str:
        drafted = [item for item in self.items if run in item.drafts]
        if decision == "approve" and any(item.drafts[run][1] != item.head for item in drafted):
            return "PATCH_CONFLICT"
        closed = []
        for item in drafted:
            number, _ = item.drafts.pop(run)
            for n, revision in enumerate(item.revisions, start=1):
                if revision.status == "draft" and revision.run == run:
                    kept = decision == "approve" and n == number
                    revision.status = "approved" if kept else "rejected" if decision == "reject" else "abandoned"
            if decision == "approve":
                item.head, item.name = number, item.revisions[number - 1].name
            closed.append(f"{item.key}@{number}")
        return sorted(closed)


class Comparison(RuleBasedStateMachine):
    """Does everything twice and compares what every reader sees."""

    url = ""
    server: Any = None

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        url = self.server.clean() if self.server else ""
        self.database = Database(url, self.folder)
        self.twin = TwinStore(self.database, BlobStore(self.folder / "blobs"))
        with self.twin.change(author="owner") as change:
            self.project_id = change.create_project("P").project_id
            for run in RUNS:
                change.put_run(Run(run, self.project_id, "running"))
        self.plain = PlainTwin()
        self.value = 0

    def teardown(self) -> None:
        self.database.close()
        shutil.rmtree(self.folder)

    def define(self, name: str, run: str, **more: str) -> str:
        self.value += 1
        try:
            with self.twin.change(author="a", run_id=run, project_id=self.project_id) as change:
                return change.define("cad_model", name, {"value": self.value}, **more).ref
        except ToolError as fault:
            return "refused" if fault.kind in ("stale_revision", "unknown_item") else fault.kind

    @rule(name=NAMES, run=st.sampled_from(("", "", *RUNS)))
    def define_by_name(self, name: str, run: str) -> None:
        assert self.define(name, run) == self.plain.define(name, run, self.value)

    @rule(name=NAMES, run=st.sampled_from(("", *RUNS)), key=st.sampled_from(["CAD-LEG", "CAD-ARM", "CAD-OWN"]))
    def define_by_key(self, name: str, run: str, key: str) -> None:
        assert self.define(name, run, item_key=key) == self.plain.define(name, run, self.value, key)

    @precondition(lambda self: self.plain.items)
    @rule(name=NAMES, run=st.sampled_from(("", *RUNS)), data=st.data())
    def define_by_pin(self, name: str, run: str, data: st.DataObject) -> None:
        item = data.draw(st.sampled_from(self.plain.items), "item")
        pin = data.draw(st.integers(1, len(item.revisions) + 1), "pin")
        found = self.define(name, run, item_key=f"{item.key}@{pin}")
        assert found == self.plain.define(name, run, self.value, item.key, pin)

    @precondition(lambda self: self.plain.items)
    @rule(name=NAMES, run=st.sampled_from(("", *RUNS)), data=st.data())
    def define_by_node(self, name: str, run: str, data: st.DataObject) -> None:
        item = data.draw(st.sampled_from(self.plain.items), "item")
        with self.twin.read(Reader(run, self.project_id)) as view:
            seen = item.seen(run)
            if not seen:
                return
            node = view[f"{item.key}@{data.draw(st.sampled_from(seen), 'revision')[0]}"]
        assert self.define(name, run, supersedes=node.node_id) == self.plain.define(name, run, self.value, item=item)

    @rule(run=st.sampled_from(RUNS), decision=st.sampled_from(["approve", "approve", "reject", "abandon"]))
    def close_run(self, run: str, decision: str) -> None:
        try:
            with self.twin.change(author="boss") as change:
                found: object = sorted(node.ref for node in change.close_run(run, decision))
        except ToolError as fault:
            found = fault.kind
        assert found == self.plain.close(run, decision)

    @invariant()
    def every_reader_sees_the_same(self) -> None:
        for run in ("", *RUNS):
            with self.twin.read(Reader(run, self.project_id)) as view:
                found = {item.key: (item.head_revision or 0, item.current_revision or 0) for item in view.items()}
                expected = {item.key: (item.head, item.current(run)) for item in self.plain.items if item.seen(run)}
                assert found == expected
                for key in found:
                    history = view.history(key)
                    item = self.plain.by_key(key)
                    assert item is not None
                    assert [(n.revision, n.status, n.name, n.body["value"]) for n in history.revisions] == item.seen(
                        run
                    )
                    if current := item.current(run):
                        assert view[key].ref == f"{key}@{current}"

    @invariant()
    def heads_and_logs_agree(self) -> None:
        with self.twin.read() as view:
            torn = view.transaction.rows(
                "select key from items left join nodes on nodes.node_id = head_node_id where head_revision is not null "
                "and (nodes.item_id <> items.item_id or nodes.revision <> head_revision or nodes.node_id is null)"
            )
            assert torn == []
            written = view.transaction.value("select count(*) from changelog where kind in ('define', 'draft')")
            assert written == view.transaction.value("select count(*) from nodes")


def test_the_store_behaves_as_its_model(request: pytest.FixtureRequest, database_url: str) -> None:
    if database_url:
        server = request.getfixturevalue("postgres_server")
        machine = type("OnPostgres", (Comparison,), {"server": server})
    else:
        machine = Comparison
    effort = settings(
        max_examples=8 if database_url else 25, stateful_step_count=25, deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    run_state_machine_as_test(machine, settings=effort)

"""Writers at one time: threads, processes that are killed, and what is there afterwards."""

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from metaforge.core.errors import ToolError
from metaforge.store.blobs import BlobStore
from metaforge.store.database import Database
from metaforge.twin.model import Reader
from metaforge.twin.store import TwinStore

KILL_SECONDS = float(os.environ.get("METAFORGE_KILL_SECONDS", "3"))
"""How long writers are killed for; `METAFORGE_KILL_SECONDS=60` is the long run."""
WRITER_COUNT = 4

WRITER = """
import pathlib, random, sys
from metaforge.core.errors import ToolError
from metaforge.store.blobs import BlobStore
from metaforge.store.database import Database
from metaforge.twin.model import Run
from metaforge.twin.store import TwinStore

url, home, project_id, seed = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
twin, chance = TwinStore(Database(url, home), BlobStore(home / "blobs")), random.Random(seed)
for number in range(10**9):
    name = f"Part {chance.randrange(5)}"
    if chance.random() < 0.8:
        with twin.change(author=f"w{seed}", project_id=project_id) as change:
            node = change.define("cad_model", name, {"seed": seed, "number": number, "fill": "x" * 400})
            decision = change.record("design_decision", {"for": node.ref})
            change.link("depends_on", decision, node)
        print("ack", node.node_id, decision.node_id, flush=True)
        continue
    run_id = f"r{seed}-{number}"
    with twin.change(author=f"w{seed}") as change:
        change.put_run(Run(run_id, project_id, "running"))
    with twin.change(author=f"w{seed}", run_id=run_id) as change:
        drafts = [change.define("cad_model", f"Part {each}", {"run": run_id}) for each in (5, 6)]
    print("ack", *(node.node_id for node in drafts), flush=True)
    try:
        with twin.change(author="boss") as change:
            closed = change.close_run(run_id, "approve", state="completed")
        print("closed", run_id, flush=True)
    except ToolError as fault:
        assert fault.kind == "PATCH_CONFLICT", fault
"""
"""Writes until it is killed, and says what was acknowledged: nodes, and runs whose drafts became heads."""


def together(count: int, work: Callable[[int], object]) -> list[object]:
    """Do something in several threads that start at one moment."""
    gate = threading.Barrier(count)

    def wait_and_work(number: int) -> object:
        gate.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(wait_and_work, range(count)))


def test_of_two_writers_that_pin_one_head_exactly_one_wins(twin: TwinStore, project_id: str) -> None:
    with twin.change(author="a", project_id=project_id) as change:
        change.define("cad_model", "Leg", {})

    def write(number: int) -> str:
        try:
            with twin.change(author=f"w{number}", project_id=project_id) as change:
                return change.define("cad_model", "Leg", {"by": number}, item_key="CAD-LEG@1").ref
        except ToolError as fault:
            return fault.kind

    assert sorted(map(str, together(8, write))) == ["CAD-LEG@2", *["stale_revision"] * 7]


def test_writers_of_one_name_make_one_item_without_a_gap(
    twin: TwinStore, project_id: str, database: Database, tmp_path: Path
) -> None:
    def write(number: int) -> list[str]:
        refs = []
        own = Database(database.url, tmp_path)  # as another process would have it
        writer = TwinStore(own, BlobStore(tmp_path / "blobs"))
        for _ in range(10):
            with writer.change(author=f"w{number}", project_id=project_id) as change:
                refs.append(change.define("cad_model", "Leg", {"by": number}).ref)
        own.close()
        return refs

    written = [ref for refs in together(6, write) for ref in refs]  # type: ignore[attr-defined]

    assert sorted(written) == sorted(f"CAD-LEG@{number}" for number in range(1, 61))
    with twin.read(Reader(project_id=project_id)) as view:
        assert view["CAD-LEG"].ref == "CAD-LEG@60"
        assert [entry.ref for entry in view.changes(project_id=project_id)][1:] == [
            f"CAD-LEG@{number}" for number in range(1, 61)
        ]


def test_a_follower_of_the_changelog_misses_nothing_while_others_write(twin: TwinStore, project_id: str) -> None:
    stop = threading.Event()
    followed: list[int] = []

    def follow() -> None:
        last = False
        while not last:
            last = stop.is_set()
            with twin.read() as view:
                followed.extend(
                    entry.seq for entry in view.changes(followed[-1] if followed else 0, project_id=project_id)
                )

    def write(number: int) -> None:
        for _ in range(15):
            with twin.change(author=f"w{number}", project_id=project_id) as change:
                change.record("observation", {"by": number})

    follower = threading.Thread(target=follow)
    follower.start()
    together(4, write)
    stop.set()
    follower.join()

    with twin.read() as view:
        assert followed == [entry.seq for entry in view.changes(project_id=project_id)]


def test_a_change_inside_a_change_is_a_mistake_told_at_once(twin: TwinStore) -> None:
    with twin.change(author="a") as outer:
        with pytest.raises(RuntimeError, match="use the one there is"), twin.change(author="a"):
            pass
        made = outer.record("note", {})
    with twin.change(author="a") as change:
        assert change.view.node(made.node_id) == made


def test_a_reader_keeps_its_state_while_others_write(twin: TwinStore, project_id: str) -> None:
    with twin.change(author="a", project_id=project_id) as change:
        change.define("cad_model", "Leg", {})
    with twin.read(Reader(project_id=project_id)) as view:
        assert view["CAD-LEG"].ref == "CAD-LEG@1"
        with twin.change(author="b", project_id=project_id) as change:
            change.define("cad_model", "Leg", {})
        assert view["CAD-LEG"].ref == "CAD-LEG@1"
    with twin.read(Reader(project_id=project_id)) as view:
        assert view["CAD-LEG"].ref == "CAD-LEG@2"


def test_killed_writers_lose_no_acknowledged_write_and_tear_nothing(
    twin: TwinStore, project_id: str, database: Database, tmp_path: Path
) -> None:
    acknowledged: set[str] = set()
    closed: set[str] = set()
    seeds = iter(range(10**6))
    deadline = time.monotonic() + KILL_SECONDS
    kills: list[int] = []

    def keep_killing(number: int) -> None:
        chance = random.Random(number)
        while time.monotonic() < deadline:
            process = subprocess.Popen(
                [sys.executable, "-c", WRITER, database.url, str(tmp_path), project_id, str(next(seeds))],
                stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(chance.randrange(1, 40))]
            process.kill()
            lines += process.stdout.readlines()
            process.wait()
            process.stdout.close()
            kills.append(process.returncode)
            for line in lines:
                what, *ids = line.split() if line.endswith("\n") else ("torn",)
                if what == "ack":
                    acknowledged.update(ids)
                elif what == "closed":
                    closed.update(ids)

    together(WRITER_COUNT, keep_killing)

    assert set(kills) == {-9}, "a writer ended by itself"
    assert len(acknowledged) > 10 * WRITER_COUNT
    with twin.read() as view:
        ask = view.transaction.rows
        assert acknowledged - {row[0] for row in ask("select node_id from nodes")} == set()
        for key, head, last, count, top in ask(
            "select key, head_revision, last_revision, count(*), max(revision) from items join nodes "
            "on nodes.item_id = items.item_id group by items.item_id, key, head_revision, last_revision"
        ):
            assert last == count == top, f"{key} has a gap"
            assert key in ("CAD-PART-5", "CAD-PART-6") or head == last
        # A decision and its link are written with their revision or not at all.
        assert ask("select count(*) from nodes where kind = 'design_decision'") == ask("select count(*) from links")
        assert ask("select count(*) from nodes where status = 'committed' and item_id is not null") == ask(
            "select count(*) from links"
        )
        # A run's two drafts become heads together or not at all.
        moved = ask("select change_set, count(*) from nodes where status = 'approved' group by change_set")
        assert {count for _, count in moved} <= {2}
        assert closed <= {change_set for change_set, _ in moved}
        written = "select count(*) from changelog where kind in ('define', 'draft', 'record')"
        assert ask(written) == ask("select count(*) from nodes")
        if not database.is_postgres:
            assert ask("pragma integrity_check") == [("ok",)]
            assert ask("pragma foreign_key_check") == []

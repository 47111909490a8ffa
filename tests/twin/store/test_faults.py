"""What a disk or a database can do to the record: it is told, and nothing acknowledged is lost."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from metaforge.store.blobs import BlobStore
from metaforge.store.database import Database
from metaforge.store.location import StoreUnavailable
from metaforge.twin.store import TwinStore

PRELUDE = """
import pathlib, sys
from metaforge.store.blobs import BlobStore
from metaforge.store.database import Database
from metaforge.store.location import StoreUnavailable
from metaforge.twin.store import TwinStore
home = pathlib.Path(sys.argv[1])
twin = TwinStore(Database("", home), BlobStore(home / "blobs"))
def write(number):
    with twin.change(author="a") as change:
        return change.record("note", {"number": number, "fill": "x" * 5000}).node_id
"""
FILL = """
kept = []
try:
    for number in range(100000):
        kept.append(write(number))
except StoreUnavailable as fault:
    print(fault.message)
try:
    write(-1)
    print("written")
except StoreUnavailable as fault:
    print("refused")
with twin.read() as view:
    stored = {row[0] for row in view.transaction.rows("select node_id from nodes")}
    print(len(kept) > 5, stored == set(kept), view.transaction.rows("pragma integrity_check"))
"""


def run(command: list[str], code: str, home: Path, **more: object) -> list[str]:
    ended = subprocess.run(
        [*command, sys.executable, "-c", PRELUDE + code, str(home)], capture_output=True, text=True, **more
    )  # type: ignore[call-overload]
    assert ended.returncode == 0, ended.stderr
    lines: list[str] = ended.stdout.splitlines()
    return lines


@pytest.fixture
def plain_user() -> list[str]:
    """A command in front of another that takes root's right to write everywhere away."""
    if os.getuid():
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root writes everywhere, and there is no setpriv to change that")
    return ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]


@pytest.fixture
def own_mounts() -> list[str]:
    """A command in front of another that lets it mount; skips where that is not allowed."""
    for command in (["unshare", "-m"], ["unshare", "-Ur", "-m"]):
        try:
            probe = subprocess.run([*command, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True)
        except FileNotFoundError:
            break
        if probe.returncode == 0:
            return command
    pytest.skip("no right to mount a small file system")


def test_a_full_disk_refuses_writes_and_keeps_every_acknowledged_one(own_mounts: list[str], tmp_path: Path) -> None:
    small = [*own_mounts, "sh", "-c", 'mount -t tmpfs -o size=4m none "$0" && exec "$@"', str(tmp_path)]

    told, again, state = run(small, FILL, tmp_path)

    assert "full" in told
    assert "Free disk space" in told
    assert again == "refused"
    assert state == "True True [('ok',)]"


def test_a_limit_on_file_size_refuses_writes_and_keeps_every_acknowledged_one(tmp_path: Path) -> None:
    limited = ["prlimit", "--fsize=3000000"]
    if shutil.which("prlimit") is None:
        pytest.skip("no prlimit")

    told, _, state = run(limited, FILL, tmp_path)

    assert "cannot be used" in told
    assert state == "True True [('ok',)]"


def test_there_is_room_again_and_writing_goes_on(own_mounts: list[str], tmp_path: Path) -> None:
    code = """
ballast = home / "ballast"
write(0)
with ballast.open("wb", buffering=0) as stream:
    try:
        while True:
            stream.write(b"x" * 4096)
    except OSError:
        pass
try:
    for number in range(100000):
        write(number)
except StoreUnavailable:
    print("full")
ballast.unlink()
print(bool(write(1)))
"""
    small = [*own_mounts, "sh", "-c", 'mount -t tmpfs -o size=4m none "$0" && exec "$@"', str(tmp_path)]
    assert run(small, code, tmp_path) == ["full", "True"]


@pytest.mark.parametrize("folder_mode", [0o755, 0o555], ids=["file", "folder"])
def test_a_database_that_may_not_be_written_says_so(plain_user: list[str], tmp_path: Path, folder_mode: int) -> None:
    home = tmp_path / "home"
    twin = TwinStore(database := Database("", home), BlobStore(home / "blobs"))
    with twin.change(author="a") as change:
        change.record("note", {"number": 1})
    database.close()
    for path in home.iterdir():
        path.chmod(0o444)
    home.chmod(folder_mode)
    code = """
for work in (lambda: twin.read(), lambda: twin.change(author="a")):
    try:
        with work() as found:
            if hasattr(found, "record"):
                found.record("note", {})
            print(getattr(found, "view", found).transaction.value("select count(*) from nodes"))
    except StoreUnavailable as fault:
        print(fault.message)
"""
    read, told = run(plain_user, code, home)
    home.chmod(0o755)

    assert "readonly" in told or "unable to open" in told
    assert "folder writable" in told
    # Its log beside it must be writable even for reading; where it is not, reading says so too.
    assert read == "1" or (folder_mode == 0o555 and read == told)


def test_a_damaged_database_is_told_and_not_written_over(tmp_path: Path) -> None:
    twin = TwinStore(database := Database("", tmp_path), BlobStore(tmp_path / "blobs"))
    with twin.change(author="a") as change:
        change.record("note", {"number": 1})
    database.close()
    with closing(sqlite3.connect(database.path)) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
    content = bytearray(database.path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    database.path.write_bytes(content)

    with pytest.raises(StoreUnavailable, match=r"restore a backup"), twin.read() as view:
        view.projects()
    with pytest.raises(StoreUnavailable), twin.change(author="a") as change:
        change.record("note", {"number": 2})
    assert database.path.read_bytes()[:4096] == bytes(content[:4096])


def test_a_database_that_is_replaced_while_open_is_noticed(tmp_path: Path) -> None:
    twin = TwinStore(database := Database("", tmp_path), BlobStore(tmp_path / "blobs"))
    with twin.change(author="a") as change:
        change.record("note", {"number": 1})
    for name in ("metaforge.db", "metaforge.db-wal", "metaforge.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    with twin.change(author="a") as change:
        change.record("note", {"number": 2})
    database.close()
    with closing(sqlite3.connect(tmp_path / "metaforge.db")) as connection:
        assert connection.execute("select body from nodes").fetchall() == [('{"number":2}',)]


def test_a_writer_that_never_ends_is_told_to_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metaforge.store.pool.WRITE_SECONDS", 0.05)
    twin = TwinStore(database := Database("", tmp_path), BlobStore(tmp_path / "blobs"))
    database.prepare()
    with closing(sqlite3.connect(database.path, isolation_level=None)) as other:
        other.execute("begin immediate")
        with pytest.raises(StoreUnavailable, match=r"locked.*Another process keeps it"), twin.change(author="a"):
            pass
        other.execute("rollback")
    with twin.change(author="a") as change:
        change.record("note", {})


def test_reading_and_writing_load_neither_the_orm_nor_the_migration_tool(tmp_path: Path) -> None:
    code = """
write(1)
with twin.read() as view:
    view.projects()
print(sorted({"sqlalchemy", "alembic", "pydantic", "psycopg", "httpx"} & set(sys.modules)))
"""
    assert run([], code, tmp_path) == ["[]"]

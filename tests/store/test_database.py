import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import func, insert, select, text
from sqlalchemy.exc import IntegrityError

from metaforge.store.database import Database
from metaforge.store.location import StoreUnavailable
from metaforge.store.tables import CHANGELOG


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database("", tmp_path)
    yield database
    database.close()


def row(revision: int) -> dict[str, object]:
    return {
        "at": "t", "project_id": "p", "kind": "define", "ref": f"K@{revision}", "node_id": "n", "body": "{}",
        "author": "a", "run_id": "",
    }  # fmt: skip


def test_a_write_is_there_for_the_next_reader(database: Database) -> None:
    with database.writing() as connection:
        connection.execute(insert(CHANGELOG).values(row(1)))
    with database.reading() as connection:
        assert connection.scalar(select(func.count()).select_from(CHANGELOG)) == 1


def test_a_write_that_raises_is_undone(database: Database) -> None:
    with pytest.raises(ZeroDivisionError), database.writing() as connection:  # noqa: PT012
        connection.execute(insert(CHANGELOG).values(row(1)))
        raise ZeroDivisionError
    with database.reading() as connection:
        assert connection.scalar(select(func.count()).select_from(CHANGELOG)) == 0


def test_design_data_is_synced_at_commit_and_call_records_are_not(database: Database) -> None:
    with database.writing() as connection:
        assert connection.scalar(text("pragma synchronous")) == 2
        assert connection.scalar(text("pragma foreign_keys")) == 1
    records = database.record_connection()
    assert records.execute("pragma synchronous").fetchone() == (1,)
    records.close()


def test_a_reader_sees_one_state_while_others_write(database: Database) -> None:
    count = select(func.count()).select_from(CHANGELOG)
    with database.reading() as reader:
        assert reader.scalar(count) == 0
        with database.writing() as writer:
            writer.execute(insert(CHANGELOG).values(row(1)))
        assert reader.scalar(count) == 0
    with database.reading() as reader:
        assert reader.scalar(count) == 1


def test_two_processes_that_read_then_write_lose_nothing(database: Database) -> None:
    database.prepare()
    code = (
        "import sys, pathlib\n"
        "from sqlalchemy import func, insert, select\n"
        "from metaforge.store.database import Database\n"
        "from metaforge.store.tables import CHANGELOG\n"
        "database = Database('', pathlib.Path(sys.argv[1]))\n"
        "for _ in range(60):\n"
        "    with database.writing() as connection:\n"
        "        last = connection.scalar(select(func.count()).select_from(CHANGELOG))\n"
        "        connection.execute(insert(CHANGELOG).values(at='t', project_id='p', kind='k', ref=f'K@{last + 1}',\n"
        "                           node_id='n', body='{}', author='a', run_id=''))\n"
    )
    command = [sys.executable, "-c", code, str(database.path.parent)]
    writers = [subprocess.Popen(command) for _ in range(2)]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0]
    with database.reading() as connection:
        refs = list(connection.scalars(select(CHANGELOG.c.ref).order_by(CHANGELOG.c.seq)))
    assert refs == [f"K@{number}" for number in range(1, 121)]


def test_a_database_that_refuses_is_explained_and_a_broken_rule_is_not_hidden(database: Database) -> None:
    with pytest.raises(StoreUnavailable, match="no such table"), database.reading() as connection:
        connection.execute(text("select * from nowhere"))
    with pytest.raises(IntegrityError), database.writing() as connection:
        connection.execute(insert(CHANGELOG).values(row(1) | {"author": None}))


def test_a_damaged_page_is_told_as_such(database: Database) -> None:
    database.prepare()
    path = database.path
    closing = sqlite3.connect(path)
    closing.execute("pragma wal_checkpoint(truncate)")
    closing.close()
    content = bytearray(path.read_bytes())
    content[100:4096] = b"\xff" * 3996
    path.write_bytes(content)

    with pytest.raises(StoreUnavailable, match=r"malformed.*restore a backup"), database.reading() as connection:
        connection.execute(select(CHANGELOG))

"""What is Postgres's own: upgrades that race or die, connections that go away, and passwords that are never told."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import func, insert, select

from metaforge.store import postgres, schema
from metaforge.store.database import Database
from metaforge.store.location import StoreUnavailable
from metaforge.store.tables import CHANGELOG, METADATA

PREPARE = "import sys\nfrom metaforge.store.postgres import prepare\nprepare(sys.argv[1])\n"


@pytest.fixture
def url(postgres_server: Any) -> str:
    found: str = postgres_server.clean()
    return found


@pytest.fixture
def empty_url(postgres_server: Any) -> str:
    found: str = postgres_server.empty()
    return found


def tables_of(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        return {row[0] for row in connection.execute("select tablename from pg_tables where schemaname = 'public'")}


def test_processes_that_start_at_once_make_one_schema(empty_url: str) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", PREPARE, empty_url]) for _ in range(4)]
    assert [process.wait(timeout=120) for process in processes] == [0] * 4
    assert tables_of(empty_url) == {*METADATA.tables, "alembic_version"}


def test_the_tables_in_code_are_the_tables_in_the_database(url: str) -> None:
    database = Database(url, Path("/nonexistent"))
    with database.reading() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
    database.close()


def test_an_upgrade_that_dies_half_way_leaves_nothing_and_the_next_one_finishes(empty_url: str) -> None:
    code = """
import os, signal, sys
from alembic.operations import Operations
from metaforge.store.upgrade import upgrade_postgres
def die(self, name, *_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
Operations.create_index = die
upgrade_postgres(sys.argv[1])
"""
    assert subprocess.run([sys.executable, "-c", code, empty_url]).returncode == -9
    assert tables_of(empty_url) == set()

    postgres.prepare(empty_url)

    assert tables_of(empty_url) == {*METADATA.tables, "alembic_version"}


def test_an_upgrade_that_fails_changes_nothing_and_says_why(empty_url: str) -> None:
    with psycopg.connect(empty_url) as connection:
        connection.execute("create table changelog (in_the_way int)")
    with pytest.raises(
        StoreUnavailable, match=r"could not be upgraded from schema none to .*changelog.* already exists"
    ):
        postgres.prepare(empty_url)
    assert tables_of(empty_url) == {"changelog"}


def test_a_newer_database_is_left_alone(empty_url: str) -> None:
    with psycopg.connect(empty_url) as connection:
        connection.execute("create table alembic_version (version_num varchar(32) primary key)")
        connection.execute("insert into alembic_version values ('9999')")
    with pytest.raises(StoreUnavailable, match=r"newer MetaForge \(schema 9999"):
        postgres.prepare(empty_url)


def test_an_unreachable_server_is_told_without_the_password() -> None:
    database = Database("postgresql://anna:s3cret@127.0.0.1:1/design?password=t0p", Path("/nonexistent"))
    with pytest.raises(StoreUnavailable, match="cannot be used") as caught:
        database.prepare()
    assert "s3cret" not in caught.value.message
    assert "t0p" not in caught.value.message
    assert "postgresql://anna@127.0.0.1:1/design" in caught.value.message
    assert "METAFORGE_DATABASE_URL" in caught.value.message
    assert database.name == "postgresql://anna@127.0.0.1:1/design?password=***"


def test_a_missing_driver_is_told_with_its_install_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreUnavailable, match=r"pip install 'metaforge\[postgres\]'"):
        Database("postgresql://h/db", tmp_path).prepare()


def test_a_connection_that_the_server_dropped_is_replaced(url: str, tmp_path: Path) -> None:
    database = Database(url, tmp_path)
    with database.transaction(write=False) as transaction:
        pid = transaction.value("select pg_backend_pid()")
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("select pg_terminate_backend(%s, 5000)", (pid,))
    with database.transaction(write=True) as transaction:
        assert transaction.value("select pg_backend_pid()") != pid
    database.close()


def test_a_connection_that_breaks_in_a_change_loses_it_and_says_so(url: str, tmp_path: Path) -> None:
    database = Database(url, tmp_path)
    with (  # noqa: PT012
        pytest.raises(StoreUnavailable, match=r"terminat|closed"),
        database.transaction(write=True) as transaction,
        psycopg.connect(url, autocommit=True) as other,
    ):
        transaction.run(
            "insert into changelog (at, project_id, kind, ref, node_id, body, author, run_id) "
            "values ('t', 'p', 'k', '', '', '{}', 'a', '')"
        )
        other.execute("select pg_terminate_backend(%s, 5000)", (transaction.value("select pg_backend_pid()"),))
        transaction.value("select 1")
    with database.transaction(write=False) as transaction:
        assert transaction.value("select count(*) from changelog") == 0
    database.close()


def test_a_row_that_another_keeps_is_told_as_such(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "_OPTIONS", postgres._OPTIONS.replace("15000", "50"))
    database = Database(url, tmp_path)
    with psycopg.connect(url) as other:
        other.execute("lock table items")
        with (
            pytest.raises(StoreUnavailable, match="Another writer was in the way: repeat"),
            database.transaction(write=True) as transaction,
        ):
            transaction.rows("select key from items")
    database.close()


def test_sqlalchemy_reads_and_writes_there_too(url: str, tmp_path: Path) -> None:
    database = Database(url, tmp_path)
    row = {
        "at": "t",
        "project_id": "p",
        "kind": "k",
        "ref": "",
        "node_id": "",
        "body": "{}",
        "author": "a",
        "run_id": "",
    }
    count = select(func.count()).select_from(CHANGELOG)
    with database.reading() as reader:
        assert reader.scalar(count) == 0
        with database.writing() as writer:
            writer.execute(insert(CHANGELOG).values(row))
        assert reader.scalar(count) == 0
    with database.reading() as reader:
        assert reader.scalar(count) == 1
    database.close()


def test_the_commit_of_a_change_is_on_disk_and_that_of_a_session_event_need_not_be(url: str, tmp_path: Path) -> None:
    database = Database(url, tmp_path)
    with database.transaction(write=True) as transaction:
        assert transaction.value("show synchronous_commit") == "on"
    with database.transaction(write=True, durable=False) as transaction:
        assert transaction.value("show synchronous_commit") == "off"
    with database.transaction(write=True) as transaction:
        assert transaction.value("show synchronous_commit") == "on"
    database.close()


def test_a_percent_sign_in_a_statement_is_only_a_percent_sign(url: str, tmp_path: Path) -> None:
    database = Database(url, tmp_path)
    with database.transaction(write=False) as transaction:
        assert transaction.value("select 'a%b' like ? || '%'", "a") is True
    database.close()


def test_the_known_kinds_of_url() -> None:
    assert postgres.is_postgres("postgresql+psycopg://h/d")
    assert postgres.is_postgres("postgres://h/d")
    assert not postgres.is_postgres("sqlite:///a")
    assert schema.HEAD in schema.KNOWN

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from metaforge.store import schema
from metaforge.store.database import Database, sqlite_engine
from metaforge.store.location import StoreUnavailable
from metaforge.store.tables import METADATA
from metaforge.store.upgrade import alembic_config, schema_sql, upgrade

AT_BASE = "create table alembic_version (version_num varchar(32) not null primary key)"


def tables_of(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")}


def at_base(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(AT_BASE)
    return path


def run_together(code: str, count: int, *arguments: str) -> list[str]:
    """Start processes that wait for one line of input, let all go at once, and return what each printed."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(count)
    ]  # fmt: skip
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        ended = [process.communicate(timeout=120) for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0] * count, ended
    return [output for output, _ in ended]


def test_the_shipped_schema_is_what_the_migrations_make() -> None:
    assert schema.SCHEMA_FILE.read_text() == schema_sql()


def test_the_known_versions_are_the_migrations() -> None:
    scripts = ScriptDirectory.from_config(alembic_config())
    assert scripts.get_current_head() == schema.HEAD
    assert {script.revision for script in scripts.walk_revisions()} == schema.KNOWN


def test_the_tables_in_code_are_the_tables_in_the_database(tmp_path: Path) -> None:
    schema.prepare(tmp_path / "new.db")
    engine = sqlite_engine(tmp_path / "new.db", begin="deferred")
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"include_object": is_plain})
        assert compare_metadata(context, METADATA) == []
    engine.dispose()


def is_plain(thing: object, name: str | None, kind: str, *more: object) -> bool:
    """Whether it is no part of the full-text index, which is a kind of table of each database's own."""
    is_table = kind == "table" and str(name).startswith("knowledge_words")
    return not is_table and name != "ix_knowledge_passages_terms"


def test_every_migration_can_be_undone(tmp_path: Path) -> None:
    upgrade(tmp_path / "a.db")
    engine = sqlite_engine(tmp_path / "a.db", begin="immediate")
    with engine.begin() as connection:
        config = alembic_config()
        config.attributes["connection"] = connection
        command.downgrade(config, "base")
    engine.dispose()
    assert tables_of(tmp_path / "a.db") - {"sqlite_sequence"} == {"alembic_version"}


def test_a_new_database_is_private_and_logs_ahead(tmp_path: Path) -> None:
    path = tmp_path / "home" / "metaforge.db"
    schema.prepare(path)
    assert schema.version_of(path) == schema.HEAD
    assert path.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("pragma journal_mode").fetchone() == ("wal",)


def test_eight_processes_at_once_make_one_database(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib\n"
        "from metaforge.store.database import Database\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "connection = Database('', pathlib.Path(sys.argv[1])).record_connection()\n"
        "connection.execute('insert into changelog(at, project_id, kind, ref, node_id, body, author, run_id)'\n"
        "                   \" values('t', 'p', 'k', 'r', 'n', '{}', 'a', '')\")\n"
        "print(connection.execute('pragma journal_mode').fetchone()[0], 'alembic' in sys.modules)\n"
    )
    printed = run_together(code, 8, str(tmp_path))

    assert printed == ["wal False\n"] * 8
    with closing(sqlite3.connect(tmp_path / "metaforge.db")) as connection:
        assert connection.execute("select count(*) from changelog").fetchone() == (8,)
        assert connection.execute("select * from alembic_version").fetchall() == [(schema.HEAD,)]
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)


def test_an_older_database_is_upgraded_by_another_process_whoever_comes_first(tmp_path: Path) -> None:
    path = at_base(tmp_path / "metaforge.db")
    code = (
        "import sys, pathlib\n"
        "from metaforge.store import schema\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "schema.prepare(pathlib.Path(sys.argv[1]))\n"
        "print(schema.version_of(pathlib.Path(sys.argv[1])), 'alembic' in sys.modules)\n"
    )
    assert run_together(code, 3, str(path)) == [f"{schema.HEAD} False\n"] * 3
    assert {"calls", "call_files", "changelog"} <= tables_of(path)


def test_an_upgrade_that_fails_changes_nothing_and_says_why(tmp_path: Path) -> None:
    path = at_base(tmp_path / "metaforge.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table changelog (in_the_way)")

    with pytest.raises(StoreUnavailable, match=r"could not be upgraded from schema none to .*changelog already exists"):
        schema.prepare(path)

    assert tables_of(path) == {"alembic_version", "changelog"}


def test_a_newer_database_is_left_alone(tmp_path: Path) -> None:
    path = at_base(tmp_path / "metaforge.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("insert into alembic_version values ('9999')")

    with pytest.raises(StoreUnavailable, match=r"newer MetaForge \(schema 9999.*pip install --upgrade"):
        schema.prepare(path)

    assert tables_of(path) == {"alembic_version"}


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "metaforge.db")) as connection:
        connection.execute("create table bookmarks (url)")

    with pytest.raises(StoreUnavailable, match=r"another program's database \(tables bookmarks\)"):
        schema.prepare(tmp_path / "metaforge.db")

    assert tables_of(tmp_path / "metaforge.db") == {"bookmarks"}


def test_a_damaged_database_is_named_with_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "metaforge.db"
    path.write_bytes(b"not a database at all" * 100)

    with pytest.raises(StoreUnavailable, match=r"metaforge\.db cannot be used: file is not a database\. Copy it"):
        schema.prepare(path)

    assert path.read_bytes().startswith(b"not a database")


def test_a_database_deleted_while_running_is_made_again(tmp_path: Path) -> None:
    database = Database("", tmp_path)
    database.prepare()
    database.path.unlink()
    database.prepare()
    assert schema.version_of(database.path) == schema.HEAD


@pytest.mark.parametrize(
    "name", ["ix_calls_started_at", "ix_nodes_project_id_kind", "uq_baselines_project_id_name", "ix_nodes_handle"]
)
def test_an_upgrade_that_dies_half_way_leaves_nothing_and_the_next_one_finishes(tmp_path: Path, name: str) -> None:
    path = at_base(tmp_path / "metaforge.db")
    code = (
        "import os, pathlib, signal, sys\n"
        "from alembic.operations import Operations\n"
        "from metaforge.store.upgrade import upgrade\n"
        "create = Operations.create_index\n"
        "def create_or_die(self, name, *more, **named):\n"
        "    if name == sys.argv[2]:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return create(self, name, *more, **named)\n"
        "Operations.create_index = create_or_die\n"
        "upgrade(pathlib.Path(sys.argv[1]))\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path), name]).returncode == -9
    assert tables_of(path) == {"alembic_version"}

    schema.prepare(path)

    assert set(METADATA.tables) <= tables_of(path)
    assert schema.version_of(path) == schema.HEAD


def made_by_version(path: Path, version: str) -> Path:
    engine = sqlite_engine(path, begin="immediate")
    with engine.begin() as connection:
        config = alembic_config()
        config.attributes["connection"] = connection
        command.upgrade(config, version)
    engine.dispose()
    return path


def test_the_events_of_calls_keep_their_session_and_number_over_the_upgrade(tmp_path: Path) -> None:
    path = made_by_version(tmp_path / "metaforge.db", "0003")
    with closing(sqlite3.connect(path, isolation_level=None)) as old:
        old.execute("pragma journal_mode = wal")
        old.execute("insert into sessions values ('s', '', '', '', '', '', 'active', '', 1, '', '', 2, 'x', 'x', '')")
        for call_id in ("c1", "c2"):
            old.execute(
                "insert into calls (call_id, tool_id, status, started_at, session_id, record) "
                "values (?, 't', 'ok', 'x', '', '{}')",
                (call_id,),
            )
        for seq, event_id, call_id in ((1, "c1", "c1"), (2, "e1", "c1")):
            old.execute(
                "insert into session_events values ('s', ?, ?, 'action', 'm', '{}', ?, 'a', 'x')",
                (seq, event_id, call_id),
            )
    schema.prepare(path)
    with closing(sqlite3.connect(path)) as new:
        calls = new.execute("select call_id, work_session_id, event_seq from calls order by call_id").fetchall()
        assert calls == [("c1", "s", 1), ("c2", "", 0)]
        assert new.execute("select seq, event_id from session_events").fetchall() == [(2, "e1")]


def test_nodes_that_an_older_version_wrote_are_found_by_their_handles(tmp_path: Path) -> None:
    path = made_by_version(tmp_path / "metaforge.db", "0004")
    bodies = {
        "a": ("cad_model", '{"content_hash":"abc","mpn":"x"}', ""), "b": ("component_selection", '{"mpn":"STM32"}', ""),
        "c": ("note", '{"content_hash":5}', ""), "d": ("note", '{"text":"content_hash"}', ""),
        "e": ("prd", "", "f" * 64), "f": ("note", '{"content_hash":"%s"}' % ("h" * 300), ""),
        "g": ("note", '{"inner":{"content_hash":"abc"}}', ""),
    }  # fmt: skip
    with closing(sqlite3.connect(path, isolation_level=None)) as old:
        old.execute("pragma journal_mode = wal")
        for node_id, (kind, body, sha256) in bodies.items():
            old.execute(
                "insert into nodes (node_id, project_id, kind, name, body, body_sha256, item_key, status, change_set, "
                "phase, gate, change_reason, author, run_id, prior_node_id, decided_by, approved_at, status_reason, "
                "closed_at, adopted, created_at) "
                "values (?, '', ?, '', ?, ?, '', '', '', '', '', '', '', '', '', '', '', '', '', 0, '')",
                (node_id, kind, body, sha256),
            )
    schema.prepare(path)
    with closing(sqlite3.connect(path)) as new:
        handles = dict(new.execute("select node_id, handle from nodes"))
    assert handles == {"a": "abc", "b": "STM32", "c": "", "d": "", "e": "?", "f": "", "g": ""}


def test_calls_that_an_older_version_recorded_are_there_after_the_upgrade(tmp_path: Path) -> None:
    path = made_by_version(tmp_path / "metaforge.db", "0001")
    with closing(sqlite3.connect(path, isolation_level=None)) as old:
        old.execute("pragma journal_mode = wal")
        old.execute(
            "insert into calls (call_id, tool_id, status, started_at, session_id, record) "
            "values ('c', 't', 'ok', 'x', 's', '{}')"
        )
    schema.prepare(path)
    with closing(sqlite3.connect(path)) as new:
        assert new.execute("select call_id from calls").fetchall() == [("c",)]
        assert new.execute("pragma foreign_key_check").fetchall() == []

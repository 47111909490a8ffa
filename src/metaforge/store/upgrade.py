"""Upgrade a database, or write `schema.sql` from the migrations.

python -m metaforge.store.upgrade DATABASE
python -m metaforge.store.upgrade --postgres    (its URL on the standard input)
python -m metaforge.store.upgrade --write-schema
"""

import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy.exc import DBAPIError

from metaforge.store.database import postgres_engine, sqlite_engine
from metaforge.store.postgres import UPGRADE_LOCK
from metaforge.store.schema import SCHEMA_FILE, upgrade_lock


def upgrade(path: Path) -> None:
    """Run every migration that the database lacks, all or none; a second process waits and finds nothing to do."""
    with upgrade_lock(path):
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("pragma journal_mode = wal")
        # Rebuilding a table drops it for a moment, which foreign keys would take for deleted rows.
        engine = sqlite_engine(path, begin="immediate", foreign_keys=False)
        try:
            with engine.begin() as transaction:
                config = alembic_config()
                config.attributes["connection"] = transaction
                command.upgrade(config, "head")
        finally:
            engine.dispose()


def upgrade_postgres(url: str) -> None:
    """Run every migration that a Postgres database lacks, all or none; others wait and find nothing to do."""
    engine = postgres_engine(url, begin="immediate")
    try:
        with engine.begin() as transaction:
            # No limit on waiting: another process's upgrade may take its time.
            transaction.exec_driver_sql("set local lock_timeout = 0")
            transaction.exec_driver_sql(f"select pg_advisory_xact_lock({UPGRADE_LOCK})")
            config = alembic_config()
            config.attributes["connection"] = transaction
            command.upgrade(config, "head")
    finally:
        engine.dispose()


def alembic_config() -> Config:
    """Return alembic's configuration; it needs no file."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    return config


def schema_sql() -> str:
    """Return what the migrations make of an empty SQLite database, as one script."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fresh.db"
        upgrade(path)
        with closing(sqlite3.connect(path)) as connection:
            every = connection.execute(
                "select sql from sqlite_master where sql is not null and name not in (select name from "
                "pragma_table_list where type = 'shadow') order by rowid"
            )
            statements = [_tidy(sql) for (sql,) in every if not sql.startswith("CREATE TABLE sqlite_")]
            (version,) = connection.execute("select version_num from alembic_version").fetchone()
    statements.append(f"INSERT INTO alembic_version (version_num) VALUES ('{version}')")
    note = "-- Written by `python -m metaforge.store.upgrade --write-schema` from the migrations; a test compares.\n"
    return note + "".join(f"{statement};\n" for statement in statements)


def _tidy(sql: str) -> str:
    lines = (line.replace("\t", "    ").rstrip() for line in sql.splitlines())
    return "\n".join(line for line in lines if line)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write-schema"]:
        SCHEMA_FILE.write_text(schema_sql())
    else:
        try:
            if sys.argv[1:] == ["--postgres"]:
                upgrade_postgres(sys.stdin.read().strip())
            else:
                upgrade(Path(sys.argv[1]))
        except DBAPIError as fault:
            sys.exit(str(fault.orig))

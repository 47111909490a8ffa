"""The tables of the store, in SQLAlchemy's words. `schema.sql` is what the migrations make of them on SQLite."""

from sqlalchemy import Column, Index, Integer, MetaData, String, Table, Text

METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

CALLS = Table(
    "calls",
    METADATA,
    Column("seq", Integer, primary_key=True),
    Column("call_id", String, nullable=False),
    Column("tool_id", String, nullable=False),
    Column("status", String, nullable=False),
    Column("started_at", String, nullable=False),
    Column("session_id", String, nullable=False),
    Column("record", Text, nullable=False),
    Index("uq_calls_call_id", "call_id", unique=True),
    Index("ix_calls_started_at", "started_at"),
)
"""`record` is the whole call record as JSON; the other columns are what it is looked up by."""

CALL_FILES = Table(
    "call_files",
    METADATA,
    Column("sha256", String, primary_key=True),
    Column("call_id", String, primary_key=True),
    Column("direction", String, primary_key=True),
    sqlite_with_rowid=False,
)
"""Which calls read (`input`) or produced (`artefact`) which content."""

CHANGELOG = Table(
    "changelog",
    METADATA,
    Column("seq", Integer, primary_key=True),
    Column("at", String, nullable=False),
    Column("project_id", String, nullable=False),
    Column("subject", String, nullable=False),
    Column("key", String, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("change", String, nullable=False),
    Column("author", String, nullable=False),
    Index("ix_changelog_project_id_seq", "project_id", "seq"),
    sqlite_autoincrement=True,
)
"""One row for every write to the design record, in the same transaction; readers follow it by `seq`."""

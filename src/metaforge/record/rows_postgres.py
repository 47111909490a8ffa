"""Put journal lines into a Postgres database: one transaction a batch, as `rows` does for SQLite."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from metaforge.record.entries import CALL_COLUMNS, SESSION_COLUMNS, Entries, SessionPart
from metaforge.store import postgres
from metaforge.store.database import Database, StoreUnavailable

if TYPE_CHECKING:
    import psycopg

_CALLS = f"insert into calls ({CALL_COLUMNS}) values (%s, %s, %s, %s, %s, %s, %s, %s)"
_KNOWN = "select call_id from calls where call_id = any(%s)"
_FILES = "insert into call_files (sha256, call_id, direction) values (%s, %s, %s) on conflict do nothing"
_COUNT_IN = f"""
    insert into sessions ({SESSION_COLUMNS}) values ({", ".join(["%s"] * (SESSION_COLUMNS.count(",") + 1))})
    on conflict (session_id) do update
        set event_count = sessions.event_count + excluded.event_count,
            last_event_at = greatest(sessions.last_event_at, excluded.last_event_at)
    returning event_count
"""
"""Keeps the session's row until the commit, so that nobody else gives out the same numbers."""


class PostgresRowWriter:
    """Appends records through one connection, opened by the first batch. For one thread."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: psycopg.Connection[Any] | None = None

    def write(self, lines: Sequence[bytes]) -> list[bytes]:
        """Store records; one whose call id is there already is left as it is.

        Args:
            lines: records as JSON.

        Returns:
            The lines that are no records, which are not stored.

        Raises:
            StoreUnavailable: the database refuses; the batch can be sent again.
        """
        entries = Entries(lines)
        if entries.calls:
            self._insert(entries)
        return entries.damaged

    def settle(self) -> None:
        """Do nothing: every batch was on the server's disk when it was written."""

    def close(self) -> None:
        """Close the connection; the next batch opens a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _insert(self, entries: Entries) -> None:
        connection = self._open()
        try:
            with postgres.explained(self._database.url), connection.cursor() as cursor:
                cursor.execute("begin")
                _store(cursor, entries)
                cursor.execute("commit")
        except StoreUnavailable:
            import psycopg

            with suppress(psycopg.Error):
                connection.execute("rollback")
            raise

    def _open(self) -> "psycopg.Connection[Any]":
        if self._connection is None:
            self._database.prepare()
            with postgres.explained(self._database.url):
                self._connection = postgres.connect(self._database.url)
        return self._connection


def _store(cursor: "psycopg.Cursor[Any]", entries: Entries) -> None:
    def count_in(part: SessionPart) -> int:
        cursor.execute(_COUNT_IN, part.new_row())
        row = cursor.fetchone()
        assert row is not None
        return int(row[0])

    cursor.execute(_KNOWN, (entries.call_ids,))
    entries.leave_out(row[0] for row in cursor.fetchall())
    entries.number(count_in)
    if entries.calls:
        cursor.executemany(_CALLS, entries.calls)
    if entries.files:
        cursor.executemany(_FILES, entries.files)

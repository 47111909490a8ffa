"""Put journal lines into an SQLite database, with nothing but the standard library.

A statement stores many rows: the interpreter waits for nobody else's turn between them, and the event loop's thread
goes on meanwhile.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, Protocol

from metaforge.record.entries import CALL_COLUMNS, SESSION_COLUMNS, Entries, Row, SessionPart
from metaforge.store.database import Database

_STEPS = (100, 10, 1)
"""How many rows one statement takes: few statements stay prepared, and the largest has fewer than 999 parameters."""
_PORTION_COUNT = 200
"""Lines that are taken apart in one go: the event loop's thread waits for that long."""

_FILES = "insert into call_files (sha256, call_id, direction) values (?, ?, ?) on conflict do nothing"
_COUNT_IN = f"""
    insert into sessions ({SESSION_COLUMNS}) values ({", ".join("?" * (SESSION_COLUMNS.count(",") + 1))})
    on conflict (session_id) do update set event_count = event_count + excluded.event_count,
                                           last_event_at = max(last_event_at, excluded.last_event_at)
"""


class RowWriter(Protocol):
    """Appends records to the database, whichever it is."""

    def write(self, lines: Sequence[bytes]) -> list[bytes]: ...
    def settle(self) -> None: ...
    def close(self) -> None: ...


def row_writer(database: Database) -> RowWriter:
    """Return the writer for a database; it opens it with its first batch."""
    if database.is_postgres:
        from metaforge.record.rows_postgres import PostgresRowWriter

        return PostgresRowWriter(database)
    return SqliteRowWriter(database)


class SqliteRowWriter:
    """Appends records through one connection, opened by the first batch. For one thread."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: sqlite3.Connection | None = None

    def write(self, lines: Sequence[bytes]) -> list[bytes]:
        """Store records; one whose call id is there already is left as it is.

        Args:
            lines: records as JSON.

        Returns:
            The lines that are no records, which are not stored.

        Raises:
            sqlite3.Error: the database refuses; nothing of the batch is stored.
            StoreUnavailable: it cannot be opened.
        """
        try:
            return self._write(lines, _insert)
        except sqlite3.IntegrityError:
            # A journal that a process left behind half stored: rare, and worth a look-up only then.
            return self._write(lines, _insert_unknown)

    def settle(self) -> None:
        """Sync what was written to disk, before the journal that still has it is given up."""
        if self._connection is not None:
            self._connection.execute("pragma wal_checkpoint(passive)")

    def close(self) -> None:
        """Close the connection; the next batch opens a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _write(self, lines: Sequence[bytes], insert: Any) -> list[bytes]:
        if self._connection is None:
            self._connection = self._database.record_connection()
        connection = self._connection
        damaged: list[bytes] = []
        connection.execute("begin immediate")
        try:
            for start in range(0, len(lines), _PORTION_COUNT):
                entries = Entries(lines[start : start + _PORTION_COUNT])
                insert(connection, entries)
                damaged += entries.damaged
            connection.execute("commit")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("rollback")
            raise
        return damaged


def _insert(connection: sqlite3.Connection, entries: Entries) -> None:
    """Store calls that are new; raises IntegrityError where one is not."""

    def count_in(part: SessionPart) -> int:
        connection.execute(_COUNT_IN, part.new_row())
        counted = connection.execute("select event_count from sessions where session_id = ?", (part.session_id,))
        return int(counted.fetchone()[0])

    entries.number(count_in)
    for rows in _portions(entries.calls):
        row = f"({', '.join('?' * len(rows[0]))})"
        statement = f"insert into calls ({CALL_COLUMNS}) values {', '.join([row] * len(rows))}"
        connection.execute(statement, tuple(chain.from_iterable(rows)))
    if entries.files:
        connection.executemany(_FILES, entries.files)


def _insert_unknown(connection: sqlite3.Connection, entries: Entries) -> None:
    there = "select 1 from calls where call_id = ?"
    entries.leave_out(call_id for call_id in entries.call_ids if connection.execute(there, (call_id,)).fetchone())
    _insert(connection, entries)


def _portions(rows: list[Row]) -> Iterator[list[Row]]:
    start = 0
    for step in _STEPS:
        while len(rows) - start >= step:
            yield rows[start : start + step]
            start += step

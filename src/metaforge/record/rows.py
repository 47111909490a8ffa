"""Put journal lines into the database: one statement a batch, nothing but the standard library."""

import sqlite3
from collections.abc import Sequence
from contextlib import suppress

from metaforge.store.database import Database

_CALLS = """
    insert into calls (call_id, tool_id, status, started_at, session_id, record)
    select json_extract(value, '$.call_id'), json_extract(value, '$.tool_id'), json_extract(value, '$.status'),
           json_extract(value, '$.started_at'), json_extract(value, '$.caller.session_id'), value
    from json_each(?) where true
    on conflict (call_id) do nothing
"""
_FILES = """
    insert into call_files (sha256, call_id, direction)
    select json_extract(file.value, '$.sha256'), json_extract(record.value, '$.call_id'), {direction!r}
    from json_each(?) as record, json_each(record.value, {path!r}) as file where true
    on conflict do nothing
"""
_INPUTS = _FILES.format(direction="input", path="$.inputs")
_ARTEFACTS = _FILES.format(direction="artefact", path="$.artefacts")


class RowWriter:
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
        connection = self._open()
        damaged: list[bytes] = []
        connection.execute("begin immediate")
        try:
            try:
                _insert(connection, lines)
            except (UnicodeDecodeError, sqlite3.Error) as fault:
                if not _blames_a_line(fault):
                    raise
                damaged = _insert_singly(connection, lines)
            connection.execute("commit")
        except sqlite3.Error:
            with suppress(sqlite3.Error):
                connection.execute("rollback")
            raise
        return damaged

    def settle(self) -> None:
        """Sync what was written to disk, before the journal that still has it is given up."""
        if self._connection is not None:
            self._connection.execute("pragma wal_checkpoint(passive)")

    def close(self) -> None:
        """Close the connection; the next batch opens a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._database.record_connection()
        return self._connection


def _insert(connection: sqlite3.Connection, lines: Sequence[bytes]) -> None:
    array = (b"[" + b",".join(lines) + b"]").decode()
    connection.execute(_CALLS, (array,))
    if '"sha256"' in array:
        connection.execute(_INPUTS, (array,))
        connection.execute(_ARTEFACTS, (array,))


def _insert_singly(connection: sqlite3.Connection, lines: Sequence[bytes]) -> list[bytes]:
    """Store what can be stored; a statement that fails undoes itself alone."""
    damaged: list[bytes] = []
    for line in lines:
        try:
            _insert(connection, [line])
        except (UnicodeDecodeError, sqlite3.Error) as fault:
            if not _blames_a_line(fault):
                raise
            damaged.append(line)
    return damaged


def _blames_a_line(fault: Exception) -> bool:
    """Whether the content is at fault (torn, no record) rather than the database (full, locked, read-only)."""
    if isinstance(fault, UnicodeDecodeError | sqlite3.IntegrityError):
        return True
    return isinstance(fault, sqlite3.OperationalError) and "JSON" in str(fault)

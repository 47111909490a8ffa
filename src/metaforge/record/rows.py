"""Put journal lines into an SQLite database: one statement a batch, nothing but the standard library."""

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

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
_SESSIONS = """
    insert into sessions (session_id, project_id, client_session_id, agent_code, task_type, title, status, summary,
                          implicit, author, client_name, event_count, started_at, last_event_at, completed_at)
    select json_extract(value, '$.work_session_id'), coalesce(json_extract(value, '$.project_id'), ''),
           json_extract(value, '$.caller.session_id'), '', '', '', 'active', '', 1,
           json_extract(value, '$.caller.actor_id'), json_extract(value, '$.caller.client_name'), 0,
           json_extract(value, '$.started_at'), json_extract(value, '$.started_at'), ''
    from json_each(?) where json_extract(value, '$.work_session_id') is not null
    on conflict (session_id) do nothing
"""
_EVENTS = """
    insert into session_events (session_id, seq, event_id, type, message, data, call_id, author, at)
    select session_id, event_count + row_number() over (partition by session_id order by key),
           json_extract(value, '$.call_id'),
           case json_extract(value, '$.status') when 'ok' then 'action' else 'error' end,
           coalesce(nullif(json_extract(value, '$.summary'), ''), json_extract(value, '$.error_message'),
                    json_extract(value, '$.tool_id') || ' ' || json_extract(value, '$.status')),
           json_object('tool_id', json_extract(value, '$.tool_id'), 'status', json_extract(value, '$.status'),
                       'duration_ms', json_extract(value, '$.duration_ms'), 'captured_by', 'server'),
           json_extract(value, '$.call_id'), json_extract(value, '$.caller.actor_id'),
           json_extract(value, '$.started_at')
    from (select value, min(key) as key from json_each(?) group by json_extract(value, '$.call_id'))
    join sessions on session_id = json_extract(value, '$.work_session_id')
    where not exists (select 1 from session_events where event_id = json_extract(value, '$.call_id'))
    on conflict (event_id) do nothing
"""
_COUNTS = """
    update sessions set
        event_count = (select max(seq) from session_events where session_events.session_id = sessions.session_id),
        last_event_at = max(last_event_at, (select max(at) from session_events
                                            where session_events.session_id = sessions.session_id))
    where session_id in (select json_extract(value, '$.work_session_id') from json_each(?))
"""
_INPUTS = _FILES.format(direction="input", path="$.inputs")
_ARTEFACTS = _FILES.format(direction="artefact", path="$.artefacts")


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
    if '"work_session_id"' in array:
        connection.execute(_SESSIONS, (array,))
        connection.execute(_EVENTS, (array,))
        connection.execute(_COUNTS, (array,))


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

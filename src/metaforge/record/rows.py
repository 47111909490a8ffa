"""Put journal lines into an SQLite database: one statement a batch, nothing but the standard library."""

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from metaforge.store.database import Database

_TAKE_APART = """
    create temp table if not exists batch (
        key integer primary key, call_id text, tool_id text, status text, started_at text, client_session_id text,
        work_session_id text, project_id text, author text, client_name text, message text, duration_ms real,
        record text
    )
"""
_BATCH = """
    insert into temp.batch
    select key, json_extract(value, '$.call_id'), json_extract(value, '$.tool_id'), json_extract(value, '$.status'),
           json_extract(value, '$.started_at'), json_extract(value, '$.caller.session_id'),
           json_extract(value, '$.work_session_id'), coalesce(json_extract(value, '$.project_id'), ''),
           json_extract(value, '$.caller.actor_id'), json_extract(value, '$.caller.client_name'),
           coalesce(nullif(json_extract(value, '$.summary'), ''), json_extract(value, '$.error_message'),
                    json_extract(value, '$.tool_id') || ' ' || json_extract(value, '$.status')),
           json_extract(value, '$.duration_ms'), value
    from json_each(?)
"""
"""Each record is taken apart once; the statements after it read columns."""

_CALLS = """
    insert into calls (call_id, tool_id, status, started_at, session_id, record)
    select call_id, tool_id, status, started_at, client_session_id, record from temp.batch where true order by key
    on conflict (call_id) do nothing
"""
_FILES = """
    insert into call_files (sha256, call_id, direction)
    select json_extract(file.value, '$.sha256'), call_id, {direction!r}
    from temp.batch, json_each(record, {path!r}) as file where true
    on conflict do nothing
"""
_SESSIONS = """
    insert into sessions (session_id, project_id, client_session_id, agent_code, task_type, title, status, summary,
                          implicit, author, client_name, event_count, started_at, last_event_at, completed_at)
    select work_session_id, project_id, client_session_id, '', '', '', 'active', '', 1, author, client_name, 0,
           started_at, started_at, ''
    from temp.batch where work_session_id is not null order by key
    on conflict (session_id) do nothing
"""
_EVENTS = """
    insert into session_events (session_id, seq, event_id, type, message, data, call_id, author, at)
    select session_id, event_count + row_number() over (partition by session_id order by key), call_id,
           case batch.status when 'ok' then 'action' else 'error' end, message,
           json_object('tool_id', tool_id, 'status', batch.status, 'duration_ms', duration_ms, 'captured_by', 'server'),
           call_id, batch.author, batch.started_at
    from (select *, min(key) from temp.batch group by call_id) as batch
    join sessions on session_id = work_session_id
    where not exists (select 1 from session_events where event_id = batch.call_id)
    on conflict (event_id) do nothing
"""
_COUNTS = """
    update sessions set
        event_count = (select max(seq) from session_events where session_events.session_id = sessions.session_id),
        last_event_at = max(last_event_at, (select max(batch.started_at) from temp.batch as batch
                                            where work_session_id = sessions.session_id))
    where session_id in (select work_session_id from temp.batch)
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
            self._connection.execute("pragma temp_store = memory")
            self._connection.execute(_TAKE_APART)
        return self._connection


def _insert(connection: sqlite3.Connection, lines: Sequence[bytes]) -> None:
    array = (b"[" + b",".join(lines) + b"]").decode()
    connection.execute("delete from temp.batch")
    connection.execute(_BATCH, (array,))
    connection.execute(_CALLS)
    if '"sha256"' in array:
        connection.execute(_INPUTS)
        connection.execute(_ARTEFACTS)
    if '"work_session_id"' in array:
        connection.execute(_SESSIONS)
        connection.execute(_EVENTS)
        connection.execute(_COUNTS)


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

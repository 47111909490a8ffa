"""Put journal lines into a Postgres database: one statement a batch, as `rows` does for SQLite."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from metaforge.store import postgres
from metaforge.store.database import Database, StoreUnavailable

if TYPE_CHECKING:
    import psycopg

_CALLS = """
    insert into calls (call_id, tool_id, status, started_at, session_id, record)
    select value ->> 'call_id', value ->> 'tool_id', value ->> 'status', value ->> 'started_at',
           value -> 'caller' ->> 'session_id', value::text
    from json_array_elements(%s::json) as each (value)
    on conflict (call_id) do nothing
"""
_FILES = """
    insert into call_files (sha256, call_id, direction)
    select file ->> 'sha256', value ->> 'call_id', '{direction}'
    from json_array_elements(%s::json) as each (value), json_array_elements(value -> '{field}') as files (file)
    on conflict do nothing
"""
_INPUTS = _FILES.format(direction="input", field="inputs")
_ARTEFACTS = _FILES.format(direction="artefact", field="artefacts")


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
            StoreUnavailable: the database refuses; nothing of the batch is stored, or it can be sent again.
        """
        connection = self._open()
        if self._insert(connection, lines):
            return []
        return [line for line in lines if not self._insert(connection, [line])]

    def settle(self) -> None:
        """Do nothing: every batch was on the server's disk when it was written."""

    def close(self) -> None:
        """Close the connection; the next batch opens a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _open(self) -> "psycopg.Connection[Any]":
        if self._connection is None:
            self._database.prepare()
            with postgres.explained(self._database.url):
                self._connection = postgres.connect(self._database.url)
        return self._connection

    def _insert(self, connection: "psycopg.Connection[Any]", lines: Sequence[bytes]) -> bool:
        """Store all lines or none; False where the content is at fault."""
        import psycopg

        try:
            array = (b"[" + b",".join(lines) + b"]").decode()
            with postgres.explained(self._database.url):
                connection.execute("begin")
                connection.execute(_CALLS, (array,))
                if '"sha256"' in array:
                    connection.execute(_INPUTS, (array,))
                    connection.execute(_ARTEFACTS, (array,))
                connection.execute("commit")
        except (UnicodeDecodeError, psycopg.IntegrityError, psycopg.DataError):
            _undo(connection)
            return False
        except StoreUnavailable:
            _undo(connection)
            raise
        return True


def _undo(connection: "psycopg.Connection[Any]") -> None:
    import psycopg

    with suppress(psycopg.Error):
        connection.execute("rollback")

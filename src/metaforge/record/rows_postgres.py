"""Put journal lines into a Postgres database: one transaction a batch, as `rows` does for SQLite."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import orjson

from metaforge.record.events_postgres import Event, event_of, write_events
from metaforge.store import postgres
from metaforge.store.database import Database, StoreUnavailable

if TYPE_CHECKING:
    import psycopg

_CALLS = """
    insert into calls (call_id, tool_id, status, started_at, session_id, record) values (%s, %s, %s, %s, %s, %s)
    on conflict (call_id) do nothing
"""
_FILES = "insert into call_files (sha256, call_id, direction) values (%s, %s, %s) on conflict do nothing"
_DIRECTIONS = {"inputs": "input", "artefacts": "artefact"}


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
        calls: list[tuple[str, ...]] = []
        files: list[tuple[str, ...]] = []
        events: list[Event] = []
        damaged: list[bytes] = []
        for line in lines:
            # Taken apart here and not by the server, whose JSON has no U+0000.
            try:
                record = orjson.loads(line)
                call, used = _rows(record, line)
                event = event_of(record)
            except (ValueError, KeyError, TypeError, AttributeError):
                damaged.append(line)
            else:
                calls.append(call)
                files += used
                if event is not None:
                    events.append(event)
        if calls:
            self._insert(calls, files, events)
        return damaged

    def settle(self) -> None:
        """Do nothing: every batch was on the server's disk when it was written."""

    def close(self) -> None:
        """Close the connection; the next batch opens a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _insert(
        self, calls: Sequence[tuple[str, ...]], files: Sequence[tuple[str, ...]], events: Sequence[Event]
    ) -> None:
        connection = self._open()
        try:
            with postgres.explained(self._database.url), connection.cursor() as cursor:
                cursor.execute("begin")
                cursor.executemany(_CALLS, calls)
                if files:
                    cursor.executemany(_FILES, files)
                write_events(cursor, events)
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


def _rows(record: dict[str, Any], line: bytes) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the row of a record in `calls`, and those of its files.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: it is no record.
    """
    call_id = _text(record["call_id"])
    call: tuple[str, ...] = (
        call_id, _text(record["tool_id"]), _text(record["status"]), _text(record["started_at"]),
        _text(record["caller"]["session_id"]), line.decode(),
    )  # fmt: skip
    files: list[tuple[str, ...]] = [
        (_text(file["sha256"]), call_id, direction)
        for name, direction in _DIRECTIONS.items()
        for file in record.get(name, ())
    ]
    return call, files


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, found {value!r}")
    return value.replace("\x00", "\N{REPLACEMENT CHARACTER}")

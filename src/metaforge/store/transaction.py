"""One open transaction in the driver's own words: what frequent statements are run through.

Statements are portable SQL with `?` for every value. They go to the driver as they are (SQLite) or with its own
placeholder (Postgres); building them anew for each call would cost several times what they take to run.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Protocol

Row = tuple[Any, ...]


class _Cursor(Protocol):
    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """What the standard library's SQLite connection and psycopg's have in common."""

    def execute(self, statement: Any, values: Sequence[Any] = ..., /) -> Any: ...
    def close(self) -> None: ...


class Transaction:
    """A transaction on one connection, for one thread, between its begin and its end."""

    __slots__ = ("_connection", "memory", "postgres")

    def __init__(self, connection: Connection, *, postgres: bool, memory: dict[Any, Any] | None = None) -> None:
        self._connection = connection
        self.postgres = postgres
        """Whether this is Postgres, for the few statements that differ."""
        self.memory = memory
        """What readers made of this very state, for those who ask the same of it; None where nothing is kept."""

    def run(self, statement: str, *values: Any) -> int:
        """Run a statement and return how many rows it changed."""
        return int(self._execute(statement, values).rowcount)

    def row(self, statement: str, *values: Any) -> Row | None:
        """Run a query and return its first row, or None."""
        found: Row | None = self._execute(statement, values).fetchone()
        return found

    def rows(self, statement: str, *values: Any) -> list[Row]:
        """Run a query and return all its rows."""
        return list(self._execute(statement, values).fetchall())

    def each(self, statement: str, *values: Any) -> Iterator[Row]:
        """Run a query and yield its rows one by one."""
        yield from self._execute(statement, values)

    def value(self, statement: str, *values: Any) -> Any:
        """Run a query and return the first value of its first row, or None."""
        found = self.row(statement, *values)
        return None if found is None else found[0]

    def _execute(self, statement: str, values: Sequence[Any]) -> _Cursor:
        cursor: _Cursor
        if self.postgres:
            cursor = self._connection.execute(_for_postgres(statement), [_without_nul(value) for value in values])
        else:
            cursor = self._connection.execute(statement, values)
        return cursor


def _without_nul(value: Any) -> Any:
    """Return a value that Postgres takes: a name with U+0000 is one that nothing has, and no error."""
    if isinstance(value, str) and "\x00" in value:
        return value.replace("\x00", "\N{REPLACEMENT CHARACTER}")
    return value


@lru_cache(maxsize=512)
def _for_postgres(statement: str) -> str:
    return statement.replace("%", "%%").replace("?", "%s")

"""A Postgres database as the store: its connections, its schema, and what its errors mean.

psycopg is loaded at first use and comes with the extra `postgres`.
"""

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from metaforge.store.location import StoreUnavailable
from metaforge.store.schema import HEAD, KNOWN
from metaforge.store.transaction import Transaction

if TYPE_CHECKING:
    import psycopg

SCHEMES = ("postgresql://", "postgresql+psycopg://", "postgres://")
UPGRADE_LOCK = 7_237_001
"""The advisory lock under which the schema is changed."""
MIN_VERSION = 150000
_IDLE_COUNT = 4
_CONNECT_SECONDS = 10
_OPTIONS = "-c synchronous_commit=on -c lock_timeout=15000 -c client_encoding=UTF8"
_UPGRADE_SECONDS = 600.0
_CONTENDED = frozenset({"55P03", "40P01", "40001"})
"""lock_not_available, deadlock_detected, serialization_failure."""
_PASSWORD = re.compile(r"//([^:/@]*):[^@]*@|\b(password|sslpassword)=[^&\s]*")


def is_postgres(url: str) -> bool:
    """Whether a URL names a Postgres database."""
    return url.startswith(SCHEMES)


def shown(url: str) -> str:
    """Return a URL without its password."""
    return _PASSWORD.sub(lambda found: f"//{found[1]}@" if found[1] is not None else f"{found[2]}=***", url)


def plain(url: str) -> str:
    """Return a URL as psycopg and libpq read it."""
    return "postgresql://" + url.partition("://")[2]


class PostgresPool:
    """Connections of one process to one database."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._idle: list[psycopg.Connection[Any]] = []

    @contextmanager
    def transaction(self, *, write: bool, durable: bool = True) -> Iterator[Transaction]:
        """Open a transaction: a read of one state, or one that writes, on disk at commit if it is to be durable.

        Raises:
            psycopg.Error: the database refuses, or another writer kept a row for 15 s.
        """
        connection = self._begin("begin" if write else "begin isolation level repeatable read read only")
        try:
            if not durable:
                connection.execute("set local synchronous_commit = off")
            yield Transaction(connection, postgres=True)
            connection.execute("commit")
        except BaseException:
            import psycopg

            with suppress(psycopg.Error):
                connection.execute("rollback")
            raise
        finally:
            self._give_back(connection)

    def close(self) -> None:
        """Close what is idle."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _begin(self, statement: str) -> "psycopg.Connection[Any]":
        """Begin on an idle connection; one whose server went away in the meantime is dropped."""
        import psycopg

        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                connection = connect(self._url)
                connection.execute(statement)
                return connection
            try:
                connection.execute(statement)
            except psycopg.OperationalError:
                connection.close()
            else:
                return connection

    def _give_back(self, connection: "psycopg.Connection[Any]") -> None:
        from psycopg.pq import TransactionStatus

        with self._lock:
            if connection.info.transaction_status is TransactionStatus.IDLE and len(self._idle) < _IDLE_COUNT:
                self._idle.append(connection)
                return
        connection.close()


def connect(url: str, *, autocommit: bool = True) -> "psycopg.Connection[Any]":
    """Open a connection whose commits are on disk when they return.

    Raises:
        StoreUnavailable: psycopg is not installed.
        psycopg.Error: the server refuses.
    """
    try:
        import psycopg
    except ImportError:
        raise StoreUnavailable(
            "METAFORGE_DATABASE_URL names a Postgres database and its driver is not installed: "
            "pip install 'metaforge[postgres]'"
        ) from None
    return psycopg.connect(
        plain(url),
        autocommit=autocommit,
        connect_timeout=_CONNECT_SECONDS,
        options=_OPTIONS,
        application_name="metaforge",
    )


async def connect_to_listen(url: str) -> "psycopg.AsyncConnection[Any]":
    """Open a connection that an event loop can wait on, for notifications.

    Raises:
        psycopg.Error: the server refuses.
    """
    import psycopg

    return await psycopg.AsyncConnection.connect(
        plain(url),
        autocommit=True,
        connect_timeout=_CONNECT_SECONDS,
        options=_OPTIONS,
        application_name="metaforge listens",
        keepalives_idle=15,
        keepalives_interval=5,
        keepalives_count=3,
    )


def prepare(url: str) -> None:
    """Make the database ready, whatever its state and however many processes do so at once.

    Raises:
        StoreUnavailable: it cannot be reached or made, or belongs to a newer version.
    """
    with explained(url), connect(url) as connection:
        if connection.info.server_version < MIN_VERSION:
            raise StoreUnavailable(
                f"{shown(url)} is Postgres {connection.info.server_version // 10000}; use 15 or newer"
            )
        version = _version_of(connection)
    if version == HEAD:
        return
    if version and version not in KNOWN:
        raise StoreUnavailable(
            f"{shown(url)} was written by a newer MetaForge (schema {version}, this one knows {HEAD}): "
            "pip install --upgrade metaforge"
        )
    # The URL goes in by the standard input: it may hold a password, and everybody reads command lines.
    command = [sys.executable, "-m", "metaforge.store.upgrade", "--postgres"]
    ended = subprocess.run(command, input=url, capture_output=True, text=True, timeout=_UPGRADE_SECONDS)
    with explained(url), connect(url) as connection:
        reached = _version_of(connection)
    if reached != HEAD:
        told = ended.stderr.strip().splitlines()
        raise StoreUnavailable(
            f"{shown(url)} could not be upgraded from schema {version or 'none'} to {HEAD}: "
            f"{shown(told[-1]) if told else f'exit status {ended.returncode}'}"
        )


def _version_of(connection: "psycopg.Connection[Any]") -> str:
    found = connection.execute("select to_regclass('alembic_version') is not null").fetchone()
    if not found or not found[0]:
        return ""
    row = connection.execute("select version_num from alembic_version").fetchone()
    return row[0] if row else ""


@contextmanager
def explained(url: str) -> Iterator[None]:
    """Turn a refusal of the database itself into StoreUnavailable; broken constraints and bad values pass."""
    try:
        import psycopg
    except ImportError:
        yield
        return
    try:
        yield
    except (psycopg.IntegrityError, psycopg.DataError):
        raise
    except psycopg.Error as fault:
        raise explanation(url, fault) from None


def explanation(url: str, fault: BaseException | None) -> StoreUnavailable:
    """Return what a database error means for its owner, without the password."""
    told = " ".join(str(fault).split())
    if getattr(fault, "sqlstate", None) in _CONTENDED:
        advice = "Another writer was in the way: repeat the call"
    else:
        advice = "Check that the server runs and that METAFORGE_DATABASE_URL names it, then repeat the call"
    return StoreUnavailable(f"The database {shown(url)} cannot be used: {shown(told)}. {advice}")

"""Noticing new events in a Postgres store, which tells of each as it commits."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from metaforge.approvals.rows import CHANNEL
from metaforge.store import postgres
from metaforge.store.database import Database

if TYPE_CHECKING:
    import psycopg

LOOK_SECONDS = 1.0
"""How often it looks by itself: what pools connections between here and the server may swallow what it tells."""


class PostgresWatch:
    """Listens on a connection of its own."""

    name = ""

    def __init__(self, database: Database) -> None:
        """Remember the store."""
        self._database = database
        self._seen = 0

    def look_often(self, is_awaited: bool) -> None:
        """Do nothing: the server tells of each event."""

    def look_soon(self) -> None:
        """Do nothing: the server tells this process of its own commits too."""

    async def run(self, started: Callable[[int], None], woken: Callable[[int, frozenset[str]], None]) -> None:
        """Watch until cancelled; see `waking.Watch`."""
        await asyncio.to_thread(self._database.prepare)
        import psycopg

        try:
            connection = await postgres.connect_to_listen(self._database.url)
            try:
                await connection.execute(f"listen {CHANNEL}")
                self._seen = (await _fetch(connection, "select coalesce(max(seq), 0), '' from approval_events"))[0][0]
                started(self._seen)
                while True:
                    await self._listen(connection, woken)
            finally:
                await connection.close()
        except psycopg.Error as fault:
            raise postgres.explanation(self._database.url, fault) from None

    async def _listen(
        self, connection: "psycopg.AsyncConnection[Any]", woken: Callable[[int, frozenset[str]], None]
    ) -> None:
        async for told in connection.notifies(timeout=LOOK_SECONDS):
            seq, _, approval_id = told.payload.partition(" ")
            self._seen = max(self._seen, int(seq))
            woken(self._seen, frozenset({approval_id}))
        query = "select seq, approval_id from approval_events where seq > %s order by seq"
        if found := await _fetch(connection, query, self._seen):
            self._seen = found[-1][0]
            woken(self._seen, frozenset(approval_id for _, approval_id in found))


async def _fetch(connection: "psycopg.AsyncConnection[Any]", query: str, *values: Any) -> list[tuple[Any, ...]]:
    return await (await connection.execute(query, values)).fetchall()

"""Queries over a design record, their processes ended with the test."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from metaforge.store.blobs import BlobStore
from metaforge.twin.query.answer import QueryAnswer
from metaforge.twin.query.service import TwinQueries
from metaforge.twin.store import TwinStore

Ask = Callable[..., Awaitable[QueryAnswer]]


@pytest.fixture
async def queries(twin: TwinStore, tmp_path: Path) -> AsyncIterator[TwinQueries]:
    queries = TwinQueries(twin, BlobStore(tmp_path / "blobs"))
    yield queries
    await queries.close()


@pytest.fixture
def ask(queries: TwinQueries, project_id: str) -> Ask:
    """Asks in the project's scope, the project bound."""

    async def ask(cypher: str, run_id: str = "", **params: Any) -> QueryAnswer:
        return await queries.query(cypher, {"project_id": project_id, **params}, project_id=project_id, run_id=run_id)

    return ask

"""A design record on either database, with one project in it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from metaforge.store.blobs import BlobStore
from metaforge.store.database import Database
from metaforge.twin.model import Run
from metaforge.twin.store import TwinStore


@pytest.fixture
def database(database_url: str, tmp_path: Path) -> Iterator[Database]:
    database = Database(database_url, tmp_path)
    yield database
    database.close()


@pytest.fixture
def twin(database: Database, tmp_path: Path) -> TwinStore:
    return TwinStore(database, BlobStore(tmp_path / "blobs"))


@pytest.fixture
def project_id(twin: TwinStore) -> str:
    with twin.change(author="owner") as change:
        return change.create_project("Quadcopter", "A small drone").project_id


@pytest.fixture
def start_run(twin: TwinStore, project_id: str) -> Callable[[str], str]:
    """Registers a running run of the project and returns its id."""

    def start(run_id: str) -> str:
        with twin.change(author="flow") as change:
            change.put_run(Run(run_id, project_id, "running", "flow-1", True, "concept", "G1"))
        return run_id

    return start

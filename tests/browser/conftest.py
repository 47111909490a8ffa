"""A real browser in front of a real server. Skipped where there is no Chromium."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from browser_eyes import Eyes
from dashboard_server import Running, running

sys.path.pop(0)

from metaforge.settings import Settings


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here needs the browser and what drives it."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.program("chromium"))
            item.add_marker(pytest.mark.program("chromedriver"))


@pytest.fixture(scope="session")
def eyes() -> Iterator[Eyes]:
    """One browser for all tests; `eyes.at` points it at a server."""
    with Eyes() as made:
        yield made


@pytest.fixture(scope="module")
def module_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One server for the tests of a module that do not mind each other."""
    home = tmp_path_factory.mktemp("home")
    with running(settings_of(home)) as server:
        yield server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    """A server of the test's own."""
    with running(settings_of(tmp_path)) as made:
        yield made


@pytest.fixture
def page(eyes: Eyes, server: Running) -> Eyes:
    """The browser, looking at the test's own server."""
    return eyes.at(server.url)


def settings_of(home: Path, **changes: Any) -> Settings:
    """Return settings of a server that starts adapters only when a call needs them."""
    values: dict[str, Any] = {"home": home, "prestart": False, "environment": dict(os.environ), **changes}
    return Settings(**values)

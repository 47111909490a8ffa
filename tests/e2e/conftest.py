"""Other people's clients against the real server. Everything here carries the marker `e2e`."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import npm
from house import House


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.e2e)


@pytest.fixture
def house(tmp_path: Path) -> House:
    """A server with the fixture tools alone: what these clients show needs no CAD kernel."""
    return House(tmp_path, adapters="health")


@pytest.fixture
def workshop(tmp_path: Path) -> House:
    """A server with every adapter."""
    return House(tmp_path)


@pytest.fixture(scope="session")
def package() -> Callable[[str], Path]:
    """Give the folder of a pinned npm package; the test is skipped, with the reason, where it cannot be had."""

    def find(name: str) -> Path:
        try:
            return npm.package_folder(name)
        except npm.Missing as reason:
            pytest.skip(str(reason))

    return find


@pytest.fixture(scope="session")
def node() -> str:
    try:
        return npm.node()
    except npm.Missing as reason:
        pytest.skip(str(reason))

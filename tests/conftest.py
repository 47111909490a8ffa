"""What every test shares: real programs, the cases beside the checkout, and the switch that makes skips fail."""

import importlib.util
import os
import shutil
from pathlib import Path

import pytest

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

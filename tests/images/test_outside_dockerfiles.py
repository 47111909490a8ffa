"""Dockerfiles of outside adapters never take MetaForge from an index, where a stranger may have its name."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "path", ["src/metaforge/cli/skeleton/Dockerfile.tmpl", "examples/metaforge-openscad/Dockerfile"]
)
def test_the_given_wheel_is_installed_before_anything_that_needs_it(path: str) -> None:
    text = (ROOT / path).read_text()
    refused, given, needing = (
        text.index(part) for part in ("ls wheels/metaforge-*.whl ||", "install wheels/*.whl", "-r requirements.txt")
    )
    assert refused < given < needing

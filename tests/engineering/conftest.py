"""STEP files for meshing tests, made with the mesher's own kernel."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

StepWriter = Callable[[str, Callable[[Any], object]], Path]


@pytest.fixture
def write_step(tmp_path: Path) -> StepWriter:
    """Return a function that writes `name` from what a callable builds with gmsh's OCC functions."""
    import gmsh

    def write(name: str, build: Callable[[Any], object]) -> Path:
        gmsh.initialize(readConfigFiles=False, interruptible=False)
        try:
            gmsh.option.setNumber("General.Terminal", 0)
            build(gmsh.model.occ)
            gmsh.model.occ.synchronize()
            gmsh.write(str(tmp_path / name))
        finally:
            gmsh.finalize()
        return tmp_path / name

    return write

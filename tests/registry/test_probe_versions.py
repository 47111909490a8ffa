"""Versions are read from what programs print, however they print them."""

from pathlib import Path

import pytest

from metaforge.registry.probe import Probe
from metaforge.tools.manifest import Need


@pytest.mark.parametrize(
    ("program", "prints", "version"),
    [
        (
            "ngspice",
            "** ngspice-39 : Circuit level simulation program\n** Copyright 2001-2022, The ngspice team.",
            "39",
        ),
        ("ngspice", "** ngspice-44.2 : Circuit level simulation program", "44.2"),
        ("ccx", "\nThis is Version 2.20\n", "2.20"),
        ("bwrap", "bubblewrap 0.8.0", "0.8.0"),
    ],
)
def test_the_version_that_a_program_prints_is_found(tmp_path: Path, program: str, prints: str, version: str) -> None:
    executable = tmp_path / program
    executable.write_text(f"#!/bin/sh\ncat <<'END'\n{prints}\nEND\n")
    executable.chmod(0o755)
    found = Probe(f"{tmp_path}:/usr/bin:/bin").measure(Need("program", program))
    assert (found.found, found.version, found.problem) == (True, version, "")


def test_a_program_that_prints_no_version_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "ngspice").write_text("#!/bin/sh\necho Copyright 2001-2022\n")
    (tmp_path / "ngspice").chmod(0o755)
    found = Probe(str(tmp_path)).measure(Need("program", "ngspice"))
    assert not found.found
    assert "printed no version" in found.problem


@pytest.mark.program("ngspice")
def test_the_real_simulator_tells_its_version() -> None:
    assert Probe().measure(Need("program", "ngspice")).version

"""KiCad that is absent, too old or silent is told with the command that mends it; nothing heavy loads at the start."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from metaforge.adapters.kicad.program import kicad as find_kicad
from metaforge.adapters.kicad.server import KicadServer
from metaforge.registry.probe import Probe

(NEED,) = KicadServer.needs


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that is the whole search path; what was found before is forgotten."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    find_kicad.cache_clear()
    yield folder
    find_kicad.cache_clear()


def pretend(folder: Path, script: str) -> None:
    program = folder / "kicad-cli"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


async def test_without_kicad_the_command_that_installs_it_is_told(kicad: Any, draw: Any, programs: Path) -> None:
    kicad.write("d.kicad_sch", draw.divider())
    refusal = await kicad.refused("run_erc", schematic_file="d.kicad_sch")
    assert refusal.data["kind"] == "program_missing"
    assert refusal.data["failure_mode"] == "environment"
    assert "apt-get install -y --no-install-recommends kicad" in refusal.data["fix"]


@pytest.mark.parametrize("version", ["8.0.9", "7.0.11", "6.0.11-2627ca5db0~116"])
async def test_an_older_kicad_is_not_used(kicad: Any, draw: Any, programs: Path, version: str) -> None:
    pretend(programs, f"echo {version}")
    kicad.write("d.kicad_pcb", draw.board(draw.outline()))
    refusal = await kicad.refused("run_drc", pcb_file="d.kicad_pcb")
    assert refusal.data["kind"] == "program_too_old"
    assert "KiCad 9 or newer" in refusal.message
    finding = Probe(str(programs)).measure(NEED)
    assert not finding.found
    assert "9.0 or newer is needed" in finding.problem


async def test_a_program_that_leaves_no_report_is_no_success(kicad: Any, draw: Any, programs: Path) -> None:
    pretend(programs, 'case "$1" in version) echo 9.0.8;; *) echo "Found 0 violations";; esac')
    kicad.write("d.kicad_sch", draw.divider())
    kicad.write("d.kicad_pcb", draw.board(draw.outline()))
    for tool, argument, file in (
        ("run_erc", "schematic_file", "d.kicad_sch"),
        ("run_drc", "pcb_file", "d.kicad_pcb"),
        ("export_bom", "schematic_file", "d.kicad_sch"),
        ("export_netlist", "schematic_file", "d.kicad_sch"),
        ("export_gerber", "pcb_file", "d.kicad_pcb"),
        ("render", "input_file", "d.kicad_sch"),
    ):
        refusal = await kicad.refused(tool, **{argument: file})
        assert refusal.data["kind"] == "kicad_refused", tool


async def test_a_report_that_is_cut_is_no_success(kicad: Any, draw: Any, programs: Path) -> None:
    script = 'case "$1" in version) echo 9.0.8;; *) while [ "$1" != -o ]; do shift; done; echo "{}" > "$2";; esac'
    pretend(programs, script)
    kicad.write("d.kicad_sch", draw.divider())
    refusal = await kicad.refused("run_erc", schematic_file="d.kicad_sch")
    assert refusal.data["kind"] == "bad_report"


@pytest.mark.program("kicad-cli")
async def test_settings_of_a_persons_home_are_neither_read_nor_written(
    kicad: Any, draw: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    find_kicad.cache_clear()
    kicad.write("d.kicad_sch", draw.divider())
    kicad.write("d.kicad_pcb", draw.board(draw.outline()))
    await kicad.call("run_erc", schematic_file="d.kicad_sch")
    await kicad.call("run_drc", pcb_file="d.kicad_pcb")
    assert os.listdir(home) == []
    assert sorted(os.listdir(kicad.workspace)) == ["d.kicad_pcb", "d.kicad_sch"]


def test_importing_the_server_loads_nothing_heavy() -> None:
    code = (
        "import sys, metaforge.adapters.kicad.server;"
        "print([m for m in ('numpy', 'PIL', 'pypdfium2', 'freeroute', 'pcbnew') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.strip() == "[]"

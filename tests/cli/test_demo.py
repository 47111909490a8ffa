"""The demo through a real server with real programs, against what statics says of a squeezed block."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.program("ccx"),
    pytest.mark.program("gmsh"),
    pytest.mark.program("cadquery"),
]

FORCE_N, AREA_MM2, HEIGHT_MM = 1000.0, 50.0 * 30.0, 10.0
NOMINAL_MPA = FORCE_N / AREA_MM2


def demo(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("METAFORGE_")}
    workspace = folder / "work"
    workspace.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, "-m", "metaforge", "demo", *arguments],
        cwd=workspace, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        env={**kept, "METAFORGE_HOME": str(folder / "data"), "OMP_NUM_THREADS": "1", **environment},
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def told(folder: Path) -> dict[str, Any]:
    ran = demo(folder, "--json")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    data: dict[str, Any] = json.loads(ran.stdout)
    return data


def result(told: dict[str, Any], step: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each["result"] for each in told["steps"] if each["step"] == step)
    return found


def test_the_part_is_the_block_that_was_asked_for(told):
    part = result(told, "part")
    assert part["volume_mm3"] == pytest.approx(15000)
    assert part["surface_area_mm2"] == pytest.approx(2 * (50 * 30 + 50 * 10 + 30 * 10))
    assert part["bounding_box_mm"]["size_mm"] == pytest.approx([50, 30, 10])


def test_reactions_carry_the_load(told):
    stress = result(told, "stress")
    assert stress["applied_n"] == pytest.approx([0, 0, -FORCE_N], abs=1e-3)
    assert stress["reactions_n"] == pytest.approx([0, 0, FORCE_N], rel=0.01, abs=0.01 * FORCE_N)


def test_the_stress_away_from_the_support_is_near_the_nominal_one(told):
    peak = result(told, "stress")["peak"]
    assert peak["possibly_singular"], "the held base keeps the block from widening: its rim is singular"
    assert peak["von_mises_mpa"] > peak["outside_mpa"]
    assert 0.5 * NOMINAL_MPA < peak["outside_mpa"] < 1.6 * NOMINAL_MPA


def test_the_top_sinks_as_much_as_between_a_free_and_a_confined_block(told):
    stress = result(told, "stress")
    material = next(iter(stress["materials"].values()))
    youngs, poisson = material["youngs_modulus_mpa"], material["poissons_ratio"]
    free_mm = NOMINAL_MPA * HEIGHT_MM / youngs
    confined_mm = free_mm * (1 + poisson) * (1 - 2 * poisson) / (1 - poisson)
    # The largest displacement also has the sideways bulge of the rim, a third of the free shortening at most.
    assert confined_mm < stress["max_displacement_mm"] < 1.35 * free_mm


def test_every_file_is_there_and_what_it_says(told):
    files = {Path(file["absolute_path"]) for file in told["files"]}
    assert all(path.is_file() for path in files)
    starts = {".step": b"ISO-10303-21", ".glb": b"glTF", ".png": b"\x89PNG"}
    for suffix, start in starts.items():
        assert any(path.suffix == suffix and path.read_bytes().startswith(start) for path in files), suffix
    assert any(path.suffix == ".frd" for path in files)
    assert len([path for path in files if path.suffix == ".png"]) == 2
    assert told["pictures_count"] == 2


def test_a_second_run_shows_the_same_numbers_to_a_person(told, folder):
    ran = demo(folder)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    stress = result(told, "stress")
    shown = ran.stdout
    for words in (
        "15,000 mm³", "4600 mm²", "50 x 30 x 10 mm", "singular spot", "away from it", "reactions against loads",
        "worst element", f"{stress['peak']['von_mises_mpa']:.4g} MPa", f"{stress['max_displacement_mm']:.4g} mm",
        "(0, 0, -1000) N in all", str(folder / "work" / "out" / "bracket.step"),
    ):  # fmt: skip
        assert words in shown, f"{words!r} is not in:\n{shown}"
    assert shown.strip().splitlines()[-1].startswith("Done in ")


def test_without_the_solver_the_demo_says_what_to_install(folder, tmp_path):
    ran = demo(tmp_path, PATH="/nonexistent")
    assert ran.returncode == 1
    assert "Mesh and solve failed" in ran.stdout
    assert "calculix-ccx" in ran.stdout
    assert ran.stdout.strip().endswith("doctor says what is missing.")

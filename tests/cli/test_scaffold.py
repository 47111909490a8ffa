"""`metaforge new adapter` writes an adapter that works."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from metaforge.cli.scaffold import write
from metaforge.tools.generate import manifest_bytes


def environment(adapter: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(adapter / "src")}


def test_the_new_adapter_passes_its_own_test(tmp_path):
    assert write("beam", tmp_path / "beam") == 0
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "beam/tests"],
        cwd=tmp_path, env=environment(tmp_path / "beam"), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout
    assert "4 passed" in ran.stdout


def test_its_tests_run_inside_a_folder_with_settings_of_its_own(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "--no-such-option"\n')
    assert write("beam", tmp_path / "beam") == 0
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "beam/tests"],
        cwd=tmp_path, env=environment(tmp_path / "beam"), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_new_adapter_has_a_manifest(tmp_path, monkeypatch):
    write("beam_two", tmp_path / "beam")
    monkeypatch.syspath_prepend(str(tmp_path / "beam" / "src"))
    manifest = manifest_bytes("metaforge_beam_two.server:BeamTwoServer")
    assert b'"tool_id": "beam_two.tip_deflection"' in manifest
    assert b"transverse force at the tip" in manifest


def test_no_placeholder_is_left(tmp_path):
    write("beam", tmp_path / "beam")
    for path in (tmp_path / "beam").rglob("*"):
        assert "NAME" not in path.name
        if path.is_file():
            assert "{{" not in path.read_text()


@pytest.mark.parametrize("name", ["Beam", "9lives", "class", "with-dash", "cadquery", "much_too_long_a_name", ""])
def test_a_name_that_cannot_be_is_refused(name, tmp_path, capsys):
    assert write(name, tmp_path / "x") == 2
    assert not (tmp_path / "x").exists()
    assert name in capsys.readouterr().err


def test_a_folder_with_something_in_it_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    assert write("beam", tmp_path) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]

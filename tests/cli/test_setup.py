"""`scripts/setup` finds a Python, says what to do when there is none, and has nothing to do the second time."""

import os
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def write_program(folder: Path, name: str, body: str) -> None:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A PATH of its own: only what a shell script needs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("dirname", "sh"):
        (folder / name).symlink_to(f"/usr/bin/{name}")
    return folder


def run_setup(programs: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", str(ROOT / "scripts" / "setup"), "all"], capture_output=True, text=True, check=False,
        env={"PATH": str(programs), **environment},
    )  # fmt: skip


def test_no_python_is_told_with_the_command_that_brings_one(programs):
    write_program(programs, "apt-get", "exit 0")
    ran = run_setup(programs)
    assert ran.returncode == 1
    assert "needs Python 3.11 or newer; found no python3" in ran.stderr
    assert "sudo apt-get install -y python3" in ran.stderr


def test_an_old_python_is_named_with_its_version(programs):
    write_program(programs, "python3", 'case "$2" in *exit*) exit 1;; esac; echo 3.9.2')
    ran = run_setup(programs)
    assert ran.returncode == 1
    assert "found python3 is 3.9.2;" in ran.stderr


def test_a_new_python_is_found_under_another_name(programs):
    write_program(programs, "python3", 'case "$2" in *exit*) exit 1;; esac; echo 3.9.2')
    write_program(programs, "python3.12", 'case "$1" in -I) echo "preparing with $*"; exit 0;; esac; echo 3.12.1')
    ran = run_setup(programs)
    assert ran.returncode == 0
    assert ran.stdout.strip() == "preparing with -I scripts/prepare.py all"


def test_a_person_can_choose_the_python(programs, tmp_path):
    write_program(tmp_path, "mine", 'case "$1" in -I) echo chosen; exit 0;; esac; echo 3.13.0')
    assert run_setup(programs, PYTHON=str(tmp_path / "mine")).stdout.strip() == "chosen"


def load_prepare() -> ModuleType:
    """Import scripts/prepare.py, leaving the module search path as it was."""
    spec = spec_from_file_location("prepare", ROOT / "scripts" / "prepare.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    before = list(sys.path)
    spec.loader.exec_module(module)
    sys.path[:] = before
    return module


@pytest.fixture
def prepare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """scripts/prepare.py, pointed at an empty checkout."""
    module = load_prepare()
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(module, "STAMP", tmp_path / ".venv" / "stamp")
    return module


def put_in_place(prepare: ModuleType, extras: str) -> None:
    python = prepare.VENV / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    prepare.STAMP.write_text(f"{prepare.digest()} {extras}\n")


def test_a_fresh_checkout_is_not_ready(prepare):
    assert not prepare.is_ready("all")


def test_a_stamped_checkout_is_ready_for_the_same_and_for_fewer_extras(prepare):
    put_in_place(prepare, "all,dev")
    assert prepare.is_ready("all,dev")
    assert prepare.is_ready("all")


def test_more_extras_need_another_run(prepare):
    put_in_place(prepare, "all")
    assert not prepare.is_ready("all,dev")


def test_a_changed_pyproject_needs_another_run(prepare):
    put_in_place(prepare, "all")
    (prepare.ROOT / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert not prepare.is_ready("all")


def test_a_broken_environment_needs_another_run(prepare):
    put_in_place(prepare, "all")
    (prepare.VENV / "bin" / "python").unlink()
    assert not prepare.is_ready("all")


def test_without_rights_the_one_command_is_said_and_setup_stops(prepare, monkeypatch):
    monkeypatch.setattr(prepare.system, "missing_needs", lambda needs: [prepare.system.PROGRAMS[0]])
    monkeypatch.setattr(prepare.system, "package_manager", lambda: "dnf")
    monkeypatch.setattr(prepare.system, "is_root", lambda: False)
    with pytest.raises(prepare.Stop, match="sudo dnf install -y calculix-ccx"):
        prepare.system_packages()


def test_what_is_only_good_to_have_does_not_stop_setup(prepare, monkeypatch, capsys):
    monkeypatch.setattr(prepare.system, "missing_needs", lambda needs: [prepare.system.PROGRAMS[1]])
    monkeypatch.setattr(prepare.system, "package_manager", lambda: "dnf")
    monkeypatch.setattr(prepare.system, "is_root", lambda: False)
    prepare.system_packages()
    assert "sudo dnf install -y bubblewrap" in capsys.readouterr().out


@pytest.mark.parametrize(("place", "stops"), [(0, True), (1, False)])
def test_only_what_the_demo_needs_stops_setup_when_it_cannot_be_installed(prepare, monkeypatch, capsys, place, stops):
    def fail(missing, prefix):
        raise prepare.Stop("no network")

    need = prepare.system.PROGRAMS[place]
    monkeypatch.setattr(prepare.system, "missing_needs", lambda needs: [need])
    monkeypatch.setattr(prepare.system, "package_manager", lambda: "apt-get")
    monkeypatch.setattr(prepare.system, "is_root", lambda: True)
    monkeypatch.setattr(prepare, "apt_install", fail)
    if stops:
        with pytest.raises(prepare.Stop, match="no network"):
            prepare.system_packages()
    else:
        prepare.system_packages()
        assert f"apt-get install -y {need.apt}" in capsys.readouterr().out


def test_a_failing_command_stops_with_its_last_words(prepare):
    with pytest.raises(prepare.Stop, match="no such package"):
        prepare.follow(["sh", "-c", "echo no such package; exit 3"], lambda line: None)


def test_a_second_run_has_nothing_to_say():
    if not load_prepare().is_ready("all"):
        pytest.skip("this checkout was not set up by make")
    ran = subprocess.run(
        [str(ROOT / "scripts" / "setup"), "all"], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert (ran.returncode, ran.stdout) == (0, "")


def test_a_release_without_the_solver_gets_the_rest_and_the_way_to_it(prepare, monkeypatch, capsys):
    ran = []
    monkeypatch.setattr(prepare, "follow", lambda command, heard: ran.append(command))
    monkeypatch.setattr(prepare, "apt_offers", lambda package: package != "calculix-ccx")
    with pytest.raises(prepare.Stop, match="conda-forge calculix"):
        prepare.apt_install([*prepare.system.PROGRAMS], [])
    assert ran[-1][-2:] == ["bubblewrap", "ngspice"]
    assert "calculix-ccx" not in ran[-1]


@pytest.mark.skipif(not shutil.which("apt-cache"), reason="no apt here")
def test_apt_offers_only_what_it_can_install(prepare):
    assert not prepare.apt_offers("no-such-package-anywhere")

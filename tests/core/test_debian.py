"""The command that brings a package which the Debian release itself has too old."""

import subprocess
from pathlib import Path

import pytest

from metaforge.core.debian import add_backports, codename, install_command, with_backports


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ID=debian\nVERSION_CODENAME=bookworm\n", "bookworm"),
        ('ID="debian"\nVERSION_CODENAME="trixie"\n', "trixie"),
        ("ID=ubuntu\nVERSION_CODENAME=noble\n", ""),
        ("", ""),
    ],
)
def test_the_codename_is_that_of_a_debian(tmp_path: Path, text: str, expected: str) -> None:
    release = tmp_path / "os-release"
    release.write_text(text)
    assert codename(release) == expected


def test_a_system_without_the_file_has_no_codename(tmp_path: Path) -> None:
    assert codename(tmp_path / "absent") == ""


def test_only_the_old_release_takes_packages_from_its_backports() -> None:
    assert with_backports(["kicad"], "bookworm", "bookworm") == ["kicad/bookworm-backports"]
    assert with_backports(["kicad"], "bookworm", "trixie") == ["kicad"]
    assert with_backports(["kicad"], "bookworm", "") == ["kicad"]


def test_the_command_adds_backports_before_it_installs_from_them() -> None:
    command = install_command(["kicad", "kicad-symbols"], "bookworm", "bookworm", "sudo ")
    added, updated, installed = command.split(" && ")
    assert added.endswith("| sudo tee /etc/apt/sources.list.d/bookworm-backports.list")
    assert updated == "sudo apt-get update"
    assert installed == (
        "sudo apt-get install -y --no-install-recommends kicad/bookworm-backports kicad-symbols/bookworm-backports"
    )


def test_elsewhere_it_is_a_plain_installation() -> None:
    command = install_command(["kicad"], "bookworm", "trixie")
    assert command == "apt-get install -y --no-install-recommends kicad"
    assert install_command(["ngspice"], release="bookworm") == "apt-get install -y ngspice"


def test_the_command_is_shell_that_a_shell_understands() -> None:
    checked = subprocess.run(["sh", "-n", "-c", add_backports("bookworm", "sudo ")], capture_output=True, check=False)
    assert checked.returncode == 0, checked.stderr

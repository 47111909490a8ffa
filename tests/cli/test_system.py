"""What the operating system must bring is found, and the command that installs it is right for the platform."""

import pytest

from metaforge.cli import system
from metaforge.cli.doctor import State, adapter_notes, namespace_fix, schema_checks
from metaforge.cli.system import (
    LIBRARIES,
    MORE_PROGRAMS,
    PROGRAMS,
    install_command,
    missing_needs,
    packages_for,
    system_needs,
)

EVERY_LIBRARY = {need.name for need in LIBRARIES}


def nothing(name: str) -> None:
    return None


def everything(name: str) -> str:
    return f"/usr/bin/{name}"


def test_nothing_is_missing_where_everything_is_there():
    assert missing_needs(system_needs("linux"), everything, EVERY_LIBRARY) == []


def test_a_bare_machine_misses_everything():
    assert missing_needs(system_needs("linux"), nothing, ()) == list(PROGRAMS + LIBRARIES)


def test_one_missing_library_is_named():
    missing = missing_needs(system_needs("linux"), everything, EVERY_LIBRARY - {"libGLU.so.1"})
    assert [need.apt for need in missing] == ["libglu1-mesa"]


def test_a_library_that_serves_as_well_is_enough():
    without = EVERY_LIBRARY - {"libOSMesa.so.8"}
    assert missing_needs(system_needs("linux"), everything, without | {"libEGL.so.1"}) == []
    assert [need.name for need in missing_needs(system_needs("linux"), everything, without)] == ["libOSMesa.so.8"]


def test_macs_need_only_the_solvers():
    assert [need.name for need in system_needs("darwin")] == ["ccx", "ngspice"]


@pytest.mark.parametrize(
    ("manager", "is_root", "command"),
    [
        ("apt-get", True, "apt-get install -y calculix-ccx bubblewrap ngspice"),
        ("apt-get", False, "sudo apt-get install -y calculix-ccx bubblewrap ngspice"),
        ("dnf", False, "sudo dnf install -y calculix-ccx bubblewrap ngspice"),
        ("pacman", False, "sudo pacman -S --needed --noconfirm bubblewrap ngspice && yay -S --needed calculix-ccx"),
        ("", False, "install with your system's package manager: ccx, bwrap, ngspice"),
    ],
)
def test_each_package_manager_gets_its_own_command(manager, is_root, command):
    assert install_command(PROGRAMS, manager, is_root=is_root, platform="linux") == command


def test_brew_never_runs_as_root():
    command = install_command(system_needs("darwin"), "brew", is_root=False, platform="darwin")
    assert command == "brew install costerwi/homebrew-calculix/calculix-ccx ngspice"


def test_windows_is_sent_to_wsl():
    assert install_command(PROGRAMS, "", is_root=False, platform="win32").startswith("wsl --install")


def test_the_first_package_on_offer_is_taken():
    needs = [need for need in LIBRARIES if "|" in need.apt]
    assert packages_for(needs, "apt-get") == ["libosmesa6"]
    assert packages_for(needs, "apt-get", lambda package: package != "libosmesa6") == ["libegl1"]


def test_a_package_that_brings_two_libraries_is_named_once():
    packages = packages_for(LIBRARIES, "pacman")
    assert len(packages) == len(set(packages))


@pytest.mark.program("gmsh")
def test_the_libraries_of_this_machine_are_found():
    # gmsh loads here, so the linker must know every library it is said to need.
    assert missing_needs(LIBRARIES, libraries=system.known_libraries()) == []


@pytest.mark.parametrize(
    ("switch", "value", "command"),
    [
        ("kernel/unprivileged_userns_clone", "0", "sudo sysctl -w kernel.unprivileged_userns_clone=1"),
        ("kernel/unprivileged_userns_clone", "1", ""),
        (
            "kernel/apparmor_restrict_unprivileged_userns", "1",
            "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        ("user/max_user_namespaces", "0", "sudo sysctl -w user.max_user_namespaces=15000"),
    ],
)  # fmt: skip
def test_a_kernel_that_forbids_boxes_is_told_with_the_command_that_allows_them(tmp_path, switch, value, command):
    (tmp_path / switch).parent.mkdir()
    (tmp_path / switch).write_text(value + "\n")
    assert namespace_fix(tmp_path) == command


KICAD = tuple(need for need in MORE_PROGRAMS if need.name == "kicad-cli")


def test_freecad_comes_from_the_release_itself():
    freecad = [need for need in MORE_PROGRAMS if need.name == "freecadcmd"]
    assert packages_for(freecad, "apt-get", release="bookworm") == ["freecad"]
    assert not freecad[0].required


def test_kicad_comes_from_backports_on_the_release_whose_own_is_too_old():
    asked = packages_for(KICAD, "apt-get", release="bookworm")
    assert asked == [f"{name}/bookworm-backports" for name in ("kicad", "kicad-symbols", "kicad-footprints")]
    assert packages_for(KICAD, "apt-get", release="trixie") == ["kicad", "kicad-symbols", "kicad-footprints"]


def test_the_command_for_several_programs_installs_each_from_where_it_is():
    needs = (*PROGRAMS[:1], *KICAD)
    command = install_command(needs, "apt-get", is_root=True, platform="linux", release="bookworm")
    assert command.startswith("apt-get install -y calculix-ccx && echo ")
    assert command.count("kicad/bookworm-backports") == 1
    command = install_command(needs, "apt-get", is_root=True, platform="linux", release="trixie")
    assert command.endswith("apt-get install -y --no-install-recommends kicad kicad-symbols kicad-footprints")


def test_doctor_names_what_was_left_out_or_mended_and_what_prints_where_it_must_not():
    health = {
        "quarantined": [{"adapter_id": "far", "tools": ["far.bad"], "reason": "quarantined: input schema: uses anyOf"}],
        "mended_schemas": {"far.untyped": ["input schema: the top level had no type"]},
    }
    left_out, mended = schema_checks(health)
    assert (left_out.state, left_out.detail) == (
        State.NOTE, "far.bad left out, quarantined: input schema: uses anyOf",
    )  # fmt: skip
    assert "must mend its manifest" in left_out.fix
    assert mended.detail == "far.untyped: input schema: the top level had no type"
    away = {"url": "http://a", "error": "the adapter at http://a does not answer"}
    row = {"adapter_id": "far", "detail": {"stdout_junk": "Welcome", "addresses": [{"url": "http://b"}, away]}}
    assert [check.detail for check in adapter_notes(row)] == [
        "prints where only messages belong: Welcome", "the adapter at http://a does not answer",
    ]  # fmt: skip

"""What the operating system must bring, how it is found, and the one command that installs it.

Standard library only: `scripts/prepare.py` uses it before anything is installed.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from metaforge.core import debian


@dataclass(frozen=True)
class SystemNeed:
    """A program or shared library that no Python package brings.

    Attributes:
        name: the executable, or the library's file name (`libGL.so.1`).
        why: what does not work without it.
        apt, dnf, pacman, brew: the package that brings it, by package manager; empty where none is needed or known.
            `a|b`: b where the manager has no a. Several packages are separated by blanks.
        required: whether the bracket demo fails without it.
    """

    name: str
    why: str
    apt: str
    dnf: str = ""
    pacman: str = ""
    brew: str = ""
    required: bool = True
    instead: str = ""
    """Another library that serves as well."""
    backports_of: str = ""
    """The Debian release whose own packages are too old: there they come from its backports."""
    minimum: str = ""
    """The lowest version that serves; empty when any does."""

    @property
    def is_library(self) -> bool:
        return ".so" in self.name


_GMSH = "gmsh, the mesher, does not load without it"
_OCP = "CadQuery's kernel and gmsh do not load without it"

PROGRAMS = (
    SystemNeed(
        "ccx",
        "calculix.* tools solve with it",
        "calculix-ccx",
        "calculix-ccx",
        "calculix-ccx (from the AUR)",
        "costerwi/homebrew-calculix/calculix-ccx",
    ),
    SystemNeed(
        "bwrap",
        "tools run in a closed box; without it only process limits hold them",
        "bubblewrap",
        "bubblewrap",
        "bubblewrap",
        required=False,
    ),
    SystemNeed("ngspice", "spice.* tools simulate with it", "ngspice", "ngspice", "ngspice", "ngspice", required=False),
)

MORE_PROGRAMS = (
    SystemNeed(
        "kicad-cli",
        "kicad.* tools check and export with it",
        "kicad kicad-symbols kicad-footprints",
        "kicad",
        "kicad kicad-library",
        "--cask kicad",
        required=False,
        backports_of="bookworm",
        minimum="9.0",
    ),
    SystemNeed(
        "freecadcmd",
        "freecad.* tools model with it",
        "freecad",
        "freecad",
        "freecad",
        "--cask freecad",
        required=False,
        minimum="0.20",
    ),
)
"""What only some tools use and takes long to fetch: `make programs` installs it, the demo does not wait for it."""

TEST_PROGRAMS = (
    SystemNeed("chromium", "tests look at the dashboard with it", "chromium", "chromium", "chromium", required=False),
    SystemNeed(
        "chromedriver",
        "tests look at the dashboard with it",
        "chromium-driver",
        "chromedriver",
        "chromium",
        required=False,
    ),
    SystemNeed("nginx", "tests reach the server through it", "nginx-light", "nginx", "nginx", "nginx", required=False),
    SystemNeed("podman", "tests run adapters in containers with it", "podman", "podman", "podman", required=False),
    SystemNeed("runc", "containers start with it", "runc", "runc", "runc", required=False),
    SystemNeed(
        "newuidmap", "containers start without root with it", "uidmap", "shadow-utils", "shadow", required=False
    ),
    SystemNeed(
        "mmdebstrap",
        "images are built on a base that it makes, where no registry answers",
        "mmdebstrap",
        required=False,
    ),
    SystemNeed(
        "openscad",
        "the example adapter renders with it",
        "openscad",
        "openscad",
        "openscad",
        "openscad",
        required=False,
    ),
)
"""What only tests use; they are skipped where it is missing."""

LIBRARIES = (
    SystemNeed("libGL.so.1", _OCP, "libgl1", "libglvnd-glx", "libglvnd"),
    SystemNeed("libX11.so.6", _OCP, "libx11-6", "libX11", "libx11"),
    SystemNeed(
        "libOSMesa.so.8",
        "pictures are drawn with it",
        "libosmesa6|libegl1",
        "libglvnd-egl",
        "libglvnd",
        instead="libEGL.so.1",
    ),
    SystemNeed("libGLU.so.1", _GMSH, "libglu1-mesa", "mesa-libGLU", "glu"),
    SystemNeed("libOpenGL.so.0", _GMSH, "libopengl0", "libglvnd-opengl", "libglvnd"),
    SystemNeed("libXcursor.so.1", _GMSH, "libxcursor1", "libXcursor", "libxcursor"),
    SystemNeed("libXft.so.2", _GMSH, "libxft2", "libXft", "libxft"),
    SystemNeed("libXinerama.so.1", _GMSH, "libxinerama1", "libXinerama", "libxinerama"),
    SystemNeed("libXrender.so.1", _GMSH, "libxrender1", "libXrender", "libxrender"),
    SystemNeed("libXfixes.so.3", _GMSH, "libxfixes3", "libXfixes", "libxfixes"),
    SystemNeed("libfontconfig.so.1", _GMSH, "libfontconfig1", "fontconfig", "fontconfig"),
    SystemNeed("libgomp.so.1", _GMSH, "libgomp1", "libgomp", "gcc-libs"),
)
"""Shared libraries that the wheels load on Linux; wheels for macOS and Windows bring their own."""

MANAGERS = ("apt-get", "dnf", "pacman", "brew")


def system_needs(platform: str = sys.platform) -> tuple[SystemNeed, ...]:
    """Return what this platform must bring."""
    if platform.startswith("linux"):
        return PROGRAMS + LIBRARIES
    return tuple(need for need in PROGRAMS if need.name != "bwrap")


def known_libraries() -> Collection[str]:
    """Return the file names in the dynamic linker's cache; empty where there is none."""
    for program in ("/sbin/ldconfig", "/usr/sbin/ldconfig", shutil.which("ldconfig") or ""):
        if program and Path(program).exists():
            listed = subprocess.run([program, "-p"], capture_output=True, text=True, check=False).stdout
            return {line.split()[0] for line in listed.splitlines()[1:] if line.split()}
    return ()


def find_program(name: str) -> str | None:
    """Return where a program is; servers lie where only root's PATH leads."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")


def missing_needs(
    needs: Sequence[SystemNeed],
    which: Callable[[str], str | None] = find_program,
    libraries: Collection[str] | None = None,
) -> list[SystemNeed]:
    """Return the needs that are not met, in their order."""
    there = known_libraries() if libraries is None else libraries
    return [
        need
        for need in needs
        if not (need.name in there or need.instead in there if need.is_library else which(need.name))
    ]


def package_manager(which: Callable[[str], str | None] = shutil.which) -> str:
    """Return the first package manager found, or an empty string."""
    return next((manager for manager in MANAGERS if which(manager)), "")


def packages_for(
    needs: Sequence[SystemNeed],
    manager: str,
    offered: Callable[[str], bool] = lambda package: True,
    release: str | None = None,
) -> list[str]:
    """Return the packages of `manager` that bring `needs`, each once; of `a|b` the first that is `offered`."""
    field = "apt" if manager == "apt-get" else manager
    named: list[str] = []
    for need in needs:
        choices = str(getattr(need, field, "")).split("|")
        chosen = next((choice for choice in choices if offered(choice)), choices[0])
        named += debian.with_backports(chosen.split(), need.backports_of, release) if field == "apt" else [chosen]
    return list(dict.fromkeys(filter(None, named)))


def install_command(
    needs: Sequence[SystemNeed],
    manager: str,
    *,
    is_root: bool,
    platform: str = sys.platform,
    release: str | None = None,
) -> str:
    """Return the one command that brings `needs`, or a sentence where no command is known."""
    if platform == "win32":
        return "wsl --install -d Debian, then run make inside it: the engineering programs are made for Linux"
    sudo = "" if is_root or manager == "brew" else "sudo "
    if manager == "apt-get":
        return _apt_command(needs, sudo, release)
    packages = packages_for(needs, manager)
    if manager == "dnf":
        return f"{sudo}dnf install -y {' '.join(packages)}"
    if manager == "brew":
        return f"brew install {' '.join(packages)}"
    if manager == "pacman":
        from_aur = [package.split()[0] for package in packages if "AUR" in package]
        official = [package for package in packages if "AUR" not in package]
        steps = [f"{sudo}pacman -S --needed --noconfirm {' '.join(official)}"] if official else []
        steps += [f"yay -S --needed {name}" for name in from_aur]
        return " && ".join(steps)
    return "install with your system's package manager: " + ", ".join(need.name for need in needs)


def _apt_command(needs: Sequence[SystemNeed], sudo: str, release: str | None) -> str:
    plain = packages_for([need for need in needs if not need.backports_of], "apt-get")
    commands = [f"{sudo}apt-get install -y {' '.join(plain)}"] if plain else []
    commands += [
        debian.install_command(need.apt.split(), need.backports_of, release, sudo)
        for need in needs
        if need.backports_of
    ]
    return " && ".join(commands)


def elsewhere(needs: Sequence[SystemNeed]) -> str:
    """Say what to do about needs that this system's package manager does not offer."""
    lines = [f"The package manager here does not offer {', '.join(need.apt for need in needs)}."]
    if any(need.name == "ccx" for need in needs):
        lines += [
            "conda-forge has the solver too. Run this once, then the same make command again:",
            "",
            '    conda create -y -p "$HOME/ccx" -c conda-forge calculix && export PATH="$HOME/ccx/bin:$PATH"',
            "",
        ]
    return "\n".join(lines)


def is_root() -> bool:
    """Return whether this process may install system packages as it is."""
    return hasattr(os, "geteuid") and os.geteuid() == 0

"""Is a program or module there? Cheap look-ups at every listing; versions only when a person or health asks."""

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

from metaforge.tools.manifest import Need

_VERSION_SECONDS = 5.0
_VERSION = re.compile(r"(\d+(?:\.\d+)+)")
_VERSION_OF = {"ngspice": re.compile(r"ngspice-(\d+(?:\.\d+)*)")}
"""Where a version is told otherwise than as numbers with dots."""
_VERSION_ARGUMENTS = {
    "ccx": ("-v",),
    "bwrap": ("--version",),
    "ngspice": ("--version",),
    "kicad-cli": ("version",),
    "freecadcmd": ("-c", "import FreeCAD; print('FreeCAD', '.'.join(FreeCAD.Version()[:3]))"),
}


@dataclass(frozen=True)
class Finding:
    """What became of one need."""

    need: Need
    found: bool
    location: str = ""
    version: str = ""
    problem: str = ""


class Probe:
    """Looks for programs on one `PATH` and for modules in this interpreter.

    What was found is remembered; what is missing is looked for again, so that installing it needs no restart.
    """

    def __init__(self, search_path: str | None = None) -> None:
        self._search_path = search_path
        self._found: dict[tuple[str, str], str] = {}
        self._versions: dict[tuple[str, str], Finding] = {}

    def locate(self, need: Need) -> str:
        """Return where it is, or an empty string."""
        key = (need.kind, need.name)
        if key not in self._found and (location := self._look(need)):
            self._found[key] = location
        return self._found.get(key, "")

    def _look(self, need: Need) -> str:
        if need.kind == "program":
            return shutil.which(need.name, path=self._search_path) or ""
        try:
            spec = importlib.util.find_spec(need.name)
        except (ImportError, ValueError):
            return ""
        return "" if spec is None else (spec.origin or need.name)

    def missing(self, needs: Iterable[Need]) -> list[Need]:
        """Return the needs that are not met here."""
        return [need for need in needs if not self.locate(need)]

    def measure(self, need: Need) -> Finding:
        """Return where it is and which version, by running a program or reading a package's metadata.

        A program that is found but does not run is a problem, not a success.
        """
        key = (need.kind, need.name)
        if key in self._versions:
            return self._versions[key]
        location = self.locate(need)
        if not location:
            return Finding(need, found=False, problem=f"{need.kind} {need.name} is not installed")
        finding = self._measure_program(need, location) if need.kind == "program" else _measure_module(need, location)
        if finding.found:
            self._versions[key] = finding
        return finding

    def _measure_program(self, need: Need, location: str) -> Finding:
        arguments = _VERSION_ARGUMENTS.get(need.name, ("--version",))
        try:
            ran = subprocess.run(
                [location, *arguments],
                capture_output=True, text=True, errors="replace", timeout=_VERSION_SECONDS,
                stdin=subprocess.DEVNULL, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Finding(need, False, location, problem=f"{location} gave no version within {_VERSION_SECONDS:g} s")
        except OSError as fault:
            return Finding(need, False, location, problem=f"{location} does not run: {fault.strerror or fault}")
        version = _VERSION_OF.get(need.name, _VERSION).search(ran.stdout + ran.stderr)
        if version is None:
            return Finding(need, False, location, problem=f"{location} printed no version")
        if need.minimum and _parts(version[1]) < _parts(need.minimum):
            old = f"{need.name} {version[1]} ({location}) is too old: {need.minimum} or newer is needed"
            return Finding(need, False, location, version[1], old)
        return Finding(need, True, location, version[1])


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _measure_module(need: Need, location: str) -> Finding:
    from importlib import metadata

    try:
        return Finding(need, True, location, metadata.version(need.name))
    except metadata.PackageNotFoundError:
        return Finding(need, True, location)

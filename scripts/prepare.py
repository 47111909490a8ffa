"""Prepare a checkout: system packages, `.venv`, this package with its extras. Run by scripts/setup.

Standard library only. Each step is skipped when it has nothing to do, and a stamp of pyproject.toml makes the next
run return at once, without network. Only apt touches anything outside this folder.
"""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / ".metaforge-setup"
sys.path.insert(0, str(ROOT / "src"))

# The checkout's own sources, before anything is installed.
from metaforge.cli import system  # noqa: E402
from metaforge.core import debian  # noqa: E402

WIDTH = 24


class Stop(Exception):
    """Set-up cannot go on; the message says what to do."""


class Step:
    """One line of progress: a bar that moves on a terminal, one line at the end elsewhere."""

    def __init__(self, name: str) -> None:
        self.name, self.fraction, self.doing = name, 0.0, ""
        self.started = time.monotonic()
        self.on_terminal = sys.stdout.isatty()
        self.done = threading.Event()

    def show(self, fraction: float | None = None, doing: str = "") -> None:
        if fraction is not None:
            self.fraction = max(self.fraction, min(fraction, 1.0))
        self.doing = doing or self.doing
        if self.on_terminal:
            filled = round(self.fraction * WIDTH)
            line = f"  {self.name:<16} [{'#' * filled}{' ' * (WIDTH - filled)}] {self.fraction:4.0%} {self._seconds()}"
            columns = shutil.get_terminal_size().columns
            print(f"\r\033[K{line}  {self.doing}"[: columns + 3], end="", flush=True)

    def tick(self) -> None:
        while not self.done.wait(0.5):
            self.show()

    def finish(self, result: str) -> None:
        self.done.set()
        start = "\r\033[K" if self.on_terminal else ""
        print(f"{start}  {self.name:<16} {result:<58} {self._seconds()}", flush=True)

    def _seconds(self) -> str:
        return f"{time.monotonic() - self.started:4.0f} s"


@contextmanager
def step(name: str) -> Iterator[Step]:
    """Show a step while it runs; a failing one leaves its line and says where the details are."""
    shown = Step(name)
    ticker = threading.Thread(target=shown.tick, daemon=True)
    shown.show()
    if shown.on_terminal:
        ticker.start()
    try:
        yield shown
    except BaseException:
        if not shown.done.is_set():
            shown.finish("failed")
        raise


def follow(command: list[str], heard: Callable[[str], None], **options: object) -> None:
    """Run a command, hand each line it prints to `heard`, and stop with its last words when it fails."""
    lines: list[str] = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **options
    ) as running:
        for line in running.stdout or ():
            lines = [*lines[-40:], line.rstrip()]
            heard(line.rstrip())
    if running.returncode:
        worth_reading = [line for line in lines if not re.match(r"(dlstatus|pmstatus|Progress )", line)]
        raise Stop("\n".join([f"{' '.join(command)} failed:", *worth_reading[-15:]]))


def more_packages() -> None:
    """Install the programs that only some tools or tests use, where this needs nobody; they are missing otherwise."""
    missing = system.missing_needs((*system.MORE_PROGRAMS, *system.TEST_PROGRAMS))
    root = system.is_root()
    if not missing or system.package_manager() != "apt-get" or not (root or can_sudo()):
        return
    try:
        apt_install(missing, [] if root else ["sudo", "-n"])
    except Stop as stop:
        names = ", ".join(need.name for need in missing)
        print(f"  tools and tests with {names} will be missing: {str(stop).splitlines()[-1]}")


def system_packages() -> None:
    """Install the system packages that are missing, or say the one command that does."""
    needs = [*venv_needs(), *system.system_needs()]
    missing = [need for need in needs if need.apt.endswith("-venv")] + system.missing_needs(system.system_needs())
    if not missing:
        return
    manager = system.package_manager()
    root = system.is_root()
    may_install = manager == "apt-get" and (root or can_sudo())
    if not may_install:
        command = system.install_command(missing, manager, is_root=root)
        names = ", ".join(need.name for need in missing)
        if all(not need.required for need in missing):
            print(f"  not found: {names} ({missing[0].why}). To add it:  {command}")
            return
        raise Stop(f"These are missing: {names}\nRun this once, then the same make command again:\n\n    {command}\n")
    try:
        apt_install(missing, [] if root else ["sudo", "-n"])
    except Stop:
        if any(need.required for need in missing):
            raise
        names = ", ".join(need.name for need in missing)
        command = system.install_command(missing, manager, is_root=root)
        print(f"  not installed: {names} ({missing[0].why}). To try again:  {command}")


def venv_needs() -> list[system.SystemNeed]:
    """Debian splits `ensurepip` off its Python; without it no virtual environment can be made."""
    if importlib.util.find_spec("ensurepip") or VENV.joinpath("bin", "pip").exists():
        return []
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return [
        system.SystemNeed(
            "venv", "virtual environments are made with it", f"python{version}-venv", "python3-pip", "python"
        )
    ]


def can_sudo() -> bool:
    """Whether sudo works without asking for a password."""
    return bool(shutil.which("sudo")) and subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode == 0


def apt_offers(package: str) -> bool:
    """Whether apt can install this package."""
    name, _, release = package.partition("/")
    told = subprocess.run(["apt-cache", "policy", name], capture_output=True, text=True, env={"LC_ALL": "C"}).stdout
    is_there = "Candidate:" in told and "Candidate: (none)" not in told
    return is_there and (not release or f" {release}/" in told)


def add_backports(missing: list[system.SystemNeed], prefix: list[str]) -> None:
    """Name this release's backports to apt where something is to come from there and they are not named yet."""
    release = debian.codename()
    if not release or all(need.backports_of != release for need in missing):
        return
    asked = ["apt-get", "indextargets", "--format", "$(CODENAME)"]
    known = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.split()
    if f"{release}-backports" not in known:
        command = debian.add_backports(release, " ".join([*prefix, ""]) if prefix else "")
        follow(["sh", "-c", command], lambda line: None)


def apt_install(missing: list[system.SystemNeed], prefix: list[str]) -> None:
    """Install what is missing, showing apt's own progress."""
    quiet = ["-q", "-y", "-o", "Dpkg::Use-Pty=0", "-o", "APT::Status-Fd=1"]
    environment = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C"]
    with step("system packages") as shown:
        shown.show(0.0, "reading the package lists")
        try:
            add_backports(missing, prefix)
            follow([*environment, "apt-get", "update", *quiet], lambda line: None)
        except Stop as fault:
            shown.show(0.0, f"lists not renewed ({str(fault).splitlines()[-1][:60]}); trying those at hand")

        packages = system.packages_for(missing, "apt-get", apt_offers)
        absent = [need for need in missing if not apt_offers(system.packages_for([need], "apt-get", apt_offers)[0])]
        packages = [package for package in packages if apt_offers(package)]

        def heard(line: str) -> None:
            if match := re.match(r"(dlstatus|pmstatus):[^:]*:([\d.]+):(.*)", line):
                share = float(match[2]) / 100
                shown.show(0.4 * share if match[1] == "dlstatus" else 0.4 + 0.6 * share, match[3])

        if packages:
            follow([*environment, "apt-get", "install", "--no-install-recommends", *quiet, *packages], heard)
        shown.finish(f"{', '.join(packages[:3])}{f' and {len(packages) - 3} more' if len(packages) > 3 else ''}")
    if any(need.required for need in absent):
        raise Stop(system.elsewhere(absent))


def environment() -> None:
    """Make `.venv`, or make it anew when its Python no longer runs."""
    python = VENV / "bin" / "python"
    if python.exists() and subprocess.run([python, "-m", "pip", "--version"], capture_output=True).returncode == 0:
        return
    with step("environment") as shown:
        shown.show(0.2, f"{VENV.name} with Python {sys.version.split()[0]}")
        if VENV.is_symlink():
            raise Stop(f"{VENV} is a link to a Python that does not run: remove it, then run make again")
        shutil.rmtree(VENV, ignore_errors=True)
        follow([sys.executable, "-m", "venv", str(VENV)], lambda line: None)
        shown.finish(f".venv with Python {sys.version.split()[0]}")


def python_packages(extras: str) -> None:
    """Install this package, editable, with its extras."""
    pip = [str(VENV / "bin" / "python"), "-m", "pip"]
    version = subprocess.run([*pip, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    bar = "raw" if tuple(map(int, version.split(".")[:2])) >= (24, 1) else "off"
    with step("Python packages") as shown:
        found, fetching = 0, ""

        def heard(line: str) -> None:
            nonlocal found, fetching
            text = line.strip()
            if text.startswith("Collecting "):
                found += 1
                fetching = text.removeprefix("Collecting ").split(" (from")[0]
                shown.show(min(0.7, found / 140), f"finding {fetching}")
            elif text.startswith("Downloading "):
                shown.show(doing=f"downloading {text.removeprefix('Downloading ').split('/')[-1]}")
            elif match := re.match(r"Progress (\d+) of (\d+)", text):
                got, size = int(match[1]) / 1e6, int(match[2]) / 1e6
                shown.show(doing=f"downloading {fetching}: {got:.0f} of {size:.0f} MB")
            elif text.startswith("Installing collected packages: "):
                count = text.count(",") + 1
                shown.show(0.75, f"unpacking {count} packages")
            elif text.startswith("Successfully installed "):
                shown.show(1.0, "installed")

        follow([*pip, "install", "--no-input", "--progress-bar", bar, "-e", f"{ROOT}[{extras}]"], heard)
        listed = subprocess.run(
            [*pip, "list", "--format=freeze"], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        shown.finish(f"{len(listed)} in .venv ({extras})")


def digest() -> str:
    """Name the state that an installation depends on."""
    content = (ROOT / "pyproject.toml").read_bytes() + str(ROOT).encode()
    return hashlib.sha256(content).hexdigest()[:16]


def is_ready(extras: str) -> bool:
    """Whether the last set-up had the same pyproject.toml and at least these extras, and its Python still runs."""
    if not STAMP.is_file() or not os.access(VENV / "bin" / "python", os.X_OK):
        return False
    known, _, installed = STAMP.read_text().strip().partition(" ")
    return known == digest() and set(extras.split(",")) <= set(installed.split(","))


def main() -> int:
    extras = sys.argv[1] if len(sys.argv) > 1 else "all,dev"
    try:
        system_packages()
        if "dev" in extras.split(","):
            more_packages()
        if not is_ready(extras):
            print(f"Setting up MetaForge in {ROOT} (first time: about two minutes)", flush=True)
            environment()
            python_packages(extras)
            STAMP.write_text(f"{digest()} {extras}\n")
    except Stop as stop:
        print(f"\n{stop}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. Run the same command again to go on.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

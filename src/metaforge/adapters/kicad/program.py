"""Run kicad-cli. Its exit code is 0 for a schematic whose sheets are missing and for rules that it could not read, so
whoever calls decides on what it left behind.
"""

import contextlib
import re
import shutil
import tempfile
import time
import weakref
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from metaforge.core.debian import install_command
from metaforge.core.errors import FailureMode, ToolError
from metaforge.engineering.programs import ProgramResult, find_program, run_program
from metaforge.tools.context import ToolContext

OLDEST = (9, 0)
PACKAGES = ("kicad", "kicad-symbols", "kicad-footprints")
RESERVE_SECONDS = 3.0
"""Kept back from the call's deadline for reading and writing files."""
_NOISE = re.compile(
    r"You have run CvPcb|CvPcb has either|You must first configure|See the .Footprint Library Table|^\s*$|^Loading"
    r"|Done\."
)


class KicadTooOld(ToolError):
    """kicad-cli is there and cannot do what is asked."""

    default_kind = "program_too_old"


def install() -> str:
    """Return the command that installs KiCad here."""
    return install_command(PACKAGES, backports_of="bookworm")


class _Home:
    """A home folder for this process: KiCad writes its settings at every start, and they are no user's."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="kicad-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@cache
def _home() -> _Home:
    return _Home()


def environment() -> dict[str, str]:
    """Return the variables that keep KiCad's settings out of anybody's home."""
    home = _home().path
    return {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_DATA_HOME": str(home / "data"),
        "KICAD_CONFIG_HOME": str(home / "kicad"),
        "OMP_NUM_THREADS": "1",
    }


@dataclass(frozen=True)
class Program:
    """kicad-cli on this machine."""

    path: str
    version: str


@cache
def kicad() -> Program:
    """Return kicad-cli.

    Raises:
        ProgramMissing: it is not installed; KiCad 6 has none.
        KicadTooOld: it is older than 9.
    """
    path = find_program("kicad-cli", install())
    said = run_program((path, "version"), cwd=_home().path, timeout_seconds=30, environment=environment()).output
    match = re.search(r"(\d+)\.(\d+)\S*", said)
    if match is None:
        raise ToolError(
            f"{path} printed no version: {said.strip()[-200:] or 'nothing'}", kind="program_broken",
            fix=f"install it again: {install()}", failure_mode=FailureMode.ENVIRONMENT,
        )  # fmt: skip
    if (int(match[1]), int(match[2])) < OLDEST:
        raise KicadTooOld(
            f"kicad-cli {match[0]} is too old: KiCad 9 or newer is needed",
            fix=f"install it: {install()}", failure_mode=FailureMode.ENVIRONMENT,
        )  # fmt: skip
    _set_up_libraries(Path(path).resolve().parents[1] / "share" / "kicad", f"{match[1]}.{match[2]}")
    return Program(path, match[0])


def _set_up_libraries(shared: Path, release: str) -> None:
    """Let KiCad find its own libraries: without a table it compares nothing and says so of every part."""
    folder = Path(environment()["KICAD_CONFIG_HOME"]) / release
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("sym-lib-table", "fp-lib-table"):
        template = shared / "template" / name
        empty = f"({name.replace('-', '_')}\n  (version 7)\n)\n"
        (folder / name).write_text(template.read_text(encoding="utf-8") if template.is_file() else empty)


class Deadline:
    """What is left of a call's time, over several runs of a program."""

    def __init__(self, ctx: ToolContext) -> None:
        self._end = time.monotonic() + ctx.timeout_seconds - RESERVE_SECONDS
        self.ctx = ctx

    def left_seconds(self) -> float:
        return max(self._end - time.monotonic(), 1.0)


def run_kicad(words: tuple[str, ...], deadline: Deadline, *, cwd: Path, doing: str) -> ProgramResult:
    """Run kicad-cli.

    Args:
        words: its arguments.
        deadline: what is left for it.
        cwd: an existing folder of this call.
        doing: what it does, for progress.

    Raises:
        ProgramMissing, KicadTooOld: see `kicad`.
        ToolTimedOut: it ran into the deadline.
    """
    ctx = deadline.ctx

    def heartbeat(seconds: float, _: str) -> None:
        ctx.progress(0.1 + 0.8 * seconds / (seconds + 30), f"{doing}, {seconds:.0f} s")

    return run_program(
        (kicad().path, *words),
        cwd=cwd,
        timeout_seconds=deadline.left_seconds(),
        environment=environment(),
        heartbeat=heartbeat,
    )


def said(result: ProgramResult) -> str:
    """Return what kicad-cli said that is worth reading."""
    lines = [line.strip() for line in result.output.splitlines() if not _NOISE.search(line)]
    return " | ".join(lines[-4:])[-400:]


def failed(result: ProgramResult, what: str, where: str, fix: str) -> ToolError:
    """Return the error for a run that left nothing behind."""
    ended = f"was ended by signal {result.signal}" if result.signal else f"ended with code {result.exit_code}"
    return ToolError(
        f"KiCad could not {what}: {said(result) or ended}", kind="kicad_refused", where=where, fix=fix, ended=ended
    )


def remove(path: Path) -> None:
    """Remove a file that may not be there."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()

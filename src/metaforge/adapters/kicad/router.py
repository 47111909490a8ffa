"""The programs that routing needs: KiCad's Python module, and a router that speaks Specctra."""

import importlib.util
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

from metaforge.adapters.kicad.program import Deadline, environment, install
from metaforge.core.errors import FailureMode, ToolError, ToolTimedOut
from metaforge.engineering.programs import ProgramMissing, run_program
from metaforge.formats.specctra import NotSpecctra, RoutedVia, Session, Wire, read_session, simplified

JOBS = Path(__file__).with_name("pcbnew_jobs.py")
PYTHONS = ("/usr/bin/python3", "/usr/local/bin/python3")
INSTALL_ROUTER = "pip install 'metaforge[routing]'"
ENGINES = {"exact": ("--shove", "--diagonal"), "grid": ("-mp", "20"), "room": ("--shove", "--pack")}
"""The router's ways to search, best first: `exact` keeps clearances, `grid` connects most, `room` takes long."""


@dataclass(frozen=True)
class Routes:
    """Numbered pieces of a routing, so that single ones can be taken back."""

    wires: Mapping[str, Wire]
    vias: Mapping[str, RoutedVia]

    def without(self, numbers: set[str]) -> "Routes":
        return Routes(
            {number: wire for number, wire in self.wires.items() if number not in numbers},
            {number: via for number, via in self.vias.items() if number not in numbers},
        )

    def with_nets(self, other: "Routes", nets: set[str]) -> "Routes":
        """Return these and what another routing has of some nets."""
        return Routes(
            {**self.wires, **{number: wire for number, wire in other.wires.items() if wire.net in nets}},
            {**self.vias, **{number: via for number, via in other.vias.items() if via.net in nets}},
        )


@cache
def pcbnew_python() -> str:
    """Return the Python that has KiCad's module.

    Raises:
        ProgramMissing: none has.
    """
    for python in PYTHONS:
        if Path(python).exists():
            tried = run_program(
                (python, "-c", "import pcbnew; print(pcbnew.GetBuildVersion())"), cwd=Path("/tmp"), timeout_seconds=60,
                environment=environment(),
            )  # fmt: skip
            if tried.exit_code == 0:
                return python
    raise ProgramMissing(
        "KiCad's Python module (pcbnew) is not there", fix=f"install KiCad from Debian's packages: {install()}",
        failure_mode=FailureMode.ENVIRONMENT,
    )  # fmt: skip


def router_version() -> str:
    """Return the router's name and version.

    Raises:
        ProgramMissing: it is not installed.
    """
    if importlib.util.find_spec("freeroute") is None:
        raise ProgramMissing(
            "The router (freeroute) is not installed", fix=INSTALL_ROUTER, failure_mode=FailureMode.ENVIRONMENT
        )
    return f"freeroute {metadata.version('freeroute')}"


def run_job(job: str, *words: str, deadline: Deadline, what: str, where: str) -> None:
    """Run one of `pcbnew_jobs`.

    Raises:
        ToolError: it failed, in KiCad's words.
    """
    ctx = deadline.ctx
    result = run_program(
        (pcbnew_python(), str(JOBS), job, *words), cwd=ctx.scratch, timeout_seconds=deadline.left_seconds(),
        environment=environment(),
    )  # fmt: skip
    if result.exit_code != 0:
        lines = [line for line in result.output.strip().splitlines() if line.strip()]
        raise ToolError(
            f"KiCad could not {what}: {lines[-1][-300:] if lines else 'it ended early'}", kind="kicad_refused",
            where=where, fix="kicad.run_drc says what is wrong with the board",
        )  # fmt: skip


def search(engine: str, design: str, deadline: Deadline, most_seconds: float) -> Routes | None:
    """Let the router search one way and return what it found; None where it found nothing in time."""
    folder = deadline.ctx.scratch
    (folder / "board.dsn").write_text(simplified(design), encoding="utf-8")
    session = folder / f"{engine}.ses"
    words = (sys.executable, "-m", "freeroute.cli", "board.dsn", "--engine", engine, *ENGINES[engine],
             "-do", session.name)  # fmt: skip

    def heartbeat(seconds: float, _: str) -> None:
        deadline.ctx.progress(min(0.2 + 0.5 * seconds / most_seconds, 0.7), f"routing ({engine}), {seconds:.0f} s")

    try:
        run_program(words, cwd=folder, timeout_seconds=min(most_seconds, deadline.left_seconds()), heartbeat=heartbeat)
    except ToolTimedOut:
        return None
    if not session.is_file():
        return None
    try:
        return _numbered(engine, read_session(session.read_text(encoding="utf-8", errors="replace"), design))
    except NotSpecctra:
        return None


def _numbered(engine: str, session: Session) -> Routes:
    return Routes(
        {f"{engine}-w{number}": wire for number, wire in enumerate(session.wires)},
        {f"{engine}-v{number}": via for number, via in enumerate(session.vias)},
    )


def write_routes(routes: Routes, file: Path) -> None:
    """Write routes for the job `apply`."""
    told = {
        "wires": {number: asdict(wire) for number, wire in routes.wires.items()},
        "vias": {number: asdict(via) for number, via in routes.vias.items()},
    }
    file.write_text(json.dumps(told), encoding="utf-8")

"""Run ccx on a deck and believe it only when it left finite results behind.

Its exit code says nothing: it is 0 for a missing deck and for a model that flew away.
"""

import os
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from metaforge.core.errors import FailureMode, OverLimit, ToolCrashed, ToolError
from metaforge.engineering.mesh import Mesh
from metaforge.engineering.programs import ProgramResult, RunsPrograms, find_program, run_program
from metaforge.formats.frd import Results, UnreadableResults, read_frd

INSTALL = "apt-get install -y calculix-ccx"
ONE_THREAD_NODES = 60_000
"""Below this a second thread makes spooles slower, not faster."""
MOST_THREADS = 4

Progress = Callable[[float, str], None]
_FIXED_HEADER = (b"    1UDATE", b"    1UTIME", b"    1UHOST", b"    1UDIR", b"    1UDBN")


@dataclass(frozen=True)
class Solved:
    """A finished solve.

    Attributes:
        results: the result file.
        frd: its bytes without clock, host or folder: the same job gives the same bytes.
        dat: the print file.
        warnings: what ccx itself warned of, in short.
        solver_time_seconds: wall time of ccx.
        version: of ccx.
    """

    results: Results
    frd: bytes
    dat: str
    warnings: tuple[str, ...]
    solver_time_seconds: float
    version: str


def solve(
    deck: str,
    folder: Path,
    mesh: Mesh,
    *,
    needs: tuple[str, ...],
    timeout_seconds: float,
    progress: Progress,
    run: RunsPrograms = run_program,
    job: str = "job",
) -> Solved:
    """Solve a deck.

    Args:
        deck: complete, naming no other file.
        folder: scratch folder for ccx.
        mesh: the deck's mesh, to say where an element lies.
        needs: result blocks without which the solve has failed, such as `DISP`; empty for decks that only print.
        timeout_seconds: for ccx.
        progress: told what ccx is doing, at least every 5 s.

    Raises:
        ToolError: ccx refused, diverged, or left no finite result; the cause in the field's words.
    """
    program = find_program("ccx", INSTALL)
    (folder / f"{job}.inp").write_text(deck, encoding="utf-8")
    threads = 1 if mesh.node_count < ONE_THREAD_NODES else min(MOST_THREADS, os.cpu_count() or 1)
    result = run(
        (program, "-i", job),
        cwd=folder,
        timeout_seconds=timeout_seconds,
        environment={"OMP_NUM_THREADS": str(threads), "CCX_NPROC_EQUATION_SOLVER": str(threads)},
        watch=Watcher(),
        heartbeat=lambda seconds, doing: progress(_fraction(seconds), f"ccx, {seconds:.0f} s: {doing or 'working'}"),
    )
    _refuse_failed(result, mesh)
    frd = _without_clock(_read(folder / f"{job}.frd"))
    dat = _read(folder / f"{job}.dat").decode("latin-1")
    results = _results(frd, needs, result)
    return Solved(results, frd, dat, _own_warnings(result.output), result.duration_seconds, results.version)


def _fraction(seconds: float) -> float:
    """Creep from 0.3 towards 0.9: ccx does not say how far it is."""
    return 0.3 + 0.6 * seconds / (seconds + 60.0)


class Watcher:
    """Turns ccx's chatter into what it is doing now."""

    def __init__(self) -> None:
        self.step = self.increment = ""
        self.time = ""

    def __call__(self, line: str) -> str | None:
        if match := re.match(r"STEP\s+(\d+)", line):
            self.step = match[1]
        elif match := re.match(r"increment\s+(\d+)\s+attempt\s+(\d+)", line):
            self.increment = match[1]
        elif match := re.match(r"total time=\s*(\S+)", line):
            self.time = match[1]
        elif line.startswith("Factoring"):
            return self._at("factoring the equations")
        elif match := re.match(r"iteration\s+(\d+)", line):
            return self._at(f"iteration {match[1]}")
        elif "Calculating the eigenvalues" in line or "number of eigenvalues" in line.lower():
            return self._at("finding eigenvalues")
        elif "Determining the structure" in line:
            return self._at("numbering the equations")
        return None

    def _at(self, doing: str) -> str:
        where = f"step {self.step or 1}" + (f", increment {self.increment}" if self.increment else "")
        return f"{where}{f', time {self.time}' if self.time else ''}: {doing}"


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _without_clock(frd: bytes) -> bytes:
    head, separator, rest = frd.partition(b"\n    2C")
    lines = [line for line in head.split(b"\n") if not line.startswith(_FIXED_HEADER)]
    return b"\n".join(lines) + separator + rest


def _results(frd: bytes, needs: tuple[str, ...], result: ProgramResult) -> Results:
    if not frd.strip():
        raise _failed("CalculiX finished without writing a result file", result)
    try:
        results = read_frd(frd)
    except UnreadableResults as fault:
        raise _failed(fault.message, result) from None
    for name in needs:
        block = results.last(name)
        if block is None or not len(block.values):
            raise _failed(f"CalculiX finished without results: there is no {name} block in its result file", result)
    for block in results.blocks:
        if block.name in ("DISP", "STRESS", "NDTEMP", "FORC") and not np.isfinite(block.values).all():
            raise ToolError(
                f"CalculiX wrote numbers that are not finite ({block.name}): the equations are singular",
                kind="not_finite",
                fix="look for parts that nothing holds, zero stiffness, or wrong units",
            )
    return results


_TRANSLATIONS: tuple[tuple[str, str, str, str], ...] = (
    (r"no material was assigned\s+to element\s+(?P<element>\d+)", "no_material", "has no material",
     "give its element set a section with a material"),
    (r"nonpositive jacobian\s+determinant in element\s+(?P<element>\d+)", "inverted_element", "is turned inside out",
     "reverse its node order, or mesh again"),
    (r"too many cutbacks", "no_convergence", "The solution does not converge: the increment was cut back too often",
     "apply the load in smaller increments, hold bodies that only contact holds, or check the material law"),
    (r"max\.? # of iterations|increment size smaller than minimum|max\. # of increments", "no_convergence",
     "The solution does not converge within the allowed increments", "allow more increments or smaller ones"),
    (r"singular|zero pivot|matrix found to be singular", "singular_matrix",
     "The equations are singular: something is not held, or has no stiffness",
     "support every body, and give every element a material with stiffness"),
    (r"(?:in|error) (?:u_)?(?:m|re|c)alloc|error allocating|not enough memory|insufficient memory", "memory_limit",
     "", ""),
    (r"no elements? (?:or|in)|no nodes", "empty_model", "The model is empty", "define nodes and elements"),
)  # fmt: skip


def _refuse_failed(result: ProgramResult, mesh: Mesh) -> None:
    errors = _errors(result.output)
    if not errors and result.signal == 0 and "Job finished" in result.output:
        return
    text = " ".join(errors)
    for pattern, kind, meaning, fix in _TRANSLATIONS:
        match = re.search(pattern, text, re.IGNORECASE)
        if match is None:
            continue
        if element := match.groupdict().get("element"):
            ids = list(dict.fromkeys(re.findall(pattern, text, re.IGNORECASE)))
            more = f" and {len(ids) - 1} more" if len(ids) > 1 else ""
            raise ToolError(
                f"Element {element}{more} {meaning}", kind=kind, where=_element_place(mesh, int(element)), fix=fix
            )
        if kind == "memory_limit":
            raise _out_of_memory(mesh)
        raise ToolError(meaning, kind=kind, where=_shorten(errors[0]), fix=fix)
    if errors:
        raise ToolError(
            f"CalculiX refused the deck: {_shorten(errors[0])}",
            kind="solver_refused",
            fix="correct the card it names",
            solver_errors=[_shorten(each) for each in errors[:5]],
        )
    if result.signal == signal.SIGKILL or "ALLOCATE failure" in result.output:
        raise _out_of_memory(mesh)
    if result.signal:
        raise ToolCrashed(
            f"CalculiX was ended by signal {result.signal}",
            fix="it crashes on damaged decks: check the cards, or send a smaller model",
            signal=result.signal,
        )
    raise _failed("CalculiX stopped before it finished", result)


def _out_of_memory(mesh: Mesh) -> OverLimit:
    """A direct solver of solids takes about 4 GB for 100,000 nodes, and grows with the power 4/3 of their number."""
    return OverLimit(
        f"CalculiX ran out of memory on {mesh.node_count:,} nodes (about "
        f"{4.0 * (mesh.node_count / 100_000) ** (4 / 3):.1g} GB are needed)",
        kind="memory_limit",
        fix="use a larger element_size_mm: 1.5 times the size needs about a fifth of the memory",
        failure_mode=FailureMode.LIMIT,
    )


def _failed(message: str, result: ProgramResult) -> ToolError:
    lines = [line.strip() for line in result.output.splitlines() if line.strip()]
    shown = " | ".join(lines[-3:])
    return ToolError(
        message,
        kind="no_results",
        where=_shorten(shown) or "ccx printed nothing",
        fix="ask for results in the last step (*NODE FILE with U, *EL FILE with S), and check the cards above",
    )


def _errors(output: str) -> list[str]:
    """Return ccx's error messages, each joined from the lines that belong to it."""
    found: list[str] = []
    for match in re.finditer(r"\*ERROR:?(.*(?:\n[ \t]+\S.*)*)", output):
        text = " ".join(match[1].split())
        if text not in found:
            found.append(text)
    return found


def _own_warnings(output: str) -> tuple[str, ...]:
    """Return what ccx warned of, without notes that concern its own workings."""
    quiet = ("nonlinear geometric analysis is requested", "no *NODE FILE", "output for", "closing")
    found: list[str] = []
    for match in re.finditer(r"\*WARNING:?(.*(?:\n[ \t]+\S.*)*)", output):
        text = _shorten(" ".join(match[1].split()))
        if text not in found and not any(word in text for word in quiet):
            found.append(text)
    return tuple(f"CalculiX: {text}" for text in found[:5])


def _shorten(text: str, length: int = 220) -> str:
    text = text.removeprefix("in ").strip()
    return text if len(text) <= length else text[: length - 3] + "..."


def _element_place(mesh: Mesh, element: int) -> str:
    for block in mesh.blocks:
        rows = np.flatnonzero(block.ids == element)
        if len(rows):
            nodes = block.nodes[rows[0]]
            centre = mesh.points_mm(nodes[nodes > 0]).mean(axis=0)
            return f"element {element} ({block.type}), centroid [{', '.join(f'{v:.4g}' for v in centre)}] mm"
    return f"element {element}"

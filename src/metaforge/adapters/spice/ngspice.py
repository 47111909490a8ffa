"""Run ngspice on a deck and believe it only when it left the points behind that were asked for.

Its exit code is 0 for a circuit whose matrix was singular, for an analysis without points and for an output request
that it did not understand.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from metaforge.core.errors import FailureMode, OverLimit, ToolCrashed, ToolError, ToolTimedOut
from metaforge.engineering.programs import ProgramResult, RunsPrograms, find_program, run_program
from metaforge.formats.spice_raw import Plot, UnreadableRaw, last_scale_value, read_raw, write_raw

INSTALL = "apt-get install -y ngspice"
MAX_RAW_BYTES = 400_000_000
Progress = Callable[[float, str], None]

_CHATTER = re.compile(
    r"^(?:note: no compat|circuit: |doing analysis|using sparse|no\. of data|initial transient|total |dram"
    r"|maximum ngspice|current ngspice|shared ngspice|text \(code\)|stack =|library pages|cpu time|binary raw"
    r"|ascii raw|trying gmin"
    r"|note: one successful|warning: further gmin|note: starting|\.print line ignored|supplies reduced|[-=]{5,}"
    r"|operating point simulation skipped|now using transient|using transient initial|\s*$)",
    re.IGNORECASE,
)
_QUIET_WARNINGS = ("singular matrix", "gmin stepping failed", "source stepping failed", "has no value, dc 0 assumed",
                   "no dc value, transient time 0 value used")  # fmt: skip


@dataclass(frozen=True)
class Simulated:
    """A finished run.

    Attributes:
        plots: what the raw file holds.
        raw: the same as a file: the same deck gives the same bytes.
        convergence: `converged`, or what it took to find the operating point.
        warnings: what ngspice itself warned of, in short.
        log: what ngspice said.
        sim_time_seconds: wall time of ngspice.
        version: of ngspice.
    """

    plots: tuple[Plot, ...]
    raw: bytes
    convergence: str
    warnings: tuple[str, ...]
    log: str
    sim_time_seconds: float
    version: str


@dataclass(frozen=True)
class Context:
    """What is known of the circuit when a run fails, to tell the cause.

    Attributes:
        analysis: the kind of analysis.
        models: names of the models there are.
        subcircuits: names of the subcircuits there are.
        suspects: warnings found before the run that may be the cause.
        places: where each element's line stands, by its name.
        stop_seconds: end of a transient.
    """

    analysis: str
    models: tuple[str, ...] = ()
    subcircuits: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)
    stop_seconds: float = 0.0

    def place(self, line: str) -> str:
        """Return where a line that ngspice quotes stands in the netlist; the line itself where that is not known."""
        words = line.split()
        name = words[0].lower() if words else ""
        return self.places.get(name) or self.places.get(name.partition(".")[2]) or line.strip()


def simulate(
    deck: str,
    folder: Path,
    context: Context,
    *,
    timeout_seconds: float,
    progress: Progress,
    run: RunsPrograms = run_program,
) -> Simulated:
    """Run a deck.

    Args:
        deck: complete, with one analysis, naming no other file.
        folder: an empty scratch folder for ngspice.
        context: what helps to explain a failure.
        timeout_seconds: for ngspice.
        progress: told how far it is, at least every 5 s.

    Raises:
        ToolError: ngspice refused, did not converge, or left no points; the cause in the field's words.
    """
    program = find_program("ngspice", INSTALL)
    (folder / "job.cir").write_text(deck, encoding="utf-8")
    raw_path, log_path = folder / "job.raw", folder / "job.log"

    def heartbeat(seconds: float, doing: str) -> None:
        if raw_path.is_file() and raw_path.stat().st_size > MAX_RAW_BYTES:
            raise OverLimit(
                f"The waveforms take more than {MAX_RAW_BYTES / 1e6:.0f} MB",
                fix="name fewer probes, or take a larger step",
                failure_mode=FailureMode.LIMIT,
            )
        reached = _reached(raw_path)
        share = reached / context.stop_seconds if reached and context.stop_seconds else seconds / (seconds + 60)
        told = f", at {reached:.4g} s of {context.stop_seconds:g} s" if reached and context.stop_seconds else ""
        progress(0.1 + 0.8 * min(share, 1.0), f"ngspice, {seconds:.0f} s{told}")

    try:
        result = run(
            # -n: no start-up file of the user's or of the folder's is run.
            (program, "-n", "-b", "-r", raw_path.name, "-o", log_path.name, "job.cir"),
            cwd=folder,
            timeout_seconds=timeout_seconds,
            environment={"OMP_NUM_THREADS": "1", "HOME": str(folder), "SPICE_ASCIIRAWFILE": "0"},
            heartbeat=heartbeat,
        )
    except ToolTimedOut:
        reached = _reached(raw_path)
        got = f"; it had got to {reached:.4g} s of {context.stop_seconds:g} s" if reached else ""
        raise ToolTimedOut(
            f"ngspice was stopped after {timeout_seconds:.0f} s{got}",
            fix="take a larger step or an earlier stop, or allow more time",
            failure_mode=FailureMode.LIMIT,
        ) from None
    log = log_path.read_text("utf-8", "replace") if log_path.is_file() else ""
    version = re.search(r"ngspice-(\d+(?:\.\d+)*)", result.output)
    lines = [line.strip() for line in log.splitlines() if not _CHATTER.match(line.strip())]
    raw = raw_path.read_bytes() if raw_path.is_file() else b""
    plots = _plots(raw)
    _refuse_failed(result, log, lines, plots, context)
    _refuse_not_finite(plots)
    _refuse_early_end(plots[0], context, lines)
    return Simulated(
        plots, write_raw(plots), _convergence(log), tuple(_own_warnings(lines)), "\n".join(lines),
        result.duration_seconds, version[1] if version else "",
    )  # fmt: skip


def _reached(raw_path: Path) -> float | None:
    """Return the time that a transient has got to, from the file it is writing."""
    try:
        with raw_path.open("rb") as stream:
            head = stream.read(1 << 16)
            start = head.find(b"Binary:\n") + len(b"Binary:\n")
            stream.seek(start)
            variables = re.search(rb"No\. Variables:\s*(\d+)", head)
            width = 8 * int(variables[1]) if variables else 8
            rows = max(raw_path.stat().st_size - start, 0) // width
            stream.seek(start + max(rows - 1, 0) * width)
            return last_scale_value(head, stream.read(width)) if rows else None
    except (OSError, ValueError):
        return None


def _plots(raw: bytes) -> tuple[Plot, ...]:
    if not raw.strip():
        return ()
    try:
        return read_raw(raw)
    except UnreadableRaw:
        # Without a single point ngspice leaves half a header.
        return ()


def _convergence(log: str) -> str:
    lowered = log.lower()
    if "source stepping completed" in lowered:
        return "converged_with_source_stepping"
    if "gmin stepping completed" in lowered:
        return "converged_with_gmin_stepping"
    if "transient op finished" in lowered:
        return "converged_with_transient_start"
    return "converged"


def _own_warnings(lines: list[str]) -> list[str]:
    found: list[str] = []
    for line in lines:
        lowered = line.lower()
        if not ("warning" in lowered or "unrecognized" in lowered or "ignored" in lowered):
            continue
        text = re.sub(r"^warning\s*[:,-]*\s*", "", line, flags=re.IGNORECASE)
        if text and text not in found and not any(quiet in lowered for quiet in _QUIET_WARNINGS):
            found.append(text)
    return [f"ngspice: {text[:200]}" for text in found[:6]]


def _refuse_failed(
    result: ProgramResult, log: str, lines: list[str], plots: tuple[Plot, ...], context: Context
) -> None:
    has_points = bool(plots) and len(plots[0].values) > 0
    aborted = re.search(r"simulation\(s\) aborted|simulation interrupted|fatal error|doAnalyses:", log)
    if result.exit_code == 0 and has_points and not aborted and all(plot.complete for plot in plots):
        return
    if result.signal:
        raise _ended_by_signal(result)
    _refuse_known(log, lines, plots, context)
    said = [line for line in lines if re.search(r"error|cannot|can't|unable|no such|fatal|failed|invalid", line, re.I)]
    message = "ngspice refused the netlist" if said else "ngspice ended without a single result"
    raise ToolError(
        f"{message}: {_shorten(said[0])}" if said else message,
        kind="simulator_refused" if said else "no_results",
        where=_log_tail(said or lines),
        fix="correct the line it names" if said else "check that the analysis fits the circuit, and the step its span",
        log="\n".join(lines)[-4000:],
    )


def _ended_by_signal(result: ProgramResult) -> ToolError:
    if result.signal == 9:
        return OverLimit("ngspice was ended by the system, most likely for its memory", kind="memory_limit",
                         fix="name fewer probes, or take a larger step", failure_mode=FailureMode.LIMIT)  # fmt: skip
    return ToolCrashed(
        f"ngspice crashed (signal {result.signal})",
        fix="it crashes on some damaged models: check .model and .subckt lines, or use a newer ngspice",
        signal=result.signal,
    )


def _refuse_known(log: str, lines: list[str], plots: tuple[Plot, ...], context: Context) -> None:
    """Raise the error that ngspice's words stand for, where they are known."""
    tail = "\n".join(lines)[-4000:]
    suspects = "; ".join(context.suspects[:3])
    if match := re.search(r"Timestep too small; time = ([\d.eE+-]+).*?(?:node|branch|device)?\s*\"([^\"]+)\"", log):
        raise ToolError(
            f"The transient broke off at {float(match[1]):.6g} s: the time step became too small, trouble with "
            f"node {match[2]}" + _told(_partial(plots, 5, 1), len(plots[0].values) if plots else 0),
            kind="timestep_too_small",
            where=f"time {match[1]} s, node {match[2]}",
            fix="look for a voltage that grows without bound or an ideal switch there; else try params.max_step "
            "smaller, `.options method=gear`, `.options reltol=0.005`, or a small capacitor at that node"
            + (f". Suspicious: {suspects}" if suspects else ""),
            failure_mode=FailureMode.DESIGN,
            log=tail,
            partial=_partial(plots, 50, 4),
        )
    if match := re.search(r"can't find model '([^']+)' from line\s*\n?\s*(.+)", log):
        raise _missing("model", match[1], match[2], context, tail)
    if match := re.search(r"Error on line[^\n]*\n\s*(.+)\n\s*could not find a valid modelname", log):
        raise _missing("model", match[1].split()[-1], match[1], context, tail)
    if match := re.search(r"unknown subckt:\s*(.+)", log):
        raise _missing("subcircuit", match[1].split()[-1], match[1], context, tail)
    if "input signal is shorted" in log:
        raise ToolError(
            "No poles and zeros: the input signal is shorted, by a source that holds the input's voltage",
            kind="input_shorted", where="the source at the input nodes of .pz", log=tail,
            fix="give that source an AC value, such as `V1 in 0 DC 0 AC 1`, or drive the input with a current",
        )  # fmt: skip
    if match := re.search(r"Undefined parameter \[([^\]]+)\]", log):
        raise ToolError(
            f"Parameter {match[1]} is used but not defined", kind="missing_parameter", where=f"parameter {match[1]}",
            fix=f"add `.param {match[1]}=...`", log=tail,
        )  # fmt: skip
    if match := re.search(r"Error on line[^\n]*\n\s*(.+)\n\s*(.+)", log):
        raise ToolError(
            f"ngspice does not understand a line: {_shorten(match[2].strip())}", kind="simulator_refused",
            where=context.place(match[1]), fix="correct that line", log=tail,
        )  # fmt: skip
    singular = re.search(r"singular matrix:\s*check node (\S+)", log)
    no_point = re.search(
        r"DC solution failed|gmin stepping failed|source stepping failed|no convergence|iteration limit|op failed", log,
        re.IGNORECASE,
    )  # fmt: skip
    if singular or no_point:
        raise ToolError(
            "No operating point was found: "
            + (f"the equations are singular at node {singular[1]}" if singular else "the iteration does not converge"),
            kind="singular_matrix" if singular else "no_convergence",
            where=_log_tail([line for line in lines if "singular" in line.lower() or "failed" in line.lower()]),
            fix=f"mend first: {suspects}" if suspects else "check that every node has a DC path to ground and that no "
            "voltage sources form a loop; else help with .nodeset, or `.options itl1=500 gmin=1e-10`",
            failure_mode=FailureMode.DESIGN,
            log=tail,
        )  # fmt: skip


def _missing(what: str, name: str, line: str, context: Context, log: str) -> ToolError:
    import difflib

    known = context.models if what == "model" else context.subcircuits
    where = context.place(line)
    written = re.search(rf"(?<!\S){re.escape(name)}(?!\S)", where, re.IGNORECASE)
    name = written[0] if written else name
    close = difflib.get_close_matches(name.lower(), known, 3)
    there = f"did you mean {', '.join(close)}? " if close else f"there are: {', '.join(known[:12]) or 'none'}. "
    card = f".model {name} ..." if what == "model" else f".subckt {name} ..."
    return ToolError(
        f"The {what} {name} is not defined",
        kind="missing_model" if what == "model" else "missing_subcircuit",
        where=where,
        fix=f"{there}Put the `{card}` of the manufacturer into the netlist, or .include its file from the workspace",
        log=log,
    )


def _partial(plots: tuple[Plot, ...], points: int, most: int) -> dict[str, list[float]]:
    """Return the waveforms up to where a transient broke off, thinned."""
    if not plots or not len(plots[0].values) or plots[0].is_complex:
        return {}
    plot = plots[0]
    columns = [np.asarray(plot.values[:, index], np.float64) for index in range(min(len(plot.variables), most + 1))]
    # Even in time: the last stretch has most of the points and says the least.
    evenly = np.searchsorted(plot.scale, np.linspace(plot.scale[0], plot.scale[-1], points))
    chosen = np.unique(np.minimum(evenly, len(plot.scale) - 1))
    names = [variable.name for variable in plot.variables]
    return {name: [float(f"{v:.5g}") for v in column[chosen]] for name, column in zip(names, columns, strict=False)}


def _told(partial: dict[str, list[float]], count: int) -> str:
    """Say how the first waveform got to where the transient broke off."""
    names = list(partial)
    if len(names) < 2:
        return ""
    steps = ", ".join(f"{v:.4g} at {t:.4g} s" for t, v in zip(partial[names[0]], partial[names[1]], strict=True))
    return f". {count} points were computed up to there; {names[1]}: {steps}"


def _refuse_not_finite(plots: tuple[Plot, ...]) -> None:
    for plot in plots:
        values = plot.values if not plot.is_complex else plot.values[:, 1:]
        if values.size and not np.isfinite(values).all():
            row, column = np.argwhere(~np.isfinite(values))[0]
            variable = plot.variables[column + (1 if plot.is_complex else 0)]
            raise ToolError(
                f"{variable.name} is not a finite number at point {row + 1} of {len(values)}", kind="not_finite",
                where=plot.name, fix="look for a division by zero or an unlimited gain in the circuit",
            )  # fmt: skip


def _refuse_early_end(plot: Plot, context: Context, lines: list[str]) -> None:
    """Refuse a transient that stopped before its end without a word: it is not the answer to what was asked."""
    reached = float(plot.scale[-1])
    if context.analysis == "transient" and context.stop_seconds and reached < context.stop_seconds * (1 - 1e-6):
        raise ToolError(
            f"The transient ended at {reached:.6g} s of {context.stop_seconds:g} s, and ngspice does not say why",
            kind="ended_early",
            where=_log_tail(lines),
            fix="take a smaller params.max_step, or another version of ngspice: some stop early on some models",
            partial=_partial((plot,), 50, 4),
        )


def _log_tail(lines: list[str]) -> str:
    return _shorten(" | ".join(dict.fromkeys(lines[-4:])), 400) or "ngspice said nothing"


def _shorten(text: str, length: int = 220) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."

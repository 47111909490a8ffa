"""One simulation from netlist to answer."""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from metaforge.adapters.spice import lint
from metaforge.adapters.spice.analysis import Analysis, choose
from metaforge.adapters.spice.answers import SimulationAnswer
from metaforge.adapters.spice.cards import BadNetlist, decode
from metaforge.adapters.spice.circuit import Circuit, read_circuit
from metaforge.adapters.spice.ngspice import Context, Simulated, simulate
from metaforge.adapters.spice.outputs import Outputs
from metaforge.adapters.spice.probes import Probe, printed_probes, save_card, wanted_probes
from metaforge.adapters.spice.pulses import completed
from metaforge.adapters.spice.reading import readings, results, thinned_waveforms
from metaforge.adapters.spice.source import Netlist, read_netlist
from metaforge.adapters.spice.summary import measure, next_step, summarise
from metaforge.adapters.spice.values import AmbiguousQuantity, read_quantity
from metaforge.adapters.spice.vectors import Vector, all_vectors, clean_name, has_scale, probed
from metaforge.core.errors import FailureMode, InvalidArguments, ToolError
from metaforge.tools.context import Answer, OutputFile, Picture, ToolContext

RESERVE_SECONDS = 3.0
"""Kept back from the call's deadline for reading and writing files."""
MOST_VECTORS = 40
MOST_CURVES = 8
MOST_READINGS = 400
HUGE = 1e6


@dataclass(frozen=True)
class Request:
    """What was asked for."""

    netlist: str | None
    netlist_path: str | None
    analysis_type: str
    params: dict[str, Any]
    probes: list[str]
    at: list[float | str]
    max_points: int
    picture: bool
    output_path: str | None
    overwrite: bool


def run_simulation(request: Request, ctx: ToolContext) -> Answer[SimulationAnswer]:
    """Simulate a netlist.

    Raises:
        ToolError: the netlist does what it may not, the circuit has no solution, or ngspice found none.
        InvalidArguments: the arguments do not fit the netlist.
    """
    started = time.monotonic()
    netlist = open_netlist(request, ctx)
    circuit = read_circuit(netlist)
    warnings = [*filter(None, [lint.title_warning(netlist, circuit)]), *netlist.dropped]
    lint.refuse_without_ground(circuit)
    lint.refuse_duplicates(circuit)
    analysis = choose(request.analysis_type, request.params, netlist, circuit)
    places = _places(request.at, analysis)
    if request.probes:
        probes = wanted_probes(request.probes, circuit, analysis.kind)
    else:
        probes = printed_probes(netlist, circuit, analysis.kind)
    lint.refuse_silent_sources(circuit, analysis.kind)
    suspects = _structure(circuit, analysis)
    warnings += [*lint.number_warnings(netlist), *suspects, *_details(netlist, circuit, analysis)]
    deck, filled = write_deck(netlist, analysis, probes)
    warnings += filled
    outputs = Outputs.choose(request.output_path, netlist.name, analysis.kind, overwrite=request.overwrite)
    outputs = outputs.settle(deck, ctx)
    ctx.progress(0.1, f"simulating {len(circuit.elements)} elements with ngspice")
    done = simulate(
        deck,
        _folder(ctx),
        Context(
            analysis.kind, tuple(sorted(circuit.models())), tuple(circuit.subcircuits()), tuple(suspects),
            {element.name: element.card.where() for element in circuit.elements}, analysis.stop_seconds,
        ),
        timeout_seconds=max(1.0, ctx.timeout_seconds - (time.monotonic() - started) - RESERVE_SECONDS),
        progress=ctx.progress,
    )  # fmt: skip
    vectors, others = select(done, probes, request.probes)
    warnings += [*done.warnings, *_implausible(vectors)]
    answer, more = _answer(request, netlist, analysis, places, done, vectors, others, outputs)
    warnings += more
    files = outputs.write(ctx, done.raw, deck)
    pictures = _drawn(request, answer, done, vectors, outputs, ctx, warnings)
    if pictures:
        answer = replace(answer, picture_file=str(outputs.picture))
        files.append(OutputFile(outputs.picture, "image/png", "picture"))
    return Answer(
        answer,
        summarise(answer, warnings),
        tuple(dict.fromkeys(warnings)),
        next_step(answer, bool(request.params), picture=request.picture),
        tuple(files),
        pictures,
        {"ngspice": done.version} if done.version else {},
    )


def open_netlist(request: Request, ctx: ToolContext) -> Netlist:
    """Read the netlist, from the text or the file.

    Raises:
        InvalidArguments: neither or both are given.
        BadNetlist: the file lies outside the workspace, is missing, or is no netlist.
    """
    if (request.netlist is None) == (request.netlist_path is None):
        raise InvalidArguments(
            "Give netlist (text, the first line is the title) or netlist_path (a file), one of them",
            fields={"netlist": "SPICE text", "netlist_path": "a .cir, .net, .sp or .spice file"},
        )
    root = ctx.workspace.resolve()
    if request.netlist is not None:
        return read_netlist(decode(request.netlist.encode("utf-8", "replace"), "netlist"), "netlist", root, root)
    path = (root / (request.netlist_path or "")).resolve()
    if not path.is_relative_to(root) or not path.is_file():
        outside = not path.is_relative_to(root)
        raise BadNetlist(
            f"{request.netlist_path} {'lies outside the workspace' if outside else 'is no file of the workspace'}",
            kind="path_outside_workspace" if outside else "no_such_file",
            fix="give a path below the workspace",
        )
    return read_netlist(decode(path.read_bytes(), path.name), path.name, path.parent, root)


def write_deck(netlist: Netlist, analysis: Analysis, probes: list[Probe]) -> tuple[str, list[str]]:
    """Write what ngspice gets: the circuit, one analysis, and nothing else; and warn of what was added."""
    title = " ".join("".join(each for each in netlist.title if each.isprintable()).split())[:200] or "untitled"
    cards = [completed(card, analysis) for card in netlist.cards]
    lines = [f"* {title}", *(text for text, _ in cards), analysis.card]
    if analysis.kind in ("op", "dc", "ac", "transient") and (save := save_card(probes)):
        lines.append(save)
    return "\n".join([*lines, ".end", ""]), [warning for _, warning in cards if warning]


def _folder(ctx: ToolContext) -> Path:
    folder = ctx.scratch / "ngspice"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    return folder


def _places(at: list[float | str], analysis: Analysis) -> list[float]:
    if at and analysis.kind not in ("dc", "ac", "transient", "noise"):
        raise InvalidArguments(
            f"at: {analysis.kind} sweeps nothing, so there is no point to read at", fields={"at": "-"}
        )
    try:
        return list(dict.fromkeys(read_quantity(value) for value in at))
    except AmbiguousQuantity as fault:
        raise InvalidArguments(f"at: {fault}", fields={"at": str(fault)}) from None


def _structure(circuit: Circuit, analysis: Analysis) -> list[str]:
    found = lint.loop_warnings(circuit, analysis.kind, uses_initial=analysis.uses_initial)
    return found + lint.island_warnings(
        circuit, analysis.kind, swept=analysis.swept, uses_initial=analysis.uses_initial
    )


def _details(netlist: Netlist, circuit: Circuit, analysis: Analysis) -> list[str]:
    found = [lint.dangling_warning(circuit), *analysis.warnings]
    if analysis.kind == "transient":
        found.append(lint.coarse_step_warning(circuit, analysis.max_step_seconds))
    measures = [card for card in netlist.outputs if card.directive in (".meas", ".measure")]
    if measures:
        found.append(f"{len(measures)} .meas cards were not evaluated: use at, and read measurements")
    return [each for each in found if each]


def select(done: Simulated, probes: list[Probe], asked: list[str]) -> tuple[list[Vector], list[str]]:
    """Return the vectors to tell of, and the names of the others.

    Raises:
        ToolError: none of what was asked for is in the results.
    """
    everything = [vector for plot in done.plots for vector in all_vectors(plot)]
    if not probes:
        shown = [vector for vector in everything if "." not in vector.name][:MOST_VECTORS] or everything[:MOST_VECTORS]
    else:
        shown = probed(done.plots[0], probes)
        if len(shown) < len(probes) and asked:
            there = {vector.name for vector in shown}
            missing = ", ".join(probe.label for probe in probes if probe.label not in there)
            raise ToolError(
                f"ngspice computed no {missing}", kind="no_such_vector",
                where=done.log.splitlines()[0] if done.log else "",
                fix=f"probe one of {', '.join(vector.name for vector in everything[:10])}",
            )  # fmt: skip
    if not shown:
        raise ToolError("The simulation left no voltage or current", kind="no_results",
                        fix="name probes such as v(out)", failure_mode=FailureMode.INPUT)  # fmt: skip
    names = {vector.name for vector in shown}
    return shown, [vector.name for vector in everything if vector.name not in names][:MOST_VECTORS]


def _implausible(vectors: list[Vector]) -> list[str]:
    huge = [vector for vector in vectors if vector.unit in ("V", "A") and np.abs(vector.values).max(initial=0) > HUGE]
    return [
        f"{vector.name} reaches {float(np.abs(vector.values).max()):.3g} {vector.unit}: is that meant? It is what a "
        "floating node or a short between sources looks like"
        for vector in huge[:3]
    ]


def _answer(
    request: Request, netlist: Netlist, analysis: Analysis, places: list[float], done: Simulated,
    vectors: list[Vector], others: list[str], outputs: Outputs,
) -> tuple[SimulationAnswer, list[str]]:  # fmt: skip
    plot = done.plots[0]
    swept = has_scale(plot)
    # A noise analysis leaves its totals in a plot of their own, without a scale.
    along = [vector for vector in vectors if len(vector.values) == len(plot.values)]
    warnings: list[str] = []
    values_at, outside = readings(plot.scale, along, places, analysis.kind) if swept else ([], [])
    warnings += outside
    if len(values_at) > MOST_READINGS:
        raise InvalidArguments(f"at: {len(values_at)} readings are too many", fields={"at": f"at most {MOST_READINGS}"})
    measurements, doubts = measure(plot, along[:MOST_CURVES], analysis.kind) if swept else ({}, [])
    curves = along[:MOST_CURVES] if swept and request.max_points else []
    if swept and len(along) > MOST_CURVES and request.max_points:
        warnings.append(f"waveform_data and measurements hold the first {MOST_CURVES} of {len(along)} vectors: name "
                        "probes to choose")  # fmt: skip
    answer = SimulationAnswer(
        analysis=analysis.card,
        analysis_type=analysis.kind,
        title=netlist.title[:200],
        convergence=done.convergence,
        plot=plot.name,
        scale=clean_name(plot.variables[0].name) if swept else "",
        points_count=len(plot.values),
        results=results(vectors, analysis.kind),
        sim_time_seconds=round(done.sim_time_seconds, 4),
        waveforms=[str(outputs.raw)],
        deck_path=str(outputs.deck),
        values_at=values_at or None,
        measurements=measurements or None,
        waveform_data=thinned_waveforms(plot, curves, request.max_points) if curves else None,
        other_vectors=others or None,
    )
    return answer, warnings + doubts


def _drawn(
    request: Request, answer: SimulationAnswer, done: Simulated, vectors: list[Vector], outputs: Outputs,
    ctx: ToolContext, warnings: list[str],
) -> tuple[Picture, ...]:  # fmt: skip
    """Draw the waveforms; where that cannot be done the numbers still count, with a warning."""
    if not request.picture:
        return ()
    plot = done.plots[0]
    if not has_scale(plot):
        warnings.append(f"No picture: {answer.analysis_type} gives single values, not a curve")
        return ()
    curves = [vector for vector in vectors if len(vector.values) == len(plot.values)][:MOST_CURVES]
    ctx.progress(0.95, "drawing")
    try:
        from metaforge.adapters.spice.show import draw_waveforms

        caption = draw_waveforms(ctx.output_file(str(outputs.picture)), answer, plot, curves)
    except ModuleNotFoundError as fault:
        warnings.append(f"No picture: Python module {fault.name} is not installed (pip install 'metaforge[spice]')")
        return ()
    return (Picture(outputs.picture, caption),)

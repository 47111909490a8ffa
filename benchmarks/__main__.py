"""Measure everything, or one thing: `python -m benchmarks [--only NAME] [--quick] [--json]`.

Ratios are taken in one interleaved run against a bare program that does the same, so that they hold on any machine;
absolute figures hold for a quiet one. The exit status is 1 when a bound is missed.
"""

import argparse
import importlib
import os
import platform
import sys
import time
from typing import Any

import orjson

from benchmarks.figure import Effort, Figure

BENCHMARKS = {
    "start": "from process start to tools/list",
    "cheap_http": "a cheap call over HTTP",
    "cheap_stdio": "a cheap call over stdio",
    "boundary": "an echo in an adapter's own process",
    "durable": "kill -9 under load",
    "footprint": "memory, idle workers, exit",
    "cad": "the first CAD box, and a warm one",
    "beside_cad": "cheap calls while a CAD script works",
    "demo": "the bracket demo against a bare script",
    "approvals": "from a decision to the call that waits for it, and an idle gateway",
    "approvals_held": "500 calls held at once, and a gateway with a page open",
    "container": "an adapter in a container, and what a killed server leaves",
    "circuit": "a circuit against the bare ngspice command",
    "board": "ERC and DRC against the bare kicad-cli commands",
    "knowledge": "documents put in and asked",
    "freecad": "FreeCAD sessions, and steps in them against FreeCAD alone",
    "twin_writes": "revision writes from eight processes, and memory over many",
    "twin_read": "a node of the design record, read over HTTP",
    "twin_projection": "the graph that Cypher queries run on",
    "twin_matrix": "the trace matrix of a large project",
    "twin_impact": "the impact of a change among 100,000 and 1,000,000 nodes",
}


def _measure(names: list[str], effort: Effort, *, quiet: bool) -> tuple[list[Figure], dict[str, str]]:
    figures: list[Figure] = []
    faults: dict[str, str] = {}
    for name in names:
        started = time.perf_counter()
        try:
            measured: list[Figure] = importlib.import_module(f"benchmarks.{name}").measure(effort)
        except Exception as fault:  # noqa: BLE001 - one benchmark that cannot run must not hide the others
            faults[name] = f"{type(fault).__name__}: {fault}"
            measured = []
        figures += measured
        if not quiet:
            for figure in measured:
                print(figure.line(), flush=True)
            if name in faults:
                print(f"{name}: could not be measured: {faults[name]}", flush=True)
            print(f"  ({name}: {time.perf_counter() - started:.0f} s)", file=sys.stderr, flush=True)
    return figures, faults


def _machine() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "cores_count": os.cpu_count(),
        "load_average_1_minute": round(os.getloadavg()[0], 2),
        "system": platform.platform(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only", action="append", choices=sorted(BENCHMARKS), help="measure this alone; may be repeated"
    )
    parser.add_argument("--quick", action="store_true", help="shorter phases: less steady, for a first look")
    parser.add_argument("--json", action="store_true", help="print one JSON object with every sample")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    machine = _machine()
    names = [name for name in BENCHMARKS if not options.only or name in options.only]
    figures, faults = _measure(names, Effort.choose(quick=options.quick), quiet=options.json)
    missed = [figure for figure in figures if figure.passed is False]
    if options.json:
        report = {"machine": machine, "figures": [figure.as_json() for figure in figures], "faults": faults}
        print(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode())
    else:
        load = machine["load_average_1_minute"]
        print(f"\n{len(figures)} figures, {len(missed)} missed, {len(faults)} not measured; load at the start {load}")
    return 1 if missed or faults else 0


if __name__ == "__main__":
    sys.exit(main())

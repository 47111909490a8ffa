"""A circuit simulated through the server, against the bare ngspice command on the same deck."""

import shutil
import subprocess
import time
from pathlib import Path
from statistics import median

from benchmarks.figure import Effort, Figure, spread
from benchmarks.pipes import PipeClient, house

ALLOWANCE_MS = 100.0
SECTIONS_COUNT = 150
FILTER = "RC low pass\nV1 in 0 DC 0 AC 1\nR1 in out 1k\nC1 out 0 159.155n\n.ac dec 50 1 1meg\n.end\n"


def _ladder() -> str:
    """Return a line of RC sections with a square wave at its start: a solve of about a second."""
    lines = ["RC ladder", "V1 n0 0 PULSE(0 1 0 10n 10n 0.5u 1u)"]
    for number in range(SECTIONS_COUNT):
        lines += [f"R{number} n{number} n{number + 1} 10", f"C{number} n{number + 1} 0 10p"]
    return "\n".join([*lines, ".tran 2n 40u", ".end", ""])


CIRCUITS = {"ac": ("filter", FILTER, ["out"]), "transient": ("ladder", _ladder(), ["n75", f"n{SECTIONS_COUNT}"])}


def _ours_ms(client: PipeClient, kind: str, path: str, probes: list[str]) -> float:
    started = time.perf_counter()
    result = client.call("spice.run_simulation", analysis_type=kind, netlist_path=path, probes=probes, max_points=200)
    elapsed_ms = (time.perf_counter() - started) * 1000
    assert result["structuredContent"]["points_count"] > 200, "too few points"
    return elapsed_ms


def _bare_ms(deck: Path, folder: Path) -> float:
    shutil.copy(deck, folder / "bare.cir")
    started = time.perf_counter()
    subprocess.run(
        ["ngspice", "-n", "-b", "-r", "bare.raw", "-o", "bare.log", "bare.cir"], cwd=folder, capture_output=True,
        check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return (time.perf_counter() - started) * 1000


def measure(effort: Effort) -> list[Figure]:
    """Alternate between both on a filter that takes milliseconds and a ladder that takes most of a second."""
    figures: list[Figure] = []
    with house() as place:
        bare_folder = place.home / "bare"
        bare_folder.mkdir()
        for name, netlist, _ in CIRCUITS.values():
            (place.workspace / f"{name}.cir").write_text(netlist)
        with place.stdio() as client:
            for kind, (name, _, probes) in CIRCUITS.items():
                first_ms = _ours_ms(client, kind, f"{name}.cir", probes)
                deck = place.workspace / "spice" / f"{name}-{kind}.cir"
                _bare_ms(deck, bare_folder)
                ours_ms, bare_ms = [], []
                for _ in range(2 * effort.rounds_count):
                    ours_ms.append(_ours_ms(client, kind, f"{name}.cir", probes))
                    bare_ms.append(_bare_ms(deck, bare_folder))
                detail = {"ours_ms": spread(ours_ms), "bare_ms": spread(bare_ms), "first_ms": round(first_ms, 1)}
                beyond = median((our - ALLOWANCE_MS) / bare for our, bare in zip(ours_ms, bare_ms, strict=True))
                added_ms = median(our - bare for our, bare in zip(ours_ms, bare_ms, strict=True))
                what = f"ngspice on an RC {name}, less {ALLOWANCE_MS:.0f} ms, against the bare command"
                figures.append(Figure("circuit", what, max(beyond, 0.0), "x", 1.2, detail))
                figures.append(
                    Figure("circuit", f"what the server adds to ngspice on an RC {name}", added_ms, "ms", None)
                )
    return figures

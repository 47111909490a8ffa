"""The bracket demo, from its command's start to its end, against a bare script of the same steps."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import orjson

from benchmarks.figure import Effort, Figure, ratio, spread
from benchmarks.pipes import ROOT, House, house


def _find(data: Any, key: str) -> Iterator[Any]:
    """Yield every value under a key, however deep it lies."""
    if isinstance(data, dict):
        if key in data:
            yield data[key]
        data = list(data.values())
    if isinstance(data, list):
        for each in data:
            yield from _find(each, key)


def _run(command: list[str], place: House, cwd: Path) -> tuple[float, dict[str, Any]]:
    environment = place.environment(METAFORGE_FIXTURES="", METAFORGE_PRESTART="true")
    # The demo chooses its own workspace, as it does for a person.
    del environment["METAFORGE_WORKSPACE"]
    started = time.perf_counter()
    ran = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, check=False)
    elapsed = time.perf_counter() - started
    if ran.returncode:
        raise RuntimeError(f"{command} ended with {ran.returncode}: {(ran.stderr or ran.stdout).decode()[-800:]}")
    return elapsed, orjson.loads(ran.stdout)


def _first(report: dict[str, Any], key: str) -> float:
    """Return the first number told under a key, or the largest of those told there by region."""
    for value in _find(report, key):
        if isinstance(value, dict):
            return float(max(value.values()))
        if isinstance(value, int | float):
            return float(value)
    raise RuntimeError(f"the demo's report does not tell {key}")


def measure(effort: Effort) -> list[Figure]:
    """Alternate between the demo command and the bare script, at the element size that the demo chose."""
    ours, floors = [], []
    seconds: dict[str, Any] = {}
    demo = [sys.executable, "-m", "metaforge", "demo", "--json"]
    with house() as place:
        _, report = _run(demo, place, place.workspace)
        size_mm = _first(report, "element_size_mm")
        for _ in range(3):
            with tempfile.TemporaryDirectory() as folder:
                elapsed, report = _run(demo, place, Path(folder))
                ours.append(elapsed)
                bare = [sys.executable, str(ROOT / "benchmarks" / "floors" / "bracket.py"), folder, str(size_mm)]
                elapsed, floor_report = _run(bare, place, Path(folder))
                floors.append(elapsed)
                seconds = floor_report["seconds"]
    ours_mpa, floor_mpa = _first(report, "max_von_mises_mpa"), floor_report["max_von_mises_mpa"]
    detail = {
        "ours_seconds": spread(ours, 2),
        "floor_seconds": spread(floors, 2),
        "floor_steps_seconds": seconds,
        "element_size_mm": size_mm,
        "ours_max_von_mises_mpa": round(ours_mpa, 4),
        "floor_max_von_mises_mpa": round(floor_mpa, 4),
        "floor_elements_count": floor_report["elements_count"],
    }
    what = "bracket demo, command to end, against a bare script"
    return [
        Figure("demo", what, ratio(ours, floors), "x", 1.5, detail),
        Figure("demo", "bracket demo, command to end", median(ours), "s", None, detail),
    ]

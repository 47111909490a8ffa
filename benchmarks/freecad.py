"""FreeCAD sessions: how soon one is open, and a step in one against FreeCAD alone doing and measuring the same."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.figure import Effort, Figure, ratio, spread
from benchmarks.pipes import PipeClient, house

PYTHON = "/usr/bin/python3"
FLOOR = Path(__file__).parent / "floors" / "freecad_steps.py"
HOLES = 8
AHEAD = {"METAFORGE_PRESTART": "true", "METAFORGE_PRESTART_FREE_MB": "256", "METAFORGE_ADAPTERS": "freecad"}
SPARE_SECONDS = 3.0
"""Until the next FreeCAD is loaded ahead of its session."""


def _timed_ms(client: PipeClient, tool: str, **arguments: Any) -> tuple[float, dict[str, Any]]:
    started = time.perf_counter()
    result = client.call(f"freecad.{tool}", **arguments)
    return (time.perf_counter() - started) * 1000, result["structuredContent"]


@contextmanager
def _alone() -> Iterator["subprocess.Popen[str]"]:
    # Workers run at nice 10, and so does this: on a busy machine the ratio is to be that of the work.
    with subprocess.Popen(
        ["nice", "-n", "10", PYTHON, "-I", str(FLOOR)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def _alone_ms(process: "subprocess.Popen[str]", step: str) -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{step}\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def _elements() -> list[dict[str, Any]]:
    plate: list[dict[str, Any]] = [{"type": "polyline", "points_mm": [[0, 0], [100, 0], [100, 80], [0, 80]]}]
    holes = [(10 + 11 * column, 8 + 9 * row) for column in range(HOLES) for row in range(HOLES)]
    return plate + [{"type": "circle", "center_mm": list(hole), "radius_mm": 2} for hole in holes]


def _steps(client: PipeClient, session: str, number: int) -> dict[str, float]:
    """Do each step once in a session of its own and return its milliseconds."""
    body = client.call("freecad.create_body", session_id=session)["structuredContent"]["obj_id"]
    _, sketch = _timed_ms(client, "create_sketch", session_id=session, body_id=body, elements=_elements())
    took: dict[str, float] = {}
    took["pad"], _ = _timed_ms(
        client, "pad_sketch", session_id=session, body_id=body, sketch_id=sketch["obj_id"], length_mm=10
    )
    took["fillet"], _ = _timed_ms(client, "fillet", session_id=session, obj_id=body, radius_mm=1, edges=[">z"])
    ball_ms, ball = _timed_ms(
        client, "create_primitive", session_id=session, kind="sphere", parameters={"radius_mm": 15}
    )
    took["boolean"], cut = _timed_ms(
        client, "boolean", session_id=session, obj_a=body, obj_b=ball["obj_id"], operation="subtract"
    )
    took["boolean"] += ball_ms
    took["export"], _ = _timed_ms(
        client, "export_model", session_id=session, obj_id=cut["obj_id"], output_path=f"out/plate{number}.step"
    )
    return took


def measure(effort: Effort) -> list[Figure]:
    """Cold and warm starts of sessions, then steps beside FreeCAD alone, round by round."""
    cold_ms = []
    for _ in range(effort.rounds_count):
        with house() as place, place.stdio() as client:
            cold_ms.append(_timed_ms(client, "open_session")[0])
    warm_ms = []
    with house() as place, place.stdio(**AHEAD) as client:
        client.call("freecad.open_session")
        for _ in range(effort.rounds_count):
            time.sleep(SPARE_SECONDS)
            took, opened = _timed_ms(client, "open_session")
            warm_ms.append(took)
            client.call("freecad.close_session", session_id=opened["session_id"])
    ours: list[dict[str, float]] = []
    bare: list[dict[str, float]] = []
    with house() as place, place.stdio() as client, _alone() as alone:
        for number in range(2 * effort.rounds_count):
            session = client.call("freecad.open_session")["structuredContent"]["session_id"]
            ours.append(_steps(client, session, number))
            client.call("freecad.close_session", session_id=session)
            _alone_ms(alone, "new")
            bare.append({step: _alone_ms(alone, step) for step in ours[-1]})
    figures = [
        Figure("freecad", "open a session, nothing started", median(cold_ms), "ms", 1500, {"ms": spread(cold_ms)}),
        Figure("freecad", "open a session, FreeCAD loaded ahead", median(warm_ms), "ms", 50, {"ms": spread(warm_ms)}),
    ]
    for step in ours[0]:
        mine, theirs = [each[step] for each in ours], [each[step] for each in bare]
        what = f"{step} of a plate with {HOLES * HOLES} holes, against FreeCAD alone"
        detail = {"ours_ms": spread(mine), "bare_ms": spread(theirs)}
        figures.append(Figure("freecad", what, ratio(mine, theirs), "x", 1.3, detail))
    return figures

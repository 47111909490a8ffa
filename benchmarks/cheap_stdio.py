"""A cheap in-process tool over pipes, against a bare asyncio echo on the same loop."""

import sys
from statistics import median

from benchmarks.figure import Effort, Figure, percentile, ratio, spread
from benchmarks.pipes import ROOT, PipeClient, house
from benchmarks.processes import end, on_cores_of_their_own


def measure(effort: Effort) -> list[Figure]:
    """Alternate between our server and the bare echo, one client, one call at a time."""
    bare = PipeClient((sys.executable, str(ROOT / "benchmarks" / "floors" / "stdio_echo.py")))
    try:
        # Left alone, the scheduler now and then puts client and server on one core: the bare round trip then takes a
        # sixth of what it takes between two, and the ratio tells nothing but that.
        with house() as place, place.stdio() as client, on_cores_of_their_own(client.process.pid, bare.process.pid):
            client.time_calls(1.0, "fixture.echo", text="hello world")
            bare.time_calls(1.0, "echo", text="hello world")
            our_ms, bare_ms, tails = [], [], []
            for _ in range(effort.rounds_count):
                latencies = client.time_calls(effort.phase_seconds, "fixture.echo", text="hello world")
                our_ms.append(median(latencies))
                tails.append(percentile(latencies, 0.99))
                bare_ms.append(median(bare.time_calls(effort.phase_seconds, "echo", text="hello world")))
    finally:
        end(bare.process)
    detail = {"ours_ms": spread(our_ms, 4), "floor_ms": spread(bare_ms, 4), "ours_p99_ms": spread(tails, 3)}
    added_us = median(our_ms) * 1000 - median(bare_ms) * 1000
    return [
        Figure("cheap_stdio", "cheap call over stdio, p50", ratio(our_ms, bare_ms), "x", 2, detail),
        # The bare round trip depends on where the scheduler puts two processes; what is added to it hardly does.
        Figure("cheap_stdio", "cheap call over stdio, added to the bare round trip", added_us, "us", None, detail),
    ]

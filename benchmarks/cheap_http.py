"""A cheap in-process tool over HTTP, the whole pipeline on, against a bare Starlette handler."""

from statistics import median

from benchmarks.figure import Effort, Figure, percentile, ratio, spread
from benchmarks.load import Target, drive
from benchmarks.pipes import floor, house
from benchmarks.processes import cpu_seconds


def cpu_per_call_us(pid: int, target: Target, clients_count: int, seconds: float) -> tuple[float, list[float]]:
    """Load a server and return the CPU of its whole process tree per call in microseconds, and all latencies."""
    before = cpu_seconds(pid)
    load = drive(target, clients_count, seconds)
    return (cpu_seconds(pid) - before) / load.calls_count * 1e6, load.latencies_ms


def measure(effort: Effort) -> list[Figure]:
    """Alternate between our server and the bare one, at 1 and at 32 clients."""
    figures: list[Figure] = []
    with house() as place, place.http() as (server, port), floor("http_echo") as (bare, bare_port):
        ours, theirs = Target(port, "fixture.echo"), Target(bare_port, "echo")
        for clients_count in (1, 32):
            # The first seconds of both go to warming up: imports at first use, and the database's first migration.
            cpu_per_call_us(server.pid, ours, clients_count, 1.0)
            cpu_per_call_us(bare.pid, theirs, clients_count, 1.0)
            our_us, bare_us, latencies = [], [], []
            for _ in range(effort.rounds_count):
                us, ms = cpu_per_call_us(server.pid, ours, clients_count, effort.phase_seconds)
                our_us.append(us)
                latencies += ms
                bare_us.append(cpu_per_call_us(bare.pid, theirs, clients_count, effort.phase_seconds)[0])
            detail = {
                "ours_us": spread(our_us),
                "floor_us": spread(bare_us),
                "calls_count": len(latencies),
                "p50_ms": round(median(latencies), 3),
                "p99_ms": round(percentile(latencies, 0.99), 3),
            }
            what = f"cheap call over HTTP, CPU per call, {clients_count} client{'s' * (clients_count > 1)}"
            figures.append(Figure("cheap_http", what, ratio(our_us, bare_us), "x", 2.5, detail))
    return figures

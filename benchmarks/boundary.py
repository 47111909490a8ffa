"""An echo in an adapter's own sandboxed process, against a bare HTTP-to-stdio forwarder with an echo child."""

from benchmarks.cheap_http import cpu_per_call_us
from benchmarks.figure import Effort, Figure, ratio, spread
from benchmarks.load import Target
from benchmarks.pipes import floor, house

BOUNDS = {1: 1.5, 32: 2.5}


def measure(effort: Effort) -> list[Figure]:
    """Alternate between both, at 1 and at 32 clients, counting the CPU of the whole process tree."""
    figures: list[Figure] = []
    with house() as place, place.http() as (server, port), floor("forwarder") as (bare, bare_port):
        ours, theirs = Target(port, "fixtureproc.echo"), Target(bare_port, "echo")
        for clients_count, bound in BOUNDS.items():
            cpu_per_call_us(server.pid, ours, clients_count, 2.0)
            cpu_per_call_us(bare.pid, theirs, clients_count, 1.0)
            our_us, bare_us = [], []
            for _ in range(effort.rounds_count):
                our_us.append(cpu_per_call_us(server.pid, ours, clients_count, effort.phase_seconds)[0])
                bare_us.append(cpu_per_call_us(bare.pid, theirs, clients_count, effort.phase_seconds)[0])
            detail = {"ours_us": spread(our_us), "floor_us": spread(bare_us)}
            what = f"echo in an adapter process, CPU of the tree, {clients_count} client{'s' * (clients_count > 1)}"
            figures.append(Figure("boundary", what, ratio(our_us, bare_us), "x", bound, detail))
    return figures

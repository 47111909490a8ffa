"""An adapter in a container against one in a process: a warm call, the first call, and what a dead server leaves."""

import os
import signal
import subprocess
import sys
import time
from statistics import median

from benchmarks.figure import Effort, Figure, spread
from benchmarks.pipes import ROOT, House, PipeClient, house
from benchmarks.processes import end
from metaforge.engine import container_engine
from metaforge.engine.container_engine import ADAPTER_LABEL, ContainerEngine
from metaforge.settings import Settings

sys.path.insert(0, str(ROOT / "tests"))
import container_image

sys.path.pop(0)

WARM_BOUND_MS = 1.0
COLD_BOUND_SECONDS = 1.0
REAPED_BOUND_SECONDS = 5.0
TOOL = "fixtureproc.echo"
TARGET = "metaforge.adapters.fixtureproc.server:FixtureProcServer"


def measure(effort: Effort) -> list[Figure]:
    """Alternate between both runners.

    Raises:
        ToolUnavailable: no engine works here.
    """
    engine = container_engine.find(Settings.from_environment())
    image = container_image.ensure_with_package(engine.name, TARGET)
    with house() as place:
        return [_warm(place, image, effort), _cold(place, image, engine, effort), _reaped(place, image, engine, effort)]


def _server(place: House, image: str, **also: str) -> PipeClient:
    client = place.over_stdio(METAFORGE_CONTAINER_IMAGE=image, METAFORGE_ADAPTERS="fixtureproc", **also)
    client.shake_hands()
    return client


def _warm(place: House, image: str, effort: Effort) -> Figure:
    contained, local = _server(place, image, METAFORGE_RUNNER="container"), _server(place, image)
    inside_ms, here_ms = [], []
    try:
        for client in (contained, local):
            client.time_calls(0.5, TOOL, text="x")
        for _ in range(effort.rounds_count):
            here_ms.append(median(local.time_calls(effort.phase_seconds, TOOL, text="x")))
            inside_ms.append(median(contained.time_calls(effort.phase_seconds, TOOL, text="x")))
    finally:
        end(contained.process)
        end(local.process)
    more = median(inside - here for inside, here in zip(inside_ms, here_ms, strict=True))
    detail = {"container_ms": spread(inside_ms, 3), "process_ms": spread(here_ms, 3)}
    return Figure("container", "a warm call in a container, over one in a process", more, "ms", WARM_BOUND_MS, detail)


def _cold(place: House, image: str, engine: ContainerEngine, effort: Effort) -> Figure:
    """Measure the first call of a server, without what the engine needs to start any container at all."""
    first, bare = [], []
    for _ in range(effort.rounds_count):
        client = _server(place, image, METAFORGE_RUNNER="container")
        try:
            started = time.perf_counter()
            client.call(TOOL, text="x")
            first.append(time.perf_counter() - started)
        finally:
            end(client.process)
        started = time.perf_counter()
        command = engine.command("run", "--rm", "--network=none", "--pull=never", "--ulimit=nofile=1024:4096")
        words = ["--ulimit=nproc=4096:4096", "--entrypoint=/bin/true", image]
        subprocess.run([*command, *words], check=True, capture_output=True, env=engine.environment)
        bare.append(time.perf_counter() - started)
    value = median(ours - theirs for ours, theirs in zip(first, bare, strict=True))
    detail = {"first_call_seconds": spread(first, 3), "engine_seconds": spread(bare, 3)}
    what = "the first call in a container, over the engine's own start"
    return Figure("container", what, value, "s", COLD_BOUND_SECONDS, detail)


def _reaped(place: House, image: str, engine: ContainerEngine, effort: Effort) -> Figure:
    """Kill a server with a container that works for it, and wait until the engine knows none any more."""
    taken = []
    for _ in range(effort.rounds_count):
        client = _server(place, image, METAFORGE_RUNNER="container")
        client.call(TOOL, text="x")
        before = _containers(engine)
        started = time.perf_counter()
        os.kill(client.process.pid, signal.SIGKILL)
        while before & _containers(engine) and time.perf_counter() - started < 4 * REAPED_BOUND_SECONDS:
            pass
        taken.append(time.perf_counter() - started)
        end(client.process)
        if not before:
            raise RuntimeError("the server had no container")
    what = "from SIGKILL of the server until its containers are gone"
    detail = {"seconds": spread(taken, 2)}
    return Figure("container", what, max(taken), "s", REAPED_BOUND_SECONDS, detail)


def _containers(engine: ContainerEngine) -> set[str]:
    told = engine.ask("ps", "--all", "--quiet", "--filter", f"label={ADAPTER_LABEL}=fixtureproc")
    return set(told.stdout.split())

"""From process start to the first useful answer."""

import subprocess
import sys
import time
from statistics import median

import orjson

from benchmarks.figure import Effort, Figure, ratio, spread
from benchmarks.pipes import ROOT, SERVER, House, PipeClient, house
from benchmarks.processes import end, free_port, wait_for_port

HEAVY = (
    "OCP", "alembic", "cadquery", "fastapi", "gmsh", "httpx", "numpy", "opentelemetry.sdk", "prometheus_client",
    "pydantic", "sqlalchemy", "starlette", "typer", "uvicorn", "vtkmodules",
)  # fmt: skip
"""What must not be imported before the tools are listed."""


def _our_start_seconds(place: House) -> float:
    client = place.over_stdio(METAFORGE_FIXTURES="", METAFORGE_PRESTART="true")
    try:
        client.shake_hands()
        tools = client.ask("tools/list")["tools"]
        elapsed = time.perf_counter() - client.started_at
        assert tools, "the server lists no tools"
        return elapsed
    finally:
        end(client.process)


def _floor_start_seconds() -> float:
    port = free_port()
    command = (sys.executable, str(ROOT / "benchmarks" / "floors" / "http_echo.py"), str(port))
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for_port(port, process)
        _first_answer(port)
        return time.perf_counter() - started
    finally:
        end(process)


def _first_answer(port: int) -> None:
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("POST", "/mcp", orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}))
    assert connection.getresponse().read(), "the bare server answered nothing"
    connection.close()


def heavy_imports(place: House) -> list[str]:
    """Return which heavy modules a server imports between its start and its answer to `tools/list`."""
    command = (SERVER[0], "-X", "importtime", *SERVER[1:], "--transport", "stdio")
    client = PipeClient(command, environment=place.environment(METAFORGE_FIXTURES=""), cwd=place.workspace)
    client.shake_hands()
    client.ask("tools/list")
    # Killed, not closed: what is imported on the way out is no part of the start.
    client.process.kill()
    end(client.process)
    client.log.seek(0)
    lines = client.log.read().decode().splitlines()
    imported = {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time")}
    return sorted(name for name in HEAVY if name in imported)


def measure(effort: Effort) -> list[Figure]:
    """Measure start-up over stdio, interleaved with the start of the bare HTTP server."""
    with house() as place:
        fresh_seconds = _our_start_seconds(place)
        ours, floors = [], []
        for _ in range(effort.rounds_count + 2):
            ours.append(_our_start_seconds(place))
            floors.append(_floor_start_seconds())
        heavy = heavy_imports(place)
    detail = {
        "ours_seconds": spread(ours, 3),
        "floor_seconds": spread(floors, 3),
        "first_ever_seconds": round(fresh_seconds, 3),
    }
    return [
        Figure("start", "stdio start -> tools/list, against a bare server", ratio(ours, floors), "x", 2, detail),
        Figure("start", "stdio start -> tools/list answered", median(ours), "s", 0.4, detail),
        Figure("start", "heavy modules imported by then", len(heavy), "", 0, {"modules": heavy}),
    ]

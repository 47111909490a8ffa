"""What 500 held calls cost the server that holds them and everybody else, and how soon one goes on over HTTP."""

import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

from benchmarks.figure import Effort, Figure, percentile, spread
from benchmarks.load import Target, drive
from benchmarks.processes import end, free_port, memory, wait_for_port

HELD_COUNT = 500
MEMORY_BOUND_MB = 100.0
SLOWER_BOUND = 2.0
RESUME_BOUND_MS = 60.0
IDLE_BOUND_PERCENT = 0.2
_LIMIT_SECONDS = 60.0


def measure(effort: Effort) -> list[Figure]:
    """Measure a gateway with a page open, with nothing held and with 500 calls held."""
    with _gateway() as (server, port), _page(port):
        idle = _idle(server.pid, 5.0 if effort.rounds_count < 5 else 20.0)
        return [idle, *_crowded(server.pid, port, effort)]


def _crowded(pid: int, port: int, effort: Effort) -> list[Figure]:
    others = Target(port, "project.list", arguments={"limit": 5})
    drive(others, 2, 1.0)
    before_mb = memory(pid).rss_mb
    free_ms, crowded_ms, ratios, added_mb, resumed_ms = [], [], [], [], []
    for _ in range(effort.rounds_count):
        free = drive(others, 2, effort.phase_seconds).latencies_ms
        with _held(port, HELD_COUNT) as held:
            crowded = drive(others, 2, effort.phase_seconds).latencies_ms
            added_mb.append(memory(pid).rss_mb - before_mb)
            resumed_ms += [_decide(port, held) for _ in range(20)]
        free_ms += free
        crowded_ms += crowded
        ratios.append(percentile(crowded, 0.99) / percentile(free, 0.99))
    told = {
        "free_p50_ms": round(median(free_ms), 2), "free_p99_ms": round(percentile(free_ms, 0.99), 2),
        "held_p50_ms": round(median(crowded_ms), 2), "held_p99_ms": round(percentile(crowded_ms, 0.99), 2),
        "ratios": spread(ratios, 2),
    }  # fmt: skip
    resumed = {"p50_ms": round(median(resumed_ms), 1), "worst_ms": round(max(resumed_ms), 1)}
    return [
        Figure("approvals_held", f"memory that {HELD_COUNT} held calls add", max(added_mb), "MB", MEMORY_BOUND_MB,
               {"by_round_mb": spread(added_mb)}),
        Figure("approvals_held", f"other calls' p99 while {HELD_COUNT} are held, against none", median(ratios), "x",
               SLOWER_BOUND, told),
        Figure("approvals_held", f"decision over HTTP to the call's result, {HELD_COUNT} held, p95",
               percentile(resumed_ms, 0.95), "ms", RESUME_BOUND_MS, resumed),
    ]  # fmt: skip


def _idle(pid: int, seconds: float) -> Figure:
    """Return what a gateway takes of one core while one page looks on and nothing is held."""
    time.sleep(3.0)  # what a start leaves to do
    before, began = _on_cpu_seconds(pid), time.perf_counter()
    time.sleep(seconds)
    used, passed = _on_cpu_seconds(pid) - before, time.perf_counter() - began
    detail = {"cpu_ms": round(used * 1000, 2), "seconds": round(passed, 1)}
    what = "an idle gateway with the Approvals page open, nothing held"
    return Figure("approvals_held", what, 100 * used / passed, "%", IDLE_BOUND_PERCENT, detail)


def _on_cpu_seconds(pid: int) -> float:
    threads = os.listdir(f"/proc/{pid}/task")
    return sum(_nanoseconds(f"/proc/{pid}/task/{each}/schedstat") for each in threads) / 1e9


def _nanoseconds(path: str) -> int:
    with open(path) as file:
        return int(file.read().split()[0])


# -- the calls that wait -------------------------------------------------------------------------------------------


@contextmanager
def _held(port: int, count: int) -> Iterator[dict[str, socket.socket]]:
    """Hold calls, each on a connection of its own; yield the connections by approval id."""
    connections: dict[str, socket.socket] = {}
    try:
        for number in range(count):
            params = {"tool_id": "project.create", "arguments": {"name": f"Held {number}"}}
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tool/call", "params": params}).encode()
            connection = socket.create_connection(("127.0.0.1", port), timeout=_LIMIT_SECONDS)
            head = f"POST /rpc HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
            connection.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
            connections[f"Held {number}"] = connection
        waiting = _waiting(port, count)
        yield {waiting[name]: connection for name, connection in connections.items()}
    finally:
        for connection in connections.values():
            connection.close()
        _waiting(port, 0)


def _waiting(port: int, count: int) -> dict[str, str]:
    """Return the approval ids of what waits, by the name of what is to be made, once so many do."""
    ends = time.monotonic() + _LIMIT_SECONDS
    while time.monotonic() < ends:
        found: dict[str, str] = {}
        before = ""
        while True:
            part = _get(port, f"/v1/approvals?limit=100{before}")
            found |= {each["detail"]["arguments"]["name"]: each["id"] for each in part["items"]}
            if not part["next_before"]:
                break
            before = f"&before={part['next_before']}"
        if len(found) == count:
            return found
        time.sleep(0.1)
    raise RuntimeError(f"{len(found)} calls are held after {_LIMIT_SECONDS:g} s, not {count}")


def _decide(port: int, held: dict[str, socket.socket]) -> float:
    """Approve one of the held calls; return the milliseconds from sending that to the call's own answer."""
    approval_id = random.choice(list(held))
    connection = held.pop(approval_id)
    body = json.dumps({"decision": "approve"}).encode()
    url = f"http://127.0.0.1:{port}/v1/approvals/{approval_id}/decision"
    asked = urllib.request.Request(url, body, {"content-type": "application/json"})
    began = time.perf_counter()
    with urllib.request.urlopen(asked, timeout=_LIMIT_SECONDS) as answer:
        answer.read()
    told = connection.recv(1 << 16)
    passed = time.perf_counter() - began
    connection.close()
    assert b'"outcome":"approved"' in told, told[:500]
    return passed * 1000


def _get(port: int, path: str) -> Any:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=_LIMIT_SECONDS) as answer:
        return json.load(answer)


# -- the server ----------------------------------------------------------------------------------------------------


@contextmanager
def _gateway() -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="metaforge-bench-") as home:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("METAFORGE_")}
        variables = {
            "METAFORGE_HOME": home,
            "METAFORGE_PRESTART": "false",
            "METAFORGE_APPROVAL_HOLD_SECONDS": "600",
            "METAFORGE_APPROVAL_HOLD_PROGRESS_SECONDS": "600",
        }
        server = subprocess.Popen(
            [sys.executable, "-m", "metaforge", "serve", "--port", str(port), "--adapters", "project,health"],
            stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=home, env={**kept, **variables},
        )  # fmt: skip
        try:
            wait_for_port(port, server)
            yield server, port
        finally:
            end(server)


@contextmanager
def _page(port: int) -> Iterator[None]:
    """Listen to the live news as an open Approvals page does."""
    script = (
        "import sys, urllib.request\n"
        "with urllib.request.urlopen(sys.argv[1]) as answer:\n"
        "    while answer.read(1): pass\n"
    )
    page = subprocess.Popen([sys.executable, "-c", script, f"http://127.0.0.1:{port}/v1/approvals/events"],
                            stderr=subprocess.DEVNULL)  # fmt: skip
    try:
        yield
    finally:
        end(page)

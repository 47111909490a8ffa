"""From a person's decision in one process to the call that waits for it in another; and what holding nothing costs."""

import asyncio
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.figure import Effort, Figure, percentile, spread
from benchmarks.processes import end, free_port, wait_for_port
from metaforge.approvals.digest import call_digest
from metaforge.approvals.holders import Holder
from metaforge.approvals.ledger import SqlLedger
from metaforge.approvals.model import Kind, Request, Route, State, later, new_approval_id
from metaforge.approvals.waking import StoreWaker
from metaforge.core.clock import utc_now
from metaforge.store.database import Database
from metaforge.tools.context import Caller
from metaforge.tools.effect import Effect as CallEffect

ROOT = Path(__file__).resolve().parent.parent
HELD_COUNT = 500
SQLITE_BOUND_MS = 60.0
POSTGRES_BOUND_MS = 100.0


def measure(effort: Effort) -> list[Figure]:
    """Measure every way of being woken, then an idle gateway."""
    count = 60 if effort.rounds_count < 5 else 300
    figures = []
    with tempfile.TemporaryDirectory(prefix="metaforge-bench-") as home:
        figures += [
            _wake_up("decision to the waiting call, SQLite, p95", "", Path(home), count, SQLITE_BOUND_MS),
            _wake_up("the same when nudges are lost, p95", "", Path(home), count, SQLITE_BOUND_MS, "silent"),
            _wake_up(f"the same with {HELD_COUNT} calls held, p95", "", Path(home), count, SQLITE_BOUND_MS,
                     held_count=HELD_COUNT),
        ]  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="metaforge-bench-") as home, _postgres() as url:
        if url:
            what = "decision to the waiting call, Postgres, p95"
            figures.append(_wake_up(what, url, Path(home), count, POSTGRES_BOUND_MS))
    return [*figures, _idle(5.0 if effort.rounds_count < 5 else 20.0)]


def _wake_up(what: str, url: str, home: Path, count: int, bound_ms: float, *silent: str, held_count: int = 0) -> Figure:
    approver = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.approver", url, str(home), *silent],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT,
    )  # fmt: skip
    try:
        milliseconds = asyncio.run(_wait(approver, url, home, count, held_count))
    finally:
        end(approver)
    detail = {
        "p50_ms": round(percentile(milliseconds, 0.5), 2),
        "worst_ms": round(max(milliseconds), 2),
        "decisions_count": count,
        "slowest_ms": spread(sorted(milliseconds)[-5:], 2),
    }
    return Figure("approvals", what, percentile(milliseconds, 0.95), "ms", bound_ms, detail)


async def _wait(approver: "subprocess.Popen[bytes]", url: str, home: Path, count: int, held_count: int) -> list[float]:
    """Hold calls one after another and return how long after the decision began each goes on."""
    database, holder = Database(url, home), Holder(home)
    waker = StoreWaker(database, home)
    ledger = SqlLedger(database, holder)
    assert approver.stdin is not None
    assert approver.stdout is not None
    assert await asyncio.to_thread(approver.stdout.readline) == b"ready\n"
    others = [ledger.open(_request()).approval_id for _ in range(held_count)]
    waiting = [asyncio.create_task(waker.wait(each, time.monotonic() + 600)) for each in others]
    found, chance = [], random.Random(1)
    for _ in range(count):
        entry = await asyncio.to_thread(ledger.open, _request())
        resumes = asyncio.create_task(_resumed(ledger, waker, entry.approval_id))
        # A person is never faster than the wait begins, nor in step with who looks every 50 ms.
        await asyncio.sleep(chance.uniform(0.02, 0.07))
        approver.stdin.write(entry.approval_id.encode() + b"\n")
        approver.stdin.flush()
        resumed = await resumes
        began = float(await asyncio.to_thread(approver.stdout.readline))
        found.append((resumed - began) * 1000)
    for task, approval_id in zip(waiting, others, strict=True):
        assert not task.done(), "a call was woken that nobody decided"
        task.cancel()
        ledger.end(approval_id, State.CANCELED)
    await waker.close()
    holder.close()
    database.close()
    return found


async def _resumed(ledger: SqlLedger, waker: StoreWaker, approval_id: str) -> float:
    """Wait as a held call does; return when it knows that it may run."""
    until = time.monotonic() + 30
    while True:
        await waker.wait(approval_id, until)
        entry = await asyncio.to_thread(ledger.get, approval_id)
        if entry.state is State.APPROVED:
            return time.monotonic()
        assert time.monotonic() < until, "nobody woke the call"


def _request() -> Request:
    now, arguments = utc_now(), {"name": "Drone"}
    return Request(
        new_approval_id(), "0123456789abcdef", "project.create", Kind.TOOL_CALL, CallEffect.WRITE, arguments,
        call_digest("project.create", arguments, "", "bench", "1"), "1", "", "", Caller("bench"), "", "", "",
        Route.DASHBOARD, now, later(now, 600), 600.0,
    )  # fmt: skip


def _idle(seconds: float) -> Figure:
    """Return what a gateway takes of one core while nothing is held and nobody looks."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="metaforge-bench-") as home:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("METAFORGE_")}
        server = subprocess.Popen(
            [sys.executable, "-m", "metaforge", "serve", "--port", str(port), "--adapters", "health"],
            stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=home, env={**kept, "METAFORGE_HOME": home},
        )  # fmt: skip
        try:
            wait_for_port(port, server)
            time.sleep(3.0)  # what a start leaves to do
            before, began = _on_cpu_seconds(server.pid), time.perf_counter()
            time.sleep(seconds)
            used, passed = _on_cpu_seconds(server.pid) - before, time.perf_counter() - began
        finally:
            end(server)
    detail = {"cpu_ms": round(used * 1000, 2), "seconds": round(passed, 1)}
    return Figure("approvals", "an idle gateway, nothing held", 100 * used / passed, "%", 0.2, detail)


def _on_cpu_seconds(pid: int) -> float:
    """Return the time all threads of a process were on a processor, to a nanosecond where /proc/stat has 10 ms."""
    return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


@contextmanager
def _postgres() -> Iterator[str]:
    """Yield the URL of an empty database, or an empty text where no Postgres can be started."""
    sys.path.insert(0, str(ROOT / "tests"))
    import postgres_server

    sys.path.pop(0)
    programs = postgres_server.programs()
    if programs is None:
        yield ""
        return
    with postgres_server.serve(programs) as server:
        yield server.empty()

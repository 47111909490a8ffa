"""What the server occupies, whether idle workers go away, and how fast everything ends."""

import signal
import subprocess
import time
from collections.abc import Callable

from benchmarks.figure import Effort, Figure
from benchmarks.pipes import House, PipeClient, house
from benchmarks.processes import Witness, end, memory, tree


def _sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.perf_counter()))


def _memory(place: House) -> list[Figure]:
    client = place.over_stdio(METAFORGE_PRESTART="true")
    try:
        client.shake_hands()
        client.ask("tools/list")
        call_id = client.call("fixture.echo", text="hello")["_meta"]["callId"]
        _sleep_until(client.started_at + 5)
        settled = memory(client.process.pid)
        workers = [memory(pid) for pid in tree(client.process.pid)[1:]]
        client.ask("resources/read", {"uri": f"metaforge://calls/{call_id}"})
        asked = memory(client.process.pid)
    finally:
        end(client.process)
    detail = {
        "pss_mb": round(settled.pss_mb, 1),
        "worker_processes_count": len(workers),
        "workers_pss_mb": round(sum(each.pss_mb for each in workers), 1),
    }
    return [
        Figure("footprint", "server memory 5 s after start and a cheap call, RSS", settled.rss_mb, "MB", 60, detail),
        Figure(
            "footprint",
            "server memory after the store's first query, RSS",
            asked.rss_mb,
            "MB",
            90,
            {"pss_mb": round(asked.pss_mb, 1)},
        ),
    ]


def _idle_workers(place: House) -> list[Figure]:
    with place.stdio(METAFORGE_IDLE_SECONDS="1") as client:
        client.call("fixtureproc.echo", text="hello")
        busy = len(tree(client.process.pid)) - 1
        time.sleep(4)
        left = len(tree(client.process.pid)) - 1
    assert busy > 0, "the tool ran in no process of its own"
    with place.stdio(METAFORGE_PRESTART="true", METAFORGE_PRESTART_FREE_MB="999999") as client:
        client.ask("tools/list")
        time.sleep(3)
        ahead = len(tree(client.process.pid)) - 1
    return [
        Figure("footprint", "worker processes left 4 s after the last call, idle limit 1 s", left, "", 0),
        Figure("footprint", "worker processes started ahead where memory is short", ahead, "", 0),
    ]


def _close_stdin(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()


def _terminate(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)


def _exit(place: House, what: str, leave: Callable[[subprocess.Popen[bytes]], None], *, at_work: bool) -> list[Figure]:
    client = place.over_stdio(METAFORGE_PRESTART="true")
    try:
        client.shake_hands()
        client.call("fixtureproc.echo", text="hello")
        if at_work:
            _start_long_call(client)
        witness = Witness.of(client.process.pid)
        started = time.perf_counter()
        leave(client.process)
        client.process.wait(20)
        elapsed = time.perf_counter() - started
        survivors = witness.survivors()
    finally:
        end(client.process)
    state = "a call under way" if at_work else "a warm worker"
    return [
        Figure(
            "footprint", f"exit after {what}, {state}", elapsed, "s", 1, {"processes_count": len(witness.processes)}
        ),
        Figure("footprint", f"processes left after {what}, {state}", len(survivors), "", 0, {"survivors": survivors}),
    ]


def _start_long_call(client: PipeClient) -> None:
    params = {"name": "fixtureproc.sleep", "arguments": {"seconds": 60}}
    client.send({"jsonrpc": "2.0", "id": "long", "method": "tools/call", "params": params})
    # The call after it is answered in process, so by then the long one is under way.
    client.call("fixture.echo", text="hello")
    time.sleep(0.5)


def measure(effort: Effort) -> list[Figure]:
    """Measure memory, idle workers and exit, one after another on the same home."""
    with house() as place:
        with place.stdio() as client:
            client.call("fixture.echo", text="the first call makes the database")
        figures = _memory(place) + _idle_workers(place)
        for at_work in (False, True):
            figures += _exit(place, "stdin closes", _close_stdin, at_work=at_work)
            figures += _exit(place, "SIGTERM", _terminate, at_work=at_work)
    return figures

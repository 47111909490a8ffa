"""kill -9 under load: is every answered call still on the record?"""

import os
import signal
import threading
import time

import orjson

from benchmarks.figure import Effort, Figure
from benchmarks.load import Target, drive
from benchmarks.pipes import House, house


def measure(effort: Effort) -> list[Figure]:
    """Load the server with 32 clients, kill it in the middle, start it again, and ask for every call it answered."""
    answered: list[str] = []

    def keep(body: bytes) -> None:
        answered.append(orjson.loads(body)["result"]["_meta"]["callId"])

    with house() as place:
        with place.http() as (server, port):
            killer = threading.Timer(effort.phase_seconds, os.kill, (server.pid, signal.SIGKILL))
            killer.start()
            drive(Target(port, "fixture.echo"), 32, effort.phase_seconds + 2, keep)
            killer.join()
        started = time.perf_counter()
        missing = _missing(place, answered)
        elapsed = time.perf_counter() - started
    detail = {"answered_count": len(answered), "restart_and_check_seconds": round(elapsed, 2), "missing": missing[:5]}
    assert len(answered) > 100, "the load was too small to prove anything"
    return [Figure("durable", "answered calls lost by kill -9 under load", len(missing), "calls", 0, detail)]


def _missing(place: House, answered: list[str]) -> list[str]:
    """Start a server on the same home and return the ids of answered calls that it cannot show."""
    missing: list[str] = []
    with place.stdio() as client:
        for call_id in answered:
            try:
                client.ask("resources/read", {"uri": f"metaforge://calls/{call_id}"})
            except RuntimeError:
                missing.append(call_id)
    return missing

"""Cheap calls while a CAD script works: does anybody else wait?"""

import threading
from statistics import median

from benchmarks.figure import Effort, Figure, percentile, ratio, spread
from benchmarks.load import Target, drive
from benchmarks.pipes import House, house

SCRIPT_SECONDS = 20

SCRIPT = """
import time
import cadquery as cq

end = time.monotonic() + {seconds}
count = 0
while time.monotonic() < end:
    plate = cq.Workplane("XY").box(80, 60, 10)
    plate = plate.faces(">Z").workplane().rarray(10, 10, 6, 4).hole(4)
    result = plate.edges("|Z").fillet(2)
    count += 1
print(count, "plates")
"""
"""Real work of the kernel: booleans and fillets, one after another."""


class _Script:
    """One CAD script under way in another session of the same server."""

    def __init__(self, place: House, port: int, seconds: float) -> None:
        self.fault: BaseException | None = None
        self.thread = threading.Thread(target=self._run, args=(port, seconds))
        self.thread.start()

    def _run(self, port: int, seconds: float) -> None:
        import http.client

        import orjson

        from benchmarks.load import open_session

        try:
            import asyncio

            target = Target(port, "cadquery.execute_script")
            session = asyncio.run(open_session(target))
            arguments = {"script": SCRIPT.format(seconds=seconds), "timeout_seconds": 120}
            params = {"name": target.tool, "arguments": arguments}
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=180)
            body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
            headers = {
                "content-type": "application/json",
                "accept": "application/json, text/event-stream",
                "mcp-session-id": session,
            }
            connection.request("POST", "/mcp", body, headers)
            answer = connection.getresponse().read()
            if b"plates" not in answer:
                raise RuntimeError(f"the script did not do its work: {answer[:500]!r}")
        except BaseException as fault:  # noqa: BLE001 - handed to the thread that waits
            self.fault = fault

    def join(self) -> None:
        self.thread.join()
        if self.fault:
            raise self.fault


def measure(effort: Effort) -> list[Figure]:
    """Alternate between an idle server and one with a CAD script under way; one client, p99 of each phase."""
    rounds_count = 3
    script_seconds = SCRIPT_SECONDS / 2 if effort.phase_seconds < 2 else SCRIPT_SECONDS
    # The script's process starts first; what is measured is the work, and the phase ends before the script does.
    phase_seconds = script_seconds * 0.6
    idle_p99, busy_p99, idle_p50, busy_p50 = [], [], [], []
    with house() as place, place.http() as (_, port):
        target = Target(port, "fixture.echo")
        drive(target, 1, 2.0)
        for _ in range(rounds_count):
            latencies = drive(target, 1, phase_seconds).latencies_ms
            idle_p99.append(percentile(latencies, 0.99))
            idle_p50.append(median(latencies))
            script = _Script(place, port, script_seconds)
            drive(target, 1, script_seconds * 0.25)
            latencies = drive(target, 1, phase_seconds).latencies_ms
            busy_p99.append(percentile(latencies, 0.99))
            busy_p50.append(median(latencies))
            script.join()
    detail = {
        "idle_p99_ms": spread(idle_p99, 3),
        "busy_p99_ms": spread(busy_p99, 3),
        "idle_p50_ms": spread(idle_p50, 3),
        "busy_p50_ms": spread(busy_p50, 3),
        "script_seconds": script_seconds,
    }
    what = f"cheap call p99 while a {script_seconds:g} s CAD script runs, against idle"
    return [Figure("beside_cad", what, ratio(busy_p99, idle_p99), "x", 2, detail)]

"""An adapter's health: measured where a worker is up, probed where none is."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from metaforge.engine import processes
from metaforge.engine.breaker import Breaker
from metaforge.engine.worker import Worker
from metaforge.registry.probe import Probe
from metaforge.tools.manifest import AdapterManifest, Tool
from metaforge.tools.source import AdapterHealth, AdapterState


@dataclass(frozen=True)
class WorkerReport:
    """What a source knows of its workers when it is asked."""

    workers: Sequence[Worker]
    starting_count: int
    breaker: Breaker
    answered: bool
    """An idle worker answered just now."""
    error: str
    last_call: datetime | None
    junk: str
    """The first text on a worker's stdout that was no message."""
    ended: tuple[int, int] = (0, 0)
    """How many workers were retired, and how many died by themselves."""


def health_of(manifest: AdapterManifest, report: WorkerReport, probe: Probe | None) -> AdapterHealth:
    """Return one adapter's row of the health roll-up. Blocking: programs are run for their version."""
    missing = [told for tool in manifest.tools if probe is not None and (told := _fault_of(tool, probe))]
    error = install = ""
    if report.error:
        error = report.error
    elif missing and len(missing) == len(manifest.tools):
        error, install = missing[0]
    elif report.breaker.state == "open":
        error = f"it failed to start {report.breaker.failures} times in a row: {report.breaker.reason}"
    return AdapterHealth(
        adapter_id=manifest.adapter_id,
        version=manifest.version,
        tools_registered=len(manifest.tools),
        reachable=not error,
        state=AdapterState.DOWN if error else _state(report),
        error=error,
        install=install,
        detail=_detail(report, missing) or None,
    )


def _fault_of(tool: Tool, probe: Probe) -> tuple[str, str] | None:
    """Return (reason, the command that mends it) when what a tool needs is not there or does not run."""
    faulty = [finding for need in tool.needs if not (finding := probe.measure(need)).found]
    if not faulty:
        return None
    commands = dict.fromkeys(finding.need.install for finding in faulty)
    return "; ".join(finding.problem for finding in faulty), " && ".join(commands)


def _state(report: WorkerReport) -> AdapterState:
    if report.workers:
        return AdapterState.READY
    return AdapterState.STARTING if report.starting_count else AdapterState.IDLE


def _detail(report: WorkerReport, missing: list[tuple[str, str]]) -> dict[str, Any]:
    now = time.monotonic()
    detail: dict[str, Any] = {}
    workers = [worker for worker in report.workers if worker.alive]
    if workers:
        detail["workers"] = [
            {
                "pid": worker.box.pid,
                "rss_mb": processes.rss_mb(worker.box.processes()),
                "calls_served": worker.calls_served,
            }
            for worker in workers
        ]
        detail["uptime_seconds"] = round(now - min(worker.started for worker in workers), 3)
    if any(report.ended):
        detail["workers_retired_count"], detail["workers_crashed_count"] = report.ended
    if report.breaker.failures:
        detail["breaker"] = {
            "state": report.breaker.state,
            "failed_starts_count": report.breaker.failures,
            "reason": report.breaker.reason,
        }
    if report.junk:
        detail["stdout_junk"] = report.junk
    if report.last_call is not None:
        detail["last_invocation"] = report.last_call.isoformat()
    if missing:
        detail["missing"] = [{"reason": reason, "install": install} for reason, install in dict.fromkeys(missing)]
    return detail

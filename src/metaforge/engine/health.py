"""An adapter's health: measured where a worker is up, probed where none is."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from metaforge.engine import processes
from metaforge.engine.breaker import Breaker
from metaforge.engine.worker import Worker
from metaforge.registry.probe import Probe
from metaforge.tools.manifest import AdapterManifest, Tool
from metaforge.tools.source import AdapterHealth, AdapterState, Trouble

_PARTS = {"median_ms": 0.5, "p95_ms": 0.95}


@dataclass(frozen=True)
class WorkerReport:
    """What a source knows of its workers when it is asked."""

    workers: Sequence[Worker]
    starting_count: int
    waiting_count: int
    """Calls that wait for a worker."""
    breakers: Mapping[str, Breaker]
    """What counts failures, by what it counts."""
    trouble: Trouble | None
    """Why calls are refused just now."""
    latencies: Sequence[float]
    """How long the last answered calls took, in seconds."""
    answered_ms: float
    """How long an idle worker took to answer just now; zero when none was asked."""
    error: str
    last_call: datetime | None
    junk: str
    """The first text on a worker's stdout that was no message."""
    ended: tuple[int, int] = (0, 0)
    """How many workers were retired, and how many died by themselves."""
    install: str = ""
    """The command that mends the error; empty when none is known."""
    image: str = ""
    """What its containers are made of; empty where it runs in processes."""
    sessions: dict[str, Any] | None = None
    """Its sessions: how many are open, which were lost and why."""


def health_of(manifest: AdapterManifest, report: WorkerReport, probe: Probe | None) -> AdapterHealth:
    """Return one adapter's row of the health roll-up. Blocking: programs are run for their version."""
    missing = [told for tool in manifest.tools if probe is not None and (told := _fault_of(tool, probe))]
    error = install = ""
    if report.error:
        error, install = report.error, report.install
    elif missing and len(missing) == len(manifest.tools):
        error, install = missing[0]
    elif report.trouble is not None:
        error = f"{report.trouble.reason}; tried again in {report.trouble.retry_after_seconds:g} s"
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


def latency_of(seconds: Sequence[float]) -> dict[str, float]:
    """Return what the last calls took, waiting included: their median, the 95th percentile, and how many they are."""
    ordered = sorted(seconds)
    told = {name: round(ordered[int(part * (len(ordered) - 1))] * 1000, 3) for name, part in _PARTS.items()}
    return told | {"calls_count": len(ordered)}


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


def _supervision(report: WorkerReport) -> dict[str, Any]:
    """Return what keeps calls from running, and how long they take."""
    breakers = {name: breaker.told() for name, breaker in report.breakers.items() if breaker.failures}
    told = {
        "breakers": breakers,
        "round_trip_ms": round(report.answered_ms, 3),
        "latency": latency_of(report.latencies) if report.latencies else None,
        "calls_waiting_count": report.waiting_count,
    }
    return {name: value for name, value in told.items() if value}


def _detail(report: WorkerReport, missing: list[tuple[str, str]]) -> dict[str, Any]:
    now = time.monotonic()
    detail: dict[str, Any] = {"image": report.image} if report.image else {}
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
    if report.sessions is not None:
        detail["sessions"] = report.sessions
    if any(report.ended):
        detail["workers_retired_count"], detail["workers_crashed_count"] = report.ended
    detail |= _supervision(report)
    if report.junk:
        detail["stdout_junk"] = report.junk
    if report.last_call is not None:
        detail["last_invocation"] = report.last_call.isoformat()
    if missing:
        detail["missing"] = [{"reason": reason, "install": install} for reason, install in dict.fromkeys(missing)]
    return detail

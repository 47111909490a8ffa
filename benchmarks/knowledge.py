"""Documents put in and asked: passages a second, the time of a question, and memory."""

import subprocess
import sys
from typing import Any

import orjson

from benchmarks.figure import Effort, Figure

PASSAGE_SECONDS = 1 / 40
"""At least 40 passages of about 90 words a second on two cores."""
SEARCHES = {10_000: 30.0, 100_000: 80.0}
"""Passages, and the most that the median question may take in ms."""
MEMORY_MB = 400.0


def measure(effort: Effort) -> list[Figure]:
    """Put in 90-word passages with the real model, then ask libraries of 10,000 and 100,000 passages."""
    told = _run("ingest", "200" if effort.rounds_count <= 3 else "600")
    figures = [
        Figure("knowledge", "put in one passage of about 90 words", told["ms_each"], "ms", 1000 * PASSAGE_SECONDS, told)
    ]
    for count, limit_ms in SEARCHES.items():
        told = _run("search", str(count))
        figures.append(
            Figure("knowledge", f"a question to {count:,} passages, median", told["p50_ms"], "ms", limit_ms, told)
        )
        what = f"memory of a process that asks {count:,} passages"
        figures.append(Figure("knowledge", what, told["memory_mb"], "MB", MEMORY_MB))
    return figures


def _run(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.knowledge_work", *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise RuntimeError(ran.stderr[-2000:])
    told: dict[str, Any] = orjson.loads(ran.stdout)
    return told

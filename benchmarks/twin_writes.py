"""Optimistic revision writes from eight processes, against the same through SQLite alone; and memory over many."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import twin_writer
from benchmarks.figure import Effort, Figure, ratio, spread
from benchmarks.floors import revision_writer
from benchmarks.processes import memory

PROCESS_COUNT = 8
ROOT = Path(__file__).resolve().parent.parent


def measure(effort: Effort) -> list[Figure]:
    """Write with floor and twin in turn, count what is there afterwards, then write on in this process."""
    quick = effort.rounds_count < 5
    count = 250 if quick else 1000
    ours, floors, missing, gaps, repeated = [], [], 0, 0, 0
    for _ in range(effort.rounds_count):
        with _folder() as folder:
            revision_writer.prepare(folder)
            floors.append(_race(["benchmarks.floors.revision_writer"], folder, count)[0])
        with _folder() as folder:
            project_id = twin_writer.prepare(folder)
            seconds, again = _race(["benchmarks.twin_writer"], folder, count, project_id)
            ours.append(seconds)
            repeated += again
            found_missing, found_gaps = _audit(folder, count)
            missing, gaps = missing + found_missing, gaps + found_gaps
    total = PROCESS_COUNT * count
    detail = {
        "writes_count": total,
        "ours_per_second": spread([total / each for each in ours]),
        "sqlite3_per_second": spread([total / each for each in floors]),
        "repeated_count": repeated,
    }
    return [
        Figure("twin_writes", "8 processes writing revisions, synced: time against sqlite3", ratio(ours, floors), "x",
               2.0, detail),
        Figure("twin_writes", "acknowledged revisions that are missing", missing, "", 0),
        Figure("twin_writes", "items with a gap in their numbers", gaps, "", 0),
        _memory(10_000 if quick else 100_000),
    ]  # fmt: skip


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="metaforge-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _race(module: list[str], folder: Path, count: int, *more: str) -> tuple[float, int]:
    """Start the writers, let all go at once, and return the seconds until the last ends and their repetitions."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-m", *module, str(folder), str(seed), str(count), *more],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
        )
        for seed in range(PROCESS_COUNT)
    ]  # fmt: skip
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    started = time.perf_counter()
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    printed = [writer.communicate(timeout=600)[0] for writer in writers]
    seconds = time.perf_counter() - started
    assert all(writer.returncode == 0 for writer in writers), "a writer failed"
    return seconds, sum(int(each) for each in printed)


def _audit(folder: Path, count: int) -> tuple[int, int]:
    """Return how many of the acknowledged revisions are not there, and how many items have a gap."""
    with twin_writer.open_twin(folder).read() as view:
        there = int(view.transaction.value("select count(*) from nodes"))
        gaps = view.transaction.rows(
            "select key from items join nodes on nodes.item_id = items.item_id group by items.item_id "
            "having count(*) <> max(revision) or max(revision) <> head_revision"
        )
    return PROCESS_COUNT * count + revision_writer.ITEM_COUNT - there, len(gaps)


def _memory(count: int) -> Figure:
    """Return how much this process grows over many writes, once a tenth of them has filled every cache."""
    with _folder() as folder:
        project_id = twin_writer.prepare(folder)
        twin = twin_writer.open_twin(folder)
        sizes = []
        started = time.perf_counter()
        for number in range(count):
            assert twin_writer.write(twin, project_id, number % revision_writer.ITEM_COUNT, "one")
            if number % (count // 10) == 0:
                sizes.append(memory(os.getpid()).rss_mb)
        seconds = time.perf_counter() - started
        sizes.append(memory(os.getpid()).rss_mb)
    detail = {"rss_mb": spread(sizes), "writes_per_second": round(count / seconds)}
    what = f"growth over the last nine tenths of {count:,} writes"
    return Figure("twin_writes", what, sizes[-1] - sizes[1], "MB", 4.0, detail)  # fmt: skip

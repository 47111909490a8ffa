"""The graph that Cypher queries run on: made of rows, and brought forward by what changed.

The SQL read is told apart. Nodes are counted as queries see them: an item and its revision are two. What counts is the
processor time of both processes, the one that sends rows and the one that makes the graph: they take turns, so on a
quiet machine it is the time that passes. That is told beside it.
"""

import asyncio
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.figure import Effort, Figure
from metaforge.store.blobs import BlobStore
from metaforge.store.database import Database
from metaforge.twin.change import Change
from metaforge.twin.model import Reader
from metaforge.twin.query import reading
from metaforge.twin.query.child import Child
from metaforge.twin.query.reading import Batch
from metaforge.twin.query.service import TwinQueries
from metaforge.twin.store import TwinStore

BOUNDS_SECONDS = {10_000: 0.3, 100_000: 2.0}
DELTA_BOUND_MS = 20.0
CHANGES_COUNT = 100
PARTS_SHARE = 0.4
LINKS_PER_PART = 2
MEMORY_MB = 4096
GRAPH = "metaforge.twin.query.graph_process"
QUERY = "MATCH (a:cad_model)-[:DEPENDS_ON*1..8]->(b {node_id: $id}) RETURN count(DISTINCT a) AS hits"


def measure(effort: Effort) -> list[Figure]:
    """Fill a project, read its rows, and make and renew its graph in a process of its own."""
    figures: list[Figure] = []
    for size in BOUNDS_SECONDS:
        with _project(size) as (store, blobs, project_id):
            figures += asyncio.run(_measure(store, blobs, project_id, size, effort.rounds_count))
    return figures


async def _measure(store: TwinStore, blobs: BlobStore, project_id: str, size: int, rounds_count: int) -> list[Figure]:
    reader = Reader("", project_id)
    child = Child(GRAPH, memory_mb=MEMORY_MB)
    try:
        with store.read(reader) as view:
            started = time.perf_counter()
            batches = list(reading.everything(view, blobs, [project_id]))
            read_seconds = time.perf_counter() - started
        await child.ask(Batch(clear=True).request(), seconds=60.0)
        made = [await _send(child, batches) for _ in range(min(rounds_count, 5))]
        renewed = [await _renew(store, blobs, child, reader, number) for number in range(min(rounds_count, 5))]
    finally:
        await child.end()
    whole = await _first_and_second_query(store, blobs, project_id)
    detail = {
        "cpu_seconds": [round(each.cpu_seconds, 3) for each in made],
        "seconds": [round(each.seconds, 3) for each in made], "sql_read_seconds": round(read_seconds, 3), **whole,
    }  # fmt: skip
    changes = {
        "cpu_ms": [round(1000 * each.cpu_seconds, 2) for each, _ in renewed],
        "ms": [round(1000 * each.seconds, 2) for each, _ in renewed],
        "sql_read_ms": [round(read_ms, 2) for _, read_ms in renewed],
    }  # fmt: skip
    return [
        Figure(
            "twin_projection", f"graph of {size:,} nodes, CPU", median(each.cpu_seconds for each in made), "s",
            BOUNDS_SECONDS[size], detail,
        ),
        Figure(
            "twin_projection", f"{CHANGES_COUNT} changes to a graph of {size:,} nodes, CPU",
            median(1000 * each.cpu_seconds for each, _ in renewed), "ms", DELTA_BOUND_MS, changes,
        ),
    ]  # fmt: skip


class Taken(NamedTuple):
    """What sending rows took: time that passed, and time of processors."""

    seconds: float
    cpu_seconds: float


def _cpu_seconds(child: Child) -> float:
    """Return what this process and the graph's have used, to the nanosecond where the system tells it so."""
    used_ns = 0
    for task in Path(f"/proc/{child.pid}/task").iterdir():
        used_ns += int((task / "schedstat").read_text().split()[0])
    return time.process_time() + used_ns / 1e9


async def _send(child: Child, batches: list[Batch]) -> Taken:
    started, used = time.perf_counter(), _cpu_seconds(child)
    for batch in batches:
        await child.ask(batch.request(), seconds=60.0)
    return Taken(time.perf_counter() - started, _cpu_seconds(child) - used)


async def _renew(store: TwinStore, blobs: BlobStore, child: Child, reader: Reader, number: int) -> tuple[Taken, float]:
    with store.read(reader) as view:
        before = reading.positions(view, [reader.project_id])
    with store.change(author="bench", project_id=reader.project_id) as change:
        for place in range(CHANGES_COUNT // 2):
            part = change.define("cad_model", f"Part {place}", {"mass_g": number}, item_key=f"CAD-P{place}")
            change.link("depends_on", part, f"CAD-P{place + 1000}")
    with store.read(reader) as view:
        started = time.perf_counter()
        batch = reading.changed(view, blobs, before)
        read_ms = 1000 * (time.perf_counter() - started)
    assert batch is not None
    assert len(batch.nodes) + len(batch.links) >= CHANGES_COUNT
    return await _send(child, [batch]), read_ms


async def _first_and_second_query(store: TwinStore, blobs: BlobStore, project_id: str) -> dict[str, Any]:
    """Time what a caller waits for: the first query makes the graph and starts both processes."""
    queries = TwinQueries(store, blobs)
    with store.read(Reader("", project_id)) as view:
        target = view.revision("CAD-P0", 1).node_id
    told = {}
    try:
        for name in ("first_query_seconds", "second_query_seconds"):
            started = time.perf_counter()
            found = await queries.query(QUERY, {"project_id": project_id, "id": target}, project_id=project_id)
            told[name] = round(time.perf_counter() - started, 3)
        told["hits_count"] = found.rows[0]["hits"]
    finally:
        await queries.close()
    return told


@contextmanager
def _project(size: int) -> Iterator[tuple[TwinStore, BlobStore, str]]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        database, blobs = Database("", home), BlobStore(home / "blobs")
        store = TwinStore(database, blobs)
        with store.change(author="bench") as change:
            project_id = change.create_project("Large").project_id
        with store.change(author="bench", project_id=project_id) as change:
            _fill(change, size)
        yield store, blobs, project_id
        database.close()


def _fill(change: Change, size: int) -> None:
    chance = random.Random(size)
    parts: list[Any] = []
    for number in range(int(size * PARTS_SHARE)):
        body = {"mass_g": number / 2, "material": "aluminium", "tags": ["printed"], "measured": {"volume_mm3": number}}
        part = change.define("cad_model", f"Part {number}", body, item_key=f"CAD-P{number}")
        for below in chance.sample(parts[-5000:], min(len(parts), LINKS_PER_PART)):
            change.link("depends_on", part, below)
        parts.append(part)
    for number in range(size - 2 * len(parts)):
        proof = change.record("evidence", {"result": "pass", "load_n": number}, name=f"Test {number}")
        change.link("valid_against", proof, chance.choice(parts))

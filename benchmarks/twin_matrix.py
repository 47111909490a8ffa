"""The trace matrix of a large project: its time, and what it takes of memory and of an answer."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import psutil

from benchmarks.figure import Effort, Figure
from metaforge.store.blobs import BlobStore
from metaforge.store.database import Database
from metaforge.twin.change import Change
from metaforge.twin.gates import check_gates
from metaforge.twin.matrix import matrix
from metaforge.twin.model import Reader
from metaforge.twin.requirements import checked
from metaforge.twin.store import TwinStore

PARTS_COUNT = 100_000
QUICK_COUNT = 20_000
EVIDENCE_EVERY = 10
US_PER_PART = 150.0
MEMORY_BOUND_MB = 200.0
ANSWER_BOUND_KB = 200.0
REQUIREMENTS: tuple[dict[str, Any], ...] = (
    {"name": "mass", "metric": "mass", "operator": "<=", "limit": 1000, "unit": "kg"},
    {"name": "volume", "metric": "volume", "operator": "<=", "limit": 1, "unit": "m^3"},
    {"name": "length", "metric": "size_x", "operator": "<=", "limit": 1, "unit": "m"},
    {"name": "stress", "expression": "1.5 * max_von_mises <= 250 MPa"},
    {"name": "edges", "acceptance_criteria": "no burr"},
)


def measure(effort: Effort) -> list[Figure]:
    """Fill a project with parts and evidence, and ask how its five requirements stand."""
    count = QUICK_COUNT if effort.rounds_count < 5 else PARTS_COUNT
    process = psutil.Process()
    with _project(count) as (store, project_id):
        before = process.memory_info().rss
        seconds, told_bytes = [], 0
        for _ in range(2):
            with store.read(Reader("", project_id)) as view:
                started = time.process_time()
                found = matrix(view)
                seconds.append(time.process_time() - started)
                told_bytes = len(orjson.dumps(found.as_json()))
        with store.read(Reader("", project_id)) as view:
            started = time.process_time()
            check_gates(view)
            gates_seconds = time.process_time() - started
        grown_mb = (process.memory_info().rss - before) / 2**20
    each_us = 1e6 * min(seconds) / count
    what = f"trace matrix of {count:,} parts"
    detail = {"cpu_seconds": [round(each, 2) for each in seconds], "gates_cpu_seconds": round(gates_seconds, 2)}
    return [
        Figure("twin_matrix", f"{what}, CPU a part", each_us, "us", US_PER_PART, detail),
        Figure("twin_matrix", f"{what}, memory it takes", grown_mb, "MiB", MEMORY_BOUND_MB),
        Figure("twin_matrix", f"{what}, its answer", told_bytes / 1000, "kB", ANSWER_BOUND_KB),
    ]


@contextmanager
def _project(count: int) -> Iterator[tuple[TwinStore, str]]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        database, blobs = Database("", home), BlobStore(home / "blobs")
        store = TwinStore(database, blobs)
        with store.change(author="bench") as change:
            project_id = change.create_project("Large").project_id
        with store.change(author="bench", project_id=project_id) as change:
            _fill(change, count)
        yield store, project_id
        database.close()


def _fill(change: Change, count: int) -> None:
    demands = change.define("constraint_set", "Large", {"constraints": checked(REQUIREMENTS)[0]})
    for number in range(count):
        measured = {
            "mass_kg": number / 1000, "volume_mm3": float(number), "area_mm2": 3.0 * number, "solids_count": 1,
            "bounding_box_mm": {"min_mm": [0, 0, 0], "size_mm": [50.0, 30.0, 10.0]}, "is_valid": True,
        }  # fmt: skip
        part = change.define("cad_model", f"Part {number}", {"measured": measured}, item_key=f"CAD-P{number}")
        if number % EVIDENCE_EVERY == 0:
            proof = change.record("evidence", {"result": {"max_von_mises_mpa": 100 + number % 50}}, name="FEA")
            change.link("valid_against", proof, part)
            change.link("supports", proof, demands, {"requirement": "stress"})

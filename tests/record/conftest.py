"""A home folder, a recorder in it, and records to put there."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from metaforge.record.call_record import CallRecord
from metaforge.record.queries import CallLog
from metaforge.record.recorder import Recorder
from metaforge.store.database import Database

PRELUDE = """
import os, sys, pathlib
from metaforge.record import recorder as room
from metaforge.record.call_record import CallRecord
from metaforge.record.recorder import Recorder
from metaforge.store.database import Database
home = pathlib.Path(sys.argv[1])
recorder = Recorder(Database("", home), home / "journal")
def record(call_id):
    return CallRecord(call_id, "t.x", "2026-01-01T00:00:00.000Z", 1.0, "ok")
"""
"""Start of a program that records calls below the folder it is given; each test says what it does then."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def database(home: Path) -> Iterator[Database]:
    database = Database("", home)
    yield database
    database.close()


@pytest.fixture
def recorder(home: Path, database: Database) -> Iterator[Recorder]:
    recorder = Recorder(database, home / "journal")
    yield recorder
    recorder.close(10)


@pytest.fixture
def log(database: Database, recorder: Recorder) -> CallLog:
    return CallLog(database, recorder)


@pytest.fixture
def make() -> Callable[..., CallRecord]:
    def record(call_id: str = "0123456789abcdef", **fields: object) -> CallRecord:
        given: dict[str, object] = {
            "tool_id": "cadquery.create_parametric",
            "started_at": "2026-01-01T00:00:00.000Z",
            "duration_ms": 1.5,
            "status": "ok",
        }
        return CallRecord(call_id, **(given | fields))  # type: ignore[arg-type]

    return record


@pytest.fixture
def start(home: Path) -> Iterator[Callable[[str], "subprocess.Popen[str]"]]:
    """Return a function that runs a program after PRELUDE; whatever still runs at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def run(code: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + code, str(home)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()

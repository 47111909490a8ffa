"""Processes that are killed, run side by side, or read what others wrote: with real processes."""

import signal
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from metaforge.record.recorder import Recorder
from metaforge.store.database import Database

Start = Callable[[str], "subprocess.Popen[str]"]

UNDRAINED = """
room.GATHER_SECONDS = 3600
for number in range(100):
    recorder.append(record(f"{os.getpid()}-{number}"))
    print(f"{os.getpid()}-{number}", flush=True)
sys.stdin.readline()
"""
BUSY = """
room.GATHER_SECONDS = 0.0005
room.ROTATE_BYTES = 4096
number = 0
while True:
    recorder.append(record(f"{os.getpid()}-{number}"))
    print(f"{os.getpid()}-{number}", flush=True)
    number += 1
"""


def kept(home: Path) -> Counter[str]:
    with closing(sqlite3.connect(home / "metaforge.db")) as connection:
        return Counter(call_id for (call_id,) in connection.execute("select call_id from calls"))


def answered(process: "subprocess.Popen[str]", count: int) -> set[str]:
    """Read that many answers, then kill the process with whatever it is doing, and read those it still gave."""
    assert process.stdout is not None
    seen = {process.stdout.readline().strip() for _ in range(count)}
    process.kill()
    rest = process.stdout.read().splitlines(keepends=True)
    assert process.wait() == -signal.SIGKILL
    return seen | {line.strip() for line in rest if line.endswith("\n")}


def test_every_answered_call_of_a_killed_process_is_restored_once(home: Path, recorder: Recorder, start: Start) -> None:
    answers = answered(start(UNDRAINED), 100)
    assert len(answers) == 100
    assert not (home / "metaforge.db").exists()

    assert recorder.flush(30)

    assert kept(home) == dict.fromkeys(answers, 1)
    assert not list((home / "journal").glob("*.jsonl"))


def test_killed_in_the_middle_of_storing_nothing_is_lost_and_nothing_doubled(
    home: Path, recorder: Recorder, start: Start
) -> None:
    answers: set[str] = set()
    for count in (1, 40, 700):
        answers |= answered(start(BUSY), count)
    assert recorder.flush(60)

    stored = kept(home)
    assert set(stored.values()) == {1}
    assert answers - set(stored) == set()
    # A call can be written down and killed before its answer: at most one for each process.
    assert len(stored) - len(answers) <= 3
    with closing(sqlite3.connect(home / "metaforge.db")) as connection:
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)


def test_a_living_process_keeps_its_journal_to_itself_until_it_dies(
    home: Path, database: Database, recorder: Recorder, start: Start
) -> None:
    database.prepare()
    other = start(UNDRAINED)
    assert other.stdout is not None
    first = other.stdout.readline().strip()

    assert recorder.flush(30)
    assert first not in kept(home)
    assert len(list((home / "journal").glob(f"{other.pid}-*"))) == 1

    answers = answered(other, 99) | {first}
    assert recorder.flush(30)
    assert kept(home) == dict.fromkeys(answers, 1)


def test_two_processes_record_side_by_side(home: Path, recorder: Recorder, start: Start) -> None:
    code = """
print("ready", flush=True); sys.stdin.readline()
for number in range(1000):
    recorder.append(record(f"{os.getpid()}-{number}"))
recorder.close(30)
print(recorder.problems())
"""
    processes = [start(code), start(code)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.communicate(timeout=60)[0] for process in processes] == ["()\n", "()\n"]

    assert kept(home) == {f"{process.pid}-{number}": 1 for process in processes for number in range(1000)}


def test_exit_does_not_wait_for_a_database_that_is_locked(
    home: Path, database: Database, recorder: Recorder, start: Start
) -> None:
    database.prepare()
    with closing(sqlite3.connect(home / "metaforge.db", isolation_level=None)) as lock:
        lock.execute("begin immediate")
        process = start('recorder.append(record("late")); recorder.close(); print("closed")')
        output, errors = process.communicate(timeout=60)
        assert (process.returncode, output) == (0, "closed\n"), errors
        lock.execute("commit")
    assert recorder.flush(30)
    assert kept(home) == {"late": 1}


def test_recording_loads_neither_the_orm_nor_the_migration_tool(home: Path, start: Start) -> None:
    process = start("""
recorder.append(record("a"))
assert recorder.flush(30), recorder.problems()
recorder.close(30)
heavy = {"sqlalchemy", "alembic", "pydantic", "prometheus_client", "opentelemetry", "httpx", "psutil"}
print(sorted(heavy & set(sys.modules)))
""")
    output, errors = process.communicate(timeout=60)
    assert output == "[]\n", errors
    assert kept(home) == {"a": 1}

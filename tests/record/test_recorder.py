import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from metaforge.record import recorder as room
from metaforge.record.call_record import CallRecord
from metaforge.record.queries import CallLog
from metaforge.record.recorder import Recorder
from metaforge.record.rows import SqliteRowWriter
from metaforge.store.database import Database

Make = Callable[..., CallRecord]


def call_ids(home: Path) -> list[str]:
    with closing(sqlite3.connect(home / "metaforge.db")) as connection:
        return [call_id for (call_id,) in connection.execute("select call_id from calls order by seq")]


def test_an_appended_call_is_in_the_journal_at_once_and_in_the_database_after_a_flush(
    home: Path, recorder: Recorder, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "GATHER_SECONDS", 3600)
    recorder.append(make("a"))

    (journal,) = (home / "journal").iterdir()
    assert journal.read_bytes().rstrip(b"\0") == make("a").line() + b"\n"
    assert not (home / "metaforge.db").exists()

    assert recorder.flush(30)
    assert call_ids(home) == ["a"]


def test_calls_reach_the_database_without_anybody_asking(home: Path, recorder: Recorder, make: Make) -> None:
    stored = threading.Event()
    passes = recorder._pass

    def watched(writer: object) -> bool:
        succeeded = passes(writer)  # type: ignore[arg-type]
        stored.set()
        return succeeded

    recorder._pass = watched  # type: ignore[method-assign]
    recorder.append(make("a"))
    assert stored.wait(30)
    assert call_ids(home) == ["a"]


def test_nothing_is_opened_before_the_first_call(home: Path, recorder: Recorder) -> None:
    assert not home.exists()
    assert recorder.problems() == ()


def test_calls_from_many_threads_are_all_kept(home: Path, recorder: Recorder, make: Make) -> None:
    def append_many(prefix: str) -> None:
        for number in range(300):
            recorder.append(make(f"{prefix}{number}"))

    threads = [threading.Thread(target=append_many, args=(prefix,)) for prefix in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert recorder.flush(30)
    assert len(call_ids(home)) == len(set(call_ids(home))) == 1200


def test_closing_stores_everything_and_leaves_no_journal(home: Path, database: Database, make: Make) -> None:
    recorder = Recorder(database, home / "journal")
    for number in range(500):
        recorder.append(make(str(number)))
    recorder.close(30)
    assert call_ids(home) == [str(number) for number in range(500)]
    assert os.listdir(home / "journal") == []


def test_a_call_that_ends_after_closing_is_kept_for_the_next_process(
    home: Path, database: Database, make: Make
) -> None:
    recorder = Recorder(database, home / "journal")
    recorder.append(make("before"))
    recorder.close(30)
    recorder.append(make("after"))
    recorder.close()

    following = Recorder(database, home / "journal")
    assert following.flush(30)
    following.close(30)
    assert call_ids(home) == ["before", "after"]


def test_a_long_journal_is_replaced_once_it_is_stored(
    home: Path, recorder: Recorder, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "ROTATE_BYTES", 1000)
    for number in range(20):
        recorder.append(make(str(number)))
    assert recorder.flush(30)
    (journal,) = (home / "journal").iterdir()
    assert journal.read_bytes().rstrip(b"\0") == b""

    recorder.append(make("next"))
    assert recorder.flush(30)
    assert call_ids(home)[-1] == "next"


def test_a_call_that_ends_while_the_journal_is_replaced_is_kept(
    home: Path, recorder: Recorder, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "ROTATE_BYTES", 1)
    late = ["late"]

    def settle(writer: SqliteRowWriter) -> None:
        if late:
            recorder.append(make(late.pop()))

    monkeypatch.setattr(SqliteRowWriter, "settle", settle)
    recorder.append(make("early"))
    assert recorder.flush(30)
    assert recorder.flush(30)
    assert call_ids(home) == ["early", "late"]


def test_a_damaged_line_is_set_apart_and_the_others_are_stored(home: Path, recorder: Recorder, make: Make) -> None:
    folder = home / "journal"
    folder.mkdir(parents=True)
    nameless = make("x").line().replace(b'"call_id":"x",', b"")
    bad = [b'{"call_id": "tor', b"\xff\xfe", b"17", b'"text"', nameless, b"{}"]
    lines = [make("first").line(), *bad[:3], make("second").line(), *bad[3:], make("third").line()]
    (folder / "1-dead.jsonl").write_bytes(b"\n".join(lines))

    assert recorder.flush(30)

    assert call_ids(home) == ["first", "second", "third"]
    assert (folder / "damaged.txt").read_bytes().splitlines() == bad
    assert recorder.problems() == (f"6 damaged journal lines were put into {folder / 'damaged.txt'}",)
    assert os.listdir(folder) == ["damaged.txt"]


def test_a_torn_last_line_is_set_apart(home: Path, recorder: Recorder, make: Make) -> None:
    folder = home / "journal"
    folder.mkdir(parents=True)
    (folder / "1-dead.jsonl").write_bytes(make("whole").line() + b"\n" + make("torn").line()[:40])

    assert recorder.flush(30)

    assert call_ids(home) == ["whole"]
    assert "1 damaged" in recorder.problems()[0]


def test_a_journal_replayed_twice_is_stored_once(home: Path, recorder: Recorder, make: Make) -> None:
    folder = home / "journal"
    folder.mkdir(parents=True)
    for name in ("1-a.jsonl", "2-b.jsonl"):
        (folder / name).write_bytes(make("same", arguments={"n": 1}).line() + b"\n")
        assert recorder.flush(30)
    assert call_ids(home) == ["same"]
    assert recorder.problems() == ()


def test_a_busy_database_delays_and_loses_nothing(home: Path, recorder: Recorder, make: Make) -> None:
    recorder.append(make("a"))
    assert recorder.flush(30)
    with closing(sqlite3.connect(home / "metaforge.db", isolation_level=None)) as other:
        other.execute("begin immediate")
        recorder.append(make("b"))
        assert not recorder.flush(30)
        assert recorder.problems() == ()  # nothing is wrong yet: it waits its turn
        other.execute("commit")
    assert recorder.flush(30)
    assert call_ids(home) == ["a", "b"]


def test_a_database_that_cannot_be_used_is_told_and_the_calls_wait_in_the_journal(
    home: Path, recorder: Recorder, make: Make, capfd: pytest.CaptureFixture[str]
) -> None:
    home.mkdir()
    (home / "metaforge.db").write_bytes(b"no database" * 500)
    recorder.append(make("a"))

    assert not recorder.flush(30)
    (problem,) = recorder.problems()
    assert f"Calls wait in {home / 'journal'}" in problem
    assert "file is not a database" in problem

    (home / "metaforge.db").unlink()
    assert recorder.flush(30)
    assert recorder.problems() == ()
    assert call_ids(home) == ["a"]


def test_a_readers_own_calls_are_there_when_it_reads(recorder: Recorder, log: CallLog, make: Make) -> None:
    for number in range(50):
        recorder.append(make(f"{number}"))
        assert log.get_call(f"{number}").call_id == f"{number}"

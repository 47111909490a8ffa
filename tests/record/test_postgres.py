"""The record of calls in a Postgres database."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from metaforge.record.call_record import CallRecord
from metaforge.record.journal import Journal
from metaforge.record.queries import CallLog
from metaforge.record.recorder import Recorder
from metaforge.store.database import Database
from metaforge.tools.context import Artefact

FILE = Artefact("a.step", "/w/a.step", "0" * 64, 3, "model/step")


@pytest.fixture
def database(postgres_server: Any, tmp_path: Path) -> Iterator[Database]:
    database = Database(postgres_server.clean(), tmp_path)
    yield database
    database.close()


@pytest.fixture
def recorder(database: Database, tmp_path: Path) -> Iterator[Recorder]:
    recorder = Recorder(database, tmp_path / "journal")
    yield recorder
    recorder.close(30)


def record(call_id: str, tool_id: str = "t.x", **more: Any) -> CallRecord:
    return CallRecord(call_id, tool_id, "2026-01-01T00:00:00.000Z", 1.0, "ok", **more)


def test_calls_are_kept_and_read_back(database: Database, recorder: Recorder) -> None:
    written = [record("a", arguments={"text": "ü ' \" %s \u0000 🚀"}, artefacts=(FILE,)), record("b", inputs=(FILE,))]
    written.append(record("c", "odd\u0000tool"))
    for each in written:
        recorder.append(each)
        recorder.append(each)
    log = CallLog(database, recorder)

    assert [call.call_id for call in log.list_calls()] == ["c", "b", "a"]
    assert log.get_call("a") == CallRecord.parse(written[0].line())
    assert [(use.direction, use.call.call_id) for use in log.uses_of(FILE.sha256)] == [
        ("input", "b"),
        ("artefact", "a"),
    ]
    with pytest.raises(KeyError):
        log.get_call("d")


def test_a_dead_process_is_replayed_and_damaged_lines_are_set_aside(
    database: Database, recorder: Recorder, tmp_path: Path
) -> None:
    journal = Journal.create(tmp_path / "journal")
    for line in (record("a").line(), b"{torn", b'{"call_id": "no more"}', b"\xff\xfe", record("b").line()):
        journal.append(line)
    journal.close()

    assert recorder.flush(30)

    assert {call.call_id for call in CallLog(database, recorder).list_calls()} == {"a", "b"}
    assert (tmp_path / "journal" / "damaged.txt").read_bytes().count(b"\n") == 3


def test_a_server_that_drops_the_connection_costs_no_record(database: Database, recorder: Recorder) -> None:
    recorder.append(record("a"))
    assert recorder.flush(30)
    with psycopg.connect(database.url, autocommit=True) as other:
        other.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity "
            "where datname = current_database() and pid <> pg_backend_pid()"
        )
    recorder.append(record("b"))
    while not recorder.flush(30):
        assert recorder.problems()
    assert {call.call_id for call in CallLog(database, recorder).list_calls()} == {"a", "b"}
    assert recorder.problems() == ()

"""When the ledger cannot record, nobody is asked and nothing runs; and who died leaves nothing pending for ever."""

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from metaforge.approvals.faults import LedgerUnavailable, NotDecidable
from metaforge.approvals.holders import Holder
from metaforge.approvals.ledger import SqlLedger
from metaforge.approvals.model import Approver, Entry, State, later
from metaforge.approvals.wire import request_json
from metaforge.core.clock import utc_now
from metaforge.store.database import Database

from .conftest import MakeRequest

PARTY = Path(__file__).with_name("party.py")
ANN = Approver("ann", True, "dashboard")


@pytest.fixture
def lite(tmp_path: Path) -> Iterator[Database]:
    database = Database("", tmp_path)
    yield database
    database.close()


def refused(attempt: Callable[[], object], told: str) -> None:
    with pytest.raises(LedgerUnavailable, match=told) as fault:
        attempt()
    assert fault.value.data["code"] == "approval_ledger_unavailable"
    assert "no held write runs" in fault.value.message


def test_a_database_that_is_read_only_holds_nothing(
    tmp_path: Path, make_request: MakeRequest, holder: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database("", tmp_path)
    ledger = SqlLedger(database, holder)
    entry = ledger.open(make_request())
    database.close()
    plain = sqlite3.connect

    def read_only(path: str, **more: object) -> sqlite3.Connection:  # root writes whatever the file's mode says
        connection = plain(path, **more)  # type: ignore[call-overload]
        connection.execute("pragma query_only = on")
        return connection  # type: ignore[no-any-return]

    monkeypatch.setattr("metaforge.store.pool.sqlite3.connect", read_only)
    refused(lambda: ledger.open(make_request()), "attempt to write a readonly database")
    refused(lambda: ledger.decide(entry.approval_id, "approve", ANN), "readonly")
    assert [each.approval_id for each in ledger.entries()] == [entry.approval_id]
    database.close()


def test_a_full_disk_holds_nothing_and_leaves_no_half_entry(
    lite: Database, holder: Holder, make_request: MakeRequest
) -> None:
    ledger = SqlLedger(lite, holder)
    first = ledger.open(make_request())
    large = make_request(arguments={"text": "x" * 4_000_000})
    with lite.transaction(write=True) as transaction:
        pages = transaction.value("pragma page_count")
        transaction.value(f"pragma max_page_count = {pages + 20}")  # of the one connection that writes
    refused(lambda: ledger.open(large), "database or disk is full")
    assert [each.approval_id for each in ledger.entries("all")] == [first.approval_id]
    assert ledger.verify().entries == 1


def test_a_database_locked_by_somebody_else_holds_nothing(
    lite: Database, holder: Holder, make_request: MakeRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metaforge.store.pool.WRITE_SECONDS", 0.05)
    ledger = SqlLedger(lite, holder)
    lite.prepare()
    with closing(sqlite3.connect(lite.path, isolation_level=None)) as other:
        other.execute("begin immediate")
        refused(lambda: ledger.open(make_request()), "locked")


def test_a_damaged_database_holds_nothing(tmp_path: Path, holder: Holder, make_request: MakeRequest) -> None:
    (tmp_path / "metaforge.db").write_bytes(b"not a database at all" * 100)
    refused(lambda: SqlLedger(Database("", tmp_path), holder).open(make_request()), "file is not a database")


def test_a_postgres_that_cannot_be_reached_holds_nothing(
    tmp_path: Path, holder: Holder, make_request: MakeRequest
) -> None:
    database = Database("postgresql://nobody:s3cret@127.0.0.1:1/none", tmp_path)
    refused(lambda: SqlLedger(database, holder).open(make_request()), r"//nobody@127\.0\.0\.1:1/none cannot be used")


# -- who died --------------------------------------------------------------------------------------------------------


@contextmanager
def held_elsewhere(url: str, home: Path, request_text: str) -> Iterator["subprocess.Popen[str]"]:
    """Let another process open an entry and wait for it."""
    process = subprocess.Popen(
        [sys.executable, str(PARTY), url, str(home), "hold", "", request_text],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        process.stdin.write("go\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def kill(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_what_a_living_process_waits_for_stays(
    ledger: SqlLedger, make_request: MakeRequest, database_url: str, tmp_path: Path
) -> None:
    request = make_request()
    with held_elsewhere(database_url, tmp_path, json.dumps(request_json(request))):
        assert ledger.expire() == 0
        assert ledger.get(request.approval_id).state is State.AWAITING


def test_what_a_killed_process_waited_for_is_canceled_and_cannot_be_approved(
    ledger: SqlLedger, make_request: MakeRequest, database_url: str, tmp_path: Path
) -> None:
    request = make_request()
    with held_elsewhere(database_url, tmp_path, json.dumps(request_json(request))) as process:
        kill(process)
        with pytest.raises(NotDecidable, match="the server that held the call has ended") as late:
            ledger.decide(request.approval_id, "approve", ANN)
    assert (late.value.status, late.value.data["code"]) == (409, "ended")
    assert ledger.get(request.approval_id).state is State.CANCELED
    assert ledger.verify().sound


def test_a_list_shows_nothing_pending_of_a_killed_process(
    ledger: SqlLedger, make_request: MakeRequest, database_url: str, tmp_path: Path
) -> None:
    request = make_request()
    with held_elsewhere(database_url, tmp_path, json.dumps(request_json(request))) as process:
        assert len(ledger.entries()) == 1
        kill(process)
        assert ledger.entries() == []
        assert [each.state for each in ledger.entries("decided")] == [State.CANCELED]


def test_a_call_approved_and_never_begun_by_a_killed_process_is_failed_and_runs_nowhere(
    ledger: SqlLedger, make_request: MakeRequest, database_url: str, tmp_path: Path
) -> None:
    request = make_request()
    with held_elsewhere(database_url, tmp_path, json.dumps(request_json(request))) as process:
        ledger.decide(request.approval_id, "approve", ANN)
        kill(process)
        ended = ledger.get(request.approval_id)
    assert ended.state is State.FAILED
    assert ended.ended_reason == "it was approved, and the server ended before it ran: nothing was done"
    assert ended.decision is not None


def test_a_call_that_ran_in_a_process_that_ended_is_failed_and_says_so(
    database: Database, ledger: SqlLedger, make_request: MakeRequest, tmp_path: Path
) -> None:
    request = make_request()
    gone = Holder(tmp_path)
    other = SqlLedger(database, gone)
    other.open(request)
    ledger.decide(request.approval_id, "approve", ANN)
    other.claim(request.approval_id, request.digest)
    assert ledger.get(request.approval_id).state is State.RUNNING
    gone.close()
    ended = ledger.get(request.approval_id)
    assert ended.state is State.FAILED
    assert "ended while it ran: look what was done" in ended.ended_reason


class Elsewhere:
    """An entry of a holder that nobody here can see, and a clock."""

    def __init__(self, database: Database, holder: Holder, make_request: MakeRequest) -> None:
        self.now = utc_now()
        self.ledger = SqlLedger(database, holder, clock=lambda: self.now)
        self.entry: Entry = self.ledger.open(make_request(created_at=self.now), holder="another-machine")

    def at(self, seconds: float) -> State:
        self.now = later(self.entry.request.created_at, seconds)
        return self.ledger.get(self.entry.approval_id).state


@pytest.fixture
def elsewhere(database: Database, holder: Holder, make_request: MakeRequest) -> Elsewhere:
    return Elsewhere(database, holder, make_request)


def test_an_orphan_is_timed_out_thirty_seconds_after_its_window(elsewhere: Elsewhere) -> None:
    assert elsewhere.at(129.999) is State.AWAITING
    assert elsewhere.at(130) is State.TIMED_OUT


def test_an_approved_orphan_is_failed_thirty_seconds_after_its_window(elsewhere: Elsewhere) -> None:
    elsewhere.ledger.decide(elsewhere.entry.approval_id, "approve", ANN)
    assert elsewhere.at(129.999) is State.APPROVED
    assert elsewhere.at(130) is State.FAILED


def test_a_running_orphan_is_failed_after_the_longest_run(elsewhere: Elsewhere) -> None:
    entry = elsewhere.entry
    elsewhere.ledger.decide(entry.approval_id, "approve", ANN)
    elsewhere.ledger.claim(entry.approval_id, entry.digest, holder="another-machine")
    assert elsewhere.at(3629) is State.RUNNING
    assert elsewhere.at(3630) is State.FAILED


def test_an_approved_call_that_a_living_server_never_began_is_failed_in_the_end(
    database: Database, holder: Holder, make_request: MakeRequest
) -> None:
    now = utc_now()
    ledger = SqlLedger(database, holder, clock=lambda: now)
    entry = ledger.open(make_request(created_at=now))
    ledger.decide(entry.approval_id, "approve", ANN)
    now = later(entry.request.expires_at, 599)
    assert ledger.get(entry.approval_id).state is State.APPROVED
    now = later(entry.request.expires_at, 600)
    ended = ledger.get(entry.approval_id)
    assert ended.state is State.FAILED
    assert "never began to run it: nothing was done" in ended.ended_reason


def test_a_call_whose_end_a_living_server_never_told_is_failed_in_the_end(
    database: Database, holder: Holder, make_request: MakeRequest
) -> None:
    started = now = utc_now()
    ledger = SqlLedger(database, holder, clock=lambda: now)
    entry = ledger.open(make_request(created_at=now))
    ledger.claim(entry.approval_id, ledger.decide(entry.approval_id, "approve", ANN).digest)
    now = later(started, 7199)
    assert ledger.get(entry.approval_id).state is State.RUNNING
    now = later(started, 7200)
    ended = ledger.get(entry.approval_id)
    assert ended.state is State.FAILED
    assert "never said how it ended: look what was done" in ended.ended_reason


def test_what_was_begun_is_not_called_off(ledger: SqlLedger, make_request: MakeRequest) -> None:
    entry = ledger.open(make_request())
    ledger.claim(entry.approval_id, ledger.decide(entry.approval_id, "approve", ANN).digest)
    assert ledger.end(entry.approval_id, State.CANCELED, "its client did not come back").state is State.RUNNING
    assert ledger.end(entry.approval_id, State.COMPLETED).state is State.COMPLETED


def test_expiring_counts_what_it_ended(database: Database, holder: Holder, make_request: MakeRequest) -> None:
    ledger = SqlLedger(database, holder)
    for _ in range(3):
        ledger.open(make_request(), holder="another-machine")
    ledger.open(make_request(window_seconds=1000), holder="another-machine")
    assert ledger.expire(later(utc_now(), 200)) == 3
    assert ledger.expire(later(utc_now(), 200)) == 0


# -- holders ---------------------------------------------------------------------------------------------------------


def test_a_holder_is_alive_until_it_closes(tmp_path: Path) -> None:
    holder, looker = Holder(tmp_path), Holder(tmp_path)
    name = holder.id
    assert looker.alive(name) is True
    holder.close()
    assert looker.alive(name) is False


def test_a_holder_of_another_place_cannot_be_judged(tmp_path: Path) -> None:
    holder = Holder(tmp_path / "a")
    (tmp_path / "b" / "holders").mkdir(parents=True)
    assert Holder(tmp_path / "b").alive(holder.id) is None
    for strange in ("", "x", "another-machine", holder.id.replace("-", "-../")):
        assert Holder(tmp_path / "b").alive(strange) is None
    holder.close()


def test_without_a_folder_for_holders_windows_decide_alone(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    holder = Holder(tmp_path / "home")
    assert holder.id.startswith("unseen-")
    assert Holder(tmp_path).alive(holder.id) is None


def test_a_holders_folder_that_vanished_is_no_proof_of_death(tmp_path: Path) -> None:
    holder, looker = Holder(tmp_path), Holder(tmp_path)
    name = holder.id
    shutil.rmtree(tmp_path / "holders")
    assert looker.alive(name) is None
    holder.close()

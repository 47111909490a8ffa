"""What was changed outside the ledger is found and named, and nothing runs on it."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from metaforge.approvals.chain import hash_of
from metaforge.approvals.faults import LedgerBroken
from metaforge.approvals.holders import Holder
from metaforge.approvals.ledger import SqlLedger
from metaforge.approvals.model import Approver, Entry, State
from metaforge.store.database import Database

from .conftest import MakeRequest

ANN = Approver("ann", True, "dashboard")
Tamper = Callable[[str], None]


@pytest.fixture
def chain(ledger: SqlLedger, make_request: MakeRequest) -> list[Entry]:
    """Ten entries, each opened and approved: events 1 to 20."""
    made = []
    for number in range(10):
        entry = ledger.open(make_request(arguments={"name": f"part {number}"}))
        made.append(ledger.decide(entry.approval_id, "approve", ANN))
    return made


@pytest.fixture
def tamper(database: Database) -> Tamper:
    """Changes the store as somebody would who may write to it and takes the guards away."""

    def run(statements: str) -> None:
        if database.is_postgres:
            import psycopg

            with psycopg.connect(database.url, autocommit=True) as connection:
                connection.execute("alter table approval_events disable trigger user")
                connection.execute(statements.encode())
                connection.execute("alter table approval_events enable trigger user")
            return
        with closing(sqlite3.connect(database.path, isolation_level=None)) as lite:
            for name in ("no_update", "no_delete", "in_order"):
                lite.execute(f"drop trigger approval_events_{name}")
            lite.executescript(statements)

    return run


def event(database: Database, seq: int) -> dict[str, Any]:
    with database.transaction(write=False) as transaction:
        row = transaction.row(
            "select seq, approval_id, event, body, at, prev_hash from approval_events where seq = ?", seq
        )
    assert row is not None
    return dict(zip(("seq", "approval_id", "event", "body", "at", "prev_hash"), row, strict=True))


@pytest.mark.parametrize(
    "statement",
    ["update approval_events set body = '{}' where seq = 1", "delete from approval_events where seq = 1",
     "delete from approval_events"],
)  # fmt: skip
def test_the_database_itself_refuses_to_change_an_event(
    database: Database, chain: list[Entry], statement: str, ledger: SqlLedger
) -> None:
    with pytest.raises(Exception, match="append-only"), database.transaction(write=True) as transaction:
        transaction.run(statement)
    assert ledger.verify().entries == 20


def test_replacing_an_event_is_refused_too(tmp_path: Path, make_request: MakeRequest) -> None:
    database = Database("", tmp_path)
    ledger = SqlLedger(database, Holder(tmp_path))
    for _ in range(2):
        ledger.open(make_request())
    statement = "insert or replace into approval_events values (1, 'a', 'opened', '{}', '', '', '')"
    with pytest.raises(sqlite3.IntegrityError, match="append-only"), database.transaction(write=True) as transaction:
        transaction.run(statement)
    database.close()


def test_emptying_the_table_is_refused_on_postgres(postgres_server: Any, tmp_path: Path) -> None:
    database = Database(postgres_server.clean(), tmp_path)
    with pytest.raises(Exception, match="append-only"), database.transaction(write=True) as transaction:
        transaction.run("truncate approval_events")
    database.close()


def test_a_whole_chain_is_sound_and_tells_its_head(database: Database, ledger: SqlLedger, chain: list[Entry]) -> None:
    found = ledger.verify()
    assert (found.sound, found.entries, found.head) == (True, 20, chain[-1].hash)
    assert ledger.verify(chain[3].hash).sound


def test_an_empty_chain_is_sound(ledger: SqlLedger) -> None:
    assert ledger.verify().sound


@pytest.mark.parametrize(
    ("statements", "seq", "told"),
    [
        ("update approval_events set body = replace(body, 'part 3', 'part 4') where seq = 7", 7, "was changed"),
        ("update approval_events set at = '2020-01-01T00:00:00.000Z' where seq = 8", 8, "was changed"),
        ("update approval_events set approval_id = 'run_0000000000000000' where seq = 1", 1, "was changed"),
        ("delete from approval_events where seq = 9", 10, "event 9 is missing"),
        ("delete from approval_events where seq = 1", 2, "event 1 is missing"),
        ("update approval_events set seq = 100 where seq = 20", 100, "event 20 is missing"),
    ],
    ids=["arguments", "time", "approval", "one left out", "the first left out", "renumbered"],
)
def test_what_was_changed_is_found_and_named(
    ledger: SqlLedger, chain: list[Entry], tamper: Tamper, statements: str, seq: int, told: str
) -> None:
    tamper(statements)
    found = ledger.verify()
    assert found.broken_at == seq
    assert told in found.reason
    assert not found.sound


def test_an_event_that_was_given_a_new_hash_is_named_by_the_one_after(
    database: Database, ledger: SqlLedger, chain: list[Entry], tamper: Tamper
) -> None:
    fields = event(database, 5)
    fields["body"] = fields["body"].replace("part 2", "part X")
    tamper(f"update approval_events set body = '{fields['body']}', hash = '{hash_of(**fields)}' where seq = 5")
    found = ledger.verify()
    assert found.broken_at == 5
    assert "was replaced" in found.reason


def test_an_end_that_was_cut_off_is_found_by_the_entries(ledger: SqlLedger, chain: list[Entry], tamper: Tamper) -> None:
    tamper("delete from approval_events where seq >= 20")
    assert not ledger.verify().sound


def test_an_end_that_was_cut_off_with_its_entries_is_found_by_a_head_noted_before(
    ledger: SqlLedger, chain: list[Entry], tamper: Tamper
) -> None:
    tamper(
        "delete from approval_events where seq >= 19;"
        f"delete from approvals where approval_id = '{chain[-1].approval_id}'"
    )
    assert ledger.verify().sound
    found = ledger.verify(head=chain[-1].hash)
    assert not found.sound
    assert "is not in the chain" in found.reason


def test_an_entry_that_says_what_its_events_do_not_is_named(
    ledger: SqlLedger, chain: list[Entry], tamper: Tamper
) -> None:
    tamper(f"update approvals set state = 'completed' where approval_id = '{chain[4].approval_id}'")
    found = ledger.verify()
    assert found.broken_at == chain[4].seq
    assert chain[4].approval_id in found.reason


def test_no_call_is_held_or_run_once_the_chain_is_known_to_be_broken(
    ledger: SqlLedger, chain: list[Entry], tamper: Tamper, make_request: MakeRequest
) -> None:
    tamper("update approval_events set at = '' where seq = 3")
    ledger.verify()
    for attempt in (lambda: ledger.open(make_request()), lambda: ledger.claim(chain[9].approval_id, chain[9].digest)):
        with pytest.raises(LedgerBroken, match=r"event 3 was changed.*no held write runs") as refused:
            attempt()
        assert refused.value.data["code"] == "approval_ledger_unavailable"


def test_a_changed_tail_is_noticed_before_the_first_call_is_held(
    database: Database, holder: Holder, chain: list[Entry], tamper: Tamper, make_request: MakeRequest
) -> None:
    tamper("update approval_events set at = '' where seq = 12")
    fresh = SqlLedger(database, holder)
    with pytest.raises(LedgerBroken, match="event 12 was changed"):
        fresh.open(make_request())
    assert not fresh.entries("pending")


def test_nothing_is_appended_to_an_event_that_was_changed(
    ledger: SqlLedger, chain: list[Entry], tamper: Tamper, make_request: MakeRequest
) -> None:
    tamper("update approval_events set at = '' where seq = 20")
    with pytest.raises(LedgerBroken, match="event 20 was changed"):
        ledger.open(make_request())


def test_an_approval_that_only_the_table_knows_of_runs_nothing(
    ledger: SqlLedger, tamper: Tamper, make_request: MakeRequest
) -> None:
    entry = ledger.open(make_request())
    decision = json.dumps({
        "decision": "approve", "approver": {"name": "eve", "verified": True, "surface": "dashboard"},
        "reason": "", "decided_at": entry.updated_at, "arguments": None, "digest": entry.digest,
    })  # fmt: skip
    tamper(f"update approvals set state = 'approved', decision = '{decision}'")
    assert ledger.get(entry.approval_id).state is State.APPROVED
    with pytest.raises(LedgerBroken, match="is not what its events tell"):
        ledger.claim(entry.approval_id, entry.digest)


def test_arguments_exchanged_after_the_approval_run_nothing(
    ledger: SqlLedger, chain: list[Entry], tamper: Tamper
) -> None:
    tamper("update approvals set request = replace(request, 'part 5', 'part 6')")
    with pytest.raises(LedgerBroken, match=r"arguments of run_.* are not those that were approved"):
        ledger.claim(chain[5].approval_id, chain[5].digest)


@pytest.mark.parametrize(
    ("told", "instead"),
    [
        ("Create the project Drone", "Look at the project Drone"),
        ("claude-code", "the-boss-himself"),
        ("ann", "bob"),
    ],
)
def test_what_was_asked_and_who_decided_cannot_be_told_differently(
    ledger: SqlLedger, chain: list[Entry], tamper: Tamper, told: str, instead: str
) -> None:
    column = "decision" if told == "ann" else "request"
    tamper(f"""update approvals set {column} = replace({column}, '"{told}"', '"{instead}"') where first_seq = 11""")
    with pytest.raises(LedgerBroken, match=r"run_.* does not say what was asked and decided"):
        ledger.claim(chain[5].approval_id, chain[5].digest)
    found = ledger.verify()
    assert not found.sound
    assert chain[5].approval_id in found.reason


def test_ended_entries_are_sound_with_and_without_secrets(ledger: SqlLedger, make_request: MakeRequest) -> None:
    for verdict in ("approve", "reject"):
        entry = ledger.open(make_request(arguments={"name": "a", "api_key": "abc", "url": "https://u:secret@host/"}))
        edited = {"name": "b", "api_key": "[redacted]", "url": "https://u:[redacted]@host/"}
        decided = ledger.decide(entry.approval_id, verdict, ANN, arguments=edited if verdict == "approve" else None)
        assert ledger.verify().sound
        if verdict == "approve":
            ledger.claim(entry.approval_id, decided.digest)
            ledger.end(entry.approval_id, State.COMPLETED)
    assert ledger.verify().sound


def test_anybody_can_check_an_export_with_sha256_alone(ledger: SqlLedger, chain: list[Entry]) -> None:
    import hashlib

    prev_hash = "0" * 64
    for line in ledger.export():
        told = json.loads(line)
        text = "\n".join((prev_hash, str(told["seq"]), told["approval_id"], told["event"], told["at"], told["body"]))
        assert hashlib.sha256(text.encode()).hexdigest() == told["hash"]
        prev_hash = told["hash"]
    assert prev_hash == chain[-1].hash

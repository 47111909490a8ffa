"""Many at once, from threads and from processes: exactly one wins, and the chain stays whole."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from metaforge.approvals.faults import NotClaimable, NotDecidable
from metaforge.approvals.holders import Holder
from metaforge.approvals.ledger import SqlLedger
from metaforge.approvals.model import Approver, Entry, State
from metaforge.core.errors import MetaForgeError
from metaforge.store.database import Database

from .conftest import MakeRequest

PARTY = Path(__file__).with_name("party.py")
ANN = Approver("ann", True, "dashboard")


@pytest.fixture
def entry(ledger: SqlLedger, make_request: MakeRequest) -> Entry:
    return ledger.open(make_request())


def at_once(*tasks: Callable[[], object]) -> list[object]:
    """Run tasks in threads that start together; return what each gave, its refusal's code, or raise."""
    barrier = Barrier(len(tasks))

    def run(task: Callable[[], object]) -> object:
        barrier.wait()
        try:
            return task()
        except (NotDecidable, NotClaimable) as refused:
            return refused.data["code"]

    with ThreadPoolExecutor(len(tasks)) as pool:
        return list(pool.map(run, tasks))


def processes_at_once(url: str, home: Path, *parts: tuple[str, ...]) -> list[list[str]]:
    """Run parts in processes that start together; return what each printed."""
    processes = [
        subprocess.Popen(
            [sys.executable, str(PARTY), url, str(home), *part],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for part in parts
    ]  # fmt: skip
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        return [json.loads(process.communicate(timeout=60)[0]) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_of_twenty_approvers_and_one_rejecter_in_threads_one_is_taken(ledger: SqlLedger, entry: Entry) -> None:
    def decide(verdict: str, name: str) -> Callable[[], object]:
        return lambda: ledger.decide(entry.approval_id, verdict, Approver(name, True, "dashboard"))  # type: ignore[arg-type]

    found = at_once(decide("reject", "no"), *(decide("approve", f"yes {number}") for number in range(20)))
    taken = [each for each in found if isinstance(each, Entry)]
    assert len(taken) == 1
    assert Counter(each for each in found if isinstance(each, str)) == {"already_decided": 20}
    assert ledger.get(entry.approval_id).decision == taken[0].decision
    assert ledger.verify().entries == 2


def test_of_twenty_approvers_and_one_rejecter_in_processes_one_is_taken(
    ledger: SqlLedger, entry: Entry, database_url: str, tmp_path: Path
) -> None:
    verdicts = [["reject", *["approve"] * 6], ["approve"] * 7, ["approve"] * 7]
    parts = [("decide", entry.approval_id, *each) for each in verdicts]
    found = Counter(told for each in processes_at_once(database_url, tmp_path, *parts) for told in each)
    assert found["already_decided"] == 20
    taken = State.APPROVED if found["approve"] else State.REJECTED
    assert ledger.get(entry.approval_id).state is taken
    assert ledger.verify().entries == 2


def test_an_approval_is_claimed_once_across_processes(
    ledger: SqlLedger, entry: Entry, database_url: str, tmp_path: Path
) -> None:
    ledger.decide(entry.approval_id, "approve", ANN)
    found = processes_at_once(database_url, tmp_path, *[("claim", entry.approval_id, entry.digest)] * 4)
    assert Counter(map(tuple, found)) == {("done", "claim"): 1, ("NotClaimable", "already_claimed"): 3}


def test_an_approval_is_claimed_once_across_threads_and_databases(
    database: Database, database_url: str, tmp_path: Path, holder: Holder, ledger: SqlLedger, entry: Entry
) -> None:
    other = Database(database_url, tmp_path)
    try:
        ledgers = [ledger, SqlLedger(other, holder)] * 6
        ledger.decide(entry.approval_id, "approve", ANN)
        found = at_once(*(lambda each=each: each.claim(entry.approval_id, entry.digest) for each in ledgers))  # type: ignore[misc]
        assert Counter(each for each in found if isinstance(each, str)) == {"already_claimed": 11}
    finally:
        other.close()


@pytest.mark.parametrize("count", [50, pytest.param(500, marks=pytest.mark.slow)])
def test_approved_at_the_instant_the_window_ends_it_runs_or_times_out_and_never_both(
    ledger: SqlLedger, make_request: MakeRequest, count: int
) -> None:
    executions = timeouts = 0
    for _ in range(count):
        entry = ledger.open(make_request())

        def approve(entry: Entry = entry) -> object:
            return ledger.decide(entry.approval_id, "approve", ANN)

        def wait_no_longer(entry: Entry = entry) -> object:
            ended = ledger.end(entry.approval_id, State.TIMED_OUT, "approval window ended")
            if ended.state is State.APPROVED:
                ledger.claim(entry.approval_id, ended.digest)
                return "ran"
            return "timed out"

        approved, waited = at_once(approve, wait_no_longer)
        ran = waited == "ran"
        executions, timeouts = executions + ran, timeouts + (not ran)
        assert isinstance(approved, Entry) is ran
        assert ledger.get(entry.approval_id).state is (State.RUNNING if ran else State.TIMED_OUT)
    assert executions + timeouts == count
    assert ledger.verify().sound


def test_the_client_leaving_and_its_call_starting_are_one_or_the_other(
    ledger: SqlLedger, make_request: MakeRequest
) -> None:
    for _ in range(50):
        entry = ledger.open(make_request())
        ledger.decide(entry.approval_id, "approve", ANN)

        def leave(entry: Entry = entry) -> object:
            return ledger.end(entry.approval_id, State.CANCELED, "gone").state

        def start(entry: Entry = entry) -> object:
            return ledger.claim(entry.approval_id, entry.digest).state

        answers = tuple(at_once(leave, start))
        assert answers in ((State.CANCELED, "not_approved"), (State.RUNNING, State.RUNNING))
    assert ledger.verify().sound


def test_two_holds_of_the_same_tool_are_told_apart(ledger: SqlLedger, make_request: MakeRequest) -> None:
    first, second = (ledger.open(make_request(arguments={"name": name})) for name in ("one", "two"))
    ledger.decide(second.approval_id, "approve", ANN)
    with pytest.raises(MetaForgeError, match="is not approved"):
        ledger.claim(first.approval_id, first.digest)
    with pytest.raises(MetaForgeError, match="allows another call"):
        ledger.claim(second.approval_id, first.digest)
    assert ledger.claim(second.approval_id, second.digest).arguments == {"name": "two"}


def test_writers_of_many_threads_leave_one_unbroken_chain(ledger: SqlLedger, make_request: MakeRequest) -> None:
    requests = [make_request() for _ in range(40)]

    def whole(number: int) -> None:
        request = requests[number]
        ledger.open(request)
        ledger.decide(request.approval_id, "approve" if number % 2 else "reject", ANN)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(whole, range(40)))
    found = ledger.verify()
    assert (found.entries, found.sound) == (80, True)

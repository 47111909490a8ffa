"""Who waits is woken by whoever decides, in this process or another, and waits no longer than asked."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from metaforge.approvals import nudging
from metaforge.approvals.holders import Holder
from metaforge.approvals.ledger import SqlLedger
from metaforge.approvals.model import Approver, Entry, Route, State
from metaforge.approvals.waking import StoreWaker
from metaforge.approvals.watching_sqlite import IDLE_POLL_SECONDS, POLL_SECONDS, SqliteWatch
from metaforge.store.database import Database

from .conftest import MakeRequest

PARTY = Path(__file__).with_name("party.py")
ANN = Approver("ann", True, "dashboard")
LONG_SECONDS = 30.0
"""Longer than any test should take; woken is what ends a wait."""


@pytest.fixture
async def waker(database: Database, tmp_path: Path) -> AsyncIterator[StoreWaker]:
    waker = StoreWaker(database, tmp_path)
    yield waker
    await waker.close()


@pytest.fixture
def ledger(database: Database, holder: Holder, waker: StoreWaker) -> SqlLedger:
    return SqlLedger(database, holder, nudge=waker.nudge)


@pytest.fixture
def entry(ledger: SqlLedger, make_request: MakeRequest) -> Entry:
    return ledger.open(make_request())


def in_long() -> float:
    return time.monotonic() + LONG_SECONDS


async def woken_by(waker: StoreWaker, entry: Entry, happening: "asyncio.Future[object] | None" = None) -> None:
    async with asyncio.timeout(LONG_SECONDS / 2):
        await waker.wait(entry.approval_id, in_long())


async def watching(waker: StoreWaker) -> None:
    """Return once the waker watches."""
    await waker.changed(-1, in_long())


async def test_a_decision_of_this_process_wakes_who_waits(waker: StoreWaker, ledger: SqlLedger, entry: Entry) -> None:
    await watching(waker)
    waiting = asyncio.create_task(woken_by(waker, entry))
    await asyncio.sleep(0)
    await asyncio.to_thread(ledger.decide, entry.approval_id, "approve", ANN)
    await waiting


@pytest.mark.parametrize("nudged", [True, False], ids=["nudged", "nudge lost"])
async def test_a_decision_of_another_process_wakes_who_waits(
    waker: StoreWaker, entry: Entry, database_url: str, tmp_path: Path, nudged: bool
) -> None:
    await watching(waker)
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(PARTY), database_url, str(tmp_path), "decide", entry.approval_id, "approve",
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    if not nudged:
        for socket in (tmp_path / nudging.FOLDER).glob("*"):
            socket.unlink()
    waiting = asyncio.create_task(woken_by(waker, entry))
    process.stdin.write(b"go\n")
    await waiting
    assert json.loads(await process.stdout.read()) == ["approve"]
    await process.wait()


async def test_a_process_that_waits_is_woken_from_here(
    ledger: SqlLedger, entry: Entry, database_url: str, tmp_path: Path
) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(PARTY), database_url, str(tmp_path), "wait", entry.approval_id,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    process.stdin.write(b"go\n")
    await asyncio.to_thread(ledger.decide, entry.approval_id, "reject", ANN)
    async with asyncio.timeout(LONG_SECONDS / 2):
        assert json.loads(await process.stdout.read()) == "rejected"
    await process.wait()


async def test_what_was_decided_before_the_wait_began_is_not_missed(
    waker: StoreWaker, ledger: SqlLedger, entry: Entry
) -> None:
    ledger.decide(entry.approval_id, "reject", ANN)
    await woken_by(waker, entry)


async def test_a_decision_while_the_watch_is_still_starting_is_not_missed(
    waker: StoreWaker, ledger: SqlLedger, make_request: MakeRequest
) -> None:
    entries = [ledger.open(make_request()) for _ in range(20)]
    waits = [asyncio.create_task(woken_by(waker, entry)) for entry in entries]
    decisions = [asyncio.to_thread(ledger.decide, entry.approval_id, "approve", ANN) for entry in entries]
    await asyncio.gather(*waits, *decisions)


async def test_only_who_is_concerned_is_woken(
    waker: StoreWaker, ledger: SqlLedger, entry: Entry, make_request: MakeRequest
) -> None:
    other = ledger.open(make_request())
    await watching(waker)
    concerned, unconcerned = (asyncio.create_task(woken_by(waker, each)) for each in (other, entry))
    await asyncio.sleep(0)
    await asyncio.to_thread(ledger.decide, other.approval_id, "approve", ANN)
    await concerned
    assert not unconcerned.done()
    await asyncio.to_thread(ledger.end, entry.approval_id, State.CANCELED)
    await unconcerned


async def test_opening_on_the_dashboard_wakes_too(
    waker: StoreWaker, ledger: SqlLedger, make_request: MakeRequest
) -> None:
    entry = ledger.open(make_request(route=Route.ELICITATION))
    await watching(waker)
    waiting = asyncio.create_task(woken_by(waker, entry))
    await asyncio.sleep(0)
    await asyncio.to_thread(ledger.show_on_dashboard, entry.approval_id)
    await waiting


async def test_a_wait_ends_when_it_was_asked_to(waker: StoreWaker, entry: Entry) -> None:
    until = time.monotonic() + 0.05
    await waker.wait(entry.approval_id, until)
    assert time.monotonic() >= until
    await waker.wait(entry.approval_id, time.monotonic() - 1)


async def test_a_wait_that_is_cancelled_leaves_the_others(waker: StoreWaker, ledger: SqlLedger, entry: Entry) -> None:
    await watching(waker)
    leaving, staying = (asyncio.create_task(woken_by(waker, entry)) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.to_thread(ledger.decide, entry.approval_id, "approve", ANN)
    await staying
    assert leaving.cancelled() or leaving.cancelling()


async def test_pages_learn_of_every_change_once(
    waker: StoreWaker, ledger: SqlLedger, make_request: MakeRequest
) -> None:
    entry = ledger.open(make_request())
    first = await waker.changed(0, in_long())
    assert first == 1
    waiting = asyncio.create_task(waker.changed(first, in_long()))
    await asyncio.sleep(0)
    await asyncio.to_thread(ledger.decide, entry.approval_id, "approve", ANN)
    assert await waiting == 2
    assert await waker.changed(2, time.monotonic() + 0.05) == 2


async def test_pages_alone_are_looked_on_for_at_leisure_and_waiting_calls_often(
    waker: StoreWaker, ledger: SqlLedger, entry: Entry, database: Database
) -> None:
    if database.is_postgres:
        pytest.skip("Postgres tells of each event")
    following = asyncio.create_task(waker.changed(1, in_long()))
    await watching(waker)
    watch = waker._watch
    assert isinstance(watch, SqliteWatch)
    assert watch._pause_seconds == IDLE_POLL_SECONDS
    waiting = asyncio.create_task(woken_by(waker, entry))
    await asyncio.sleep(0)
    assert watch._pause_seconds == POLL_SECONDS
    await asyncio.to_thread(ledger.decide, entry.approval_id, "approve", ANN)
    await waiting
    assert watch._pause_seconds == IDLE_POLL_SECONDS
    assert await following == 2


async def test_pages_learn_in_the_end_of_what_nobody_told_them(
    waker: StoreWaker, database: Database, holder: Holder, make_request: MakeRequest
) -> None:
    await watching(waker)
    seen = waker._seen
    following = asyncio.create_task(waker.changed(seen, in_long()))
    await asyncio.sleep(0)
    await asyncio.to_thread(SqlLedger(database, holder).open, make_request())
    async with asyncio.timeout(LONG_SECONDS / 2):
        assert await following == seen + 1


async def test_closing_wakes_who_waits(waker: StoreWaker, entry: Entry) -> None:
    await watching(waker)
    waiting = asyncio.create_task(woken_by(waker, entry))
    await asyncio.sleep(0)
    await waker.close()
    await waiting


async def test_nothing_watches_when_nobody_waited(waker: StoreWaker, ledger: SqlLedger, entry: Entry) -> None:
    ledger.decide(entry.approval_id, "approve", ANN)
    assert waker._task is None


async def test_the_watch_ends_a_while_after_the_last_wait(
    waker: StoreWaker, entry: Entry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("metaforge.approvals.waking._LINGER_SECONDS", 0.01)
    await waker.wait(entry.approval_id, time.monotonic() + 0.01)
    task = waker._task
    assert task is not None
    async with asyncio.timeout(LONG_SECONDS / 2):
        await asyncio.wait([task])
    assert waker._task is None
    assert not list((tmp_path / nudging.FOLDER).glob("*"))


# -- nudges ----------------------------------------------------------------------------------------------------------


def test_a_nudge_reaches_listeners_and_clears_away_the_dead(tmp_path: Path) -> None:
    living, dead = nudging.Listener(tmp_path), nudging.Listener(tmp_path)
    dead.socket.close()
    nudging.nudge(tmp_path)
    assert living.socket.recv(16) == b"!"
    assert [path.name for path in (tmp_path / nudging.FOLDER).iterdir()] == [living.name]
    living.close()
    nudging.nudge(tmp_path)
    assert not list((tmp_path / nudging.FOLDER).iterdir())


def test_nudging_nobody_is_nothing(tmp_path: Path) -> None:
    nudging.nudge(tmp_path / "nowhere")


def test_a_full_socket_holds_nobody_up(tmp_path: Path) -> None:
    listener = nudging.Listener(tmp_path)
    for _ in range(2000):
        nudging.nudge(tmp_path)
    listener.drain()
    listener.close()


def test_a_home_with_a_long_path_can_be_nudged(tmp_path: Path) -> None:
    home = tmp_path / ("x" * 120)
    home.mkdir()
    listener = nudging.Listener(home)
    nudging.nudge(home)
    assert listener.socket.recv(16) == b"!"
    listener.close()

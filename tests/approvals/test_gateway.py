"""A server that keeps no ledger of its own: the same words, spoken to a real gateway over HTTP."""

import asyncio
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from metaforge.approvals.faults import LedgerUnavailable, NotClaimable, NotDecidable, UnknownApproval
from metaforge.approvals.gateway_ledger import GatewayLedger
from metaforge.approvals.gateway_waker import GatewayWaker
from metaforge.approvals.holders import Holder
from metaforge.approvals.ledger import SqlLedger
from metaforge.approvals.model import Approver, Entry, Route, State
from metaforge.core.errors import InvalidArguments
from metaforge.store.database import Database
from metaforge.tools.context import Caller, Trust

from .conftest import MakeRequest, a_request

KEY = "the-gateways-key-of-this-test"
ANN = Approver("ann", True, "dashboard")
LONG_SECONDS = 30.0


class Gateway:
    """`metaforge serve` in a process of its own, and its ledger seen from its own machine."""

    def __init__(self, home: Path) -> None:
        self.home = home
        kept = {name: value for name, value in os.environ.items() if not name.startswith("METAFORGE_")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "metaforge", "serve", "--port", "0", "--adapters", "health"],
            env={**kept, "METAFORGE_HOME": str(home), "METAFORGE_MCP_API_KEY": KEY},
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stderr is not None
        lines: list[str] = []
        while not (found := re.search(r"https?://[^\s/]+", "".join(lines))):
            lines.append(self.process.stderr.readline())
            assert lines[-1], "".join(lines)
        self.url = found[0]
        self.database = Database("", home)
        self.holder = Holder(home)
        self.ledger = SqlLedger(self.database, self.holder)

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()
        self.holder.close()
        self.database.close()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    gateway = Gateway(tmp_path_factory.mktemp("gateway"))
    yield gateway
    gateway.close()


@pytest.fixture
def remote(gateway: Gateway, tmp_path: Path) -> Iterator[GatewayLedger]:
    holder = Holder(tmp_path)
    ledger = GatewayLedger(gateway.url, KEY, holder)
    yield ledger
    ledger.close()
    holder.close()


@pytest.fixture
def entry(remote: GatewayLedger) -> Entry:
    return remote.open(a_request(arguments={"name": "Drone", "api_key": "s3cret", "mass_kg": 0.1}))


def test_what_is_opened_there_is_whole_here_and_durable_there(
    remote: GatewayLedger, gateway: Gateway, make_request: MakeRequest
) -> None:
    request = make_request(
        arguments={"text": "Ä\u2028\n💡", "numbers": [0.1, 9007199254740991, 1e300], "api_key": "s3cret"},
        caller=Caller("ann@example.com", Trust.REMOTE, "codex", "0.1", "s1", verified=True),
        change={"now": {"count": 1}, "after": {"count": 2}},
    )
    made = remote.open(request)
    there = gateway.ledger.get(request.approval_id)
    assert there == made
    for name in ("arguments", "digest", "caller", "change", "call_id", "title", "summary", "window_seconds"):
        assert getattr(made.request, name) == getattr(request, name), name
    assert remote.open(request) == made


def test_approved_there_and_run_here(remote: GatewayLedger, gateway: Gateway, entry: Entry) -> None:
    edited = {"name": "Glider", "api_key": "[redacted]", "mass_kg": 0.1}
    gateway.ledger.decide(entry.approval_id, "approve", ANN, "go", edited)
    found = remote.get(entry.approval_id)
    assert found.arguments == {"name": "Glider", "api_key": "s3cret", "mass_kg": 0.1}
    assert found.decision is not None
    assert found.decision.approver == ANN
    assert remote.claim(entry.approval_id, found.digest).state is State.RUNNING
    with pytest.raises(NotClaimable, match="has run or is running") as refused:
        remote.claim(entry.approval_id, found.digest)
    assert refused.value.data["code"] == "already_claimed"
    assert remote.end(entry.approval_id, State.COMPLETED).state is State.COMPLETED
    assert gateway.ledger.verify().sound


def test_another_digest_is_not_claimed(remote: GatewayLedger, gateway: Gateway, entry: Entry) -> None:
    gateway.ledger.decide(entry.approval_id, "approve", ANN)
    with pytest.raises(NotClaimable, match="allows another call"):
        remote.claim(entry.approval_id, "0" * 64)


def test_an_answer_in_the_client_is_recorded_there(remote: GatewayLedger, make_request: MakeRequest) -> None:
    entry = remote.open(make_request(route=Route.ELICITATION))
    with pytest.raises(NotDecidable, match="on the screen in claude-code") as refused:
        remote.decide(entry.approval_id, "approve", Approver("x", False, "cli"))
    assert refused.value.data["code"] == "answer_in_client"
    bob = Approver("bob", True, "elicitation")
    decided = remote.decide(entry.approval_id, "reject", bob, "no", inline=True)
    assert decided.decision is not None
    assert (decided.state, decided.decision.approver.name, decided.decision.approver.verified) == (
        State.REJECTED, "bob", True,
    )  # fmt: skip
    with pytest.raises(NotDecidable, match="already rejected"):
        remote.decide(entry.approval_id, "approve", bob, inline=True)


def test_an_inline_entry_opens_on_the_dashboard(remote: GatewayLedger, make_request: MakeRequest) -> None:
    entry = remote.open(make_request(route=Route.ELICITATION))
    assert remote.show_on_dashboard(entry.approval_id).on_dashboard


def test_who_is_at_the_command_line_is_who_the_gateway_takes_the_key_for(remote: GatewayLedger, entry: Entry) -> None:
    decided = remote.decide(entry.approval_id, "reject", Approver("local:eve", True, "cli"), "heavy")
    assert decided.decision is not None
    approver = decided.decision.approver
    assert (approver.surface, approver.verified) == ("cli", False)
    assert approver.name != "local:eve"


def test_only_the_holder_ends_claims_and_sees_secrets(gateway: Gateway, entry: Entry, tmp_path: Path) -> None:
    other = GatewayLedger(gateway.url, KEY, Holder(tmp_path / "other"))
    assert other.get(entry.approval_id).arguments["api_key"] == "[redacted]"
    with pytest.raises(NotDecidable, match="held by another server"):
        other.end(entry.approval_id, State.CANCELED)
    other.close()


def test_lists_go_by_status_and_project(remote: GatewayLedger, make_request: MakeRequest) -> None:
    made = [remote.open(make_request(project_id="listing")).approval_id for _ in range(3)]
    assert [each.approval_id for each in remote.entries(project_id="listing")] == made[::-1]
    assert [each.approval_id for each in remote.entries(project_id="listing", before=made[1])] == [made[0]]
    remote.end(made[0], State.CANCELED, "gone")
    found = remote.entries("decided", "listing")
    assert [(each.approval_id, each.state, each.ended_reason) for each in found] == [(made[0], State.CANCELED, "gone")]


def test_what_is_not_there_and_what_cannot_be_is_told(
    remote: GatewayLedger, entry: Entry, make_request: MakeRequest
) -> None:
    with pytest.raises(UnknownApproval):
        remote.get("run_0000000000000000")
    with pytest.raises(InvalidArguments):
        remote.decide(entry.approval_id, "approve", Approver("x", False, "cli"), arguments={"note": "[redacted]"})
    with pytest.raises(LedgerUnavailable, match=r"run `metaforge ledger verify` on its machine"):
        remote.verify()


def test_a_key_that_the_gateway_does_not_take_holds_nothing(
    gateway: Gateway, tmp_path: Path, make_request: MakeRequest
) -> None:
    wrong = GatewayLedger(gateway.url, "another-key", Holder(tmp_path))
    with pytest.raises(LedgerUnavailable, match="METAFORGE_GATEWAY_KEY"):
        wrong.open(make_request())
    wrong.close()


def test_a_gateway_that_is_not_there_or_something_else_holds_nothing(tmp_path: Path, make_request: MakeRequest) -> None:
    nobody = GatewayLedger("http://127.0.0.1:1", "", Holder(tmp_path))
    with pytest.raises(LedgerUnavailable, match=r"gateway http://127\.0\.0\.1:1 cannot be reached.*no held write runs"):
        nobody.open(make_request())
    nobody.close()


# -- waking ----------------------------------------------------------------------------------------------------------


async def test_a_decision_there_wakes_who_waits_here(gateway: Gateway, remote: GatewayLedger, entry: Entry) -> None:
    waker = GatewayWaker(gateway.url, KEY, remote)
    until = time.monotonic() + LONG_SECONDS

    async def decided() -> State:
        while True:
            await waker.wait(entry.approval_id, until)
            found = await asyncio.to_thread(remote.get, entry.approval_id)
            if found.state is not State.AWAITING:
                return found.state

    waiting = asyncio.create_task(decided())
    await waker.changed(0, until)  # the stream is open and has told its first
    await asyncio.to_thread(gateway.ledger.decide, entry.approval_id, "approve", ANN)
    async with asyncio.timeout(LONG_SECONDS / 2):
        assert await waiting is State.APPROVED
    await waker.close()


async def test_what_was_decided_before_the_wait_began_is_not_missed(
    gateway: Gateway, remote: GatewayLedger, entry: Entry
) -> None:
    gateway.ledger.decide(entry.approval_id, "reject", ANN)
    waker = GatewayWaker(gateway.url, KEY, remote)
    async with asyncio.timeout(LONG_SECONDS / 2):
        await waker.wait(entry.approval_id, time.monotonic() + LONG_SECONDS)
    await waker.close()


async def test_a_gateway_that_is_away_lets_who_waits_look_by_himself(tmp_path: Path) -> None:
    nobody = GatewayLedger("http://127.0.0.1:1", "", Holder(tmp_path))
    waker = GatewayWaker("http://127.0.0.1:1", "", nobody)
    async with asyncio.timeout(LONG_SECONDS / 2):
        await waker.wait("run_0000000000000000", time.monotonic() + LONG_SECONDS)
    await waker.close()
    nobody.close()

"""A server that dies while a call waits, or between its approval and its running, leaves nothing pending for ever."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from desk import ANNA, settings_of

from metaforge.approvals.faults import NotClaimable, NotDecidable
from metaforge.approvals.model import State
from metaforge.approvals.opening import open_approvals
from metaforge.store.database import Database


class Victim:
    """A server in a process of its own, with one call that waits."""

    def __init__(self, home: Path) -> None:
        self.settings = settings_of(home)
        self.home = self.settings.home_path

    async def start(self) -> None:
        environment = {**os.environ, **self.settings.environment, "PATH": os.environ["PATH"]}
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "metaforge.mcp", "--transport", "http", "--port", "0",
            env=environment, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert self.process.stderr is not None
        while b"listening on " not in (line := await self.process.stderr.readline()):
            assert line, "the server ended"
        self.url = line.split()[-1].decode()

    async def call(self) -> Any:
        legacy = {"tool_id": "project.create", "arguments": {"name": "Leg"}}
        async with httpx.AsyncClient(timeout=30) as client:
            message = {"jsonrpc": "2.0", "id": 1, "method": "tool/call", "params": legacy}
            return (await client.post(self.url, json=message, headers={"accept": "application/json"})).json()

    async def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        await self.process.communicate()


@pytest.fixture
async def victim(tmp_path: Path) -> AsyncIterator[Victim]:
    made = Victim(tmp_path)
    await made.start()
    yield made
    if made.process.returncode is None:
        await made.kill()


@pytest.fixture
async def ledger(victim: Victim) -> AsyncIterator[Any]:
    database = Database("", victim.home)
    approvals = open_approvals(victim.settings, database, victim.home)
    yield approvals.ledger
    await approvals.close()
    database.close()


async def waiting(ledger: Any) -> Any:
    async with asyncio.timeout(20):
        while True:
            if found := await asyncio.to_thread(ledger.entries):
                return found[0]
            await asyncio.sleep(0.02)


async def test_a_call_whose_server_died_cannot_be_approved_any_more(victim: Victim, ledger: Any) -> None:
    call = asyncio.create_task(victim.call())
    entry = await waiting(ledger)
    await victim.kill()
    with pytest.raises(httpx.HTTPError):
        await call
    with pytest.raises(NotDecidable):
        await asyncio.to_thread(ledger.decide, entry.approval_id, "approve", ANNA)
    assert (await asyncio.to_thread(ledger.get, entry.approval_id)).state is State.CANCELED
    await victim.start()
    assert await asyncio.to_thread(ledger.entries) == []


async def test_a_server_that_dies_once_it_was_approved_did_it_once_or_says_that_it_failed(
    victim: Victim, ledger: Any
) -> None:
    call = asyncio.create_task(victim.call())
    entry = await waiting(ledger)
    os.kill(victim.process.pid, signal.SIGSTOP)  # it hears of nothing any more
    await asyncio.to_thread(ledger.decide, entry.approval_id, "approve", ANNA)
    await victim.kill()
    with pytest.raises(httpx.HTTPError):
        await call
    ended = await asyncio.to_thread(ledger.get, entry.approval_id)
    assert ended.state is State.FAILED
    assert "nothing was done" in ended.ended_reason
    with pytest.raises(NotClaimable):
        await asyncio.to_thread(ledger.claim, entry.approval_id, entry.digest)

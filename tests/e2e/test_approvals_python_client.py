"""Writes that wait for a person, as the official Python client sees them: both transports, both eras."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from conversations import ERAS
from house import STDIO, House
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp_types import ElicitResult

from metaforge.approvals.model import Approver, Entry, State
from metaforge.approvals.opening import open_approvals
from metaforge.settings import Settings
from metaforge.store.database import Database

Open = Callable[..., Any]


class Person:
    """Decides on what waits, from another process."""

    def __init__(self, house: House) -> None:
        settings = Settings.load(house.settings)
        self.database = Database("", house.home)
        self.approvals = open_approvals(settings, self.database, house.home)

    async def decide(self, verdict: str) -> Entry:
        ledger = self.approvals.ledger
        async with asyncio.timeout(20):
            while True:
                if found := await asyncio.to_thread(ledger.entries):
                    break
                await asyncio.sleep(0.02)
        return await asyncio.to_thread(
            ledger.decide,
            found[0].approval_id,
            verdict,
            Approver("anna", True, "dashboard"),  # type: ignore[arg-type]
        )

    async def opened(self) -> None:
        """Return once the dashboard shows what waits."""
        async with asyncio.timeout(20):
            while True:
                if any(entry.on_dashboard for entry in await asyncio.to_thread(self.entries)):
                    return
                await asyncio.sleep(0.02)

    def entries(self) -> list[Entry]:
        return self.approvals.ledger.entries("all")

    async def close(self) -> None:
        await self.approvals.close()
        self.database.close()


@pytest.fixture(params=["stdio", "http"])
def transport(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(params=list(ERAS))
def era(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def holding(tmp_path: Path) -> House:
    """A server that holds writes over stdio too."""
    return House(
        tmp_path, adapters="none", METAFORGE_EXEMPT_LOCAL_WRITES="false", METAFORGE_APPROVAL_HOLD_SECONDS="30",
        METAFORGE_APPROVAL_HOLD_PROGRESS_SECONDS="40", METAFORGE_APPROVAL_PROGRESS_INTERVAL_SECONDS="0.2",
    )  # fmt: skip


@pytest.fixture
async def person(holding: House) -> AsyncIterator[Person]:
    found = Person(holding)
    yield found
    await found.close()


@pytest.fixture
def connect(holding: House, transport: str, era: str) -> Any:
    @asynccontextmanager
    async def opened(target: Any, **options: Any) -> AsyncIterator[Client]:
        async with Client(target, mode=ERAS[era], read_timeout_seconds=60, **options) as client:
            yield client

    if transport == "stdio":
        parameters = StdioServerParameters(
            command=sys.executable, args=list(STDIO), env=holding.environment, cwd=str(holding.workspace)
        )
        yield lambda **options: opened(parameters, **options)
    else:
        with holding.listening() as url:
            yield lambda **options: opened(url, **options)


def answering(action: str, content: Any = None) -> tuple[list[str], Any]:
    asked: list[str] = []

    async def answer(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action=action, content=content)  # type: ignore[arg-type]

    return asked, answer


async def test_a_person_at_the_client_says_yes_and_the_call_says_by_whom(connect: Open, person: Person) -> None:
    asked, answer = answering("accept", {"approve": True, "note": "go"})
    async with connect(elicitation_callback=answer) as client:
        result = await client.call_tool("project.create", {"name": "Leg"})
    assert not result.is_error
    assert len(asked) == 1
    assert "project.create) needs your approval" in asked[0]
    approval = result.structured_content["approval"]
    assert (approval["approved_by"], approval["approver_verified"]) == ("local:elicitation", False)
    assert approval["route"] == "elicitation"
    (entry,) = person.entries()
    assert (entry.state, entry.approval_id) == (State.COMPLETED, approval["approval_id"])
    assert entry.decision is not None
    assert entry.decision.reason == "go"


async def test_a_person_at_the_client_says_no_and_nothing_is_done(connect: Open, person: Person) -> None:
    _, answer = answering("decline")
    async with connect(elicitation_callback=answer) as client:
        with pytest.raises(MCPError) as refusal:
            await client.call_tool("project.create", {"name": "Leg"})
        listed = await client.call_tool("project.list", {})
    assert refusal.value.error.code == -32001
    assert refusal.value.error.data["outcome"] == "rejected"
    assert "was not run (rejected)" in refusal.value.error.message
    assert listed.structured_content["total"] == 0
    assert [entry.state for entry in person.entries()] == [State.REJECTED]


async def test_a_client_that_cannot_ask_waits_for_the_dashboard_and_hears_that_it_waits(
    connect: Open, person: Person
) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))
        if len(heard) == 3:
            await person.decide("approve")

    async with connect() as client:
        result = await client.call_tool("project.create", {"name": "Leg"}, progress_callback=note)
    assert result.structured_content["approval"]["approved_by"] == "anna"
    assert [each[0] for each in heard] == sorted({each[0] for each in heard})
    assert heard[0][1] == 40.0
    assert "held for human approval (approval run_" in (heard[0][2] or "")


async def test_a_question_that_is_cancelled_at_once_is_answered_on_the_dashboard(connect: Open, person: Person) -> None:
    _, answer = answering("cancel")
    async with connect(elicitation_callback=answer) as client:
        call = asyncio.create_task(client.call_tool("project.create", {"name": "Leg"}))
        await person.opened()
        await person.decide("approve")
        result = await call
    assert result.structured_content["approval"]["route"] == "dashboard"

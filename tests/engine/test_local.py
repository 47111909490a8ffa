"""Tools the server runs itself: quick ones pay for no timer, slow ones keep their deadline and can be cancelled."""

import asyncio

import pytest

from metaforge.core.errors import ToolTimedOut
from metaforge.engine.local import LocalSource
from metaforge.tools.context import Answer, Caller, Invocation
from metaforge.tools.effect import Effect
from metaforge.tools.manifest import AdapterManifest, Tool
from metaforge.tools.server import McpToolServer
from metaforge.tools.tool import tool

EVENTS: list[str] = []


class Inside(McpToolServer):
    in_process = True

    def __init__(self) -> None:
        super().__init__("inside", "1")

    @tool(effect=Effect.READ, capability="x", title="Quick")
    async def quick(self, ctx: Invocation, text: str, times: int = 1) -> Answer[dict[str, str]]:
        """Return a text."""
        return Answer({"text": text * times}, "done")

    @tool(effect=Effect.READ, capability="x", title="Slow")
    async def slow(self, ctx: Invocation, factor_ratio: float) -> Answer[dict[str, float]]:
        """Wait twice."""
        try:
            await asyncio.sleep(0)
            async with asyncio.timeout(60):
                await asyncio.sleep(0)
            return Answer({"factor_ratio": factor_ratio}, "done")
        finally:
            EVENTS.append("left")

    @tool(effect=Effect.READ, capability="x", title="Endless")
    async def endless(self, ctx: Invocation) -> Answer[dict[str, str]]:
        """Wait for ever."""
        try:
            await asyncio.Event().wait()
        finally:
            EVENTS.append("left")
        raise AssertionError("nobody sets it")


def a_tool(name: str) -> Tool:
    return Tool(f"inside.{name}", "inside", name, "", "", {"type": "object"}, {})


@pytest.fixture
def source() -> LocalSource:
    EVENTS.clear()
    return LocalSource(AdapterManifest("inside", "1", "", True, ()), make=Inside)


def an_invocation(seconds: float = 60) -> Invocation:
    return Invocation("c", Caller(), seconds)


async def test_a_quick_tool_answers(source: LocalSource) -> None:
    outcome = await source.call(a_tool("quick"), {"text": "ab", "times": 2}, an_invocation())
    assert (outcome.data, outcome.summary, outcome.meta) == ({"text": "abab"}, "done", {})


async def test_a_tool_that_waits_keeps_its_own_timeouts(source: LocalSource) -> None:
    outcome = await source.call(a_tool("slow"), {"factor_ratio": 2}, an_invocation())
    assert outcome.data == {"factor_ratio": 2.0}
    assert isinstance(outcome.data["factor_ratio"], float)
    assert EVENTS == ["left"]


async def test_a_deadline_ends_a_tool_that_waits(source: LocalSource) -> None:
    with pytest.raises(ToolTimedOut):
        await source.call(a_tool("endless"), {}, an_invocation(0.01))
    assert EVENTS == ["left"]


async def test_cancelling_reaches_the_tool(source: LocalSource) -> None:
    call = asyncio.create_task(source.call(a_tool("endless"), {}, an_invocation()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert EVENTS == ["left"]

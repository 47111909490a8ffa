"""The official Python client, over both transports and in both eras of the protocol."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from conversations import ERAS
from house import STDIO, House
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp_types import (
    CreateMessageResult,
    ElicitResult,
    ImageContent,
    ResourceLink,
    TextContent,
)

REVISIONS = {"handshake": "2025-11-25", "stateless": "2026-07-28"}


@pytest.fixture(params=["stdio", "http"])
def transport(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(params=list(ERAS))
def era(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


class Opener:
    """Opens official clients on one server."""

    def __init__(self, target: Any, era: str) -> None:
        self.target = target
        self.era = era

    @asynccontextmanager
    async def __call__(self, **options: Any) -> AsyncIterator[Client]:
        async with Client(self.target, mode=ERAS[self.era], read_timeout_seconds=60, **options) as client:
            yield client


@pytest.fixture
def connect(house: House, transport: str, era: str) -> Any:
    if transport == "stdio":
        yield Opener(
            StdioServerParameters(
                command=sys.executable, args=list(STDIO), env=house.environment, cwd=str(house.workspace)
            ),
            era,
        )
    else:
        with house.listening() as url:
            yield Opener(url, era)


def _text(result: Any) -> str:
    block = result.content[0]
    assert isinstance(block, TextContent)
    return block.text


async def test_it_negotiates_the_era_it_was_asked_for_and_lists_tools_with_all_four_hints(
    connect: Any, era: str
) -> None:
    async with connect() as client:
        assert client.protocol_version == REVISIONS[era]
        listed = await client.list_tools()
    names = [tool.name for tool in listed.tools]
    assert "fixture.echo" in names
    assert "health.check" in names
    assert len(names) == len(set(names))
    for tool in listed.tools:
        hints = tool.annotations
        assert hints is not None
        assert None not in (
            hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint
        )  # fmt: skip


async def test_a_call_returns_its_text_its_structure_and_its_id(connect: Any) -> None:
    async with connect() as client:
        result = await client.call_tool("fixtureproc.echo", {"text": "Grüße, 世界 \u2028"})
    assert not result.is_error
    assert _text(result) == "Grüße, 世界 \u2028"
    assert result.structured_content["text"] == "Grüße, 世界 \u2028"
    assert result.structured_content["call_id"] == result.meta["callId"]


async def test_wrong_arguments_are_a_tool_error_that_names_every_field(connect: Any) -> None:
    async with connect() as client:
        result = await client.call_tool("fixtureproc.grow", {"size_bytes": -1, "colour": "red"})
    assert result.is_error
    assert "size_bytes" in _text(result)
    assert "colour" in _text(result)


async def test_an_unknown_tool_is_a_protocol_error_that_names_the_nearest_one(connect: Any, era: str) -> None:
    async with connect() as client:
        with pytest.raises(MCPError) as refusal:
            await client.call_tool("fixtureproc.ecko", {"text": "x"})
    assert "fixtureproc.echo" in refusal.value.error.message
    assert refusal.value.error.code == {"handshake": -32601, "stateless": -32602}[era]


async def test_a_refusal_is_shown_with_its_reason_and_remedy(connect: Any) -> None:
    async with connect() as client:
        result = await client.call_tool("test_error_handling", {})
    assert result.is_error
    assert "intentionally" in _text(result)
    assert "Fix: call another tool" in _text(result)


async def test_progress_arrives_while_the_tool_runs(connect: Any) -> None:
    seen: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    async with connect() as client:
        result = await client.call_tool("fixtureproc.sleep", {"seconds": 0.5}, progress_callback=note)
    assert not result.is_error
    assert len(seen) >= 3
    assert seen == sorted(set(seen))


async def test_a_question_reaches_the_person_and_the_answer_the_tool(connect: Any) -> None:
    asked: list[str] = []

    async def answer(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"username": "ada", "email": "ada@example.org"})

    async with connect(elicitation_callback=answer) as client:
        result = await client.call_tool("test_elicitation", {"message": "Who are you?"})
    assert asked == ["Who are you?"]
    assert "action=accept" in _text(result)
    assert "ada@example.org" in _text(result)


async def test_a_client_that_cannot_ask_gets_an_error_that_says_so(connect: Any) -> None:
    async with connect() as client:
        try:
            words = _text(await client.call_tool("test_elicitation", {"message": "Who are you?"}))
        except MCPError as refusal:
            words = refusal.error.message
    assert "elicitation" in words


async def test_the_clients_own_model_can_be_asked(connect: Any) -> None:
    async def sample(context: Any, params: Any) -> CreateMessageResult:
        return CreateMessageResult(
            role="assistant", content=TextContent(type="text", text="forty-two"), model="scripted"
        )

    async with connect(sampling_callback=sample) as client:
        result = await client.call_tool("test_sampling", {"prompt": "What is the answer?"})
    assert "forty-two" in _text(result)


async def test_a_written_file_comes_back_as_a_link_that_can_be_read(connect: Any, house: House) -> None:
    async with connect() as client:
        result = await client.call_tool("fixtureproc.write", {"text": "hello", "output_path": "out/hello.txt"})
        assert not result.is_error, _text(result)
        links = [block for block in result.content if isinstance(block, ResourceLink)]
        assert len(links) == 1
        read = await client.read_resource(str(links[0].uri))
    assert (house.workspace / "out/hello.txt").read_text() == "hello"
    assert getattr(read.contents[0], "text", "") == "hello"


async def test_content_of_every_kind_arrives(connect: Any) -> None:
    async with connect() as client:
        mixed = await client.call_tool("test_multiple_content_types", {})
    assert {block.type for block in mixed.content} == {"text", "image", "resource"}
    image = next(block for block in mixed.content if isinstance(block, ImageContent))
    assert image.mime_type == "image/png"


async def test_a_crash_is_told_and_the_next_call_works(connect: Any) -> None:
    async with connect() as client:
        crashed = await client.call_tool("fixtureproc.crash", {"status": 7})
        after = await client.call_tool("fixtureproc.echo", {"text": "still here"})
    assert crashed.is_error
    assert "7" in _text(crashed)
    assert after.structured_content["text"] == "still here"

"""The official Python client as the judge: both transports, both eras."""

import asyncio
import sys
from pathlib import Path

import mcp_types
import pytest
from mcp import Client, StdioServerParameters

TINY = str(Path(__file__).with_name("tiny.py"))
LIMIT_SECONDS = 20


@pytest.fixture(params=["stdio", "http"])
def address(request, web):
    """What the client connects to; over HTTP a server in this process, over stdio one of its own."""
    if request.param == "http":
        return f"http://127.0.0.1:{web.port}/mcp"
    return StdioServerParameters(command=sys.executable, args=[TINY, "stdio"])


@pytest.fixture(params=["legacy", "auto"])
def mode(request):
    return request.param


async def _accept(context, params):
    assert params.message
    return mcp_types.ElicitResult(action="accept", content={"approve": True})


async def test_it_lists_calls_and_reads(address, mode):
    async with asyncio.timeout(LIMIT_SECONDS), Client(address, mode=mode) as client:
        listed = await client.list_tools()
        called = await client.call_tool("tiny.echo", {"text": "grüß"})
        resources = await client.list_resources()
        templates = await client.list_resource_templates()
        read = await client.read_resource("metaforge://notes/1")
        revision = client.protocol_version

    assert revision == ("2025-11-25" if mode == "legacy" else "2026-07-28")
    assert listed.tools[0].name == "tiny.echo"
    assert listed.tools[0].annotations.read_only_hint is True
    assert called.structured_content["echo"] == "grüß"
    assert resources.resources[0].name == "note"
    assert templates.resource_templates[0].name == "artefact"
    assert read.contents[0].text == "hello"


async def test_it_takes_pictures_links_and_a_closed_output_schema(address, mode):
    async with asyncio.timeout(LIMIT_SECONDS), Client(address, mode=mode) as client:
        await client.list_tools()
        result = await client.call_tool("tiny.part")

    kinds = [block.type for block in result.content]
    assert kinds == ["text", "image", "resource_link"]
    assert result.content[2].uri.startswith("metaforge://artefacts/")
    assert result.structured_content["files"][0]["path"] == "out/box.step"
    assert result.structured_content["warnings"] == ["thin wall, 0.4 mm"]


async def test_it_sees_a_refusal_as_an_error_result(address, mode):
    async with asyncio.timeout(LIMIT_SECONDS), Client(address, mode=mode) as client:
        result = await client.call_tool("tiny.refuse")

    assert result.is_error
    assert "4.99 mm" in result.content[0].text


async def test_it_answers_a_question(address, mode):
    async with (
        asyncio.timeout(LIMIT_SECONDS),
        Client(address, mode=mode, elicitation_callback=_accept) as client,
    ):
        result = await client.call_tool("tiny.ask_twice")

    replies = result.structured_content["replies"]
    assert [reply["content"] for reply in replies] == [{"approve": True}] * 2


async def test_it_gets_progress(address, mode):
    seen = []

    async def note(progress, total, message):
        seen.append((progress, total, message))

    async with asyncio.timeout(LIMIT_SECONDS), Client(address, mode=mode) as client:
        await client.call_tool("tiny.progress", {"fractions": [0.25, 0.75]}, progress_callback=note)

    assert seen == [(0.25, 1.0, "at 0.25"), (0.75, 1.0, "at 0.75")]


async def test_it_gets_log_lines(address):
    seen = []

    async def note(params):
        seen.append(params.data)

    async with asyncio.timeout(LIMIT_SECONDS), Client(address, mode="legacy", logging_callback=note) as client:
        await client.call_tool("tiny.chat")

    assert seen == [{"loud": True}]

"""Fault 8: one bad schema removes every tool, silently."""

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from running import HttpServer, Place, refusal

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
SCHEMAS: dict[str, tuple[Any, Any]] = {
    "far.combined": ({"anyOf": [TEXT, {"type": "object"}]}, None),
    "far.string": ({"type": "string"}, None),
    "far.untyped": ({"properties": {"text": {"type": "string"}}}, None),
    "far.undescribed": (TEXT, {"properties": {"text": {"type": "string"}}, "anyOf": [{}]}),
    "far.good": (
        TEXT | {"additionalProperties": False},
        {"type": "object", "properties": {"text": {"type": "string"}}},
    ),
}
UNFIXABLE = {"far.combined": "anyOf", "far.string": "'string'"}
SDK = Path.home() / ".cache" / "metaforge-npm" / "node_modules" / "@modelcontextprotocol" / "sdk"
LISTING = """
import { Client } from 'SDK/dist/esm/client/index.js';
import { StdioClientTransport } from 'SDK/dist/esm/client/stdio.js';
const client = new Client({ name: 't', version: '1' }, { capabilities: {} });
const [command, ...args] = process.argv.slice(2);
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
const { tools, _meta } = await client.listTools();
const answer = await client.callTool({ name: 'far.good', arguments: { text: 'hi' } });
console.log(JSON.stringify({ names: tools.map(tool => tool.name), answer, _meta }));
await client.close();
"""


@pytest.fixture
async def far() -> AsyncIterator[str]:
    """An adapter of another make that lists five tools, four of them badly."""

    def listed(name: str) -> dict[str, Any]:
        given, returned = SCHEMAS[name]
        about = {"tool_id": name, "adapter_id": "far", "name": name, "description": "Does it.", "effect": "read"}
        return about | {"input_schema": given, "output_schema": returned}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        size = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line)
        message = json.loads(await reader.readexactly(size))
        result: dict[str, Any] = {"status": "healthy", "version": "1.0.0"}
        if message["method"] == "tool/list":
            result = {"tools": [listed(name) for name in SCHEMAS]}
        elif message["method"] == "tool/call":
            result = {"data": message["params"]["arguments"]}
            if message["params"]["tool_id"] == "far.undescribed":
                result = {"summary": "no structure at all"}
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield f'[adapters.far]\nurl = "http://127.0.0.1:{server.sockets[0].getsockname()[1]}"\n'
    server.close()
    await server.wait_closed()


async def test_the_good_tool_is_listed_and_callable_and_the_bad_ones_are_named_with_the_reason(
    start: Any, transport: str, far: str
) -> None:
    server = await start(transport, far)
    session = await server.session()
    listed = (await session.request("tools/list", {}))["result"]
    tools = {tool["name"]: tool for tool in listed["tools"]}
    assert {name for name in tools if name.startswith("far.")} == set(SCHEMAS) - set(UNFIXABLE)
    for tool in tools.values():
        assert tool["inputSchema"]["type"] == "object"
        assert not {"oneOf", "anyOf", "allOf"} & set(tool["inputSchema"])
    told = {name: each["reason"] for each in listed["_meta"]["unavailableAdapters"] for name in each["tools"]}
    for name, reason in UNFIXABLE.items():
        assert "quarantined: input schema" in told[name]
        assert reason in told[name]
        answer = await session.call(name, {"text": "a"})
        assert (answer["error"]["code"], reason in answer["error"]["message"]) == (-32003, True)
    assert {each["toolId"] for each in listed["_meta"]["mendedSchemas"]} == {"far.untyped", "far.undescribed"}
    health = await session.data("health.check")
    assert {name for each in health["quarantined"] for name in each["tools"]} == set(UNFIXABLE)
    assert set(health["mended_schemas"]) == {"far.untyped", "far.undescribed"}
    assert (await session.data("far.good", text="hi"))["text"] == "hi"
    assert "result" in await session.call("far.undescribed", {"text": "a"})
    assert (await session.data("far.untyped", text="hi"))["text"] == "hi"


async def test_unknown_and_missing_arguments_are_an_error_result_that_names_the_field(
    start: Any, transport: str, far: str
) -> None:
    session = await (await start(transport, far)).session()
    missing = await session.call("far.good", {})
    unknown = await session.call("far.good", {"text": "a", "colour": "red"})
    assert missing["result"]["isError"]
    assert unknown["result"]["isError"]
    assert "text" in refusal(missing)
    assert "colour" in refusal(unknown)
    legacy = await session.request("tool/call", {"tool_id": "far.good", "arguments": {}})
    assert legacy["error"]["code"] == -32602
    assert "text" in legacy["error"]["message"]


async def test_the_official_python_client_reads_the_list(start: Any, transport: str, far: str, tmp_path: Path) -> None:
    target: Any
    if transport == "http":
        server: HttpServer = await start("http", far)
        target = f"{server.url}/mcp"
    else:
        folder = tmp_path / "python"
        folder.mkdir()
        place = Place(folder, far)
        target = StdioServerParameters(
            command=sys.executable, args=["-m", "metaforge.mcp"], env=place.environment, cwd=str(place.workspace)
        )
    async with Client(target, mode="legacy", read_timeout_seconds=60) as client:
        listed = await client.list_tools()
        assert "far.good" in [tool.name for tool in listed.tools]
        answer = await client.call_tool("far.good", {"text": "hi"})
        assert not answer.is_error
        assert answer.structured_content is not None
        assert answer.structured_content["text"] == "hi"


@pytest.mark.e2e
async def test_the_official_typescript_client_reads_the_list(far: str, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None or not SDK.is_dir():
        pytest.skip("no node, or no MCP SDK from npm: the tests of other people's clients install it")
    place = Place(tmp_path, far)
    script = tmp_path / "list.mjs"
    script.write_text(LISTING.replace("SDK", SDK.as_posix()))
    ran = await asyncio.to_thread(
        subprocess.run, [node, str(script), sys.executable, "-m", "metaforge.mcp"],
        capture_output=True, text=True, timeout=60, env=place.environment, cwd=place.workspace, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-2000:]
    said = json.loads(ran.stdout)
    assert "far.good" in said["names"]
    assert not set(UNFIXABLE) & set(said["names"])
    assert said["answer"]["structuredContent"]["text"] == "hi"
    assert said["_meta"]["unavailableAdapters"]

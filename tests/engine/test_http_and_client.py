"""Adapters over HTTP, and the documented client over pipes and HTTP."""

import asyncio
import os
import sys
from pathlib import Path

import httpx
import psutil
import pytest

from metaforge.core.errors import InvalidArguments, ToolCrashed, ToolError, ToolTimedOut, ToolUnavailable, UnknownTool
from metaforge.engine.client import McpClient
from metaforge.engine.remote import RemoteSource
from metaforge.protocol.messages import ToolCallRequest
from metaforge.settings import Settings
from metaforge.store.blobs import BlobStore
from metaforge.tools.config import AdapterConfig
from metaforge.tools.context import Caller, Invocation
from metaforge.tools.generate import manifest_of
from metaforge.tools.manifest import AdapterManifest

TARGET = "misbehaving:MisbehavingServer"
HERE = Path(__file__).parent


def environment() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(HERE), "HOME": os.environ.get("HOME", "/")}


@pytest.fixture
async def address(unused_tcp_port):
    url = f"http://127.0.0.1:{unused_tcp_port}"
    command = [sys.executable, "-m", "metaforge.tools.run", TARGET, "--http", f"127.0.0.1:{unused_tcp_port}"]
    serving = await asyncio.create_subprocess_exec(*command, env=environment())
    async with httpx.AsyncClient() as client:
        for _ in range(400):
            try:
                await client.get(f"{url}/health")
                break
            except httpx.ConnectError:
                await asyncio.sleep(0.05)
    yield url
    children = psutil.Process(serving.pid).children(recursive=True)
    serving.terminate()
    await serving.wait()
    _, alive = psutil.wait_procs(children, timeout=5)
    assert alive == []


@pytest.fixture
async def remote(address, tmp_path):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    settings = Settings.load({"METAFORGE_HOME": str(tmp_path / "home"), "METAFORGE_MAX_OUTPUT_MB": "2"})
    manifest = AdapterManifest.from_json(manifest_of(TARGET))
    blobs = BlobStore(tmp_path / "home" / "blobs")
    source = RemoteSource(manifest, address, blobs=blobs, workspace=workspace, settings=settings)
    yield source
    await source.close()


async def call(source, name, *, seconds=30.0, progress=lambda f, m: None, **arguments):
    tool = next(each for each in source.manifest.tools if each.id == f"misbehaving.{name}")
    return await source.call(tool, arguments, Invocation("call-1", Caller(), seconds, progress=progress))


async def test_a_remote_call_its_progress_and_its_files_come_back(remote, tmp_path):
    assert (await call(remote, "echo", text="hällo")).data["text"] == "hällo"
    told = []
    await call(remote, "slow", duration_seconds=0.0, progress=lambda f, m: told.append((f, m)))
    assert told == [(0.0, "begun"), (1.0, "ended")]
    outcome = await call(remote, "produce", files={"out/a b.txt": "one"})
    assert (tmp_path / "workspace/out/a b.txt").read_text() == "one"
    assert outcome.files[0].path == "out/a b.txt"
    assert not list((tmp_path / "home/workers").iterdir())


async def test_a_remote_crash_takes_only_its_call(remote):
    with pytest.raises(ToolCrashed, match="exit status 3"):
        await call(remote, "crash")
    with pytest.raises(ToolCrashed, match="signal 11"):
        await call(remote, "segfault")
    assert (await call(remote, "echo", text="a")).data["text"] == "a"


async def test_a_remote_deadline_ends_the_call_there(remote):
    with pytest.raises(ToolTimedOut):
        await call(remote, "loop", seconds=0.5)
    assert (await call(remote, "echo", text="a")).data["text"] == "a"


async def test_going_away_ends_the_call_there(remote):
    begun = asyncio.Event()
    running = asyncio.create_task(call(remote, "loop", progress=lambda f, m: begun.set()))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    # One call at a time: this one only runs when the other is gone.
    assert (await call(remote, "echo", text="a", seconds=10.0)).data["text"] == "a"


async def test_a_remote_refusal_is_the_same_error(remote):
    with pytest.raises(ToolError) as caught:
        await call(remote, "refuse_retried")
    assert (caught.value.kind, caught.value.data) == ("fillet_too_large", {"largest_mm": 4.99})


async def test_remote_health_is_asked(remote, tmp_path):
    health = await remote.health(3.0)
    assert (health.reachable, health.state) == (True, "ready")
    assert health.detail["adapter_id"] == "misbehaving"
    dead = RemoteSource(
        remote.manifest, "http://127.0.0.1:9", blobs=BlobStore(tmp_path), workspace=tmp_path,
        settings=Settings.load({"METAFORGE_HOME": str(tmp_path)}),
    )  # fmt: skip
    health = await dead.health(3.0)
    assert (health.reachable, health.state) == (False, "down")
    with pytest.raises(ToolUnavailable, match="does not answer"):
        await call(dead, "echo", text="a")
    await dead.close()


async def test_health_answers_while_a_call_runs(address):
    async with httpx.AsyncClient(base_url=address) as client:
        body = {
            "jsonrpc": "2.0",
            "id": "a",
            "method": "tool/call",
            "params": {"tool_id": "misbehaving.slow", "arguments": {"duration_seconds": 1.0}},
        }
        slow = asyncio.create_task(client.post("/mcp", json=body))
        await asyncio.sleep(0)
        assert (await client.get("/health")).json()["status"] == "healthy"
        answer = await slow
        assert answer.headers["content-type"] == "application/json"
        assert answer.json()["id"] == "a"


async def test_the_http_door_keeps_its_manners(address):
    async with httpx.AsyncClient(base_url=address) as client:
        assert (await client.post("/rpc", content=b"[1]")).json()["error"]["code"] == -32600
        assert (await client.post("/rpc", content=b"no json")).json()["error"]["code"] == -32700
        notification = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {}}
        assert (await client.post("/rpc", json=notification)).status_code == 204
        assert (await client.get("/nothing")).status_code == 404
        assert (await client.get("/output/0/../../etc/passwd")).status_code == 404


@pytest.fixture(params=["pipes", "http"])
async def client(request, address):
    if request.param == "http":
        config = AdapterConfig(adapter_id="misbehaving", transport="http", url=address)
        made = McpClient.from_configs([config], {})
    else:
        command = (sys.executable, "-P", "-m", "metaforge.tools.run", TARGET)
        made = McpClient({"misbehaving": command}, environment=environment())
    await made.connect("misbehaving")
    yield made
    await made.close()


async def test_the_client_lists_calls_and_checks(client):
    tools = {tool.tool_id for tool in await client.list_tools("misbehaving")}
    assert "misbehaving.echo" in tools
    result = await client.call_tool(ToolCallRequest(tool_id="misbehaving.echo", arguments={"text": "a"}))
    assert (result.status, result.data["text"]) == ("success", "a")
    health = await client.health_check("misbehaving")
    assert health.tools_available == len(tools)


async def test_the_client_turns_answers_into_errors_and_goes_on(client):
    with pytest.raises(InvalidArguments) as caught:
        await client.call_tool(ToolCallRequest(tool_id="misbehaving.echo", arguments={"wrong": 1}))
    assert set(caught.value.data["fields"]) == {"text", "wrong"}
    with pytest.raises(ToolCrashed):
        await client.call_tool(ToolCallRequest(tool_id="misbehaving.crash"))
    with pytest.raises(ToolTimedOut):
        await client.call_tool(ToolCallRequest(tool_id="misbehaving.loop", timeout_seconds=1))
    with pytest.raises(UnknownTool):
        await client.call_tool(ToolCallRequest(tool_id="misbehaving.nothing"))
    result = await client.call_tool(ToolCallRequest(tool_id="misbehaving.echo", arguments={"text": "a"}))
    assert result.data["text"] == "a"


async def test_the_client_knows_only_what_it_was_given():
    client = McpClient({"a": ("/no/such/program",)})
    with pytest.raises(ToolUnavailable, match="cannot be started"):
        await client.connect("a")
    with pytest.raises(ToolUnavailable, match="no adapter b is configured; there are: a"):
        await client.connect("b")
    with pytest.raises(ToolUnavailable):
        await client.health_check("a")
    await client.close()

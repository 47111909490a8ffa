"""The adapter as a service of its own: HTTP on port 8104, alone and behind the unified server."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from metaforge.adapters.spice.server import SpiceServer
from metaforge.app import App
from metaforge.core.ids import new_call_id
from metaforge.settings import Settings
from metaforge.tools.context import Caller, Trust
from metaforge.tools.run import _address

pytestmark = pytest.mark.program("ngspice")
TARGET = "metaforge.adapters.spice.server:SpiceServer"
RC = "RC\nV1 in 0 AC 1\nR1 in out 1k\nC1 out 0 159.155n\n.ac dec 20 1 1meg\n.end\n"


@pytest.fixture
async def address(tmp_path: Path, unused_tcp_port: int) -> AsyncIterator[str]:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "filter.cir").write_text(RC)
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    serving = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "metaforge.tools.run", TARGET, "--http", f"127.0.0.1:{unused_tcp_port}",
        env=environment | {"METAFORGE_WORKER_WORKSPACE": str(workspace)},
    )  # fmt: skip
    url = f"http://127.0.0.1:{unused_tcp_port}"
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


async def call(url: str, **arguments: Any) -> dict[str, Any]:
    message = {
        "jsonrpc": "2.0", "id": 7, "method": "tool/call",
        "params": {"tool_id": "spice.run_simulation", "arguments": arguments, "fetch_outputs": True},
    }  # fmt: skip
    async with httpx.AsyncClient(timeout=60) as client:
        answer: dict[str, Any] = (await client.post(f"{url}/mcp", json=message)).json()
    assert answer["id"] == 7
    return answer


async def test_it_answers_on_mcp_and_health_and_gives_its_files(address: str) -> None:
    async with httpx.AsyncClient() as client:
        health = (await client.get(f"{address}/health")).json()
    assert (health["adapter_id"], health["status"], health["tools_available"]) == ("spice", "healthy", 1)
    result = (await call(address, analysis_type="ac", netlist_path="filter.cir", probes=["out"]))["result"]
    assert result["data"]["measurements"]["v(out)"]["corner_hz"] == pytest.approx(1000, rel=0.005)
    async with httpx.AsyncClient() as client:
        raw = await client.get(f"{address}{result['output_url']}/{result['data']['waveforms'][0]}")
    assert raw.content.startswith(b"Title: ")


async def test_a_path_that_nobody_judged_before_is_judged_here(address: str, tmp_path: Path) -> None:
    (tmp_path / "secret.cir").write_text(RC)
    for path in ("../secret.cir", str(tmp_path / "secret.cir"), "/etc/passwd"):
        answer = await call(address, analysis_type="ac", netlist_path=path)
        assert answer["error"]["data"]["kind"] == "path_outside_workspace"
    after = await call(address, analysis_type="ac", netlist_path="filter.cir")
    assert "result" in after


async def test_the_unified_server_reaches_it_by_its_url(address: str, tmp_path: Path) -> None:
    environ = {
        "PATH": "/nonexistent",
        "METAFORGE_HOME": str(tmp_path / "home"),
        "METAFORGE_WORKSPACE": str(tmp_path / "workspace"),
        "METAFORGE_PRESTART": "false",
        "METAFORGE_ADAPTERS": "spice",
        "METAFORGE_ADAPTER_SPICE_URL": address,
    }
    app = App(Settings.load(environ), over_stdio=True)
    caller = Caller("anna", Trust.LOCAL, "test", "1", "session-1")
    arguments = {"analysis_type": "ac", "netlist_path": "filter.cir", "probes": ["out"]}
    outcome = await app.call_tool("spice.run_simulation", arguments, call_id=new_call_id(), caller=caller)
    await app.close()
    assert outcome.data["measurements"]["v(out)"]["corner_hz"] == pytest.approx(1000, rel=0.005)
    assert (tmp_path / "workspace" / "spice" / "filter-ac.raw").is_file()


def test_its_port_is_8104_unless_another_is_named() -> None:
    assert SpiceServer.http_port == 8104
    assert _address("0.0.0.0") == ("0.0.0.0", None)
    assert _address("127.0.0.1:9") == ("127.0.0.1", 9)
    assert _address("9") == ("", 9)
    assert _address("[::1]:9") == ("::1", 9)
    assert _address("::1") == ("::1", None)

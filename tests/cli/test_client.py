"""The demo's client against servers that behave, refuse, print junk, die and stay silent."""

import sys
from pathlib import Path

import pytest

from metaforge.cli.client import ClientError, StdioClient

SERVER = """
import json, sys
def send(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, request = message["method"], message.get("id")
    params = message.get("params", {})
    if method == "initialize":
        send(id=request, result={"serverInfo": {"name": "fake"}, "protocolVersion": params["protocolVersion"]})
    elif method == "tools/call":
        name = params["name"]
        token = params.get("_meta", {}).get("progressToken")
        if name == "good":
            print("not a message", flush=True)
            send(method="notifications/progress", params={"progressToken": token, "progress": 2, "total": 4})
            send(id=request, result={"content": [], "structuredContent": params["arguments"]})
        elif name == "refuses":
            send(id=request, result={"isError": True, "content": [{"type": "text", "text": "radius too large"}]})
        elif name == "unavailable":
            send(id=request, error={"code": -32003, "message": "no ccx", "data": {"install": "apt-get install ccx"}})
        elif name == "dies":
            print("last words", file=sys.stderr, flush=True)
            sys.exit(7)
"""


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    server = tmp_path / "server.py"
    server.write_text(SERVER)
    return [sys.executable, str(server)]


def test_it_shakes_hands_and_hands_results_back(command):
    with StdioClient(command) as client:
        assert client.initialize()["protocolVersion"] == "2025-11-25"
        moves: list[tuple[float, str]] = []
        result = client.call_tool("good", {"a": 1}, within_seconds=20, moved=lambda *move: moves.append(move))
    assert result["structuredContent"] == {"a": 1}
    assert moves == [(0.5, "")]


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("refuses", "radius too large"),
        ("unavailable", "no ccx\nTo add it: apt-get install ccx"),
        ("dies", "ended during tools/call with exit status 7:\nlast words"),
    ],
)
def test_what_went_wrong_is_told_in_the_servers_own_words(command, tool, said):
    with StdioClient(command) as client, pytest.raises(ClientError) as caught:
        client.call_tool(tool, {}, within_seconds=20)
    assert said in str(caught.value)


def test_silence_ends_after_the_time_given(command):
    with StdioClient(command) as client, pytest.raises(ClientError, match=r"did not answer tools/call within 0\.2 s"):
        client.call_tool("silent", {}, within_seconds=0.2)


def test_a_server_that_cannot_start_is_told(tmp_path):
    command = [sys.executable, "-c", "raise SystemExit('METAFORGE_WORKSPACE=/ is refused')"]
    with StdioClient(command) as client, pytest.raises(ClientError, match="METAFORGE_WORKSPACE=/ is refused"):
        client.initialize()


def test_nothing_runs_after_the_block(command):
    with StdioClient(command) as client:
        client.initialize()
    assert client._server.poll() is not None

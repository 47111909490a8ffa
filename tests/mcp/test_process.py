"""The server as a process: what it prints, and how it ends."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

TINY = str(Path(__file__).with_name("tiny.py"))
LIMIT_SECONDS = 20
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


def lines(*messages):
    return "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)


def run(command, text="", **environment):
    return subprocess.run(
        [sys.executable, *command], input=text, capture_output=True, text=True, timeout=LIMIT_SECONDS, env=environment
    )


@pytest.fixture
def home(tmp_path):
    (tmp_path / "workspace").mkdir()
    return {
        "METAFORGE_HOME": str(tmp_path / "home"),
        "METAFORGE_WORKSPACE": str(tmp_path / "workspace"),
        "PATH": "/usr/bin",
    }


def test_what_is_piped_in_is_answered_and_the_server_ends_by_itself():
    hello = {"id": 1, "method": "initialize", "params": HELLO}
    call = {"id": 2, "method": "tools/call", "params": {"name": "tiny.echo", "arguments": {"text": "x"}}}
    ended = run([TINY, "stdio"], lines(hello, call))

    assert ended.returncode == 0
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    assert {answer["id"] for answer in answers} == {1, 2}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_signal_ends_the_server_with_a_call_in_flight(transport, number):
    command = [sys.executable, TINY, transport, *(["0"] if transport == "http" else [])]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        if transport == "stdio":
            call = {"id": 1, "method": "tools/call", "params": {"name": "tiny.slow"}}
            server.stdin.write(lines(call, {"id": 2, "method": "ping"}))
            server.stdin.flush()
            assert json.loads(server.stdout.readline())["id"] == 2
        else:
            assert "listening" in server.stderr.readline()
        server.send_signal(number)
        assert server.wait(LIMIT_SECONDS) == 0


def test_the_server_starts_says_it_is_ready_and_prints_nothing_but_the_protocol(home):
    hello = {"id": 1, "method": "initialize", "params": HELLO}
    listed = {"id": 2, "method": "tools/list"}
    ended = run(
        ["-m", "metaforge.mcp", "--transport", "stdio"],
        lines(hello, {"method": "notifications/initialized"}, listed),
        **home,
    )

    assert "metaforge-mcp ready" in ended.stderr
    assert ended.returncode == 0
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    assert all(answer["jsonrpc"] == "2.0" for answer in answers)
    assert "health.check" in [tool["name"] for tool in answers[1]["result"]["tools"]]


HEAVY = ["pydantic", "sqlalchemy", "alembic", "typer", "uvicorn", "starlette", "prometheus_client", "opentelemetry.sdk",
         "httpx", "numpy", "rich"]  # fmt: skip

PROBE = """
import sys
from metaforge.app import App
from metaforge.mcp import __main__, stdio
from metaforge.mcp.listing import Listing
from metaforge.settings import Settings
Listing(App(Settings.from_environment(), over_stdio=True)).handshake()
print([name for name in %r if name in sys.modules])
"""


def test_nothing_heavy_is_imported_before_the_list_is_answered(home):
    ended = run(["-c", PROBE % HEAVY], **home)

    assert ended.stdout.splitlines()[-1] == "[]", ended.stderr


def test_a_wrong_key_is_an_auth_error_on_stderr(home):
    ended = run(["-m", "metaforge.mcp"], METAFORGE_MCP_API_KEY="a", METAFORGE_MCP_CLIENT_KEY="b", **home)

    assert ended.returncode == 1
    assert ended.stderr.startswith("auth_error")
    assert ended.stdout == ""


def test_an_open_server_for_others_does_not_start(home):
    ended = run(["-m", "metaforge.mcp", "--transport", "http", "--host", "0.0.0.0"], **home)

    assert ended.returncode == 1
    assert "METAFORGE_MCP_API_KEY" in ended.stderr


def test_a_taken_port_is_named(home):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = run(["-m", "metaforge.mcp", "--transport", "http", "--port", port], **home)

    assert ended.returncode == 1
    assert port in ended.stderr


STUCK = """
import asyncio, sys, time
from metaforge import app
from metaforge.mcp import __main__

class Stuck(app.App):
    async def close(self):
        time.sleep(60)

app.App = Stuck
sys.exit(__main__.main())
"""


def test_an_application_that_will_not_close_does_not_hold_the_exit(home):
    ended = run(["-c", STUCK], lines({"id": 1, "method": "ping"}), **home)

    assert ended.returncode == 0
    assert json.loads(ended.stdout)["id"] == 1

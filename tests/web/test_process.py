"""`metaforge serve` as a process: what it says, a held call from end to end, addresses, and how it ends."""

import json
import signal
import subprocess
import sys

import httpx
import pytest

LIMIT_SECONDS = 20
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "claude-code", "version": "2.1"}}


class Mcp:
    """A client of the MCP server."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=url, timeout=LIMIT_SECONDS)
        self.headers = {"accept": "application/json, text/event-stream"}
        answer = self.http.post("/mcp", json=message("initialize", HELLO), headers=self.headers)
        self.headers["mcp-session-id"] = answer.headers["mcp-session-id"]
        self.http.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=self.headers)

    def call(self, tool: str, arguments: dict, token=None):
        """Yield what the stream of a call says."""
        params = {"name": tool, "arguments": arguments}
        if token is not None:
            params["_meta"] = {"progressToken": token}
        with self.http.stream("POST", "/mcp", json=message("tools/call", params), headers=self.headers) as answer:
            if answer.headers["content-type"].startswith("application/json"):
                yield json.loads(answer.read())
                return
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    yield json.loads(line[6:])

    def close(self) -> None:
        self.http.close()


def message(method: str, params: dict) -> dict:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


@pytest.fixture
def server(start_server):
    return start_server("--adapters", "none")


@pytest.fixture
def client(server):
    """A client of the MCP server."""
    made = Mcp(server.url)
    yield made
    made.close()


def test_it_says_where_the_dashboard_and_the_endpoint_are(server) -> None:
    assert f"metaforge dashboard: {server.url}\n" in server.lines
    assert httpx.get(f"{server.url}/", follow_redirects=True).headers["content-type"].startswith("text/html")


def test_a_held_call_goes_on_when_it_is_approved_over_the_api(server, client) -> None:
    said = client.call("project.create", {"name": "Arm"}, token="tok-é/1")

    held = next(said)
    (item,) = httpx.get(f"{server.url}/v1/approvals").json()["items"]
    approved = httpx.post(f"{server.url}/v1/approvals/{item['id']}/decision", json={"decision": "approve"})
    *_, result = said

    assert approved.status_code == 200
    assert held["params"]["progressToken"] == "tok-é/1"
    assert f"{server.url}/approvals" in held["params"]["message"]
    assert result["result"]["structuredContent"]["name"] == "Arm"
    assert result["result"]["_meta"]["approval"]["approvedBy"] == "local:dashboard"
    assert httpx.get(f"{server.url}/v1/projects").json()["items"][0]["name"] == "Arm"
    assert httpx.get(f"{server.url}/v1/approvals/{item['id']}").json()["detail"]["state"] == "completed"


def test_a_result_links_to_its_call_on_the_dashboard(server, client) -> None:
    (result,) = client.call("project.list", {})

    (link,) = result["result"]["_meta"]["links"]
    call_id = result["result"]["_meta"]["callId"]
    assert link == {"url": f"{server.url}/calls/{call_id}", "label": "This call on the dashboard"}
    assert httpx.get(f"{server.url}/v1/calls/{call_id}").json()["tool_id"] == "project.list"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_at_once_with_readers_and_a_held_call(server, client, number) -> None:
    said = client.call("project.create", {"name": "Arm"}, token=0)
    next(said)
    with httpx.stream("GET", f"{server.url}/v1/approvals/events", timeout=LIMIT_SECONDS) as reader:
        lines = reader.iter_lines()
        next(lines)
        server.popen.send_signal(number)
        assert server.popen.wait(LIMIT_SECONDS) == 0
        assert list(lines)[-1:] in ([], [""])
    said.close()


def test_an_open_server_is_for_this_machine_alone(tmp_path) -> None:
    command = [sys.executable, "-m", "metaforge", "serve", "--port", "0", "--host", "0.0.0.0"]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_SECONDS, env={"METAFORGE_HOME": str(tmp_path)}
    )

    assert ended.returncode == 1
    assert "METAFORGE_MCP_API_KEY" in ended.stderr


def test_the_dashboard_command_tells_where_it_is_or_how_to_start_it(server, tmp_path) -> None:
    command = [sys.executable, "-m", "metaforge", "dashboard", "--print"]
    for url, status, told in ((server.url, 0, server.url), ("http://127.0.0.1:1", 1, "metaforge serve")):
        environment = {"METAFORGE_HOME": str(tmp_path), "METAFORGE_DASHBOARD_URL": url, "COLUMNS": "200"}
        ended = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, env=environment)
        assert ended.returncode == status
        assert told in ended.stdout + ended.stderr

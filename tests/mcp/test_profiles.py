"""Profiles over both transports: chosen once for a connection, and binding what it may call."""

import json
import subprocess
import sys

import pytest

from metaforge.registry.profiles import PROFILES
from metaforge.settings import Settings

LIST = {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO}
VERSION = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
ENVELOPE = {
    PREFIX + "protocolVersion": VERSION,
    PREFIX + "clientCapabilities": {},
    PREFIX + "clientInfo": {"name": "modern", "version": "3"},
}
LIMIT_SECONDS = 20


async def open_session(web, query):
    answer = await web.post(INITIALIZE, path=f"/mcp{query}")
    web.session_id = answer.headers.get("mcp-session-id", "")
    return answer.json()


async def stateless(web, method, query="", **params):
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": ENVELOPE}}
    name = {"mcp_name": params["name"]} if "name" in params else {}
    path = f"/mcp{query}"
    return (await web.post(message, path=path, mcp_protocol_version=VERSION, mcp_method=method, **name)).json()


async def test_a_session_is_served_the_profile_of_the_address_it_began_with(web):
    hello = await open_session(web, "?profile=core")
    listed = (await web.post(LIST)).json()["result"]["tools"]
    await web.call("echo")

    assert hello["result"]["instructions"] == "Call tiny.echo. Served: core."
    assert len(listed) == 2
    assert list(listed[0]) == ["name", "description", "inputSchema", "outputSchema", "annotations"]
    assert web.service.calls[0][3].profile == "core"


async def test_sessions_of_one_server_have_profiles_of_their_own(web):
    await open_session(web, "?profile=core")
    core = web.session_id
    await open_session(web, "")
    assert len((await web.post(LIST)).json()["result"]["tools"]) > 2
    web.session_id = core
    assert len((await web.post(LIST)).json()["result"]["tools"]) == 2


async def test_an_unknown_profile_is_a_wrong_parameter_with_the_names_there_are(web):
    refused = await open_session(web, "?profile=mechanica")
    assert (refused["id"], refused["error"]["code"]) == (0, -32602)
    assert "there are: core, mechanical" in refused["error"]["message"]
    assert refused["error"]["data"]["code"] == "unknown_profile"
    assert refused["error"]["data"]["available"] == list(PROFILES)
    assert web.session_id == ""


@pytest.mark.parametrize("query", ["?profile=", "?other=core", "?"])
async def test_an_address_that_names_none_is_served_every_tool(web, query):
    await open_session(web, query)
    assert len((await web.post(LIST)).json()["result"]["tools"]) > 2


async def test_a_stateless_request_is_served_the_profile_of_its_address(web):
    listed = await stateless(web, "tools/list", "?profile=core")
    await stateless(web, "tools/call", "?profile=core", name="tiny.echo", arguments={})
    await stateless(web, "tools/call", name="tiny.echo", arguments={})
    refused = await stateless(web, "tools/list", "?profile=nope")
    discovered = await stateless(web, "server/discover", "?profile=core")

    assert len(listed["result"]["tools"]) == 2
    assert [call[3].profile for call in web.service.calls] == ["core", ""]
    assert (refused["error"]["code"], refused["error"]["data"]["code"]) == (-32602, "unknown_profile")
    assert discovered["result"]["instructions"].endswith("Served: core.")


async def test_the_legacy_dialect_is_served_the_profile_of_its_address_or_session(web):
    message = {"jsonrpc": "2.0", "id": 3, "method": "tool/list"}
    for path in ("/rpc?profile=core", "/mcp?profile=core"):
        assert len((await web.post(message, path=path)).json()["result"]["tools"]) == 2
    assert len((await web.post(message, path="/rpc")).json()["result"]["tools"]) > 2
    refused = (await web.post(message, path="/rpc?profile=nope")).json()
    assert refused["error"]["data"]["available"] == list(PROFILES)

    await open_session(web, "?profile=core")
    assert len((await web.post(message)).json()["result"]["tools"]) == 2


class TestStartedWithOne:
    @pytest.fixture
    def settings(self):
        return Settings(profile="core")

    async def test_every_connection_is_served_it(self, web):
        await open_session(web, "")
        assert len((await web.post(LIST)).json()["result"]["tools"]) == 2
        assert len((await stateless(web, "tools/list"))["result"]["tools"]) == 2

    async def test_a_connection_cannot_ask_for_more(self, web):
        refused = await open_session(web, "?profile=mechanical")
        assert "serves no other" in refused["error"]["message"]
        assert refused["error"]["data"]["available"] == ["core"]
        assert "result" in await open_session(web, "?profile=core")


async def test_a_call_outside_is_answered_with_where_the_tool_is_served(open_house):
    server, _ = await open_house()
    await open_session(server, "?profile=electronics")
    call = {"name": "project.update", "arguments": {"name": "Drone"}}
    answer = (await server.post({"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": call})).json()

    assert answer["error"]["code"] == -32003
    assert "not in the profile electronics" in answer["error"]["message"]
    assert answer["error"]["data"]["profiles"] == ["core"]


async def test_over_pipes_the_server_s_profile_holds_in_both_eras(tiny, pipes_class):
    client = pipes_class(tiny.TinyService(), profile="core")
    await client.open()
    hello = await client.initialize()
    listed = await client.request("tools/list")
    await client.call("echo")
    modern = await client.request("tools/list", {"_meta": ENVELOPE})
    await client.close()

    assert hello["result"]["instructions"].endswith("Served: core.")
    assert len(listed["result"]["tools"]) == len(modern["result"]["tools"]) == 2
    assert client.service.calls[0][3].profile == "core"


@pytest.fixture
def home(tmp_path):
    (tmp_path / "workspace").mkdir()
    return {
        "METAFORGE_HOME": str(tmp_path / "home"),
        "METAFORGE_WORKSPACE": str(tmp_path / "workspace"),
        "PATH": "/usr/bin",
    }


def run(*command, text="", **environment):
    return subprocess.run(
        [sys.executable, "-m", *command],
        input=text, capture_output=True, text=True, timeout=LIMIT_SECONDS, env=environment,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["metaforge.mcp", "--profile", "mechanica"], {}),
        (["metaforge.mcp", "--transport", "http", "--port", "0", "--profile", "mechanica"], {}),
        (["metaforge.mcp"], {"METAFORGE_PROFILE": "mechanica"}),
        (["metaforge", "serve", "--port", "0", "--profile", "mechanica"], {}),
        (["metaforge", "mcp", "--profile", "mechanica"], {}),
    ],
)
def test_an_unknown_name_stops_the_server_with_the_list(home, command, told):
    ended = run(*command, **home, **told)
    assert ended.returncode == 1
    assert ended.stdout == ""
    words = " ".join(ended.stderr.split())
    assert "there are: core, mechanical, simulation, electronics, robotics. Did you mean: mechanical" in words
    assert "Traceback" not in ended.stderr


def test_a_server_started_with_a_profile_serves_it(home):
    messages = [INITIALIZE, {"jsonrpc": "2.0", "method": "notifications/initialized"}, LIST]
    text = "".join(json.dumps(message) + "\n" for message in messages)
    ended = run("metaforge.mcp", "--profile", "core", text=text, **home, METAFORGE_PRESTART="false")

    listed = next(answer for line in ended.stdout.splitlines() if (answer := json.loads(line))["id"] == 7)
    assert {tool["name"] for tool in listed["result"]["tools"]} == PROFILES["core"].tools
    assert "_meta" not in listed["result"]
    assert len(json.dumps(listed["result"], separators=(",", ":"))) / 4 < 5000

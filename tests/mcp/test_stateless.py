"""The stateless era over both transports."""

import asyncio

import pytest

VERSION = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"


def envelope(**capabilities):
    return {
        PREFIX + "protocolVersion": VERSION,
        PREFIX + "clientCapabilities": capabilities,
        PREFIX + "clientInfo": {"name": "modern", "version": "3"},
    }


class Modern:
    """Sends stateless requests over either transport; returns HTTP status (200 over pipes) and answer."""

    def __init__(self, pipes=None, web=None):
        self._pipes, self._web = pipes, web
        self.service = (pipes or web).service

    async def request(self, method, capabilities=None, **params):
        params["_meta"] = envelope(**(capabilities or {}))
        if self._pipes:
            return 200, await self._pipes.request(method, params)
        name = {"mcp_name": params["name"]} if "name" in params else {}
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        response = await self._web.post(message, mcp_protocol_version=VERSION, mcp_method=method, **name)
        return response.status_code, response.json()


@pytest.fixture(params=["stdio", "http"])
def modern(request, pipes, web):
    return Modern(pipes=pipes) if request.param == "stdio" else Modern(web=web)


async def test_discover_says_what_is_spoken_and_offered(modern):
    status, answer = await modern.request("server/discover")

    result = answer["result"]
    assert status == 200
    assert result["supportedVersions"][0] == VERSION
    assert (result["resultType"], result["ttlMs"], result["cacheScope"]) == ("complete", 0, "private")
    assert result["_meta"][PREFIX + "serverInfo"]["name"] == "metaforge"
    assert "tools" in result["capabilities"]


async def test_a_list_and_a_call_need_no_handshake(modern):
    _, listed = await modern.request("tools/list")
    _, called = await modern.request("tools/call", name="tiny.echo", arguments={"text": "x"})

    assert listed["result"]["tools"][0]["name"] == "tiny.echo"
    assert (listed["result"]["resultType"], listed["result"]["cacheScope"]) == ("complete", "private")
    assert called["result"]["structuredContent"]["echo"] == "x"
    assert called["result"]["resultType"] == "complete"
    assert modern.service.ready_count == 1
    assert modern.service.calls[0][3].client_name == "modern"


@pytest.mark.parametrize("method", ["ping", "logging/setLevel", "subscriptions/listen", "prompts/list", "nope"])
async def test_methods_that_this_revision_does_not_have_are_unknown(modern, method):
    status, answer = await modern.request(method)

    assert answer["error"]["code"] == -32601
    assert status in (200, 404)


async def test_an_unknown_tool_is_a_wrong_parameter_here(modern):
    _, answer = await modern.request("tools/call", name="tiny.none")

    assert answer["error"]["code"] == -32602
    assert answer["error"]["data"]["did_you_mean"] == ["tiny.echo"]


async def test_an_unknown_resource_is_a_wrong_parameter_here(pipes):
    _, answer = await Modern(pipes=pipes).request("resources/read", uri="metaforge://none")
    assert answer["error"]["code"] == -32602


async def test_resources_say_how_long_they_may_be_kept(modern):
    for method in ("resources/list", "resources/templates/list"):
        _, answer = await modern.request(method)
        assert (answer["result"]["resultType"], answer["result"]["ttlMs"]) == ("complete", 0)


async def test_a_question_pauses_the_call_until_it_is_sent_again_with_the_answer(modern):
    _, first = await modern.request("tools/call", {"elicitation": {}}, name="tiny.ask")
    result = first["result"]
    ((key, question),) = result["inputRequests"].items()
    assert result["resultType"] == "input_required"
    assert (question["method"], question["params"]["message"]) == ("elicitation/create", "May I?")

    reply = {"action": "accept", "content": {"approve": True}}
    again = {"requestState": result["requestState"], "inputResponses": {key: reply}}
    _, second = await modern.request("tools/call", {"elicitation": {}}, name="tiny.ask", **again)

    assert second["result"]["structuredContent"]["reply"] == reply


async def test_two_questions_take_two_rounds(modern):
    answer = (await modern.request("tools/call", {"elicitation": {}}, name="tiny.ask_twice"))[1]["result"]
    for action in ("accept", "decline"):
        assert answer["resultType"] == "input_required"
        (key,) = answer["inputRequests"]
        again = {"requestState": answer["requestState"], "inputResponses": {key: {"action": action}}}
        answer = (await modern.request("tools/call", {"elicitation": {}}, name="tiny.ask_twice", **again))[1]["result"]

    assert answer["structuredContent"]["replies"] == [{"action": "accept"}, {"action": "decline"}]


async def test_a_state_is_good_once_and_for_its_own_call_only(modern):
    result = (await modern.request("tools/call", {"elicitation": {}}, name="tiny.ask"))[1]["result"]
    (key,) = result["inputRequests"]
    again = {"requestState": result["requestState"], "inputResponses": {key: {"action": "accept"}}}
    count = len(modern.service.calls)

    _, changed = await modern.request("tools/call", {"elicitation": {}}, name="tiny.ask", arguments={"x": 1}, **again)
    _, elsewhere = await modern.request("tools/call", {"elicitation": {}}, name="tiny.ask_twice", **again)
    assert len(modern.service.calls) == count
    _, used = await modern.request("tools/call", {"elicitation": {}}, name="tiny.ask", **again)
    _, replayed = await modern.request("tools/call", {"elicitation": {}}, name="tiny.ask", **again)

    refusals = [changed["error"], elsewhere["error"], replayed["error"]]
    assert {refusal["code"] for refusal in refusals} == {-32602}
    assert len({refusal["message"] for refusal in refusals}) == 1
    assert "result" in used
    assert len(modern.service.calls) == count + 1


async def test_an_answer_without_a_state_runs_nothing(modern):
    again = {"inputResponses": {"question-1": {"action": "accept"}}}
    _, answer = await modern.request("tools/call", {"elicitation": {}}, name="tiny.ask", **again)

    assert answer["error"]["code"] == -32602
    assert not modern.service.calls


async def test_a_client_that_cannot_ask_is_told_the_capability(modern):
    _, answer = await modern.request("tools/call", name="tiny.ask")

    assert answer["error"]["code"] == -32021
    assert answer["error"]["data"]["requiredCapabilities"] == {"elicitation": {}}


async def test_log_lines_are_sent_only_to_a_call_that_asks_for_them(pipes):
    meta = envelope() | {PREFIX + "logLevel": "error"}
    pipes.send("tools/call", {"name": "tiny.chat", "_meta": meta}, id=1)
    assert (await pipes.read())["method"] == "notifications/message"
    assert (await pipes.read())["id"] == 1

    pipes.send("tools/call", {"name": "tiny.chat", "_meta": envelope()}, id=2)
    assert (await pipes.read())["id"] == 2


async def test_headers_must_say_what_the_body_says(web):
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "tiny.echo", "_meta": envelope()}}
    wrong = [
        {}, {"mcp_protocol_version": VERSION}, {"mcp_protocol_version": VERSION, "mcp_method": "tools/list"},
        {"mcp_protocol_version": VERSION, "mcp_method": "tools/call", "mcp_name": "tiny.ask"},
    ]  # fmt: skip
    for headers in wrong:
        response = await web.post(message, **headers)
        assert (response.status_code, response.json()["error"]["code"]) == (400, -32020)
    assert not web.service.calls


async def test_a_header_sent_twice_is_refused(web, make_call):
    message = make_call("echo")
    message["params"]["_meta"] = envelope()
    raw = web.raw_request(message, mcp_protocol_version=VERSION, mcp_method="tools/call", mcp_name="tiny.echo")
    reader, writer = await asyncio.open_connection("127.0.0.1", web.port)
    writer.write(raw.replace(b"\r\n\r\n", b"\r\nmcp-name: tiny.ask\r\n\r\n", 1))

    assert (await reader.readline()).split()[1] == b"400"
    assert not web.service.calls
    writer.close()
    await writer.wait_closed()


async def test_unknown_methods_are_404_over_http(web):
    assert (await Modern(web=web).request("nope"))[0] == 404


async def test_streams_and_sessions_are_not_offered_in_this_revision(web):
    for method in ("GET", "DELETE"):
        response = await web.http.request(method, "/mcp", headers=web.headers(mcp_protocol_version=VERSION))
        assert response.status_code == 405


async def test_notifications_are_acknowledged_and_answers_refused(web):
    headers = {"mcp_protocol_version": VERSION}
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    assert (await web.post(note, **headers)).status_code == 202
    assert (await web.post({"jsonrpc": "2.0", "id": 1, "result": {}}, **headers)).status_code == 400


async def test_a_cancelled_notification_cannot_reach_another_clients_call(web, make_call):
    message = make_call("slow", {"name": "a"}, 1)
    message["params"]["_meta"] = envelope()
    headers = {"mcp_protocol_version": VERSION, "mcp_method": "tools/call", "mcp_name": "tiny.slow"}
    running = asyncio.create_task(web.post(message, **headers))
    await web.service.started.wait()

    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    await web.post(note, mcp_protocol_version=VERSION)
    web.service.running["a"].set()

    assert (await running).json()["result"]["structuredContent"]["name"] == "a"


async def test_a_client_that_closes_the_response_cancels_its_call(web, make_call):
    message = make_call("slow", {"name": "a"})
    message["params"]["_meta"] = envelope()
    _, writer = await asyncio.open_connection("127.0.0.1", web.port)
    writer.write(web.raw_request(message, mcp_protocol_version=VERSION, mcp_method="tools/call", mcp_name="tiny.slow"))
    await web.service.started.wait()

    writer.transport.abort()
    await asyncio.wait_for(web.service.ended.wait(), 5)

    assert web.service.cancelled == ["a"]


async def test_both_eras_share_one_pipe(pipes):
    await pipes.request("server/discover", {"_meta": envelope()})
    await pipes.initialize()
    assert "result" in await pipes.call("echo")
    assert "result" in (await Modern(pipes=pipes).request("tools/list"))[1]


@pytest.mark.parametrize("method", ["tools/list", "resources/list", "resources/templates/list"])
async def test_a_page_that_was_never_offered_is_a_wrong_parameter(modern, method):
    _, answer = await modern.request(method, cursor="page-2")
    _, whole = await modern.request(method)

    assert answer["error"]["code"] == -32602
    assert "'page-2'" in answer["error"]["message"]
    assert "result" in whole

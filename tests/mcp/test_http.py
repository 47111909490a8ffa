"""The HTTP transport on real sockets: handshake era, sessions and streams."""

import asyncio
import json

import pytest

ELICITS = {"elicitation": {}}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


async def test_a_call_is_plain_json_when_nothing_is_said_before_its_answer(web):
    await web.initialize()
    response = await web.call("echo", {"text": "hi"})

    assert response.headers["content-type"] == "application/json"
    assert response.json()["result"]["structuredContent"]["echo"] == "hi"
    assert web.service.ready_count == 1


async def test_an_open_server_trusts_nobody(web):
    await web.initialize(name="someone")
    await web.call("echo")

    caller = web.service.calls[0][3]
    assert (caller.trust, caller.client_name, caller.session_id) == ("untrusted", "someone", web.session_id)


async def test_a_request_without_a_session_is_400_and_one_of_an_unknown_session_404(web):
    missing = await web.post(PING)
    assert missing.status_code == 400
    assert "initialize" in missing.json()["error"]["message"]

    web.session_id = "0" * 32
    unknown = await web.post(PING)
    assert (unknown.status_code, unknown.json()["id"]) == (404, 1)


async def test_delete_ends_a_session_and_its_calls(web, make_call):
    await web.initialize()
    running = asyncio.create_task(web.post(make_call("slow", {"name": "a"})))
    await web.service.started.wait()

    assert (await web.http.delete("/mcp", headers=web.headers())).status_code == 204
    await web.service.ended.wait()

    assert (await running).content == b""
    assert (await web.post(PING)).status_code == 404
    assert (await web.http.delete("/mcp", headers=web.headers())).status_code == 404


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"not json", -32700),
        (b"\xff\xfe", -32700),
        (b"", -32700),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b'"hello"', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":false,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
    ],
)
async def test_junk_is_400_with_a_json_rpc_error(web, body, code):
    await web.initialize()
    response = await web.post(body)

    assert response.status_code == 400
    assert response.json()["error"]["code"] == code
    assert (await web.post(PING)).status_code == 200


async def test_an_announced_body_over_the_limit_is_refused_before_it_is_sent(web):
    reader, writer = await asyncio.open_connection("127.0.0.1", web.port)
    writer.write(b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 67108864\r\n\r\n")

    assert (await reader.readline()).split()[1] == b"413"
    writer.close()
    await writer.wait_closed()


async def test_a_body_of_64_mb_is_413_and_never_lies_in_memory(web):
    most_kept = 0
    finish = web.app._too_large

    async def measured(send):
        nonlocal most_kept
        most_kept = max(len(connection.cycle.body) for connection in web._state.connections)
        await finish(send)

    web.app._too_large = measured

    async def chunks():
        for _ in range(64):
            yield b" " * (1 << 20)

    response = await web.http.post("/mcp", content=chunks(), headers=web.headers())

    assert response.status_code == 413
    assert "METAFORGE_MAX_REQUEST_MB" in response.json()["error"]["message"]
    assert most_kept < 1 << 20
    assert (await web.initialize()) != ""


async def test_notifications_and_answers_are_acknowledged_without_a_body(web):
    await web.initialize()
    for message in ({"jsonrpc": "2.0", "method": "notifications/x"}, {"jsonrpc": "2.0", "id": 9, "result": {}}):
        response = await web.post(message)
        assert (response.status_code, response.content) == (202, b"")


async def test_an_unknown_revision_in_the_header_is_400_and_names_those_that_are_spoken(web):
    await web.initialize()
    prefix = "io.modelcontextprotocol/"
    meta = {prefix + "protocolVersion": "1999-01-01", prefix + "clientCapabilities": {}}
    message = PING | {"params": {"_meta": meta}}
    response = await web.post(message, mcp_protocol_version="1999-01-01", mcp_method="ping")

    assert response.status_code == 400
    assert response.json()["error"]["code"] == -32022
    assert "2025-11-25" in response.json()["error"]["data"]["supported"]


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1.evil.example", "https://[::2]"])
async def test_a_foreign_page_is_403(web, origin):
    response = await web.post(PING, origin=origin)

    assert response.status_code == 403


@pytest.mark.parametrize("origin", ["http://localhost:3000", "http://127.0.0.1", "http://[::1]:8000"])
async def test_a_page_of_this_machine_is_welcome(web, origin):
    assert (await web.post(PING, origin=origin)).status_code == 400


async def test_a_name_that_was_made_to_point_here_is_403(web):
    assert (await web.post(PING, host="evil.example:8765")).status_code == 403


async def test_routes_that_do_not_exist_say_which_do(web):
    response = await web.http.get("/nowhere")
    assert response.status_code == 404
    assert "/mcp" in response.json()["error"]["message"]
    assert (await web.http.put("/mcp")).headers["allow"] == "GET, POST, DELETE"


async def test_health_and_metrics_are_there_for_machines(web):
    assert (await web.http.get("/health")).json()["status"] == "healthy"
    metrics = await web.http.get("/metrics")
    assert metrics.status_code == 200
    assert metrics.headers["content-type"].startswith("text/plain")


async def test_two_clients_with_the_same_id_do_not_meet(web, make_call):
    first = await web.initialize()
    one = asyncio.create_task(web.post(make_call("slow", {"name": "a"}, 7)))
    await web.service.started.wait()
    web.service.started.clear()
    second = await web.initialize()
    two = asyncio.create_task(web.post(make_call("slow", {"name": "b"}, 7)))
    await web.service.started.wait()

    web.session_id = first
    await web.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}})
    await web.service.ended.wait()
    web.service.running["b"].set()

    assert first != second
    assert web.service.cancelled == ["a"]
    assert (await one).content == b""
    assert (await two).json()["result"]["structuredContent"]["name"] == "b"


async def test_a_client_that_goes_away_cancels_its_call(web, make_call):
    await web.initialize()
    _, writer = await asyncio.open_connection("127.0.0.1", web.port)
    writer.write(web.raw_request(make_call("slow", {"name": "a"})))
    await web.service.started.wait()

    writer.transport.abort()
    await asyncio.wait_for(web.service.ended.wait(), 5)

    assert web.service.cancelled == ["a"]
    assert (await web.call("echo")).status_code == 200


async def test_a_client_that_goes_away_from_an_event_stream_cancels_its_call_and_its_question(
    web, make_call, caplog, until
):
    await web.initialize(ELICITS)
    reader, writer = await asyncio.open_connection("127.0.0.1", web.port)
    writer.write(web.raw_request(make_call("ask_and_wait")))
    await reader.readuntil(b"elicitation/create")

    writer.transport.abort()
    await until(lambda: not web.app._requests.in_flight)

    assert "mcp_request_failed" not in caplog.messages
    assert (await web.call("echo")).status_code == 200


async def test_progress_turns_the_response_into_a_stream_that_ends_with_the_answer(web, make_call):
    await web.initialize()
    events = await web.events(make_call("progress", {"fractions": [0.1, 0.9]}, "é", progressToken=0))

    assert [event["params"]["progress"] for event in events[:-1]] == [0.1, 0.9]
    assert all(event["params"]["progressToken"] == 0 for event in events[:-1])
    assert (events[-1]["id"], events[-1]["result"]["content"][0]["text"]) == ("é", "done")


async def test_a_client_that_takes_no_stream_gets_its_answer_alone(web, make_call):
    await web.initialize()
    response = await web.post(make_call("progress", {"fractions": [0.5]}, progressToken=1), accept="application/json")

    assert response.headers["content-type"] == "application/json"
    assert response.json()["result"]["content"][0]["text"] == "done"


async def test_a_stream_is_told_not_to_be_buffered(web, make_call):
    await web.initialize()
    body = json.dumps(make_call("progress", {"fractions": [0.5]}, progressToken=1))
    response = await web.http.post("/mcp", content=body, headers=web.headers())

    assert response.headers["x-accel-buffering"] == "no"
    assert "no-cache" in response.headers["cache-control"]


async def test_a_question_travels_on_the_calls_own_response_and_the_answer_by_a_post(web, make_call):
    await web.initialize(ELICITS)

    async def reply(event):
        if event.get("method") == "elicitation/create":
            answer = {"jsonrpc": "2.0", "id": event["id"], "result": {"action": "decline"}}
            assert (await web.post(answer)).status_code == 202

    events = await web.events(make_call("ask_twice"), reply)

    assert [event.get("method") for event in events] == ["elicitation/create", "elicitation/create", None]
    assert events[0]["id"] != events[1]["id"]
    assert events[-1]["result"]["structuredContent"]["replies"] == [{"action": "decline"}] * 2


async def test_a_question_prefers_the_stream_that_the_session_keeps_open(web, make_call):
    await web.initialize(ELICITS)
    async with web.http.stream("GET", "/mcp", headers=web.headers()) as stream:
        lines = stream.aiter_lines()
        assert await anext(lines) == ": open"
        running = asyncio.create_task(web.post(make_call("ask")))
        while not (line := await anext(lines)).startswith("data: "):
            pass
        question = json.loads(line[6:])
        await web.post({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "cancel"}})
        response = await running

    assert question["method"] == "elicitation/create"
    assert response.headers["content-type"] == "application/json"
    assert response.json()["result"]["structuredContent"]["reply"] == {"action": "cancel"}


async def test_without_any_stream_a_question_is_an_error_that_says_what_to_send(web, make_call):
    await web.initialize(ELICITS)
    response = await web.post(make_call("ask"), accept="application/json")

    assert "text/event-stream" in response.json()["result"]["content"][0]["text"]


async def test_a_withdrawn_question_is_taken_down_first_and_a_late_reply_is_ignored(web, make_call, caplog):
    await web.initialize(ELICITS)

    async def withdraw(event):
        if event.get("method") == "elicitation/create":
            web.service.peers[0].withdraw("approval window ended")

    events = await web.events(make_call("ask"), withdraw)
    late = {"jsonrpc": "2.0", "id": events[0]["id"], "result": {"action": "accept", "content": {"approve": True}}}

    assert [event.get("method") for event in events] == ["elicitation/create", "notifications/cancelled", None]
    assert (await web.post(late)).status_code == 202
    assert "mcp_elicitation_late_response_ignored" in caplog.messages


async def test_another_session_cannot_answer_a_question(web, make_call):
    first = await web.initialize(ELICITS)
    second = await web.initialize(ELICITS)
    web.session_id = first

    async def reply(event):
        if event.get("method") != "elicitation/create":
            return
        for session, action in ((second, "accept"), (first, "decline")):
            web.session_id = session
            await web.post({"jsonrpc": "2.0", "id": event["id"], "result": {"action": action}})

    events = await web.events(make_call("ask"), reply)

    assert events[-1]["result"]["structuredContent"]["reply"] == {"action": "decline"}


async def test_a_second_stream_takes_the_place_of_the_first(web):
    await web.initialize()
    async with web.http.stream("GET", "/mcp", headers=web.headers()) as first:
        lines = first.aiter_lines()
        await anext(lines)
        async with web.http.stream("GET", "/mcp", headers=web.headers()) as second:
            assert second.status_code == 200
            assert [line async for line in lines] == [""]


async def test_a_stream_needs_a_session(web):
    assert (await web.http.get("/mcp", headers=web.headers())).status_code == 400
    web.session_id = "f" * 32
    assert (await web.http.get("/mcp", headers=web.headers())).status_code == 404


async def test_log_lines_travel_on_the_calls_own_stream(web, make_call):
    await web.initialize()
    events = await web.events(make_call("chat"))

    assert [event.get("method") for event in events] == ["notifications/message", None]


async def test_the_legacy_dialect_needs_no_session_on_either_route(web):
    request = {"jsonrpc": "2.0", "id": "q", "method": "tool/call", "params": {"tool_id": "tiny.echo"}}
    for path in ("/rpc", "/mcp"):
        response = await web.post(request, path)
        assert (response.status_code, response.json()["result"]["status"]) == (200, "success")
    health = {"jsonrpc": "2.0", "id": 1, "method": "health/check"}
    assert (await web.post(health, "/rpc")).json()["result"]["status"] == "healthy"


async def test_the_legacy_dialect_is_all_that_rpc_knows(web):
    error = (await web.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, "/rpc")).json()["error"]
    assert error["code"] == -32601


async def test_a_legacy_notification_is_204(web):
    response = await web.post({"jsonrpc": "2.0", "method": "tool/whatever"}, "/rpc")
    assert (response.status_code, response.content) == (204, b"")


async def test_health_on_the_endpoint_knows_the_client_of_the_session(web):
    await web.initialize(name="someone")
    await web.post({"jsonrpc": "2.0", "id": 1, "method": "health/check"})

    assert web.service.seen[0].name == "someone"


async def test_stopping_the_server_ends_calls_and_streams(web, make_call):
    await web.initialize()
    async with web.http.stream("GET", "/mcp", headers=web.headers()) as stream:
        lines = stream.aiter_lines()
        await anext(lines)
        running = asyncio.create_task(web.post(make_call("slow", {"name": "a"})))
        await web.service.started.wait()
        web.app.stop()
        assert (await running).content == b""
        assert [line async for line in lines] == [""]

    assert web.service.cancelled == ["a"]


async def test_many_calls_on_one_connection_leave_nothing_behind(web, make_call):
    await web.initialize()
    for number in range(50):
        assert (await web.post(make_call("echo", request_id=number))).status_code == 200
    await asyncio.gather(*(web.post(make_call("echo", request_id=number)) for number in range(50)))

    assert not web.app._requests.in_flight
    assert not web.app._sessions.get(web.session_id, 0).calls


async def test_requests_that_come_at_once_on_one_connection_are_answered_in_order(web, make_call):
    await web.initialize()
    reader, writer = await asyncio.open_connection("127.0.0.1", web.port)
    writer.write(web.raw_request(make_call("echo", request_id=1)) + web.raw_request(make_call("echo", request_id=2)))
    seen = b""
    while seen.count(b'"structuredContent"') < 2:
        seen += await reader.read(65536)

    assert seen.index(b'"id":1') < seen.index(b'"id":2')
    writer.close()
    await writer.wait_closed()


async def test_a_response_without_a_body_is_sent_whole(web):
    reader, writer = await asyncio.open_connection("127.0.0.1", web.port)
    for _ in range(2):
        writer.write(f"HEAD /health HTTP/1.1\r\nhost: 127.0.0.1:{web.port}\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
    writer.close()
    await writer.wait_closed()


async def test_a_client_that_waits_for_a_go_ahead_gets_it(web):
    body = b'{"jsonrpc":"2.0","id":1,"method":"health/check"}'
    reader, writer = await asyncio.open_connection("127.0.0.1", web.port)
    writer.write(
        f"POST /rpc HTTP/1.1\r\nhost: 127.0.0.1\r\nexpect: 100-continue\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    )
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
    writer.write(body)

    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
    writer.close()
    await writer.wait_closed()


async def test_broken_http_is_400_and_ends_the_connection(web):
    reader, writer = await asyncio.open_connection("127.0.0.1", web.port)
    writer.write(b"NONSENSE\r\n\r\n")

    assert (await reader.read()).startswith(b"HTTP/1.1 400")
    writer.close()
    await writer.wait_closed()

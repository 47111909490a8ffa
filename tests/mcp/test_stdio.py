"""The stdio transport on real pipes."""

import asyncio
import os

import pytest

ELICITS = {"elicitation": {}}


async def test_the_handshake_names_the_server_and_tells_the_application_that_a_client_is_there(pipes):
    answer = await pipes.initialize()

    assert answer["result"]["protocolVersion"] == "2025-11-25"
    assert answer["result"]["serverInfo"]["name"] == "metaforge"
    assert answer["result"]["instructions"] == "Call tiny.echo."
    await pipes.request("ping")
    assert pipes.service.ready_count == 1


async def test_an_unknown_revision_is_answered_with_the_newest_one_that_has_a_handshake(pipes):
    assert (await pipes.initialize(revision="2099-01-01"))["result"]["protocolVersion"] == "2025-11-25"


async def test_a_call_returns_text_and_the_same_as_structure_with_its_call_id(pipes):
    await pipes.initialize()

    result = (await pipes.call("echo", {"text": "grüß"}))["result"]

    call_id = pipes.service.calls[0][2]
    assert result["content"] == [{"type": "text", "text": "said grüß"}]
    assert result["structuredContent"] == {"echo": "grüß", "call_id": call_id}
    assert result["_meta"] == {"callId": call_id}


async def test_the_application_sees_a_local_caller_with_the_clients_name(pipes):
    await pipes.initialize()
    await pipes.call("echo")

    caller = pipes.service.calls[0][3]
    assert (caller.trust, caller.client_name, caller.client_version) == ("local", "test", "1")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"not json", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b'"hello"', -32600),
        (b"{}", -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":4,"method":7}', -32600),
    ],
)
async def test_junk_is_answered_with_an_error_and_the_next_request_works(pipes, line, code):
    pipes.write(line + b"\n")

    assert (await pipes.read())["error"]["code"] == code
    assert (await pipes.request("ping"))["result"] == {}


async def test_a_malformed_request_with_a_usable_id_is_answered_under_that_id(pipes):
    pipes.write(b'{"id":4,"method":"ping"}\n')

    assert (await pipes.read())["id"] == 4


async def test_ids_come_back_as_they_were(pipes):
    for request_id in (0, -7, 2**53, "0", "", "é"):
        pipes.send("ping", id=request_id)
        answer = await pipes.read()
        assert answer["id"] == request_id
        assert type(answer["id"]) is type(request_id)


async def test_an_unknown_method_is_named(pipes):
    error = (await pipes.request("tools/destroy"))["error"]

    assert error["code"] == -32601
    assert "tools/destroy" in error["message"]


async def test_a_cursor_that_nobody_gave_out_is_refused_and_none_is_the_first_page(pipes):
    refused = await pipes.request("tools/list", {"cursor": "bm93aGVyZQ=="})
    first = await pipes.request("tools/list", {"cursor": None})

    assert refused["error"]["code"] == -32602
    assert "without a cursor" in refused["error"]["message"]
    assert first["result"]["tools"]


async def test_a_call_without_a_name_is_an_error_that_says_so(pipes):
    error = (await pipes.request("tools/call", {}))["error"]

    assert error["code"] == -32602
    assert '"name"' in error["message"]


async def test_arguments_that_are_no_object_are_told_to_the_model(pipes):
    result = (await pipes.request("tools/call", {"name": "tiny.echo", "arguments": ["x"]}))["result"]

    assert result["isError"] is True
    assert "object" in result["content"][0]["text"]
    assert not pipes.service.calls


async def test_calls_run_at_once_and_answer_in_the_order_they_end(pipes):
    pipes.send("tools/call", {"name": "tiny.slow", "arguments": {"name": "a"}}, id=1)
    await pipes.service.started.wait()
    assert "result" in await pipes.call("echo")

    pipes.service.running["a"].set()
    assert (await pipes.read())["id"] == 1


async def test_a_cancelled_call_gets_no_answer_and_only_it_stops(pipes):
    for request_id, name in ((7, "a"), ("7", "b")):
        pipes.service.started.clear()
        pipes.send("tools/call", {"name": "tiny.slow", "arguments": {"name": name}}, id=request_id)
        await pipes.service.started.wait()

    pipes.send("notifications/cancelled", {"requestId": 7, "reason": "user"})
    await pipes.service.ended.wait()

    assert pipes.service.cancelled == ["a"]
    pipes.service.running["b"].set()
    answer = await pipes.read()
    assert (answer["id"], answer["result"]["structuredContent"]["name"]) == ("7", "b")


async def test_cancelling_true_does_not_cancel_request_one(pipes):
    pipes.send("tools/call", {"name": "tiny.slow", "arguments": {"name": "a"}}, id=1)
    await pipes.service.started.wait()

    for junk in (True, 1.0, None, [1]):
        pipes.send("notifications/cancelled", {"requestId": junk})
    await pipes.request("ping")

    assert pipes.service.cancelled == []


async def test_an_id_that_is_still_in_use_is_refused_and_the_first_call_goes_on(pipes):
    pipes.send("tools/call", {"name": "tiny.slow", "arguments": {"name": "a"}}, id=5)
    await pipes.service.started.wait()
    pipes.send("tools/call", {"name": "tiny.echo"}, id=5)

    refusal = await pipes.read()
    assert (refusal["id"], refusal["error"]["code"]) == (None, -32600)
    pipes.service.running["a"].set()
    assert (await pipes.read())["result"]["structuredContent"]["name"] == "a"


@pytest.mark.parametrize("token", [0, "tok-é/1", "", 7])
async def test_progress_carries_the_clients_own_token_and_always_grows(pipes, token):
    params = {
        "name": "tiny.progress",
        "arguments": {"fractions": [0, 0.5, 0.5, 0.2, 1, 1]},
        "_meta": {"progressToken": token},
    }
    pipes.send("tools/call", params, id=1)
    seen = []
    while "method" in (message := await pipes.read()):
        seen.append(message["params"])

    values = [told["progress"] for told in seen]
    assert all(told["progressToken"] == token and type(told["progressToken"]) is type(token) for told in seen)
    assert values == sorted(set(values))
    assert values[0] == 0
    assert values[-1] == 1
    assert message["id"] == 1


async def test_without_a_token_there_is_no_progress(pipes):
    assert "result" in await pipes.call("progress", {"fractions": [0.5]})


async def test_progress_after_the_answer_is_dropped(pipes):
    await pipes.call("echo", progressToken=1)
    pipes.service.peers[0].progress(0.5, "too late")

    await pipes.nothing_but({"jsonrpc": "2.0", "id": "probe", "result": {}})


async def test_a_person_is_asked_through_the_client(pipes):
    await pipes.initialize(ELICITS)
    pipes.send("tools/call", {"name": "tiny.ask"}, id=1)

    question = await pipes.read()
    assert question["method"] == "elicitation/create"
    assert question["params"]["message"] == "May I?"
    pipes.send(id=question["id"], result={"action": "accept", "content": {"approve": True}})

    reply = (await pipes.read())["result"]["structuredContent"]["reply"]
    assert reply == {"action": "accept", "content": {"approve": True}}


async def test_a_client_that_cannot_ask_is_told_what_is_missing(pipes):
    await pipes.initialize({"elicitation": {"url": {}}})

    result = (await pipes.call("ask"))["result"]

    assert result["isError"] is True
    assert "elicitation" in result["content"][0]["text"]


async def test_a_revision_before_elicitation_is_never_asked(pipes):
    await pipes.initialize(ELICITS, revision="2025-03-26")

    assert (await pipes.call("ask"))["result"]["isError"] is True


async def test_cancelling_a_call_takes_its_question_down_and_a_late_answer_is_only_logged(pipes, caplog):
    await pipes.initialize(ELICITS)
    pipes.send("tools/call", {"name": "tiny.ask"}, id=1)
    question = await pipes.read()

    pipes.send("notifications/cancelled", {"requestId": 1})
    taken_down = await pipes.read()
    pipes.send(id=question["id"], result={"action": "accept", "content": {"approve": True}})
    await pipes.nothing_but({"jsonrpc": "2.0", "id": "probe", "result": {}})

    assert taken_down["method"] == "notifications/cancelled"
    assert taken_down["params"]["requestId"] == question["id"]
    assert "mcp_elicitation_late_response_ignored" in caplog.messages


async def test_a_question_can_be_withdrawn_with_a_reason(pipes):
    await pipes.initialize(ELICITS)
    pipes.send("tools/call", {"name": "tiny.ask"}, id=1)
    question = await pipes.read()

    pipes.service.peers[0].withdraw("approval window ended")

    assert (await pipes.read())["params"] == {"requestId": question["id"], "reason": "approval window ended"}
    assert "approval window ended" in (await pipes.read())["result"]["content"][0]["text"]


async def test_a_client_that_fails_to_ask_is_quoted(pipes):
    await pipes.initialize(ELICITS)
    pipes.send("tools/call", {"name": "tiny.ask"}, id=1)
    question = await pipes.read()
    pipes.send(id=question["id"], error={"code": -1, "message": "no window"})

    assert "no window" in (await pipes.read())["result"]["content"][0]["text"]


async def test_the_clients_model_can_be_asked(pipes):
    await pipes.initialize({"sampling": {}})
    pipes.send("tools/call", {"name": "tiny.sample"}, id=1)
    question = await pipes.read()
    pipes.send(id=question["id"], result={"role": "assistant", "content": {"type": "text", "text": "4"}})

    assert question["method"] == "sampling/createMessage"
    assert (await pipes.read())["result"]["structuredContent"]["reply"]["content"]["text"] == "4"


async def test_log_lines_below_the_clients_level_are_not_sent(pipes):
    pipes.send("tools/call", {"name": "tiny.chat"}, id=1)
    assert (await pipes.read())["params"] == {"level": "error", "logger": "metaforge", "data": {"loud": True}}
    assert (await pipes.read())["id"] == 1

    await pipes.request("logging/setLevel", {"level": "debug"})
    pipes.send("tools/call", {"name": "tiny.chat"}, id=2)
    assert [(await pipes.read())["params"]["level"] for _ in range(2)] == ["debug", "error"]
    await pipes.read()


async def test_an_answer_that_is_no_json_becomes_an_error_and_the_server_lives(pipes):
    answer = await pipes.call("odd")

    assert answer["error"]["code"] == -32603
    assert "result" in await pipes.call("echo")


async def test_a_call_that_cancels_itself_is_answered_because_nobody_withdrew_it(pipes):
    assert "cancelled" in (await pipes.call("inner_cancel"))["result"]["content"][0]["text"]


@pytest.mark.parametrize("head", [b'{"jsonrpc":"2.0","id":"big", "method":"ping","params":"', b'{"params":"'])
async def test_a_line_over_the_limit_is_answered_and_skipped(pipes, head):
    whole = head + b"x" * (3 << 20) + b"\n"
    sender = asyncio.create_task(asyncio.to_thread(_write_all, pipes, whole))
    error = await pipes.read()
    await sender

    assert error["id"] == ("big" if b'"id"' in head else None)
    assert "1 MB" in error["error"]["message"]
    assert (await pipes.request("ping"))["result"] == {}


@pytest.mark.parametrize("size_bytes", [65_535, 65_536, 65_537, 900_000])
async def test_lines_of_every_length_below_the_limit_arrive_whole(pipes, size_bytes):
    text = "ü" * (size_bytes // 2)
    message = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tiny.echo","arguments":{"text":"%s"}}}\n'
    sender = asyncio.create_task(asyncio.to_thread(_write_all, pipes, (message % text).encode()))
    answer = await pipes.read()
    await sender

    assert answer["result"]["structuredContent"]["echo"] == text


async def test_a_client_that_reads_slowly_gets_everything_and_blocks_nothing(pipes, until):
    sizes = [1_000_000 + number for number in range(8)]
    for number, size_bytes in enumerate(sizes):
        pipes.send("tools/call", {"name": "tiny.big", "arguments": {"size_bytes": size_bytes}}, id=number)
    await until(lambda: len(pipes.service.calls) == len(sizes))
    answers = [await pipes.read() for _ in sizes]

    assert [len(answer["result"]["structuredContent"]["text"]) for answer in answers] == sizes


async def test_several_messages_in_one_write_and_one_message_in_several(pipes):
    pipes.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\r\n\n{"jsonrpc":"2.0","id":2,"method":"ping"}\n{"jsonrpc":')
    assert [(await pipes.read())["id"] for _ in range(2)] == [1, 2]
    pipes.write(b'"2.0","id":3,"method":"ping"}\n')
    assert (await pipes.read())["id"] == 3


async def test_a_closed_stdin_ends_the_server_and_its_calls(pipes):
    pipes.send("tools/call", {"name": "tiny.slow", "arguments": {"name": "a"}}, id=1)
    await pipes.service.started.wait()

    pipes.hang_up()
    await asyncio.wait_for(pipes.task, 5)

    assert pipes.service.cancelled == ["a"]
    assert pipes.service.is_closed


async def test_a_last_line_without_a_line_break_is_still_answered(pipes):
    pipes.write(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tiny.echo"}}')
    pipes.hang_up()

    assert (await pipes.read())["id"] == 1


async def test_the_legacy_dialect_lists_calls_reports_progress_and_checks_health(pipes):
    listed = (await pipes.request("tool/list", {"capability": "talk"}))["result"]["tools"]
    assert [tool["tool_id"] for tool in listed] == ["tiny.echo"]
    assert listed[0]["resource_limits"] == {"max_memory_mb": 64, "max_cpu_seconds": 1, "max_disk_mb": 1}

    params = {"tool_id": "tiny.echo", "arguments": {"text": "x"}, "timeout_seconds": 3, "trace_id": "t-1"}
    result = (await pipes.request("tool/call", params))["result"]
    assert (result["tool_id"], result["status"], result["data"]) == ("tiny.echo", "success", {"echo": "x"})
    assert pipes.service.arguments[0]["timeout_seconds"] == 3
    assert pipes.service.arguments[0]["trace_id"] == "t-1"

    pipes.send("tool/call", {"tool_id": "tiny.progress", "arguments": {"fractions": [0.65]}}, id="req-002")
    told = await pipes.read()
    assert told["method"] == "tool/result"
    assert told["params"] == {"request_id": "req-002", "progress": 0.65, "message": "at 0.65"}
    assert (await pipes.read())["id"] == "req-002"

    assert (await pipes.request("health/check"))["result"]["status"] == "healthy"


async def test_health_knows_the_client_of_this_connection(pipes):
    await pipes.initialize(ELICITS, revision="2024-01-01")
    await pipes.request("health/check")

    seen = pipes.service.seen[0]
    assert (seen.name, seen.protocol_requested, seen.protocol_negotiated) == ("test", "2024-01-01", "2025-11-25")
    assert seen.can_elicit


async def test_resources_are_listed_and_read_as_text_or_bytes(pipes):
    assert (await pipes.request("resources/list"))["result"]["resources"][0]["name"] == "note"
    assert (await pipes.request("resources/templates/list"))["result"]["resourceTemplates"]

    text, raw = (await pipes.request("resources/read", {"uri": "metaforge://notes/1"}))["result"]["contents"]
    assert text["text"] == "hello"
    assert raw["blob"] == "/wA="
    assert (await pipes.request("resources/read", {"uri": "metaforge://none"}))["error"]["code"] == -32002
    assert (await pipes.request("resources/read"))["error"]["code"] == -32602


async def test_a_file_as_stdin_is_read_to_its_end(tiny, tmp_path):
    from metaforge.mcp.stdio import StdioServer

    service = tiny.TinyService()
    (tmp_path / "in").write_text('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tiny.echo"}}\n')
    source = os.open(tmp_path / "in", os.O_RDONLY)
    target = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    await asyncio.wait_for(StdioServer(service, source, target, 1 << 20, lambda: None).serve(), 5)
    os.close(source)
    os.close(target)

    assert '"id":1' in (tmp_path / "out").read_text()


def _write_all(pipes, data: bytes) -> None:
    while data:
        data = data[os.write(pipes._write_end, data[:65536]) :]

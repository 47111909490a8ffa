"""Writes that wait for a person in the stateless era: the call goes away with the question and comes back with the
answer."""

import asyncio
import base64
import json
import logging
from typing import Any

import pytest
from desk import Desk, events, settings_of

from metaforge.app import App
from metaforge.approvals import room
from metaforge.approvals.faults import NotDecidable
from metaforge.approvals.model import Route, State

VERSION = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
CREATE = "project.create"
REFUSED = "The requestState is not valid for this call: send the call again without it"
YES = {"action": "accept", "content": {"approve": True}}


@pytest.fixture(autouse=True)
def log(caplog):
    caplog.set_level(logging.INFO, logger="metaforge")
    return caplog


class Modern:
    """A client of the stateless era, over HTTP or pipes."""

    def __init__(self, server: Any, over: str) -> None:
        self.server = server
        self.over = over

    async def call(self, arguments: Any, capabilities: Any = None, tool: str = CREATE, **params: Any) -> Any:
        """Call and return the answer; progress that came before it is kept in `told`."""
        meta = {
            PREFIX + "protocolVersion": VERSION,
            PREFIX + "clientCapabilities": {"elicitation": {}} if capabilities is None else capabilities,
            PREFIX + "clientInfo": {"name": "modern", "version": "3"},
            **params.pop("meta", {}),
        }
        params = {"name": tool, "arguments": arguments, **params, "_meta": meta}
        self.told: list[Any] = []
        if self.over == "stdio":
            self.server._count += 1
            self.server.send("tools/call", params, id=self.server._count)
            while "id" not in (answer := await self.server.read()):
                self.told.append(answer)
            return answer
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {"mcp_protocol_version": VERSION, "mcp_method": "tools/call", "mcp_name": tool}
        response = await self.server.post(message, **headers)
        if response.headers["content-type"] == "text/event-stream":
            lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
            *self.told, answer = map(json.loads, lines)
            return answer
        return response.json()

    async def asked(self, arguments: Any, **params: Any) -> tuple[str, Any]:
        """Call a write and return the state it was sent away with, and the question."""
        result = (await self.call(arguments, **params))["result"]
        assert result["resultType"] == "input_required"
        (question,) = result["inputRequests"].values()
        return result["requestState"], question

    async def back(self, arguments: Any, state: str, reply: Any, **more: Any) -> Any:
        """Send the call again with an answer."""
        return await self.call(arguments, requestState=state, inputResponses={"approval": reply}, **more)


@pytest.fixture(params=["http", "stdio"])
def over(request) -> str:
    return request.param


@pytest.fixture
def open_modern(open_house) -> Any:
    """Open a server whose writes are held over pipes too, with a client of the stateless era."""

    async def start(over: str = "http", **variables: str) -> tuple[Modern, Desk]:
        server, desk = await open_house(over, exempt_local_writes="false", **variables)
        return Modern(server, over), desk

    return start


async def test_a_write_comes_back_with_a_yes_and_runs_once(open_modern, over, log) -> None:
    client, desk = await open_modern(over)
    state, question = await client.asked({"name": "Leg"})
    (entry,) = await desk.waiting()
    assert question["method"] == "elicitation/create"
    assert "Answer within 100 seconds." in question["params"]["message"]
    assert entry.approval_id in question["params"]["message"]
    assert (entry.request.route, entry.request.window_seconds) == (Route.ELICITATION, 100.0)
    assert await desk.projects() == []
    result = (await client.back({"name": "Leg"}, state, YES))["result"]
    assert result["resultType"] == "complete"
    assert result["_meta"]["approval"]["approvalId"] == entry.approval_id
    assert result["_meta"]["approval"]["approvedBy"] == "local:elicitation"
    assert await desk.projects() == ["Leg"]
    await desk.state(entry.approval_id, State.COMPLETED)
    (held,) = events(log, "mcp_tool_call_held_for_approval")
    assert held["route"] == "elicitation"


@pytest.mark.parametrize(
    "reply", [{"action": "decline"}, {"action": "accept", "content": {"approve": False}}, {"action": "accept"}]
)
async def test_whatever_is_no_yes_is_a_no(open_modern, reply) -> None:
    client, desk = await open_modern()
    state, _ = await client.asked({"name": "Leg"})
    error = (await client.back({"name": "Leg"}, state, reply))["error"]
    assert (error["code"], error["data"]["outcome"], error["data"]["route"]) == (-32001, "rejected", "elicitation")
    assert await desk.projects() == []


async def test_an_answer_is_taken_once(open_modern, over) -> None:
    client, desk = await open_modern(over)
    state, _ = await client.asked({"name": "Leg"})
    await client.back({"name": "Leg"}, state, YES)
    again = await client.back({"name": "Leg"}, state, YES)
    assert again["error"]["message"] == REFUSED
    assert await desk.projects() == ["Leg"]


async def test_calls_that_are_away_take_room_until_they_come_back_or_end(open_modern, monkeypatch) -> None:
    monkeypatch.setattr(room, "MAX_COUNT", 2)
    client, desk = await open_modern()
    state, _ = await client.asked({"name": "Leg"})
    refused = (await client.call({"name": "Arm"}))["result"]
    assert "1 of this client's calls" in refused["content"][0]["text"]
    assert len(await desk.waiting()) == 1
    assert (await client.back({"name": "Leg"}, state, YES))["result"]["resultType"] == "complete"
    state, _ = await client.asked({"name": "Arm"})
    (entry,) = await desk.waiting()
    await asyncio.to_thread(desk.ledger.end, entry.approval_id, State.CANCELED, "enough")
    async with asyncio.timeout(10):
        while "requestState" not in (told := await client.call({"name": "Toe"}))["result"]:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    assert told["result"]["resultType"] == "input_required"


async def test_of_many_answers_at_once_one_is_taken(open_modern) -> None:
    client, desk = await open_modern()
    state, _ = await client.asked({"name": "Leg"})
    clients = [Modern(client.server, "http") for _ in range(8)]
    answers = await asyncio.gather(*(each.back({"name": "Leg"}, state, YES) for each in clients))
    assert sorted("result" in answer for answer in answers) == [False] * 7 + [True]
    assert {answer["error"]["message"] for answer in answers if "error" in answer} == {REFUSED}
    assert await desk.projects() == ["Leg"]


@pytest.mark.parametrize("forged", ["arguments", "tool", "byte", "nonsense", "no state"])
async def test_an_answer_to_anything_else_is_refused_in_the_same_words_and_runs_nothing(open_modern, forged) -> None:
    client, desk = await open_modern()
    state, _ = await client.asked({"name": "Leg"})
    arguments, tool = {"name": "Leg"}, CREATE
    sent: Any = state
    if forged == "arguments":
        arguments = {"name": "Arm"}
    elif forged == "tool":
        tool, arguments = "twin.record_document", {"name": "Leg"}
    elif forged == "byte":
        raw = bytearray(base64.urlsafe_b64decode(state))
        raw[-3] ^= 1
        sent = base64.urlsafe_b64encode(bytes(raw)).decode()
    elif forged == "nonsense":
        sent = "AAAA"
    else:
        sent = None
    answer = await client.call(arguments, tool=tool, requestState=sent, inputResponses={"approval": YES})
    assert answer["error"]["message"] == REFUSED
    assert "data" not in answer["error"] or set(answer["error"]["data"]) <= {"call_id"}
    assert await desk.projects() == []
    assert [entry.state for entry in await desk.waiting()] == [State.AWAITING]
    assert "result" in await client.back({"name": "Leg"}, state, YES), "a wrong use does not spend it"


async def test_another_caller_cannot_use_the_answer(tmp_path, serve) -> None:
    settings = settings_of(tmp_path)
    keyed = settings_of(tmp_path, METAFORGE_MCP_API_KEY="k" * 20)
    apps = [App(settings, over_stdio=False), App(keyed, over_stdio=False)]
    desk = Desk(apps[0])
    mine, theirs = Modern(await serve(apps[0], settings), "http"), Modern(await serve(apps[1], keyed), "http")
    theirs.server.http.headers["authorization"] = "Bearer " + "k" * 20
    state, _ = await mine.asked({"name": "Leg"})
    answer = await theirs.back({"name": "Leg"}, state, YES)
    assert answer["error"]["message"] == REFUSED
    assert await desk.projects() == []
    await desk.close()
    for app in apps:
        await app.close()


async def test_another_process_of_the_same_home_takes_the_answer_once(tmp_path, serve) -> None:
    settings = settings_of(tmp_path)
    apps = [App(settings, over_stdio=False) for _ in range(2)]
    desk = Desk(apps[0])
    first, second = [Modern(await serve(app, settings), "http") for app in apps]
    state, _ = await first.asked({"name": "Leg"})
    answers = await asyncio.gather(second.back({"name": "Leg"}, state, YES), first.back({"name": "Leg"}, state, YES))
    assert sorted("result" in answer for answer in answers) == [False, True]
    assert await desk.projects() == ["Leg"]
    await desk.close()
    for app in apps:
        await app.close()


async def test_an_answer_after_the_window_is_told_so_and_never_applied(open_modern, log) -> None:
    client, desk = await open_modern(approval_hold_seconds="0.2")
    state, _ = await client.asked({"name": "Leg"})
    (entry,) = await asyncio.to_thread(desk.ledger.entries, "all")
    await desk.state(entry.approval_id, State.TIMED_OUT)
    error = (await client.back({"name": "Leg"}, state, YES))["error"]
    assert (error["data"]["outcome"], error["data"]["approval_id"]) == ("timed_out", entry.approval_id)
    (late,) = events(log, "mcp_elicitation_late_response_ignored")
    assert late["approval_id"] == entry.approval_id
    assert await desk.projects() == []


async def test_a_question_cancelled_at_once_keeps_the_call_open_for_the_dashboard(open_modern, over) -> None:
    client, desk = await open_modern(over, approval_progress_interval_seconds="0.05")
    state, _ = await client.asked({"name": "Leg"})
    (entry,) = await desk.waiting()
    call = asyncio.create_task(client.back({"name": "Leg"}, state, {"action": "cancel"}, meta={"progressToken": "t"}))
    await desk.opened(entry.approval_id)
    await desk.decide()
    result = (await call)["result"]
    assert result["_meta"]["approval"]["route"] == "dashboard"
    assert "on the MetaForge dashboard Approvals page" in client.told[-1]["params"]["message"]
    assert await desk.projects() == ["Leg"]


async def test_a_question_that_nobody_answers_opens_on_the_dashboard_and_the_call_comes_back_to_its_decision(
    open_modern,
) -> None:
    client, desk = await open_modern(approval_rescue_seconds="0.1")
    state, _ = await client.asked({"name": "Leg"})
    (entry,) = await desk.waiting()
    await desk.opened(entry.approval_id)
    await desk.decide()
    assert await desk.projects() == [], "nobody is there to run it for"
    result = (await client.back({"name": "Leg"}, state, {"action": "cancel"}))["result"]
    assert result["_meta"]["approval"]["approvedBy"] == "anna"
    assert await desk.projects() == ["Leg"]


async def test_an_approval_that_its_client_never_fetches_ends_with_the_window(open_modern) -> None:
    client, desk = await open_modern(approval_rescue_seconds="0.05", approval_hold_seconds="0.6")
    await client.asked({"name": "Leg"})
    (entry,) = await desk.waiting()
    await desk.opened(entry.approval_id)
    await desk.decide()
    ended = await desk.state(entry.approval_id, State.CANCELED)
    assert "did not come back" in ended.ended_reason
    assert await desk.projects() == []


async def test_a_client_that_cannot_ask_waits_for_the_dashboard_with_progress(open_modern, over) -> None:
    client, desk = await open_modern(over)
    call = asyncio.create_task(client.call({"name": "Leg"}, {}, meta={"progressToken": 3}))
    (entry,) = await desk.waiting()
    assert (entry.request.route, entry.request.window_seconds) == (Route.DASHBOARD, 180.0)
    await desk.decide("reject")
    assert (await call)["error"]["data"]["outcome"] == "rejected"
    assert client.told[0]["params"]["progressToken"] == 3


async def test_a_closed_response_stream_is_a_withdrawal(open_modern) -> None:
    client, desk = await open_modern()
    meta = {PREFIX + "protocolVersion": VERSION, PREFIX + "clientCapabilities": {}}
    params = {"name": CREATE, "arguments": {"name": "Leg"}, "_meta": meta}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {"mcp_protocol_version": VERSION, "mcp_method": "tools/call", "mcp_name": CREATE}
    _, writer = await asyncio.open_connection("127.0.0.1", client.server.port)
    writer.write(client.server.raw_request(message, **headers))
    (entry,) = await desk.waiting()
    writer.close()
    await desk.state(entry.approval_id, State.CANCELED)


async def test_a_server_that_ends_leaves_no_question_open(open_modern) -> None:
    client, desk = await open_modern()
    await client.asked({"name": "Leg"})
    (entry,) = await desk.waiting()
    await desk.app.gate.close()
    ended = await desk.state(entry.approval_id, State.CANCELED)
    assert ended.ended_reason == "the server shut down"
    with pytest.raises(NotDecidable):
        await desk.decide(entry=entry)

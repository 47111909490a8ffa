"""Writes that carry a key of their caller's: sent again, they are not done again and nobody is asked again."""

import asyncio
from typing import Any

from desk import request

from metaforge.approvals.model import State

CREATE = "project.create"
KEY = "metaforge/idempotencyKey"


def text_of(response: Any) -> str:
    return str(response.json()["result"]["content"][0]["text"])


async def test_a_write_sent_again_is_neither_asked_about_nor_done_again(open_house) -> None:
    web, desk = await open_house()
    await web.initialize()
    sent = request(CREATE, {"name": "Leg"}, 1, **{KEY: "k1"})
    call = asyncio.create_task(web.post(sent))
    await desk.decide()
    first = (await call).json()["result"]
    again = (await web.post(sent)).json()["result"]
    assert again["structuredContent"]["id"] == first["structuredContent"]["id"]
    assert again["structuredContent"]["approval"] == first["structuredContent"]["approval"]
    assert again["_meta"]["replayOf"] == first["_meta"]["callId"]
    assert again["structuredContent"]["warnings"][0].startswith("This is the result of call ")
    assert await desk.projects() == ["Leg"]
    assert len(await asyncio.to_thread(desk.ledger.entries, "all")) == 1


async def test_a_model_gives_the_key_among_the_arguments_of_any_tool_that_writes(open_house) -> None:
    pipes, desk = await open_house("stdio")
    await pipes.initialize()
    arguments = {"name": "Leg", "idempotency_key": "mine"}
    answers = [await pipes.request("tools/call", {"name": CREATE, "arguments": arguments}) for _ in range(2)]
    ids = {answer["result"]["structuredContent"]["id"] for answer in answers}
    assert len(ids) == 1
    assert await desk.projects() == ["Leg"]
    read = await pipes.request("tools/call", {"name": "project.list", "arguments": {"idempotency_key": "mine"}})
    assert "idempotency_key" in read["result"]["content"][0]["text"], "what reads has no key"


async def test_a_key_stands_for_one_call(open_house) -> None:
    pipes, desk = await open_house("stdio")
    await pipes.initialize()
    await pipes.request("tools/call", {"name": CREATE, "arguments": {"name": "Leg", "idempotency_key": "k"}})
    other = await pipes.request("tools/call", {"name": CREATE, "arguments": {"name": "Arm", "idempotency_key": "k"}})
    assert other["result"]["isError"] is True
    assert "belongs to another call" in other["result"]["content"][0]["text"]
    assert await desk.projects() == ["Leg"]


async def test_a_key_that_another_session_used_in_its_own_project_is_not_this_ones(open_house) -> None:
    web, desk = await open_house(approval_hold="destroy")
    document = {"name": "Notes", "content": "# Notes", "document_type": "documentation", "idempotency_key": "notes-1"}

    async def write(name: str) -> Any:
        return (await web.post(request("twin.record_document", document, name))).json()["result"]

    await web.initialize()
    await web.post(request(CREATE, {"name": "Arm"}, 1))
    first = await write("first")
    assert "replayOf" not in first["_meta"]
    await web.post(request(CREATE, {"name": "Leg"}, 2))
    assert (await write("again"))["_meta"]["replayOf"] == first["_meta"]["callId"], "it opened another project since"

    await web.initialize()
    assert (await write("reconnected"))["_meta"]["replayOf"] == first["_meta"]["callId"], "its answer may be lost"
    await web.post(request(CREATE, {"name": "Toe"}, 3))
    other = await write("other")
    assert other["isError"] is True
    assert "send it with a new key" in other["content"][0]["text"]
    assert len(await desk.projects()) == 3


async def test_while_the_first_one_waits_the_second_is_told_so(open_house) -> None:
    web, desk = await open_house()
    await web.initialize()
    sent = request(CREATE, {"name": "Leg"}, 1, **{KEY: "k1"})
    call = asyncio.create_task(web.post(sent))
    await desk.waiting()
    second = await web.post({**sent, "id": 2})
    assert "write_in_progress; retrying unchanged can help" in text_of(second)
    await desk.decide()
    assert "result" in (await call).json()
    assert len(await asyncio.to_thread(desk.ledger.entries, "all")) == 1


async def test_a_write_that_was_refused_may_be_sent_again_under_its_key(open_house) -> None:
    web, desk = await open_house()
    await web.initialize()
    sent = request(CREATE, {"name": "Leg"}, 1, **{KEY: "k1"})
    call = asyncio.create_task(web.post(sent))
    entry = await desk.decide("reject")
    assert (await call).json()["error"]["data"]["outcome"] == "rejected"
    call = asyncio.create_task(web.post(sent))
    second = (await desk.waiting())[0]
    assert second.approval_id != entry.approval_id
    await desk.decide(entry=second)
    assert "result" in (await call).json()
    await desk.state(second.approval_id, State.COMPLETED)
    assert await desk.projects() == ["Leg"]


async def test_the_wait_for_a_person_is_no_part_of_the_tools_own_time(open_house) -> None:
    web, desk = await open_house()
    await web.initialize()
    params = {"tool_id": CREATE, "arguments": {"name": "Leg"}, "timeout_seconds": 1}
    legacy = {"jsonrpc": "2.0", "id": 1, "method": "tool/call", "params": params}
    call = asyncio.create_task(web.post(legacy, path="/rpc", accept="application/json"))
    await desk.waiting()
    await asyncio.sleep(1.05)
    await desk.decide()
    assert (await call).json()["result"]["status"] == "success"

"""Fault 10: the approved call is not the executed call, or it runs twice."""

import asyncio
import os
import random
import time
from collections import Counter
from datetime import datetime
from typing import Any

import pytest
from running import HttpServer, refusal

AT_THE_END = int(os.environ.get("METAFORGE_FAULT_APPROVALS", "60"))
"""How many calls are approved at the instant their window ends; 500 for the whole proof."""
AT_ONCE = 20
WINDOW_SECONDS = 1.5


async def waiting(web: HttpServer, count: int = 1) -> list[dict[str, Any]]:
    async with asyncio.timeout(30):
        while True:
            items: list[dict[str, Any]] = (await web.http.get("/v1/approvals")).json()["items"]
            if len(items) >= count:
                return items
            await asyncio.sleep(0.05)


async def decide(web: HttpServer, item: dict[str, Any], decision: str = "approve") -> int:
    answer = await web.http.post(f"/v1/approvals/{item['id']}/decision", json={"decision": decision, "reason": "test"})
    return answer.status_code


async def projects(web: HttpServer) -> list[str]:
    names: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = (await web.http.get("/v1/projects", params={"offset": offset})).json()
        names += [each["name"] for each in page["items"]]
        offset = page.get("next_offset")
    return sorted(names)


async def test_of_two_held_writes_only_the_approved_one_runs_with_exactly_its_arguments(web: HttpServer) -> None:
    session = await web.session()
    first = session.begin("project.create", {"name": "First"}, progressToken=1)
    await waiting(web, 1)
    second = session.begin("project.create", {"name": "Second"}, progressToken=2)
    items = await waiting(web, 2)
    chosen = next(each for each in items if "Second" in str(each))
    assert await decide(web, chosen) == 200
    answer = await second
    assert answer["result"]["structuredContent"]["name"] == "Second"
    assert await projects(web) == ["Second"]
    detail = (await web.http.get(f"/v1/approvals/{chosen['id']}")).json()["detail"]
    assert answer["result"]["_meta"]["approval"]["digest"] == detail["digest"], (
        "the ledger's digest is the executed one"
    )
    assert await decide(web, next(each for each in items if each["id"] != chosen["id"]), "reject") == 200
    assert (await first)["error"]["data"]["code"] == "approval_required"
    assert await projects(web) == ["Second"]


async def test_of_twenty_approvals_and_a_rejection_at_once_exactly_one_counts(web: HttpServer) -> None:
    session = await web.session()
    call = session.begin("project.create", {"name": "Once"}, progressToken=1)
    (item,) = await waiting(web)
    decisions = ["approve"] * 20 + ["reject"]
    random.shuffle(decisions)
    codes = await asyncio.gather(*(decide(web, item, decision) for decision in decisions))
    assert Counter(codes) == {200: 1, 409: 20}
    won = decisions[codes.index(200)]
    answer = await call
    assert ("result" in answer) == (won == "approve")
    assert await projects(web) == (["Once"] if won == "approve" else [])


async def approve_at_the_end(web: HttpServer, name: str, call: "asyncio.Task[Any]") -> int:
    """Approve a held call as its window ends; return how that was answered, 0 when it was over before it was seen."""
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(30):
        while not found and not call.done():
            items = (await web.http.get("/v1/approvals")).json()["items"]
            found = [each for each in items if each["detail"]["arguments"]["name"] == name]
            await asyncio.sleep(0.1)
    if not found:
        return 0
    ends = datetime.fromisoformat(found[0]["deadline"]).timestamp()
    await asyncio.sleep(max(0.0, ends - time.time() + random.uniform(-0.06, 0.01)))
    return await decide(web, found[0])


@pytest.mark.slow
async def test_approvals_at_the_instant_the_window_ends_run_or_time_out_and_never_both(start: Any) -> None:
    web: HttpServer = await start("http", METAFORGE_APPROVAL_HOLD_SECONDS=str(WINDOW_SECONDS))
    sessions = [await web.session() for _ in range(10)]
    codes: Counter[int] = Counter()
    ran: list[str] = []
    for base in range(0, AT_THE_END, AT_ONCE):
        names = [f"P{number}" for number in range(base, min(base + AT_ONCE, AT_THE_END))]
        calls = {name: sessions[n % 10].begin("project.create", {"name": name}) for n, name in enumerate(names)}
        codes.update(await asyncio.gather(*(approve_at_the_end(web, *each) for each in calls.items())))
        answers = dict(zip(calls, await asyncio.gather(*calls.values()), strict=True))
        for name, answer in answers.items():
            if "result" in answer:
                ran.append(name)
            else:
                assert answer["error"]["data"]["outcome"] == "timed_out"
    assert await projects(web) == sorted(ran)
    assert codes[200] == len(ran), codes
    assert set(codes) <= {0, 200, 409}


async def test_a_write_that_is_sent_again_returns_the_stored_result_and_other_arguments_are_refused(
    server: Any,
) -> None:
    session = await server.session()

    async def write(name: str) -> dict[str, Any]:
        call = session.begin("project.create", {"name": name, "idempotency_key": "key-1"}, progressToken=1)
        if server.transport == "http" and not asked:
            (item,) = await waiting(server)
            asked.append(item["id"])
            assert await decide(server, item) == 200
        answer: dict[str, Any] = await call
        return answer

    asked: list[str] = []
    first = await write("Leg")
    again = await write("Leg")
    assert again["result"]["structuredContent"]["id"] == first["result"]["structuredContent"]["id"]
    assert "key-1" in refusal(await write("Arm"))
    listed = await session.data("project.list")
    assert [each["name"] for each in listed["projects"]] == ["Leg"]


async def test_an_old_answer_to_a_question_runs_nothing_a_second_time(web: HttpServer) -> None:
    session = await web.session({"elicitation": {}})
    call = session.begin("project.create", {"name": "Leg"}, progressToken=1)
    question = await session.until(lambda message: message["method"] == "elicitation/create")
    reply = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": accepting(question)}}
    await session.post(reply)
    assert "result" in await call
    for _ in range(3):
        await session.post(reply)
    assert await projects(web) == ["Leg"]
    # Another session that answers the same question is nobody's answer either.
    other = await web.session({"elicitation": {}})
    held = other.begin("project.create", {"name": "Arm"}, progressToken=1)
    asked = await other.until(lambda message: message["method"] == "elicitation/create")
    await session.post({**reply, "id": asked["id"]})
    await session.request("ping", {})
    assert not held.done()
    assert await projects(web) == ["Leg"]
    await other.post({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}})
    assert "error" in await held


STATELESS = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "fault-tests", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}


class Stateless:
    """A client of the stateless era."""

    def __init__(self, web: HttpServer) -> None:
        self.http = web.http

    async def call(self, arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
        params = {"name": "project.create", "arguments": arguments, "_meta": STATELESS, **more}
        headers = {
            "accept": "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28",
            "mcp-method": "tools/call", "mcp-name": "project.create",
        }  # fmt: skip
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        answer = await self.http.post("/mcp", json=message, headers=headers)
        body: dict[str, Any] = answer.json()
        return body


async def test_a_request_state_serves_once_and_only_for_what_was_asked(web: HttpServer) -> None:
    client = Stateless(web)
    asked = await client.call({"name": "Leg"})
    assert asked["result"]["resultType"] == "input_required", asked
    ((name, question),) = asked["result"]["inputRequests"].items()
    state = asked["result"]["requestState"]
    given = {"inputResponses": {name: {"action": "accept", "content": accepting(question)}}, "requestState": state}
    changed = await client.call({"name": "Arm"}, **given)
    forged = await client.call({"name": "Leg"}, **{**given, "requestState": state[:-4] + "AAAA"})
    assert "error" in changed or changed["result"].get("isError")
    assert "error" in forged or forged["result"].get("isError")
    assert await projects(web) == []
    done = await client.call({"name": "Leg"}, **given)
    assert done["result"]["structuredContent"]["name"] == "Leg", done
    twice = await client.call({"name": "Leg"}, **given)
    assert refusal(twice) == refusal(forged), "one constant error for every replay"
    assert await projects(web) == ["Leg"]


def accepting(question: dict[str, Any]) -> dict[str, Any]:
    """Return what a person would fill in who agrees."""
    filled: dict[str, Any] = {}
    schema = question["params"]["requestedSchema"]
    for name, about in schema["properties"].items():
        options = about.get("enum") or [each["const"] for each in about.get("oneOf", ())]
        if options:
            filled[name] = next((each for each in options if "approve" in str(each).lower()), options[0])
        elif about["type"] == "boolean":
            filled[name] = True
        elif name in schema.get("required", ()):
            filled[name] = "fine"
    return filled

"""Writes that wait for a person, through the real server over HTTP and over pipes, with a real ledger."""

import asyncio
import logging
from typing import Any

import pytest
from desk import events, request

from metaforge.approvals import room, running
from metaforge.approvals.faults import LedgerUnavailable, NotDecidable
from metaforge.approvals.model import Approver, Kind, Route, State

ELICIT = {"elicitation": {}}
CREATE = "project.create"


@pytest.fixture(autouse=True)
def log(caplog):
    caplog.set_level(logging.INFO, logger="metaforge")
    return caplog


def answer_to(question: dict[str, Any], action: str = "accept", **content: Any) -> dict[str, Any]:
    result = {"action": action, **({"content": content} if content else {})}
    return {"jsonrpc": "2.0", "id": question["id"], "result": result}


def answering(web, action="accept", **content):
    """Answer every question that comes, and keep it."""
    asked = []

    async def on_event(event):
        if event.get("method") == "elicitation/create":
            asked.append(event)
            taken = await web.post(answer_to(event, action, **content))
            assert (taken.status_code, taken.content) == (202, b"")

    on_event.asked = asked
    return on_event


# -- what is held ------------------------------------------------------------------------------------------------------


async def test_a_write_runs_once_when_it_is_approved_on_the_dashboard_and_says_so(open_house, log) -> None:
    web, desk = await open_house()
    await web.initialize()
    call = asyncio.create_task(web.post(request(CREATE, {"name": "Leg"})))
    entry = (await desk.waiting())[0]
    assert await desk.projects() == [], "nothing is done before somebody allows it"
    await desk.decide(reason="go on")
    response = await call
    result = response.json()["result"]

    assert response.headers["content-type"] == "application/json", "nothing was said before the result"
    assert await desk.projects() == ["Leg"]
    note = result["content"][1]["text"]
    assert note.startswith("This write was held for human approval and was approved by anna (approval run_")
    assert note.endswith("s via dashboard. They said: go on.")
    approval = result["_meta"]["approval"]
    assert {name: approval[name] for name in ("held", "outcome", "route", "approvalId", "approvedBy")} == {
        "held": True, "outcome": "approved", "route": "dashboard", "approvalId": entry.approval_id,
        "approvedBy": "anna",
    }  # fmt: skip
    assert approval["approverVerified"] is True
    assert result["structuredContent"]["approval"]["approval_id"] == entry.approval_id
    assert result["structuredContent"]["name"] == "Leg"
    done = await desk.state(entry.approval_id, State.COMPLETED)
    assert (done.request.route, done.request.kind) == (Route.DASHBOARD, Kind.TOOL_CALL)
    (held,) = events(log, "mcp_tool_call_held_for_approval")
    assert (held["route"], held["window_seconds"], held["progress"]) == ("dashboard", 100.0, False)


async def test_reads_and_bookkeeping_are_not_held_whoever_calls(open_house) -> None:
    web, desk = await open_house()
    await web.initialize(ELICIT)
    listed = await web.post(request("project.list"))
    started = await web.post(request("session.start", {"agent_code": "a", "task_type": "t"}))
    assert listed.json()["result"]["structuredContent"]["total"] == 0
    assert started.json()["result"]["structuredContent"]["session_id"]
    assert await asyncio.to_thread(desk.ledger.entries, "all") == []


async def test_a_call_that_the_record_would_refuse_is_refused_before_anyone_is_asked(open_house) -> None:
    web, desk = await open_house()
    await web.initialize()
    refused = await web.post(request("project.update", {"id": "nope", "name": "x"}))
    wrong = await web.post(request(CREATE, {"nam": "x"}))
    huge = await web.post(
        request("twin.record_engineering_entity", {"entity_type": "risk", "statement": "s", "extra": {"n": 2**60}})
    )
    for response in (refused, wrong, huge):
        assert response.json()["result"]["isError"] is True
    assert "2^53" in huge.json()["result"]["content"][0]["text"]
    assert await asyncio.to_thread(desk.ledger.entries, "all") == []


async def test_the_person_sees_what_is_there_and_what_would_be(open_house) -> None:
    web, desk = await open_house()
    await web.initialize()
    call = asyncio.create_task(web.post(request(CREATE, {"name": "Leg", "description": "old"})))
    await desk.decide()
    project_id = (await call).json()["result"]["structuredContent"]["id"]
    call = asyncio.create_task(web.post(request("project.update", {"id": project_id, "description": "new"})))
    update = (await desk.waiting())[0].request
    facts = {"name": "Leg", "description": "old", "status": "active"}
    assert update.change["now"] == {f"project {project_id}": facts}
    assert update.change["after"] == {f"project {project_id}": {**facts, "description": "new"}}
    assert update.reason_held == "it would replace or remove existing content"
    await desk.decide()
    assert (await call).json()["result"]["structuredContent"]["description"] == "new"


async def test_what_was_changed_by_others_while_it_waited_is_not_replaced(open_house) -> None:
    web, desk = await open_house()
    await web.initialize()
    call = asyncio.create_task(web.post(request(CREATE, {"name": "Leg"})))
    await desk.decide()
    project_id = (await call).json()["result"]["structuredContent"]["id"]
    first = asyncio.create_task(web.post(request("project.update", {"id": project_id, "name": "A"}, 1)))
    await desk.waiting(1)
    second = asyncio.create_task(web.post(request("project.update", {"id": project_id, "name": "B"}, 2)))
    late, early = await desk.waiting(2)
    await desk.decide(entry=early)
    await first
    await desk.decide(entry=late)
    told = (await second).json()["result"]["content"][0]["text"]
    assert "is no longer what the approver was shown" in told
    assert "changed_while_waiting" in told
    assert await desk.projects() == ["A"]
    failed = await desk.state(late.approval_id, State.FAILED)
    assert "did not run" in failed.ended_reason


async def test_of_two_alike_only_the_approved_one_runs(open_house) -> None:
    web, desk = await open_house()
    await web.initialize()
    calls = [asyncio.create_task(web.post(request(CREATE, {"name": name}, name))) for name in ("one", "two")]
    waiting = await desk.waiting(2)
    two = next(entry for entry in waiting if entry.request.arguments["name"] == "two")
    one = next(entry for entry in waiting if entry.request.arguments["name"] == "one")
    await desk.decide(entry=two)
    await desk.decide("reject", one, reason="not that one")
    first, second = [(await call).json() for call in calls]
    assert await desk.projects() == ["two"]
    assert second["result"]["structuredContent"]["approval"]["digest"] == two.digest
    assert first["error"]["data"]["outcome"] == "rejected"


async def test_edited_arguments_are_judged_anew_run_and_are_told(open_house) -> None:
    web, desk = await open_house()
    await web.initialize()
    call = asyncio.create_task(web.post(request(CREATE, {"name": "Leg"})))
    await desk.decide(arguments={"name": "Arm", "status": "paused"})
    result = (await call).json()["result"]
    assert await desk.projects() == ["Arm"]
    assert result["structuredContent"]["approval"]["edited"] is True
    assert result["structuredContent"]["approval"]["changes"] == ["name 'Leg' -> 'Arm'", "status = 'paused'"]
    assert "It ran with arguments that the approver changed" in result["content"][1]["text"]
    record = await asyncio.to_thread(desk.app.calls.get_call, result["_meta"]["callId"])
    assert record.arguments == {"name": "Arm", "status": "paused"}


async def test_edited_arguments_that_the_tool_does_not_take_run_nothing(open_house) -> None:
    web, desk = await open_house()
    await web.initialize()
    call = asyncio.create_task(web.post(request(CREATE, {"name": "Leg"})))
    entry = await desk.decide(arguments={"name": 7})
    result = (await call).json()["result"]
    assert result["isError"] is True
    assert "name" in result["content"][0]["text"]
    assert await desk.projects() == []
    assert (await desk.state(entry.approval_id, State.FAILED)).ended_reason.startswith("it did not run")


# -- what a client is told when it was not approved --------------------------------------------------------------------


async def test_a_rejection_is_an_error_whose_message_says_it_all(open_house) -> None:
    web, desk = await open_house(dashboard_url="http://localhost:3000/")
    await web.initialize()
    call = asyncio.create_task(web.post(request(CREATE, {"name": "Leg"})))
    entry = await desk.decide("reject", reason="Use the other project.")
    error = (await call).json()["error"]
    where = "the MetaForge dashboard Approvals page (http://localhost:3000/approvals)"
    assert error["code"] == -32001
    assert error["message"].startswith(
        f"project.create was not run (rejected): held for approval {entry.approval_id} on {where}, and anna rejected "
    )
    assert "saying: Use the other project. Nothing was changed." in error["message"]
    data = error["data"]
    assert data.pop("held_seconds") >= 0
    assert data == {
        "tool_id": CREATE, "code": "approval_required", "outcome": "rejected", "approval_id": entry.approval_id,
        "route": "dashboard", "where": where, "window_seconds": 100.0, "retryable": False, "decided_by": "anna",
        "approver_verified": True, "reason": "Use the other project.", "call_id": data["call_id"],
    }  # fmt: skip
    assert await desk.projects() == []


async def test_a_window_that_nobody_used_times_out_and_a_late_decision_is_refused(open_house) -> None:
    web, desk = await open_house(approval_hold_seconds="0.3")
    await web.initialize()
    error = (await web.post(request(CREATE, {"name": "Leg"}))).json()["error"]
    data = error["data"]
    assert (data["outcome"], data["route"], data["window_seconds"]) == ("timed_out", "dashboard", 0.3)
    assert data["held_seconds"] >= 0.3
    assert error["message"].endswith(
        "and no one answered before the approval window closed (0.3s). Nothing was changed."
    )
    entry = await desk.state(data["approval_id"], State.TIMED_OUT)
    with pytest.raises(NotDecidable):
        await desk.decide(entry=entry)
    assert await desk.projects() == []


async def test_a_hold_that_is_closed_by_others_is_cancelled(open_house) -> None:
    web, desk = await open_house()
    await web.initialize()
    call = asyncio.create_task(web.post(request(CREATE, {"name": "Leg"})))
    entry = (await desk.waiting())[0]
    await asyncio.to_thread(desk.ledger.end, entry.approval_id, State.CANCELED, "cleaned up")
    error = (await call).json()["error"]
    assert error["data"]["outcome"] == "cancelled"
    assert "the hold was closed before anyone answered (cleaned up)" in error["message"]


async def test_without_a_ledger_nobody_is_asked_and_nothing_runs(open_house, monkeypatch) -> None:
    web, desk = await open_house()
    await web.initialize(ELICIT)

    def unavailable(request: Any, **_: Any) -> Any:
        raise LedgerUnavailable("The approval ledger cannot be used: the disk is full")

    monkeypatch.setattr(desk.app.approvals.ledger, "open", unavailable)
    response = await web.post(request(CREATE, {"name": "Leg"}))
    error = response.json()["error"]
    assert response.headers["content-type"] == "application/json", "the client was asked nothing"
    assert error["data"]["code"] == "approval_ledger_unavailable"
    assert "the disk is full" in error["message"]
    assert await desk.projects() == []


async def test_a_ledger_that_fails_when_the_call_would_start_runs_nothing_and_leaves_nothing_open(
    open_house, monkeypatch
) -> None:
    web, desk = await open_house()
    await web.initialize()

    def unavailable(approval_id: str, digest: str, **_: Any) -> Any:
        raise LedgerUnavailable("The approval ledger cannot be used: the disk is full")

    monkeypatch.setattr(desk.app.approvals.ledger, "claim", unavailable)
    calling = asyncio.create_task(web.post(request(CREATE, {"name": "Leg"})))
    entry = await desk.decide()
    error = (await calling).json()["error"]
    assert error["data"]["code"] == "approval_ledger_unavailable"
    ended = await desk.state(entry.approval_id, State.FAILED)
    assert ended.ended_reason == "it did not run: The approval ledger cannot be used: the disk is full"
    assert await desk.projects() == []


async def test_an_end_that_could_not_be_written_down_is_written_when_the_ledger_is_back(
    open_house, monkeypatch, log
) -> None:
    web, desk = await open_house()
    await web.initialize()
    monkeypatch.setattr(running, "_FIRST_RETRY_SECONDS", 0.02)
    ledger, failures = desk.app.approvals.ledger, 3
    end = ledger.end

    def fail_at_first(*told: Any) -> Any:
        nonlocal failures
        failures -= 1
        if failures >= 0:
            raise LedgerUnavailable("The approval ledger cannot be used: the disk is full")
        return end(*told)

    monkeypatch.setattr(ledger, "end", fail_at_first)
    calling = asyncio.create_task(web.post(request(CREATE, {"name": "Leg"})))
    entry = await desk.decide()
    assert (await calling).json()["result"].get("isError") is not True
    assert await desk.projects() == ["Leg"]
    await desk.state(entry.approval_id, State.COMPLETED)
    assert len(events(log, "approval_end_not_recorded")) == 1


async def test_a_client_that_asks_without_end_is_refused_until_somebody_decides(open_house, monkeypatch) -> None:
    monkeypatch.setattr(room, "MAX_COUNT", 4)
    web, desk = await open_house()
    await web.initialize()
    calls = [asyncio.create_task(web.post(request(CREATE, {"name": name}, name))) for name in ("Leg", "Arm")]
    entries = await desk.waiting(2)
    refused = (await web.post(request(CREATE, {"name": "Toe"}, 9))).json()["result"]
    assert refused["isError"] is True
    assert "2 of this client's calls" in refused["content"][0]["text"]
    assert len(await desk.waiting()) == 2, "nobody was asked"
    for entry in entries:
        await desk.decide("reject", entry, reason="no")
    await asyncio.gather(*calls)
    third = asyncio.create_task(web.post(request(CREATE, {"name": "Toe"}, 10)))
    await desk.decide()
    assert (await third).json()["result"]["structuredContent"]["name"] == "Toe"


# -- progress ----------------------------------------------------------------------------------------------------------


async def test_progress_begins_at_once_with_the_clients_own_token_and_rises(open_house, log) -> None:
    web, desk = await open_house(approval_progress_interval_seconds="0.05", dashboard_url="http://localhost:3000")
    await web.initialize()
    seen: list[Any] = []

    async def on_event(event):
        seen.append(event)
        if len(seen) == 4:
            await desk.decide()

    told = await web.events(request(CREATE, {"name": "Leg"}, 1, progressToken="tok-é/1"), on_event)
    reports = [each["params"] for each in told if each.get("method") == "notifications/progress"]
    entry = (await asyncio.to_thread(desk.ledger.entries, "all"))[0]
    assert reports[0] == {
        "progressToken": "tok-é/1", "progress": 0.0, "total": 180.0,
        "message": f"project.create is held for human approval (approval {entry.approval_id}). A person must approve "
        "or reject it on the MetaForge dashboard Approvals page: http://localhost:3000/approvals. Waiting up to 180s.",
    }  # fmt: skip
    values = [each["progress"] for each in reports]
    assert values == sorted(set(values))
    assert "result" in told[-1]
    (held,) = events(log, "mcp_tool_call_held_for_approval")
    assert (held["window_seconds"], held["progress"]) == (180.0, True)


async def test_the_integer_zero_is_a_token_and_the_legacy_dialect_is_told_its_own_way(open_house) -> None:
    web, desk = await open_house()
    await web.initialize()

    async def approve(event):
        if "method" in event:
            await desk.decide()

    told = await web.events(request(CREATE, {"name": "A"}, 1, progressToken=0), approve)
    assert (told[0]["params"]["progressToken"], type(told[0]["params"]["progressToken"])) == (0, int)
    legacy = {"jsonrpc": "2.0", "id": "old", "method": "tool/call",
              "params": {"tool_id": CREATE, "arguments": {"name": "B"}}}  # fmt: skip
    told = await web.events(legacy, approve)
    assert (told[0]["method"], told[0]["params"]["request_id"]) == ("tool/result", "old")
    assert told[-1]["result"]["approval"]["approved_by"] == "anna"


@pytest.mark.parametrize("variable", ["approval_hold_seconds", "approval_hold_progress_seconds"])
async def test_a_setting_that_cannot_be_used_is_told_and_the_default_counts(open_house, log, variable) -> None:
    await open_house(**{variable: "4000"})
    (told,) = events(log, "approval_hold_env_invalid")
    assert f"METAFORGE_{variable.upper()}='4000' is ignored" in told["problem"]


# -- asked in the client -----------------------------------------------------------------------------------------------


async def test_the_question_travels_on_the_calls_own_stream_after_the_ledger_knows(open_house, log) -> None:
    web, desk = await open_house()
    await web.initialize(ELICIT, name="claude-code")
    known: list[Any] = []

    async def on_event(event):
        if event.get("method") == "elicitation/create":
            known.extend(await desk.waiting())
            await web.post(answer_to(event, approve=True, note="fine by me"))

    question, result = await web.events(request(CREATE, {"name": "Leg", "description": "d" * 300}), on_event)
    (entry,) = known
    assert (entry.request.route, entry.request.caller.client_name, entry.on_dashboard) == (
        Route.ELICITATION, "claude-code", False,
    )  # fmt: skip
    message = question["params"]["message"]
    assert question["id"].startswith("elicit-")
    assert "Create a project (project.create) needs your approval: it would add to the design record." in message
    assert "Answer within 100 seconds. After that this request expires and project.create is not run." in message
    assert '- name: "Leg"' in message
    assert "d" * 130 not in message, "long arguments are clipped"
    schema = question["params"]["requestedSchema"]
    assert (schema["properties"]["approve"]["type"], schema["required"]) == ("boolean", ["approve"])
    assert schema["properties"]["note"]["maxLength"] == 280
    approval = result["result"]["_meta"]["approval"]
    assert (approval["approvedBy"], approval["approverVerified"]) == ("local:elicitation", False)
    assert (approval["route"], approval["reason"]) == ("elicitation", "fine by me")
    assert await desk.projects() == ["Leg"]
    done = await desk.state(entry.approval_id, State.COMPLETED)
    assert done.decision is not None
    assert done.decision.reason == "fine by me"
    (held,) = events(log, "mcp_tool_call_held_for_approval")
    assert (held["route"], held["window_seconds"]) == ("elicitation", 100.0)


@pytest.mark.parametrize(
    ("action", "content", "outcome"),
    [
        ("accept", {"approve": False, "note": "no"}, "rejected"),
        ("accept", {"approve": "yes"}, "rejected"),
        ("accept", {}, "rejected"),
        ("decline", {}, "rejected"),
    ],
)
async def test_whatever_is_no_yes_is_a_no(open_house, action, content, outcome) -> None:
    web, desk = await open_house()
    await web.initialize(ELICIT)
    told = await web.events(request(CREATE, {"name": "Leg"}), answering(web, action, **content))
    data = told[-1]["error"]["data"]
    assert (data["outcome"], data["route"], data["where"]) == (outcome, "elicitation", "the question shown in test")
    assert await desk.projects() == []


async def test_secrets_are_not_shown_and_no_argument_passes_for_a_part_of_the_question(open_house) -> None:
    web, _ = await open_house()
    await web.initialize(ELICIT)
    on_event = answering(web, "decline")
    extra = {"api_key": "s3cret-value", "note": "x\n\nAlready approved.\u202e"}
    arguments = {"entity_type": "risk", "statement": "a\nApproved by: the boss", "extra": extra}
    await web.events(request("twin.record_engineering_entity", arguments), on_event)
    message = on_event.asked[0]["params"]["message"]
    assert "s3cret-value" not in message
    assert "[redacted]" in message
    assert "\nApproved by" not in message
    assert "\u202e" not in message


async def test_a_question_goes_by_the_open_stream_of_the_session_where_there_is_one(open_house, until) -> None:
    web, desk = await open_house()
    await web.initialize(ELICIT)
    seen: list[Any] = []

    async def listen() -> None:
        async with web.http.stream("GET", "/mcp", headers=web.headers()) as stream:
            async for line in stream.aiter_lines():
                if line.startswith("data: "):
                    import json

                    seen.append(json.loads(line[6:]))

    listening = asyncio.create_task(listen())
    try:
        await until(lambda: web.app._streams)
        call = asyncio.create_task(web.post(request(CREATE, {"name": "Leg"}), accept="application/json"))
        await until(lambda: seen)
        await web.post(answer_to(seen[0], approve=True))
        response = await call
    finally:
        listening.cancel()
        await asyncio.wait([listening])
    assert response.headers["content-type"] == "application/json"
    assert response.json()["result"]["_meta"]["approval"]["route"] == "elicitation"
    assert await desk.projects() == ["Leg"]


async def test_a_client_that_takes_no_stream_is_asked_on_the_dashboard(open_house) -> None:
    web, desk = await open_house()
    await web.initialize(ELICIT)
    call = asyncio.create_task(web.post(request(CREATE, {"name": "Leg"}), accept="application/json"))
    assert (await desk.waiting())[0].request.route is Route.DASHBOARD
    await desk.decide()
    assert (await call).json()["result"]["_meta"]["approval"]["route"] == "dashboard"


async def test_the_question_is_withdrawn_before_the_timeout_is_told_and_a_late_answer_does_nothing(
    open_house, log
) -> None:
    web, desk = await open_house(approval_hold_seconds="0.3", approval_rescue_seconds="3600")
    await web.initialize(ELICIT)
    question, withdrawal, error = await web.events(request(CREATE, {"name": "Leg"}))
    assert withdrawal["method"] == "notifications/cancelled"
    assert withdrawal["params"] == {"requestId": question["id"], "reason": "approval window ended"}
    assert error["error"]["data"]["outcome"] == "timed_out"
    late = await web.post(answer_to(question, approve=True))
    assert (late.status_code, late.content) == (202, b"")
    assert len(events(log, "mcp_elicitation_late_response_ignored")) == 1
    (told,) = events(log, "mcp_elicitation_withdrawn")
    assert told["delivered"] is True
    assert await desk.projects() == []
    await desk.state(error["error"]["data"]["approval_id"], State.TIMED_OUT)


async def test_progress_is_sent_while_the_question_is_open(open_house) -> None:
    web, _ = await open_house(approval_progress_interval_seconds="0.05")
    await web.initialize(ELICIT)
    seen: list[Any] = []

    async def on_event(event):
        seen.append(event)
        if len(seen) == 5:
            question = next(each for each in seen if each.get("method") == "elicitation/create")
            await web.post(answer_to(question, approve=True))

    told = await web.events(request(CREATE, {"name": "Leg"}, 1, progressToken=7), on_event)
    assert (
        "Answer within 180 seconds."
        in next(e for e in told if e.get("method") == "elicitation/create")["params"]["message"]
    )
    assert "the question shown in test" in told[0]["params"]["message"]
    assert "result" in told[-1]


# -- nobody seems to see the question ----------------------------------------------------------------------------------


async def test_a_question_cancelled_at_once_opens_on_the_dashboard(open_house) -> None:
    web, desk = await open_house()
    await web.initialize(ELICIT)

    async def on_event(event):
        if event.get("method") == "elicitation/create":
            await web.post(answer_to(event, "cancel"))
            (entry,) = await desk.waiting()
            await desk.opened(entry.approval_id)
            await desk.decide()

    told = await web.events(request(CREATE, {"name": "Leg"}), on_event)
    assert told[-1]["result"]["_meta"]["approval"]["route"] == "dashboard"
    assert await desk.projects() == ["Leg"]


async def test_a_client_that_fails_to_ask_leaves_the_dashboard(open_house) -> None:
    web, desk = await open_house()
    await web.initialize(ELICIT)

    async def on_event(event):
        if event.get("method") == "elicitation/create":
            fault = {"code": -32603, "message": "no form here"}
            await web.post({"jsonrpc": "2.0", "id": event["id"], "error": fault})
            (entry,) = await desk.waiting()
            await desk.opened(entry.approval_id)
            await desk.decide("reject")

    told = await web.events(request(CREATE, {"name": "Leg"}), on_event)
    assert told[-1]["error"]["data"]["outcome"] == "rejected"


async def test_before_the_rescue_the_dashboard_may_not_answer_and_after_it_the_first_answer_wins(
    open_house, log
) -> None:
    web, desk = await open_house(approval_rescue_seconds="0.4")
    await web.initialize(ELICIT, name="claude-code")
    early: list[Any] = []

    async def on_event(event):
        if event.get("method") == "elicitation/create":
            (entry,) = await desk.waiting()
            with pytest.raises(NotDecidable, match="claude-code") as refused:
                await desk.decide(entry=entry)
            early.append(refused.value)
            await desk.opened(entry.approval_id)
            await desk.decide(entry=entry)

    question, withdrawal, result = await web.events(request(CREATE, {"name": "Leg"}), on_event)
    assert early[0].status == 409
    assert withdrawal["params"] == {"requestId": question["id"], "reason": "answered elsewhere"}
    assert result["result"]["_meta"]["approval"]["route"] == "dashboard"
    await web.post(answer_to(question, "decline"))
    assert len(events(log, "mcp_elicitation_late_response_ignored")) == 1
    assert await desk.projects() == ["Leg"]


async def test_after_the_rescue_the_client_may_still_answer_first(open_house) -> None:
    web, desk = await open_house(approval_rescue_seconds="0.1")
    await web.initialize(ELICIT)

    async def on_event(event):
        if event.get("method") == "elicitation/create":
            (entry,) = await desk.waiting()
            await desk.opened(entry.approval_id)
            await web.post(answer_to(event, approve=True))

    told = await web.events(request(CREATE, {"name": "Leg"}), on_event)
    assert told[-1]["result"]["_meta"]["approval"]["route"] == "elicitation"
    entry = (await asyncio.to_thread(desk.ledger.entries, "all"))[0]
    with pytest.raises(NotDecidable, match="already approved"):
        await desk.decide("reject", entry)


async def test_a_person_who_dismisses_the_question_times_it_out(open_house) -> None:
    web, _ = await open_house()
    await web.initialize(ELICIT)

    async def on_event(event):
        if event.get("method") == "elicitation/create":
            await asyncio.sleep(0.35)
            await web.post(answer_to(event, "cancel"))

    told = await web.events(request(CREATE, {"name": "Leg"}), on_event)
    assert told[-1]["error"]["data"]["outcome"] == "timed_out"
    assert "dismissed in the client after 0." in told[-1]["error"]["message"]


async def test_nobody_is_asked_in_the_client_where_only_the_dashboard_may(open_house) -> None:
    web, desk = await open_house(approval_route="dashboard")
    await web.initialize(ELICIT)
    call = asyncio.create_task(web.post(request(CREATE, {"name": "Leg"})))
    await desk.decide()
    assert (await call).json()["result"]["_meta"]["approval"]["route"] == "dashboard"


async def test_both_are_asked_at_once_where_the_setting_says_so(open_house) -> None:
    web, desk = await open_house(approval_route="both")
    await web.initialize(ELICIT)

    async def on_event(event):
        if event.get("method") == "elicitation/create":
            await desk.decide("reject")

    told = await web.events(request(CREATE, {"name": "Leg"}), on_event)
    assert [each.get("method") for each in told[:2]] == ["elicitation/create", "notifications/cancelled"]
    assert told[-1]["error"]["data"]["route"] == "dashboard"


# -- over pipes --------------------------------------------------------------------------------------------------------


async def test_writes_over_stdio_are_exempt_even_where_the_client_could_ask(open_house) -> None:
    pipes, desk = await open_house("stdio")
    await pipes.initialize(ELICIT)
    answer = await pipes.request("tools/call", {"name": CREATE, "arguments": {"name": "Leg"}})
    assert answer["result"]["structuredContent"]["name"] == "Leg"
    assert "approval" not in answer["result"]["_meta"]
    assert await asyncio.to_thread(desk.ledger.entries, "all") == []


async def test_writes_over_stdio_are_held_where_the_setting_says_so(open_house) -> None:
    pipes, desk = await open_house("stdio", exempt_local_writes="false", approval_hold_progress_seconds="50")
    await pipes.initialize(ELICIT)
    pipes.send("tools/call", request(CREATE, {"name": "Leg"}, progressToken="t")["params"], id=1)
    progress, question = await pipes.read(), await pipes.read()
    assert progress["params"]["total"] == 50.0
    assert (question["method"], question["id"]) == ("elicitation/create", "elicit-stdio-1")
    pipes.send(id=question["id"], result={"action": "accept", "content": {"approve": True}})
    result = (await pipes.read())["result"]
    assert result["_meta"]["approval"]["approvedBy"] == "local:elicitation"
    assert await desk.projects() == ["Leg"]


# -- decisions that are a person's alone -------------------------------------------------------------------------------


@pytest.fixture
async def project(open_house):
    """A server over stdio with one project; writes there run unasked, a person's decisions do not."""
    pipes, desk = await open_house("stdio")
    await pipes.initialize(ELICIT)
    made = await pipes.request("tools/call", {"name": CREATE, "arguments": {"name": "Leg"}})
    return pipes, desk, made["result"]["structuredContent"]["id"]


async def test_a_persons_decision_is_held_on_the_dashboard_even_for_a_local_client(project) -> None:
    pipes, desk, project_id = project
    arguments = {"project_id": project_id, "level": "concept", "comment": "ready"}
    pipes.send("tools/call", {"name": "twin.attempt_promotion", "arguments": arguments}, id=1)
    (entry,) = await desk.waiting()
    assert (entry.request.kind, entry.request.route) == (Kind.HUMAN_AUTHORITY, Route.DASHBOARD)
    assert "promoted" in str(entry.request.change["after"])
    agent = Approver("local", False, "agent", agent="claude")
    with pytest.raises(NotDecidable) as refused:
        await desk.decide(entry=entry, approver=agent)
    assert refused.value.status == 403
    await desk.decide(entry=entry)
    result = (await pipes.read())["result"]["structuredContent"]
    assert (result["promoted"], result["decided_by"]) == (True, "anna")


@pytest.mark.parametrize("name", ["approver", "decided_by", "approved_by", "__approved_by__"])
async def test_who_approves_is_not_the_callers_to_say(project, name) -> None:
    pipes, desk, project_id = project
    arguments = {"project_id": project_id, "level": "concept", name: "the boss"}
    answer = await pipes.request("tools/call", {"name": "twin.attempt_promotion", "arguments": arguments})
    assert "approver_not_caller_supplied" in answer["result"]["content"][0]["text"]
    assert await asyncio.to_thread(desk.ledger.entries, "all") == []


async def test_a_decision_that_nobody_stands_behind_is_refused(project) -> None:
    pipes, desk, project_id = project
    arguments = {"project_id": project_id, "level": "concept"}
    pipes.send("tools/call", {"name": "twin.attempt_promotion", "arguments": arguments}, id=1)
    (entry,) = await desk.waiting()
    await desk.decide(entry=entry, approver=Approver("", False, "dashboard"))
    text = (await pipes.read())["result"]["content"][0]["text"]
    assert "human_authority_required" in text
    await desk.state(entry.approval_id, State.FAILED)


# -- the end of a call that waits --------------------------------------------------------------------------------------


async def test_a_client_that_withdraws_its_call_takes_the_entry_along(open_house) -> None:
    pipes, desk = await open_house("stdio", exempt_local_writes="false")
    await pipes.initialize(ELICIT)
    pipes.send("tools/call", request(CREATE, {"name": "Leg"})["params"], id="mine")
    question = await pipes.read()
    (entry,) = await desk.waiting()
    pipes.send("notifications/cancelled", {"requestId": "mine"})
    assert (await pipes.read())["params"]["requestId"] == question["id"], "the question is taken down"
    ended = await desk.state(entry.approval_id, State.CANCELED)
    assert "its client left or cancelled it" in ended.ended_reason
    with pytest.raises(NotDecidable) as refused:
        await desk.decide(entry=entry)
    assert refused.value.status == 409
    await pipes.nothing_but({"jsonrpc": "2.0", "id": "probe", "result": {}})
    assert await desk.projects() == []


@pytest.mark.parametrize("how", ["cancelled", "deleted", "hung up", "shut down"])
async def test_a_call_over_http_that_nobody_waits_for_any_more_is_canceled(open_house, how) -> None:
    web, desk = await open_house()
    await web.initialize()
    _, writer = await asyncio.open_connection("127.0.0.1", web.port)
    writer.write(web.raw_request(request(CREATE, {"name": "Leg"}, 5)))
    (entry,) = await desk.waiting()
    if how == "cancelled":
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}
        assert (await web.post(cancel)).status_code == 202
    elif how == "deleted":
        assert (await web.http.delete("/mcp", headers=web.headers())).status_code == 204
    elif how == "hung up":
        writer.close()
    else:
        web.app.stop()
        await desk.app.gate.close()
    ended = await desk.state(entry.approval_id, State.CANCELED)
    assert ended.ended_reason
    with pytest.raises(NotDecidable):
        await desk.decide(entry=entry)
    assert await desk.projects() == []
    writer.close()


async def test_ids_of_two_sessions_do_not_meet(open_house) -> None:
    web, desk = await open_house()
    first = await web.initialize()
    one = asyncio.create_task(web.post(request(CREATE, {"name": "one"}, 7)))
    await desk.waiting(1)
    await web.initialize()
    two = asyncio.create_task(web.post(request(CREATE, {"name": "two"}, 7)))
    waiting = await desk.waiting(2)
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
    await web.post(cancel, mcp_session_id=first)
    gone = next(entry for entry in waiting if entry.request.arguments["name"] == "one")
    await desk.state(gone.approval_id, State.CANCELED)
    await desk.decide()
    assert (await two).json()["result"]["structuredContent"]["name"] == "two"
    assert (await one).content == b""
    assert await desk.projects() == ["two"]

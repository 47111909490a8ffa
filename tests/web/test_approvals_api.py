"""The unified list of approvals: what it tells, who decides, and what is refused."""

import asyncio

from metaforge.approvals.model import Approver, Kind, Route, State, later
from metaforge.core.clock import utc_now
from metaforge.tools.context import Caller, Trust

PERSON = Approver("local:dashboard", False, "dashboard")


async def test_nothing_waits_at_first(served) -> None:
    assert await served.get("/v1/approvals") == {"items": [], "unscoped_count": 0, "next_before": None}


async def test_a_held_call_is_told_with_all_that_a_person_needs(served) -> None:
    entry = served.hold()

    (item,) = (await served.get("/v1/approvals"))["items"]

    assert item["id"] == f"tool:{entry.approval_id}"
    assert (item["kind"], item["status"], item["route"]) == ("tool_call", "pending", "dashboard")
    assert (item["title"], item["summary"]) == ("Create a project", "Creates the project Arm.")
    assert item["deadline"] == entry.request.expires_at
    assert item["requested_by"]["client_name"] == "claude-code"
    assert item["allowed_decisions"] == ["approve", "reject"]
    assert item["reason_required_for"] == ["reject"]
    assert item["decidable"] is True
    assert item["decision"] is None
    assert item["detail"]["arguments"] == {"name": "Arm", "api_key": "[redacted]"}
    assert item["detail"]["digest"] == entry.digest
    assert await served.get(f"/v1/approvals/{item['id']}") == item


async def test_approving_records_who_and_lets_the_call_go_on(served) -> None:
    entry = served.hold()

    item = await served.post(f"/v1/approvals/tool:{entry.approval_id}/decision", {"decision": "approve"})

    assert item["status"] == "approved"
    assert item["decision"]["approver"] == "local:dashboard"
    assert item["decision"]["approver_verified"] is False
    assert item["decision"]["surface"] == "dashboard"
    assert served.services.ledger.claim(entry.approval_id, entry.digest).state is State.RUNNING
    assert (await served.get("/v1/approvals"))["items"] == []
    (decided,) = (await served.get("/v1/approvals?status=decided"))["items"]
    assert decided["detail"]["state"] == "running"


async def test_the_surface_and_for_whom_are_kept_as_the_headers_say(served) -> None:
    entry = served.hold()
    headers = {
        "X-MetaForge-Surface": "agent", "X-MetaForge-On-Behalf-Of": "Ada", "X-MetaForge-Agent": "planner",
    }  # fmt: skip
    body = {"decision": "reject", "reason": "not now"}

    item = await served.post(f"/v1/approvals/tool:{entry.approval_id}/decision", body, headers=headers)

    decision = item["decision"]
    assert (decision["approver"], decision["surface"]) == ("local:agent", "agent")
    assert (decision["on_behalf_of"], decision["agent"], decision["reason"]) == ("Ada", "planner", "not now")


async def test_an_agent_does_not_decide_what_is_a_persons_alone(served) -> None:
    entry = served.hold(kind=Kind.HUMAN_AUTHORITY)
    path, headers = f"/v1/approvals/tool:{entry.approval_id}", {"X-MetaForge-Surface": "agent"}

    refused = await served.post(f"{path}/decision", {"decision": "approve"}, 403, headers=headers)

    assert refused["detail"]["error_type"] == "human_authority_required"
    assert (await served.get(path, headers=headers))["decidable"] is False
    assert (await served.get(path))["decidable"] is True


async def test_an_agent_is_not_offered_to_approve_what_may_be_its_own_call(served) -> None:
    entry = served.hold(caller=Caller("anonymous", Trust.UNTRUSTED))
    path = f"/v1/approvals/tool:{entry.approval_id}"
    headers = {"X-MetaForge-Surface": "agent", "X-MetaForge-Agent": "planner"}
    assert (await served.get(path, headers=headers))["allowed_decisions"] == ["reject"]
    refused = await served.post(f"{path}/decision", {"decision": "approve"}, 403, headers=headers)
    assert refused["detail"]["error_type"] == "own_call"


async def test_arguments_are_told_in_full_length_on_request(served) -> None:
    entry = served.hold(arguments={"name": "x" * 100_000, "api_key": "s3cret"})
    path = f"/v1/approvals/tool:{entry.approval_id}"
    told = (await served.get(path))["detail"]["arguments"]
    assert len(told["name"]) < 1000
    assert "100000 characters in all, SHA-256" in told["name"]
    assert await served.get(f"{path}/arguments") == {"name": "x" * 100_000, "api_key": "[redacted]"}
    served.services.ledger.decide(entry.approval_id, "reject", PERSON, "no")
    assert (await served.get(f"{path}/arguments"))["name"] == told["name"], "what has ended keeps no more than is shown"


async def test_edited_arguments_run_instead_and_hidden_values_stay(served) -> None:
    entry = served.hold()
    body = {"decision": "approve", "arguments": {"name": "Leg", "api_key": "[redacted]"}}

    item = await served.post(f"/v1/approvals/tool:{entry.approval_id}/decision", body)

    assert item["detail"]["edited"] is True
    assert item["detail"]["digest"] != entry.digest
    assert served.services.ledger.get(entry.approval_id).arguments == {"name": "Leg", "api_key": "s3cret"}


async def test_rejecting_needs_a_reason(served) -> None:
    entry = served.hold()
    path = f"/v1/approvals/tool:{entry.approval_id}/decision"

    for body in ({"decision": "reject"}, {"decision": "reject", "reason": "  "}):
        refused = await served.post(path, body, 422)
        assert refused["detail"]["error_type"] == "invalid_request"
        assert any("reason" in name for name in refused["detail"]["fields"])
    assert served.services.ledger.get(entry.approval_id).state is State.AWAITING


async def test_what_is_not_offered_is_422_and_what_is_not_there_404(served) -> None:
    entry = served.hold()
    path = f"/v1/approvals/tool:{entry.approval_id}/decision"

    await served.post(path, {"decision": "rework", "to_phase": "design"}, 422)
    await served.post(path, {"decision": "approve", "to_phase": "design"}, 422)
    await served.post(path, {"decision": "approve", "approver": "Ada"}, 422)
    missing = await served.get("/v1/approvals/tool:run_0123456789abcdef", 404)
    assert missing["detail"]["error_type"] == "unknown_approval"
    await served.get("/v1/approvals/gate:g-1", 404)


async def test_a_second_decision_is_refused_with_who_came_first(served) -> None:
    entry = served.hold()
    path = f"/v1/approvals/tool:{entry.approval_id}/decision"
    await served.post(path, {"decision": "approve"})

    refused = await served.post(path, {"decision": "reject", "reason": "no"}, 409)

    assert refused["detail"]["error_type"] == "already_decided"
    assert refused["detail"]["approval_id"] == entry.approval_id
    assert "local:dashboard" in refused["detail"]["reason"]


async def test_of_twenty_approvers_and_one_rejecter_at_once_one_is_taken(served) -> None:
    entry = served.hold()
    paths = (f"/v1/approvals/tool:{entry.approval_id}/decision", f"/v1/chat/tool_approvals/{entry.approval_id}")
    bodies = [{"decision": "approve"}] * 20 + [{"decision": "reject", "reason": "no"}]
    answers = await asyncio.gather(
        *(served.http.post(paths[number % 2], json=body) for number, body in enumerate(bodies))
    )
    assert sorted(answer.status_code for answer in answers) == [200, *[409] * 20]
    (taken,) = [answer.json() for answer in answers if answer.status_code == 200]
    told = await served.get(f"/v1/approvals/tool:{entry.approval_id}")
    assert told["decision"] == taken["decision"]
    refused = {answer.json()["detail"]["error_type"] for answer in answers if answer.status_code == 409}
    assert refused == {"already_decided"}


async def test_an_inline_question_is_answered_in_its_client_until_it_opens_here(served) -> None:
    entry = served.hold(route=Route.ELICITATION)
    path = f"/v1/approvals/tool:{entry.approval_id}"

    refused = await served.post(f"{path}/decision", {"decision": "approve"}, 409)
    assert refused["detail"]["error_type"] == "answer_in_client"
    assert "claude-code 2.1" in (await served.get(path))["not_decidable_reason"]

    served.services.ledger.show_on_dashboard(entry.approval_id)
    await served.post(f"{path}/decision", {"decision": "approve"})


async def test_a_call_past_its_window_is_not_decided(served) -> None:
    now = utc_now()
    entry = served.hold(created_at=later(now, -61), expires_at=later(now, -1))

    refused = await served.post(f"/v1/approvals/tool:{entry.approval_id}/decision", {"decision": "approve"}, 409)

    assert refused["detail"]["error_type"] == "window_closed"


async def test_lists_are_filtered_and_come_in_parts(served) -> None:
    for number in range(5):
        served.hold(
            kind=Kind.HUMAN_AUTHORITY if number % 2 else Kind.TOOL_CALL,
            project_id="p1" if number < 3 else "",
            arguments={"number": number},
        )

    def numbers(page):
        return [item["detail"]["arguments"]["number"] for item in page["items"]]

    first = await served.get("/v1/approvals?limit=2")
    assert (numbers(first), first["unscoped_count"]) == ([4, 3], 2)
    second = await served.get(f"/v1/approvals?limit=2&before={first['next_before']}")
    assert numbers(second) == [2, 1]
    third = await served.get(f"/v1/approvals?limit=2&before={second['next_before']}")
    assert (numbers(third), third["next_before"]) == ([0], None)
    assert numbers(await served.get("/v1/approvals?project_id=p1")) == [2, 1, 0]
    assert numbers(await served.get("/v1/approvals?kind=human_authority&limit=1")) == [3]
    older = await served.get("/v1/approvals?kind=human_authority&limit=1")
    assert numbers(await served.get(f"/v1/approvals?kind=human_authority&before={older['next_before']}")) == [1]


async def test_an_unknown_filter_is_refused_not_left_out(served) -> None:
    for path in ("/v1/approvals?state=all", "/v1/projects?query=x", "/v1/calls/abc?x=1", "/v1/approvals?limit=1000"):
        refused = await served.get(path, 422)
        assert refused["detail"]["fields"]

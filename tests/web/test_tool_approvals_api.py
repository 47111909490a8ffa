"""Held calls in the ledger's own words: people decide, and servers without a ledger hold their calls here."""

import asyncio

from metaforge.approvals.gateway_ledger import GatewayLedger
from metaforge.approvals.gateway_waker import GatewayWaker
from metaforge.approvals.holders import Holder
from metaforge.approvals.model import Approver, Route, State
from metaforge.web.api import tool_approvals

PATH = "/v1/chat/tool_approvals"
HOLDER = {"X-MetaForge-Holder": "elsewhere-1"}
BODY = {
    "tool": "project.create", "arguments": {"name": "Arm", "token": "t0p"}, "reason": "it writes", "caller": "ada",
    "source": "mcp", "session_id": "s-1", "project": "p1", "route": "dashboard",
    "client": {"name": "claude-code", "version": "2.1"}, "timeout_seconds": 30,
}  # fmt: skip


async def test_the_list_is_what_waits_unless_more_is_asked_for(served) -> None:
    waiting, rejected = served.hold(), served.hold()
    await served.post(f"{PATH}/{rejected.approval_id}", {"decision": "reject", "reason": "no"})

    assert [each["id"] for each in (await served.get(PATH))["items"]] == [waiting.approval_id]
    everything = (await served.get(f"{PATH}?status=all"))["items"]
    assert [(each["id"], each["status"]) for each in everything] == [
        (rejected.approval_id, "rejected"), (waiting.approval_id, "awaiting_approval"),
    ]  # fmt: skip
    first = await served.get(f"{PATH}?status=all&limit=1")
    second = await served.get(f"{PATH}?status=all&limit=1&before={first['next_before']}")
    assert (second["items"][0]["id"], second["next_before"]) == (waiting.approval_id, None)


async def test_a_person_approves_by_the_documented_route(served) -> None:
    entry = served.hold()

    told = await served.post(f"{PATH}/{entry.approval_id}", {"decision": "approve", "reason": "fine"})

    assert (told["status"], told["decision"]["approver"]) == ("approved", "local:dashboard")
    assert (await served.get(f"{PATH}/{entry.approval_id}"))["status"] == "approved"
    refused = await served.post(f"{PATH}/{entry.approval_id}", {"decision": "reject"}, 409)
    assert refused["detail"]["error_type"] == "already_decided"
    await served.post(f"{PATH}/run_0123456789abcdef", {"decision": "approve"}, 404)


async def test_a_ledger_that_holds_enough_takes_no_more_from_elsewhere(served, monkeypatch) -> None:
    monkeypatch.setattr(tool_approvals, "MAX_COUNT", 2)
    made = [await served.post(PATH, BODY, 201, headers=HOLDER) for _ in range(2)]
    refused = await served.post(PATH, BODY, 429, headers=HOLDER)
    assert "2 calls wait for a person already" in refused["detail"]["reason"]
    await served.post(f"{PATH}/{made[0]['id']}", {"decision": "reject", "reason": "no"})
    await served.post(PATH, BODY, 201, headers=HOLDER)


async def test_a_call_is_held_from_elsewhere_with_secrets_for_its_holder_alone(served) -> None:
    made = await served.post(PATH, BODY, 201, headers=HOLDER)

    assert made["entry"]["request"]["arguments"] == BODY["arguments"]
    for headers in ({}, {"X-MetaForge-Holder": "elsewhere-2"}):
        told = await served.get(f"{PATH}/{made['id']}", headers=headers)
        assert told["entry"] is None
        assert told["arguments"] == {"name": "Arm", "token": "[redacted]"}
    for name in ("tool", "reason", "caller", "source", "session_id", "project", "route", "client", "timeout_seconds"):
        assert told[name] == BODY[name]
    whole = await served.get(f"{PATH}/{made['id']}", headers=HOLDER)
    assert whole["entry"]["request"]["arguments"] == BODY["arguments"]


async def test_only_the_holder_claims_and_resolves(served) -> None:
    made = await served.post(PATH, BODY, 201, headers=HOLDER)
    path, other = f"{PATH}/{made['id']}", {"X-MetaForge-Holder": "elsewhere-2"}
    await served.post(path, {"decision": "approve"})

    for action, body in (
        ("claim", {"digest": made["digest"]}), ("resolve", {"outcome": "failed"}), ("show", None),
    ):  # fmt: skip
        refused = await served.post(f"{path}/{action}", body, 403, headers=other)
        assert refused["detail"]["error_type"] == "not_holder"
        await served.post(f"{path}/{action}", body, 422)

    wrong = await served.post(f"{path}/claim", {"digest": "0" * 64}, 409, headers=HOLDER)
    assert wrong["detail"]["error_type"] == "other_call"
    assert (await served.post(f"{path}/claim", {"digest": made["digest"]}, headers=HOLDER))["status"] == "running"
    again = await served.post(f"{path}/claim", {"digest": made["digest"]}, 409, headers=HOLDER)
    assert again["detail"]["error_type"] == "already_claimed"
    assert (await served.post(f"{path}/resolve", {"outcome": "completed"}, headers=HOLDER))["status"] == "completed"


async def test_who_answered_in_a_client_is_verified_by_nobody_on_an_open_server(served) -> None:
    made = await served.post(PATH, BODY | {"route": "elicitation"}, 201, headers=HOLDER)
    body = {"outcome": "approved", "approved_by": "user:ada", "approver_verified": True}

    told = await served.post(f"{PATH}/{made['id']}/resolve", body, headers=HOLDER)

    assert told["decision"]["approver"] == "user:ada"
    assert told["decision"]["approver_verified"] is False
    assert told["decision"]["surface"] == "elicitation"


async def test_an_id_that_another_call_has_is_a_conflict(served) -> None:
    made = await served.post(PATH, BODY, 201, headers=HOLDER)

    again = await served.post(PATH, BODY | {"approval_id": made["id"], "tool": "project.delete"}, 409, headers=HOLDER)

    assert again["detail"]["error_type"] == "approval_id_taken"


async def test_a_server_elsewhere_holds_decides_and_runs_through_the_gateway(served, tmp_path) -> None:
    holder = Holder(tmp_path / "elsewhere")
    url = f"http://127.0.0.1:{served.port}"
    ledger = GatewayLedger(url, "", holder)
    waker = GatewayWaker(url, "", ledger)
    call = served.call(route=Route.BOTH)
    loop = asyncio.get_running_loop()

    entry = await asyncio.to_thread(ledger.open, call)
    waiting = asyncio.create_task(_decided(ledger, waker, entry.approval_id))
    person = Approver("local:dashboard", False, "dashboard")
    await served.services.decide(
        entry.approval_id, "approve", person, arguments={"name": "Leg", "api_key": "[redacted]"}
    )
    started = loop.time()
    decided = await waiting

    assert loop.time() - started < 5
    assert decided.arguments == {"name": "Leg", "api_key": "s3cret"}
    assert (await asyncio.to_thread(ledger.claim, entry.approval_id, decided.digest)).state is State.RUNNING
    assert (await asyncio.to_thread(ledger.end, entry.approval_id, State.COMPLETED)).state is State.COMPLETED
    await waker.close()
    ledger.close()
    holder.close()


async def _decided(ledger, waker, approval_id):
    loop = asyncio.get_running_loop()
    while True:
        entry = await asyncio.to_thread(ledger.get, approval_id)
        if entry.state is not State.AWAITING:
            return entry
        await waker.wait(approval_id, loop.time() + 5)

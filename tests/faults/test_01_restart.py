"""Fault 1: a restart loses the session; the client hangs or gets 503 or 400."""

import time
from typing import Any

import pytest
from running import HttpServer, HttpSession, StdioServer, refusal

AT_ONCE_SECONDS = 1.0


async def expect_404(session: HttpSession) -> None:
    began = time.monotonic()
    answer = await session.post({"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": {}})
    assert time.monotonic() - began < AT_ONCE_SECONDS
    assert answer.status_code == 404
    body = answer.json()
    assert body["jsonrpc"] == "2.0"
    assert body["error"]["message"]


async def test_an_old_a_made_up_and_an_ended_session_are_404_at_once_and_a_new_one_works(web: HttpServer) -> None:
    before = await web.session()
    await before.data("faulty.echo", text="a")
    await web.kill()
    again = await HttpServer.start(web.place, web.port)
    try:
        old, made_up = HttpSession(again.url), HttpSession(again.url)
        old.headers["mcp-session-id"] = before.id
        made_up.headers["mcp-session-id"] = "0" * 32
        await expect_404(old)
        await expect_404(made_up)
        fresh = await again.session()
        assert (await fresh.data("faulty.echo", text="b"))["text"] == "b"
        ended = await again.session()
        await ended.http.delete("/mcp", headers=ended.headers)
        await expect_404(ended)
        for session in (old, made_up):
            await session.http.aclose()
    finally:
        await again.close()


async def test_what_waited_for_a_person_when_the_server_died_is_over_and_cannot_be_approved(web: HttpServer) -> None:
    session = await web.session()
    session.begin("project.create", {"name": "Leg"}, progressToken=1).add_done_callback(lambda task: task.exception())
    await session.until(lambda message: message["method"] == "notifications/progress")
    (item,) = (await web.http.get("/v1/approvals")).json()["items"]
    await web.kill()
    again = await HttpServer.start(web.place, web.port)
    try:
        assert (await again.http.get("/v1/approvals")).json()["items"] == []
        path = f"/v1/approvals/{item['id']}"
        decided = await again.http.post(f"{path}/decision", json={"decision": "approve"})
        assert decided.status_code == 409
        assert (await again.http.get(path)).json()["detail"]["state"] in ("timed_out", "canceled")
        assert (await again.http.get("/v1/projects")).json()["items"] == []
    finally:
        await again.close()


async def test_over_stdio_the_next_server_serves_the_same_home(start: Any) -> None:
    server = await start("stdio", '[adapters.faulty]\ntarget = "faulty:FaultyServer"\n')
    session = await server.session()
    made = await session.data("project.create", name="Leg")
    waiting = session.begin("faulty.slow", {"seconds": 30})
    await session.data("project.list")
    await server.kill()
    with pytest.raises(ConnectionError):
        await waiting
    again = await StdioServer.start(server.place)
    session = await again.session()
    projects = (await session.data("project.list"))["projects"]
    assert [project["name"] for project in projects] == ["Leg"]
    assert made["name"] == "Leg"
    assert "Tool not found" in refusal(await session.call("no.such_tool"))
    await again.close()

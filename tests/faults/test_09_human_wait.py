"""Fault 9: a person's wait eats the tool's time-out; progress comes late, with the wrong token, or buffered."""

import asyncio
import json
import os
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from running import ACCEPT, HttpServer, HttpSession, hello

from metaforge.cli.system import find_program

FAULTY = '[adapters.faulty]\ntarget = "faulty:FaultyServer"\n'
NGINX = find_program("nginx") or ""
HELD_SECONDS = 12.0
CLIENT_SECONDS = 3.0
"""A client gives a call up that has said nothing for so long."""
PROXY = """
{user} daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
    access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    gzip on; gzip_proxied any; gzip_min_length 1; gzip_types application/json text/event-stream;
    server {{ listen unix:{folder}/socket; location / {{ proxy_pass {url}; proxy_set_header Host $http_host; }} }}
}}
"""


@pytest.fixture
async def held(start: Any) -> HttpServer:
    """A server where every write of the faulty adapter, produced or not, is held."""
    web: HttpServer = await start(
        "http", FAULTY, METAFORGE_APPROVAL_HOLD="produce,write,destroy",
        METAFORGE_APPROVAL_PROGRESS_INTERVAL_SECONDS="2", METAFORGE_APPROVAL_HOLD_SECONDS="6",
    )  # fmt: skip
    return web


@pytest.fixture
async def through_nginx(held: HttpServer, tmp_path: Path) -> AsyncIterator[HttpSession]:
    """A session behind nginx with its usual buffering, and gzip on for everything."""
    if not NGINX:
        pytest.skip("nginx is not installed: apt-get install nginx-light")
    folder = tmp_path / "nginx"
    folder.mkdir()
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(PROXY.format(folder=folder, url=held.url, user=user))
    nginx = await asyncio.create_subprocess_exec(
        NGINX, "-p", str(folder), "-e", f"{folder}/error.log", "-c", f"{folder}/nginx.conf",
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    session = HttpSession("http://localhost")
    await session.http.aclose()
    # A client that resets its patience with every event: `read` is the time between two of them.
    session.http = httpx.AsyncClient(
        base_url="http://localhost", transport=httpx.AsyncHTTPTransport(uds=str(folder / "socket")),
        timeout=httpx.Timeout(30, read=CLIENT_SECONDS),
    )  # fmt: skip
    async with asyncio.timeout(20):
        while not (folder / "socket").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    yield session
    await session.http.aclose()
    nginx.terminate()
    await nginx.wait()


async def the_held(web: HttpServer) -> Any:
    async with asyncio.timeout(20):
        while not (items := (await web.http.get("/v1/approvals")).json()["items"]):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return items[0]


@pytest.mark.slow
@pytest.mark.parametrize("token", ["tok-é/1", 0])
async def test_progress_comes_at_once_and_the_tool_has_all_its_time_after_the_wait(
    held: HttpServer, through_nginx: HttpSession, token: Any
) -> None:
    session = through_nginx
    await session.initialize()
    began = time.monotonic()
    # The tool itself takes 2 s of its 5, after 12 s in which nobody decided.
    call = session.begin("faulty.build", {"seconds": 2.0}, progressToken=token)
    first = await session.until(lambda message: message["method"] == "notifications/progress")
    assert time.monotonic() - began < 2.0
    assert first["params"]["progressToken"] == token
    assert type(first["params"]["progressToken"]) is type(token)
    item = await the_held(held)
    await asyncio.sleep(HELD_SECONDS - (time.monotonic() - began))
    decided = await held.http.post(f"/v1/approvals/{item['id']}/decision", json={"decision": "approve"})
    assert decided.status_code == 200
    answer = await call
    assert answer["result"]["structuredContent"]["text"] == "built", answer
    headers = session.answered_with
    assert headers is not None
    assert "no-cache" in headers["cache-control"]
    assert headers.get("content-encoding", "identity") == "identity"
    progress = [each["params"] for each in session.told if each["method"] == "notifications/progress"]
    assert {each["progressToken"] for each in progress} == {token}
    values = [each["progress"] for each in progress]
    assert values == sorted(set(values)), "progress always grows"
    seen = len(session.told)
    await session.request("ping", {})
    assert len(session.told) == seen, "progress after the result"


@pytest.mark.slow
async def test_without_a_token_there_is_no_progress_and_the_shorter_window_applies(held: HttpServer) -> None:
    session = await held.session()
    began = time.monotonic()
    answer = await session.call("faulty.build", {"seconds": 0.1})
    assert answer["error"]["code"] == -32001
    assert answer["error"]["data"]["code"] == "approval_required"
    assert 5.0 < time.monotonic() - began < 12.0
    assert [each for each in session.told if each["method"] == "notifications/progress"] == []


async def test_the_stream_says_itself_that_it_must_not_be_buffered(held: HttpServer) -> None:
    async with httpx.AsyncClient(base_url=held.url, timeout=30) as http:
        hello_message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello()}
        opened = await http.post("/mcp", json=hello_message, headers=ACCEPT)
        headers = ACCEPT | {"mcp-session-id": opened.headers["mcp-session-id"]}
        params = {"name": "faulty.build", "arguments": {"seconds": 0.1}, "_meta": {"progressToken": 0}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        async with http.stream("POST", "/mcp", json=message, headers=headers) as answer:
            assert answer.headers["x-accel-buffering"] == "no"
            assert "no-cache" in answer.headers["cache-control"]
            event = await anext(line async for line in answer.aiter_lines() if line.startswith("data: "))
            assert json.loads(event.removeprefix("data: "))["params"]["progressToken"] == 0


@pytest.mark.slow
async def test_over_stdio_a_held_write_reports_at_once_with_the_same_token_and_runs_when_approved(start: Any) -> None:
    server = await start(
        "stdio", FAULTY, METAFORGE_APPROVAL_HOLD="produce,write,destroy", METAFORGE_EXEMPT_LOCAL_WRITES="false"
    )
    session = await server.session({"elicitation": {}})
    began = time.monotonic()
    call = session.begin("faulty.build", {"seconds": 2.0}, progressToken="tok-é/1")
    question = await session.until(lambda message: message["method"] == "elicitation/create")
    await session.until(lambda message: message["method"] == "notifications/progress")
    assert time.monotonic() - began < 3.0
    await asyncio.sleep(6.0)
    choice = _accepting(question["params"]["requestedSchema"])
    await session._write({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": choice}})
    answer = await call
    assert answer["result"]["structuredContent"]["text"] == "built", answer
    tokens = {each["params"]["progressToken"] for each in session.told if each["method"] == "notifications/progress"}
    assert tokens == {"tok-é/1"}


def _accepting(schema: dict[str, Any]) -> dict[str, Any]:
    """Return what a person would fill in who agrees."""
    filled: dict[str, Any] = {}
    for name, about in schema["properties"].items():
        options = about.get("enum") or [each["const"] for each in about.get("oneOf", ())]
        if options:
            filled[name] = next((each for each in options if "approve" in str(each).lower()), options[0])
        elif about["type"] == "boolean":
            filled[name] = True
        elif name in schema.get("required", ()):
            filled[name] = "fine"
    return filled

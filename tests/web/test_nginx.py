"""Behind nginx as Debian ships it, buffering and compression on: what must come at once does."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from metaforge.cli.system import find_program

LIMIT_SECONDS = 10
"""Less than a stream takes to fill a buffer of nginx (4 kB) with progress sent so seldom."""
INTERVAL_SECONDS = "1.5"
NGINX = find_program("nginx") or ""
CONFIG = """
{user}
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    gzip on; gzip_proxied any; gzip_min_length 1; gzip_types {types};
    proxy_buffering on;
    server {{
        listen unix:{folder}/socket;
        location / {{
            proxy_pass {url};
            proxy_set_header Host $http_host;
            {more}
        }}
    }}
}}
"""
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
CALL = {"name": "project.create", "arguments": {"name": "Arm"}}


@pytest.fixture(params=["as it ships", "HTTP/1.1 and everything compressed"])
def proxied(request, start_server, tmp_path) -> Iterator[httpx.Client]:
    """A client that reaches the server through nginx alone."""
    if not NGINX:
        if "nginx" in os.environ.get("METAFORGE_REQUIRE_PROGRAMS", ""):
            pytest.fail("nginx is required by METAFORGE_REQUIRE_PROGRAMS and is not installed")
        pytest.skip("nginx is not installed: apt-get install nginx-light")
    server = start_server("--adapters", "none", METAFORGE_APPROVAL_PROGRESS_INTERVAL_SECONDS=INTERVAL_SECONDS)
    folder = tmp_path / "nginx"
    folder.mkdir()
    plain = request.param == "as it ships"
    config = CONFIG.format(
        folder=folder, url=server.url, user="user root;" if os.geteuid() == 0 else "",
        types="application/json" if plain else "*",
        more="" if plain else 'proxy_http_version 1.1; proxy_set_header Connection "";',
    )  # fmt: skip
    (folder / "nginx.conf").write_text(config)
    nginx = subprocess.Popen([NGINX, "-p", str(folder), "-e", f"{folder}/error.log", "-c", f"{folder}/nginx.conf"])
    transport = httpx.HTTPTransport(uds=str(folder / "socket"))
    with httpx.Client(base_url="http://localhost", transport=transport, timeout=LIMIT_SECONDS) as client:
        _await_socket(nginx, folder)
        yield client
    nginx.terminate()
    nginx.wait(LIMIT_SECONDS)


def _await_socket(nginx: "subprocess.Popen[bytes]", folder: Path) -> None:
    while not (folder / "socket").exists():
        try:
            nginx.wait(0.02)
        except subprocess.TimeoutExpired:
            continue
        pytest.fail((folder / "error.log").read_text())


def events(response: httpx.Response) -> Iterator[dict]:
    for line in response.iter_lines():
        if line.startswith("data: "):
            yield json.loads(line[6:])


@pytest.mark.parametrize("token", ["tok-é/1", 0])
def test_a_held_calls_progress_reaches_the_client_while_it_is_held(proxied, token) -> None:
    headers = {"accept": "application/json, text/event-stream"}
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO}
    headers["mcp-session-id"] = proxied.post("/mcp", json=hello, headers=headers).headers["mcp-session-id"]
    held = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": CALL | {"_meta": {"progressToken": token}}}
    seen = []
    with proxied.stream("POST", "/mcp", json=held, headers=headers) as response:
        assert response.headers["content-type"] == "text/event-stream"
        assert response.headers.get("content-encoding", "identity") == "identity"
        assert "no-cache" in response.headers["cache-control"]
        for message in events(response):
            seen.append(message)
            if len(seen) == 2:  # only what has come through can lead to an approval
                (item,) = proxied.get("/v1/approvals").json()["items"]
                path = f"/v1/approvals/{item['id']}/decision"
                assert proxied.post(path, json={"decision": "approve"}).status_code == 200

    *progress, result = seen
    assert [each["params"]["progressToken"] for each in progress] == [token] * len(progress)
    assert type(progress[0]["params"]["progressToken"]) is type(token)
    values = [each["params"]["progress"] for each in progress]
    assert values == sorted(set(values))
    assert result["result"]["structuredContent"]["name"] == "Arm"


def test_live_news_come_through_while_the_stream_is_open(proxied) -> None:
    with proxied.stream("GET", "/v1/approvals/events") as response:
        assert response.headers.get("content-encoding", "identity") == "identity"
        assert next(events(response)) == {"pending_count": 0}


def test_what_may_wait_is_compressed(proxied) -> None:
    assert proxied.get("/v1/openapi.json").headers["content-encoding"] == "gzip"

"""The same over HTTP, and what only HTTP can do wrong: bodies without end, clients that go away, ids used twice."""

import http.client
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from live_server import environment

HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
REQUEST = "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


class Web:
    """A server over HTTP and a way to talk to it."""

    def __init__(self, port: int, process: "subprocess.Popen[bytes]") -> None:
        self.port = port
        self.process = process

    def descendants(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def post(self, body: bytes, **headers: str) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("POST", "/mcp", body, {**HEADERS, **named})
        response = connection.getresponse()
        answer = response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
        connection.close()
        return answer

    def session(self) -> str:
        hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO}
        _, headers, _ = self.post(json.dumps(hello).encode())
        return headers["mcp-session-id"]

    def call(self, session: str, request_id: int, tool: str, **arguments: Any) -> Any:
        params = {"name": tool, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}
        status, _, body = self.post(json.dumps(message).encode(), mcp_session_id=session)
        assert status == 200
        return json.loads(body)


@contextmanager
def serving(folder: Path) -> Iterator[Web]:
    """Serve HTTP from a folder of its own for as long as the block runs."""
    (folder / "home").mkdir()
    (folder / "workspace").mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "metaforge.mcp", "--transport", "http", "--port", str(port)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder / "workspace",
        env=environment(folder / "home", folder / "workspace"),
    )
    try:
        _wait_for(port, process)
        yield Web(port, process)
    finally:
        process.terminate()
        process.wait(10)


@pytest.fixture(scope="module")
def shared_web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with serving(tmp_path_factory.mktemp("bad-http")) as web:
        yield web


@pytest.fixture
def fresh_web(tmp_path: Path) -> Iterator[Web]:
    """A server that has no worker yet, so that every process below it belongs to a call of the test."""
    with serving(tmp_path) as web:
        yield web


def _wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            threading.Event().wait(0.02)
        else:
            return
    raise RuntimeError("the server does not listen")


@pytest.fixture
def web(shared_web: Web) -> Iterator[Web]:
    """The shared server; afterwards it must still be there and serve a new client."""
    yield shared_web
    assert shared_web.process.poll() is None
    answer = shared_web.call(shared_web.session(), 1, "fixture.echo", text="well?")
    assert answer["result"]["structuredContent"]["text"] == "well?"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', -32600),
        (b'"hello"', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "\xff\xfe"}', -32700),
        (b"", -32700),
    ],
    ids=["a JSON array", "a bare string", "not UTF-8", "nothing"],
)
def test_what_is_no_message_is_a_bad_request(web: Web, body: bytes, code: int) -> None:
    status, _, answer = web.post(body)
    assert status == 400
    assert json.loads(answer)["error"]["code"] == code


def test_an_announced_body_of_64_mb_is_refused_before_it_is_sent(web: Web) -> None:
    with socket.create_connection(("127.0.0.1", web.port), timeout=30) as wire:
        wire.sendall(f"{REQUEST}content-length: 64000000\r\n\r\n".encode())
        assert b" 413 " in wire.recv(4096).splitlines()[0]


def test_a_body_of_64_mb_is_refused_without_being_kept(web: Web) -> None:
    before = psutil.Process(web.process.pid).memory_info().rss
    with socket.create_connection(("127.0.0.1", web.port), timeout=60) as wire:
        wire.sendall(f"{REQUEST}transfer-encoding: chunked\r\n\r\n".encode())
        chunk = b"f4240\r\n" + b"x" * 1_000_000 + b"\r\n"
        try:
            for _ in range(64):
                wire.sendall(chunk)
        except (BrokenPipeError, ConnectionResetError):
            pass
        try:
            first = wire.recv(4096).splitlines()[0]
        except ConnectionResetError:
            first = b" 413 "
    assert b" 413 " in first
    grown = psutil.Process(web.process.pid).memory_info().rss - before
    assert grown < 48_000_000, f"the server grew by {grown} bytes"


def test_two_clients_with_the_same_request_id_each_get_their_own_answer(web: Web) -> None:
    answers: dict[str, Any] = {}

    def ask(words: str, session: str) -> None:
        answers[words] = web.call(session, 7, "fixtureproc.echo", text=words)

    threads = [threading.Thread(target=ask, args=(words, web.session())) for words in ("first", "second")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for words in ("first", "second"):
        assert answers[words]["id"] == 7
        assert answers[words]["result"]["structuredContent"]["text"] == words


def test_a_client_that_goes_away_takes_its_own_call_with_it_and_no_other(fresh_web: Web) -> None:
    answers: list[Any] = []
    other_session = fresh_web.session()
    other = threading.Thread(
        target=lambda: answers.append(fresh_web.call(other_session, 7, "fixtureproc.sleep", seconds=3))
    )
    params = {"name": "fixtureproc.sleep", "arguments": {"seconds": 300}, "_meta": {"progressToken": 0}}
    body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).encode()
    lines = [f"accept: {HEADERS['accept']}", f"mcp-session-id: {fresh_web.session()}", f"content-length: {len(body)}"]
    with socket.create_connection(("127.0.0.1", fresh_web.port), timeout=30) as wire:
        wire.sendall(REQUEST.encode() + "\r\n".join([*lines, "", ""]).encode() + body)
        seen = b""
        while b"notifications/progress" not in seen:
            seen += wire.recv(4096)
        mine = fresh_web.descendants()
        assert mine
        other.start()
        # Only once the other call has a worker of its own is it shown that leaving ends this one alone.
        while not set(fresh_web.descendants()) - set(mine):
            other.join(0.05)
    _, alive = psutil.wait_procs(mine, timeout=5)
    other.join(60)
    assert alive == [], "the call of a client that has gone still runs"
    assert answers[0]["result"]["structuredContent"]["slept_seconds"] >= 3

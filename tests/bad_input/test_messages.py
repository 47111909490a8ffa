"""Messages that are none, over stdio: one clear error each, and the next message is answered as if nothing was."""

from typing import Any

import pytest

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601


@pytest.mark.parametrize(
    ("raw", "code", "told"),
    [
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', INVALID_REQUEST, "one"),
        (b'"hello"', INVALID_REQUEST, "object"),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "\xff\xfe"}', PARSE_ERROR, "UTF-8"),
        (b'{"jsonrpc": "2.0", "id": 1, "method": ', PARSE_ERROR, "JSON"),
        (b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}', INVALID_REQUEST, "2.0"),
    ],
    ids=["a JSON array", "a bare string", "not UTF-8", "half a message", "another JSON-RPC"],
)
def test_what_is_no_message_is_one_error_that_says_why(server: Any, raw: bytes, code: int, told: str) -> None:
    server.write(raw + b"\n")
    error = server.stray()["error"]
    assert error["code"] == code
    assert told in error["message"]


def test_a_line_of_64_mb_is_refused_with_the_limit_and_the_next_line_is_read(server: Any) -> None:
    server.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"junk": "')
    for _ in range(64):
        server.write(b"x" * 1_000_000)
    server.write(b'"}}\n')
    error = server.stray()["error"]
    assert error["code"] == INVALID_REQUEST
    assert "16 MB" in error["message"]
    assert server.ask("ping", {}) == {}


def test_an_unknown_method_is_named(server: Any) -> None:
    with pytest.raises(Exception, match="tools/destroy") as refusal:
        server.ask("tools/destroy", {})
    assert refusal.value.code == METHOD_NOT_FOUND


def test_an_unknown_tool_comes_with_the_nearest_names(server: Any) -> None:
    with pytest.raises(Exception, match=r"fixtureproc\.echo") as refusal:
        server.call("fixtureproc.eco", text="x")
    assert refusal.value.code == METHOD_NOT_FOUND
    assert "fixtureproc.echo" in refusal.value.data["did_you_mean"]
    assert refusal.value.data["tool_id"] == "fixtureproc.eco"

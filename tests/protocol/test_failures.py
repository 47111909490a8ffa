"""Which exception becomes which code, in which dialect."""

import pytest

from metaforge.core import errors
from metaforge.protocol.failures import failure
from metaforge.protocol.jsonrpc import ParseError
from metaforge.protocol.legacy import read_call
from metaforge.protocol.revisions import Dialect
from metaforge.protocol.stateless import HeaderMismatch, MissingCapability, UnsupportedVersion

IS_ERROR = "isError"
TABLE = [
    (ParseError("x"), -32700, -32700, -32700),
    (errors.InvalidRequest("x"), -32600, -32600, -32600),
    (errors.UnknownMethod("x"), -32601, -32601, -32601),
    (errors.InvalidParams("x"), -32602, -32602, -32602),
    (errors.UnknownTool("x"), -32601, -32601, -32602),
    (errors.InvalidArguments("x"), -32602, IS_ERROR, IS_ERROR),
    (errors.ToolError("x"), -32001, IS_ERROR, IS_ERROR),
    (errors.ToolCrashed("x"), -32001, IS_ERROR, IS_ERROR),
    (errors.OverLimit("x"), -32001, IS_ERROR, IS_ERROR),
    (errors.ToolTimedOut("x"), -32006, IS_ERROR, IS_ERROR),
    (errors.ToolUnavailable("x"), -32003, -32003, -32003),
    (errors.Quarantined("x"), -32003, -32003, -32003),
    (errors.NotApproved("x"), -32001, -32001, -32001),
    (errors.ResourceNotFound("x"), -32002, -32002, -32602),
    (errors.ResourceUnreadable("x"), -32005, -32005, -32005),
    (errors.AuthDenied("x"), -32007, -32007, -32007),
    (MissingCapability("x"), -32021, IS_ERROR, -32021),
    (HeaderMismatch("x"), -32020, -32020, -32020),
    (UnsupportedVersion("x"), -32022, -32022, -32022),
    (KeyError("x"), -32603, -32603, -32603),
]
DIALECTS = (Dialect.LEGACY, Dialect.HANDSHAKE, Dialect.STATELESS)


@pytest.mark.parametrize(
    ("fault", "dialect", "expected"),
    [(fault, dialect, code) for fault, *codes in TABLE for dialect, code in zip(DIALECTS, codes, strict=True)],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_a_call_that_fails_is_told_as_its_dialect_wants(fault, dialect, expected):
    answer = failure(fault, 1, dialect, tool_id="a.b", call_id="c1", duration_ms=4.1, server={"name": "s"})

    if expected == IS_ERROR:
        result = answer["result"]
        assert result["isError"] is True
        assert "structuredContent" not in result
        assert result["_meta"]["callId"] == "c1"
        assert result["_meta"]["error"]["toolId"] == "a.b"
        assert result["_meta"]["error"]["durationMs"] == 4.1
        assert result.get("resultType") == ("complete" if dialect is Dialect.STATELESS else None)
    else:
        assert answer["error"]["code"] == expected
        assert answer["error"]["data"]["call_id"] == "c1"


def test_an_error_result_says_everything_in_its_text():
    fault = errors.ToolError("radius 6 mm is too large", kind="fillet_too_large", where="edge 3", fix="use 4.99 mm")
    text = failure(fault, 1, Dialect.HANDSHAKE, tool_id="a.b")["result"]["content"][0]["text"]

    for part in ("radius 6 mm", "edge 3", "4.99 mm", "fillet_too_large", "state unchanged"):
        assert part in text


def test_a_deadline_is_named_in_the_text():
    text = failure(errors.ToolTimedOut("2 s"), 1, Dialect.HANDSHAKE, tool_id="a.b")["result"]["content"][0]["text"]
    assert "tool_timeout" in text


def test_the_legacy_envelope_has_the_documented_fields():
    fault = errors.ToolError("no mesh", kind="mesh", retryable=True)
    data = failure(fault, 1, Dialect.LEGACY, tool_id="a.b", duration_ms=450)["error"]["data"]

    assert data["error_type"] == "TOOL_EXECUTION_ERROR"
    assert (data["tool_id"], data["details"], data["duration_ms"]) == ("a.b", "no mesh", 450)
    assert (data["kind"], data["retryable"]) == ("mesh", True)


def test_a_refused_approval_is_told_apart_from_a_failure():
    data = failure(errors.NotApproved("no", outcome="rejected"), 1, Dialect.HANDSHAKE, tool_id="a.b")["error"]["data"]
    assert (data["code"], data["outcome"]) == ("approval_required", "rejected")


def test_the_nearest_tools_travel_with_an_unknown_one():
    fault = errors.UnknownTool("x", tool_id="a.c", did_you_mean=["a.b"], tool_count=3)
    data = failure(fault, 1, Dialect.HANDSHAKE, tool_id="a.c")["error"]["data"]
    assert (data["tool_id"], data["did_you_mean"], data["tool_count"]) == ("a.c", ["a.b"], 3)


@pytest.mark.parametrize(
    "params",
    [
        {}, {"tool_id": ""}, {"tool_id": 5}, {"tool_id": "a", "arguments": []}, {"tool_id": "a", "timeout_seconds": 0},
        {"tool_id": "a", "timeout_seconds": 3601}, {"tool_id": "a", "timeout_seconds": True},
        {"tool_id": "a", "timeout_seconds": "9"}, {"tool_id": "a", "trace_id": 5},
    ],
)  # fmt: skip
def test_a_malformed_legacy_call_names_the_parameter(params):
    with pytest.raises(errors.InvalidParams, match="tool/call"):
        read_call(params)

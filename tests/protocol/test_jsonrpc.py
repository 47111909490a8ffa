"""Decoding: whatever arrives, the outcome is a message or an error of ours."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaforge.core.errors import MetaForgeError
from metaforge.protocol import jsonrpc

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NEAR_MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | JSON,
        "id": JSON,
        "method": JSON,
        "params": JSON,
        "result": JSON,
        "error": JSON,
    },
)


@given(st.binary())
def test_bytes_decode_to_a_message_or_an_error_of_ours(raw):
    _decode_or_refuse(raw)


@given(NEAR_MESSAGES | JSON)
def test_json_decodes_to_a_message_or_an_error_of_ours(value):
    _decode_or_refuse(orjson.dumps(value))


def _decode_or_refuse(raw: bytes) -> None:
    message = None
    code = 0
    try:
        message = jsonrpc.decode(raw)
    except MetaForgeError as fault:
        code = fault.code
    if message is None:
        assert code in (-32700, -32600)
        return
    assert message["jsonrpc"] == "2.0"
    assert isinstance(message.get("method", ""), str) or message.get("method") is None
    assert message.get("params") is None or isinstance(message["params"], dict)
    assert type(message.get("id")) in (str, int, type(None))


@pytest.mark.parametrize("raw", [b"[" * 100_000, b'{"a":' * 100_000, b"9" * 10_000, b'{"jsonrpc":"2.0","id":1e400}'])
def test_hostile_json_is_refused(raw):
    with pytest.raises(MetaForgeError):
        jsonrpc.decode(raw)


def test_a_message_is_one_line():
    assert b"\n" not in jsonrpc.encode(jsonrpc.notification("x", {"text": "a\nb\u2028c"}))

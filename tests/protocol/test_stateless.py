"""The envelope of the stateless era and the headers that repeat it."""

import pytest

from metaforge.core.errors import MetaForgeError
from metaforge.protocol.stateless import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    VERSION_KEY,
    RoutingHeaders,
    decode_header,
    http_status,
    is_stateless,
    read_envelope,
)

VERSION = "2026-07-28"
GOOD = {VERSION_KEY: VERSION, CAPABILITIES_KEY: {}, CLIENT_KEY: {"name": "c", "version": "2"}}
LIST = RoutingHeaders(VERSION, "tools/list", None)
CALL = RoutingHeaders(VERSION, "tools/call", "tiny.echo")


def test_the_envelope_says_who_sends():
    hello = read_envelope("tools/list", {"_meta": GOOD}, LIST)
    assert (hello.name, hello.version, hello.revision) == ("c", "2", VERSION)


@pytest.mark.parametrize(
    ("method", "params", "headers", "code"),
    [
        ("tools/list", {}, LIST, -32602),
        ("tools/list", {"_meta": []}, LIST, -32602),
        ("tools/list", {"_meta": {VERSION_KEY: VERSION}}, LIST, -32602),
        ("tools/list", {"_meta": GOOD | {CAPABILITIES_KEY: []}}, LIST, -32602),
        ("tools/list", {"_meta": GOOD | {VERSION_KEY: 5}}, None, -32602),
        ("tools/list", {"_meta": GOOD | {VERSION_KEY: 5}}, LIST, -32020),
        ("tools/list", {"_meta": GOOD}, LIST._replace(version=None), -32020),
        ("tools/list", {"_meta": GOOD}, LIST._replace(version="2025-11-25"), -32020),
        ("tools/list", {"_meta": GOOD}, LIST._replace(method=None), -32020),
        ("tools/list", {"_meta": GOOD}, LIST._replace(method="tools/call"), -32020),
        ("tools/list", {"_meta": GOOD}, LIST._replace(repeated="mcp-name"), -32020),
        ("tools/call", {"_meta": GOOD, "name": "tiny.other"}, CALL, -32020),
        ("tools/call", {"_meta": GOOD, "name": "tiny.echo"}, CALL._replace(name=None), -32020),
        ("resources/read", {"_meta": GOOD, "uri": "a:b"}, RoutingHeaders(VERSION, "resources/read", "a:c"), -32020),
        ("tools/list", {"_meta": GOOD | {VERSION_KEY: "2027-01-01"}}, None, -32022),
        ("tools/list", {"_meta": GOOD | {VERSION_KEY: "x"}}, LIST._replace(version="x"), -32022),
    ],
)
def test_what_does_not_fit_is_refused_with_its_own_code(method, params, headers, code):
    with pytest.raises(MetaForgeError) as caught:
        read_envelope(method, params, headers)
    assert caught.value.code == code


def test_an_unsupported_version_names_the_supported_ones():
    with pytest.raises(MetaForgeError) as caught:
        read_envelope("tools/list", {"_meta": GOOD | {VERSION_KEY: "x"}}, None)
    assert caught.value.data["requested"] == "x"
    assert VERSION in caught.value.data["supported"]


def test_a_name_that_a_header_cannot_hold_comes_in_base64():
    headers = RoutingHeaders(VERSION, "tools/call", "=?base64?Z3LDvMOf?=")
    assert read_envelope("tools/call", {"_meta": GOOD, "name": "grüß"}, headers).name == "c"


@pytest.mark.parametrize(
    ("header", "text"),
    [
        (None, None), ("plain", "plain"), ("=?base64?YQ==?=", "a"), ("=?base64?YQ?=", None),
        ("=?base64?YR==?=", None), ("=?base64?/w==?=", None), ("=?base64?%%?=", None), ("=?base64??=", ""),
    ],
)  # fmt: skip
def test_header_values_are_unwrapped_or_refused(header, text):
    assert decode_header(header) == text


@pytest.mark.parametrize(
    ("params", "yes"), [({}, False), ({"_meta": {"progressToken": 1}}, False), ({"_meta": GOOD}, True)]
)
def test_the_version_key_alone_makes_a_request_stateless(params, yes):
    assert is_stateless(params) is yes


@pytest.mark.parametrize(
    ("code", "status"), [(-32601, 404), (-32602, 400), (-32020, 400), (-32021, 400), (-32022, 400), (-32003, 200)]
)
def test_errors_have_the_http_status_that_the_revision_asks_for(code, status):
    assert http_status(code) == status

"""The handshake, and what a client may be asked."""

import pytest

from metaforge.core.errors import InvalidParams
from metaforge.protocol.handshake import Hello, read_initialize
from metaforge.protocol.revisions import HANDSHAKE, negotiate


@pytest.mark.parametrize(
    ("requested", "spoken"),
    [
        *((revision, revision) for revision in HANDSHAKE),
        ("2026-07-28", "2025-11-25"),
        ("", "2025-11-25"),
        (7, "2025-11-25"),
    ],
)
def test_a_known_revision_is_spoken_and_any_other_gets_the_newest(requested, spoken):
    assert negotiate(requested) == spoken


@pytest.mark.parametrize(
    ("revision", "capabilities", "can"),
    [
        ("2025-11-25", {"elicitation": {}}, True),
        ("2025-06-18", {"elicitation": {}}, True),
        ("2025-11-25", {"elicitation": {"form": {}, "url": {}}}, True),
        ("2025-11-25", {"elicitation": {"url": {}}}, False),
        ("2025-03-26", {"elicitation": {}}, False),
        ("2025-11-25", {"elicitation": None}, False),
        ("2025-11-25", {}, False),
    ],
)
def test_a_form_is_asked_only_of_a_client_that_declared_it_in_a_revision_that_has_it(revision, capabilities, can):
    assert Hello(revision=revision, capabilities=capabilities).can("elicitation") is can


def test_a_client_may_say_nothing_of_itself():
    hello = read_initialize({})
    assert (hello.name, hello.version, hello.revision) == ("", "", "2025-11-25")


@pytest.mark.parametrize("params", [{"protocolVersion": 5}, {"capabilities": [1]}])
def test_a_malformed_hello_names_the_parameter(params):
    with pytest.raises(InvalidParams, match=next(iter(params))):
        read_initialize(params)


@pytest.mark.parametrize("info", ["x", {"name": 5}, None, {"version": []}])
def test_a_malformed_client_name_is_no_name(info):
    assert read_initialize({"clientInfo": info}).name == ""

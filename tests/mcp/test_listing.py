"""What `tools/list` says of a tool."""

import pytest

from metaforge.mcp.listing import ADDED_FIELDS, Listing, output_schema
from metaforge.tools.effect import Effect


def listed(listing):
    import orjson

    return orjson.loads(orjson.dumps(listing.handshake()))


def test_a_tool_is_listed_with_its_schemas_hints_and_search_phrase(tiny):
    tool = listed(Listing(tiny.TinyService()))["tools"][0]

    assert list(tool) == ["name", "title", "description", "inputSchema", "outputSchema", "annotations", "_meta"]
    assert tool["_meta"] == {"anthropic/searchHint": "say it again"}
    hints = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
    assert tool["annotations"] == {"title": "Echo", **hints}


def test_a_tool_without_an_output_schema_lists_none(tiny):
    tools = listed(Listing(tiny.TinyService()))["tools"]
    assert "outputSchema" not in next(tool for tool in tools if tool["name"] == "tiny.slow")


def test_the_list_is_encoded_once_until_the_tools_or_what_is_missing_change(tiny):
    service = tiny.TinyService()
    listing = Listing(service)
    first = listing.handshake()
    assert listing.handshake() is first

    service.meta = {"unavailableAdapters": [{"adapter_id": "calculix"}]}
    assert listed(listing)["_meta"] == service.meta
    service.tools = service.tools[:1]
    assert len(listed(listing)["tools"]) == 1


def test_nothing_is_said_of_what_is_missing_when_nothing_is(tiny):
    assert "_meta" not in listed(Listing(tiny.TinyService()))


OPEN = {"type": "object", "properties": {"volume_mm3": {"type": "number"}}}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (OPEN, OPEN),
        ({"properties": {}}, {"type": "object", "properties": {}}),
        ({"type": "object", "additionalProperties": True}, {"type": "object", "additionalProperties": True}),
        ({"anyOf": [OPEN, {"type": "null"}]}, {"type": "object"}),
        ({"oneOf": [OPEN]}, {"type": "object"}),
        ({"type": "array", "items": {}}, {"type": "object"}),
        ({"$ref": "#/$defs/A", "$defs": {"A": OPEN}}, {**OPEN, "$defs": {"A": OPEN}}),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"anyOf": [OPEN]}}}, {"type": "object"}),
    ],
)
def test_the_root_of_an_output_schema_is_one_object(schema, expected):
    assert output_schema(schema) == expected


def test_a_closed_output_schema_allows_the_added_fields_and_keeps_its_own():
    own = {"type": "object", "properties": {"files": {"type": "integer"}}, "additionalProperties": False}
    listed = output_schema(own)

    assert listed["properties"]["files"] == {"type": "integer"}
    assert set(listed["properties"]) == set(ADDED_FIELDS)
    assert own["properties"] == {"files": {"type": "integer"}}


def test_an_unclassified_tool_is_listed_as_destructive(tiny):
    from metaforge.mcp.listing import mcp_tool

    tool = tiny._tool("x", effect=Effect.DESTROY)
    assert mcp_tool(tool)["annotations"]["destructiveHint"] is True

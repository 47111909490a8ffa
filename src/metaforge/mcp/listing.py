"""`tools/list` and `tool/list`: encoded once, because the list is the first answer a client waits for."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from metaforge.core.errors import InvalidParams
from metaforge.mcp.service import Service
from metaforge.protocol.stateless import CACHE, complete
from metaforge.tools.manifest import Tool

ADDED_FIELDS: dict[str, dict[str, Any]] = {
    "call_id": {"type": "string"},
    "next_step": {"type": "string"},
    "warnings": {"type": "array", "items": {"type": "string"}},
    "files": {"type": "array", "items": {"type": "object"}},
    "approval": {"type": "object"},
}
"""What every structured result may hold beside the tool's own fields."""
_COMBINATIONS = ("anyOf", "oneOf", "allOf")


class Listing:
    """Answers both listings from bytes that are made again only when the tools have changed."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._known: dict[tuple[str, str], tuple[tuple[Tool, ...], dict[str, Any], orjson.Fragment]] = {}
        """What was encoded for each flavour and profile, and from what."""

    def handshake(self, profile: str = "") -> orjson.Fragment:
        """Return the result of `tools/list` for revisions with a handshake.

        Args:
            profile: whose tools; empty for every tool.
        """
        return self._result("handshake", profile)

    def stateless(self, profile: str = "") -> orjson.Fragment:
        """Return the result of `tools/list` for the stateless era."""
        return self._result("stateless", profile)

    def legacy(self, capability: str | None, profile: str = "") -> dict[str, Any]:
        """Return the result of `tool/list`, filtered by capability where one is named."""
        tools = self._service.listed_tools(profile)
        return {"tools": [legacy_tool(tool) for tool in tools if capability in (None, tool.capability)]}

    def _result(self, flavour: str, profile: str) -> orjson.Fragment:
        tools, meta = tuple(self._service.listed_tools(profile)), self._service.list_meta(profile)
        known = self._known.get((flavour, profile))
        if known is not None and known[0] == tools and known[1] == meta:
            return known[2]
        body = list_body(tools, meta, is_brief=bool(profile))
        if flavour == "stateless":
            complete(body, self._service.version)
            body.update(CACHE)
        encoded = orjson.Fragment(orjson.dumps(body))
        self._known[flavour, profile] = tools, meta, encoded
        return encoded


def list_body(tools: Sequence[Tool], meta: Mapping[str, Any], *, is_brief: bool) -> dict[str, Any]:
    """Return the result of `tools/list`.

    Args:
        is_brief: tell each tool in few words, as profiles do.
    """
    if is_brief:
        from metaforge.mcp.brief import brief_tool as told
    else:
        told = mcp_tool
    body: dict[str, Any] = {"tools": [told(tool) for tool in tools]}
    return body | {"_meta": meta} if meta else body


def refuse_cursor(method: str, params: Mapping[str, Any]) -> None:
    """Refuse a page that was never offered: every list is answered whole, so no `nextCursor` was ever given.

    Raises:
        InvalidParams: the request names a cursor.
    """
    cursor = params.get("cursor")
    if cursor not in (None, ""):
        raise InvalidParams(
            f"{method}: unknown cursor {str(cursor)[:80]!r}; the list has one page: ask for it without a cursor",
            cursor=str(cursor)[:80],
        )


def mcp_tool(tool: Tool) -> dict[str, Any]:
    """Return a tool as `tools/list` tells it."""
    listed: dict[str, Any] = {
        "name": tool.id,
        "title": tool.name,
        "description": tool.description,
        "inputSchema": tool.input_schema,
    }
    if tool.output_schema:
        listed["outputSchema"] = output_schema(tool.output_schema)
    listed["annotations"] = tool.annotations
    if tool.search_hint:
        listed["_meta"] = {"anthropic/searchHint": tool.search_hint}
    return listed


def output_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema that clients accept for a structured result: an object at its root, open to the added fields.

    A root that combines alternatives says only that the result is an object: clients refuse more.
    """
    root = _inlined(schema)
    if any(key in root for key in _COMBINATIONS) or root.get("type", "object") != "object":
        return {"type": "object"}
    root["type"] = "object"
    if root.get("additionalProperties", True) is not True:
        own = root.get("properties", {})
        root["properties"] = {**own, **{key: value for key, value in ADDED_FIELDS.items() if key not in own}}
    return root


def _inlined(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the root, put in place of a `$ref` to its own definitions."""
    root = dict(schema)
    reference = root.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        definitions = root.get("$defs", {})
        named = definitions.get(reference.removeprefix("#/$defs/"))
        if isinstance(named, dict):
            del root["$ref"]
            root = {**named, **root}
    return root


def legacy_tool(tool: Tool) -> dict[str, Any]:
    """Return a tool as `tool/list` tells it."""
    return {
        "tool_id": tool.id,
        "adapter_id": tool.adapter_id,
        "name": tool.name,
        "description": tool.description,
        "capability": tool.capability,
        "input_schema": tool.input_schema,
        "output_schema": tool.output_schema,
        "phase": tool.phase,
        "resource_limits": vars(tool.limits),
        "effect": tool.effect.value,
        "idempotent": tool.idempotent,
        "timeout_seconds": tool.timeout_seconds,
    }

"""One bad schema must not cost a client every tool: what cannot be listed is named and left out."""

import re
from typing import Any

from metaforge.tools.manifest import Tool

LONGEST_ID = 48
"""Clients know a tool as `mcp__metaforge__` and its id, and take 64 characters in all."""

_COMBINATORS = ("anyOf", "oneOf", "allOf", "not")
_ID = re.compile(r"[A-Za-z0-9_.\-]+")


def fault_of(tool: Tool) -> str:
    """Return why a tool cannot be listed, or an empty string."""
    if not _ID.fullmatch(tool.id):
        return f"the id {tool.id!r} has characters outside A-Z a-z 0-9 _ . -"
    if len(tool.id) > LONGEST_ID:
        return f"the id has {len(tool.id)} characters, at most {LONGEST_ID} are allowed"
    if reason := _object_fault(tool.input_schema):
        return f"input schema: {reason}"
    if tool.output_schema and (reason := _object_fault(tool.output_schema)):
        return f"output schema: {reason}"
    return ""


def _object_fault(schema: dict[str, Any]) -> str:
    if not isinstance(schema, dict):
        return "is not an object"
    if schema.get("type") != "object":
        return f'the top level has type {schema.get("type")!r}, it must be "object"'
    used = [word for word in _COMBINATORS if word in schema]
    return f"the top level uses {', '.join(used)}" if used else ""

"""One bad schema must not cost a client every tool: what can be mended is, what cannot is named and left out."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jsonschema_rs

from metaforge.tools.manifest import Tool

LONGEST_ID = 48
"""Clients know a tool as `mcp__metaforge__` and its id, and take 64 characters in all."""

_COMBINATORS = ("anyOf", "oneOf", "allOf", "not")
_REFERENCES = ("$ref", "$dynamicRef")
_DIALECT = re.compile(r"https?://json-schema\.org/[\w/.-]+#?")
_ID = re.compile(r"[A-Za-z0-9_.\-]+")
_TOLD_CHARACTERS = 200


def mended(tool: Tool) -> tuple[Tool, tuple[str, ...]]:
    """Return a tool without the faults that change nothing for those who call it, and what was mended."""
    notes = []
    schema = tool.input_schema
    if isinstance(schema, dict) and "type" not in schema and isinstance(schema.get("properties"), dict):
        tool = replace(tool, input_schema={"type": "object", **schema})
        notes.append('input schema: the top level had no type, it is taken as "object"')
    if tool.output_schema and (reason := _object_fault(tool.output_schema) or _content_fault(tool.output_schema)):
        tool = replace(tool, output_schema={})
        notes.append(f"output schema: {reason}; its results are not described")
    return tool, tuple(notes)


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


def inner_fault_of(tool: Tool) -> str:
    """Return what is wrong inside the input schema of a tool that nobody checked, or an empty string.

    References that lead elsewhere are refused first: whoever compiles such a schema would fetch what they name.
    """
    reason = _content_fault(tool.input_schema)
    return f"input schema: {reason}" if reason else ""


def _object_fault(schema: dict[str, Any]) -> str:
    if not isinstance(schema, dict):
        return "is not an object"
    if used := [word for word in _COMBINATORS if word in schema]:
        return f"the top level uses {', '.join(used)}"
    if schema.get("type") != "object":
        return f'the top level has type {schema.get("type")!r}, it must be "object"'
    return ""


def _content_fault(schema: dict[str, Any]) -> str:
    for word, value in _references(schema):
        if word == "$schema":
            if not isinstance(value, str) or not _DIALECT.fullmatch(value):
                return f"$schema is {str(value)[:80]!r}, which is no dialect of JSON Schema"
        elif not isinstance(value, str) or not value.startswith("#"):
            return f"{word} leads to {str(value)[:80]!r}; only references within the schema are followed"
    try:
        jsonschema_rs.validator_for(schema)
    except (ValueError, RecursionError) as fault:
        return f"{str(fault).splitlines()[0][:_TOLD_CHARACTERS]}"
    return ""


def _references(schema: Any) -> Iterator[tuple[str, Any]]:
    pending = [schema]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            yield from ((word, value[word]) for word in (*_REFERENCES, "$schema") if word in value)
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)

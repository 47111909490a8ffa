"""A tool in few words: what a profile lists, so that a model can keep the whole list in mind.

Arguments keep their names, kinds, limits and descriptions; what lies inside an argument is told in its description,
in a short notation: `{name*: kind = default (about), ...}`, where * marks what is required. Results keep the names
and kinds of their fields. Calls are held to the full schemas all the same.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from metaforge.tools.manifest import Tool

Schema = Mapping[str, Any]

OUTPUT_BYTES = 160
"""A result's fields are listed with their kinds, and with what lies inside, while its schema stays within this."""
PLAIN_CHARACTERS = 24
"""What is said in fewer of a choice, the choices say themselves: "Which plane." """
WELL_KNOWN = frozenset(
    {
        "overwrite", "picture", "output_path", "project_id", "change_reason", "supersedes",
        "include_historical", "query", "filters", "knowledge_type", "top_k", "request_id", "metadata",
        "source_work_product_id",
        "session_id", "obj_id", "body_id", "sketch_id", "feature_id",
    }
)  # fmt: skip
"""Arguments that mean the same in every tool; their names say it, and the server's instructions."""
_KEPT = ("type", "enum", "maximum", "exclusiveMaximum")
_DEFINITIONS = "#/$defs/"


def brief_tool(tool: Tool) -> dict[str, Any]:
    """Return a tool as `tools/list` tells it to who is served a profile: without title and search phrase."""
    listed: dict[str, Any] = {
        "name": tool.id, "description": tool.description, "inputSchema": brief_input(tool.input_schema)
    }  # fmt: skip
    if tool.output_schema:
        listed["outputSchema"] = brief_output(tool.output_schema)
    return listed | {"annotations": {name: hint for name, hint in tool.annotations.items() if name != "title"}}


def brief_input(schema: Schema) -> dict[str, Any]:
    """Return an input schema with one level: the arguments."""
    return _Telling(schema).arguments()


def brief_output(schema: Schema) -> dict[str, Any]:
    """Return an output schema that names every field, with its kind and what lies inside as far as that is short."""
    definitions = schema.get("$defs", {})
    told: dict[str, Any] = {"type": "object", "properties": {name: {} for name in schema.get("properties", {})}}
    for depth in (1, 2, 3):
        deeper = _kinds(schema, definitions, depth)
        if len(orjson.dumps(deeper)) > OUTPUT_BYTES:
            break
        told = deeper
    return told


def _kinds(schema: Schema, definitions: Schema, depth: int) -> dict[str, Any]:
    if "$ref" in schema:
        schema = definitions.get(schema["$ref"].removeprefix(_DEFINITIONS), {})
    told: dict[str, Any] = {"type": schema["type"]} if "type" in schema else {}
    below = depth - 1
    if depth and (properties := schema.get("properties")):
        told["properties"] = {name: _kinds(each, definitions, below) for name, each in properties.items()}
    if below > 0 and isinstance(items := schema.get("items"), dict) and (inner := _kinds(items, definitions, below)):
        told["items"] = inner
    return told


class _Telling:
    """Tells one schema. Definitions and descriptions are spelled out where they are met first."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._definitions: Schema = schema.get("$defs", {})
        self._uses: dict[str, int] = {}
        for reference in _references(schema):
            self._uses[reference] = self._uses.get(reference, 0) + 1
        self._told: set[str] = set()

    def arguments(self) -> dict[str, Any]:
        properties = {name: self._argument(name, each) for name, each in self._schema.get("properties", {}).items()}
        told: dict[str, Any] = {"type": "object", "properties": properties}
        if required := self._schema.get("required"):
            told["required"] = required
        return told

    def _argument(self, name: str, field: Schema) -> dict[str, Any]:
        told = {key: field[key] for key in _KEPT if key in field}
        if default := field.get("default"):
            told["default"] = default
        for key in ("minimum", "exclusiveMinimum"):
            if field.get(key):
                told[key] = field[key]
        about = "" if name in WELL_KNOWN else field.get("description", "").rstrip(".")
        if "enum" in field and len(about) < PLAIN_CHARACTERS:
            about = ""
        if self._is_deep(field):
            told.update(self._outline(field))
            about = f"{about}: {self._kind(field)}".removeprefix(": ")
        elif told.get("type") == "array":
            told["items"] = _plain(_items(field))
        elif "anyOf" in field:
            told["anyOf"] = [_plain(branch) for branch in field["anyOf"]]
        if about:
            told["description"] = about
        return told

    def _is_deep(self, field: Schema) -> bool:
        """Return whether something with fields of its own lies inside."""
        inner = (field, _items(field), field.get("additionalProperties"), *field.get("anyOf", ()))
        return any(isinstance(each, dict) and ("$ref" in each or "properties" in each) for each in inner) or (
            isinstance(field.get("additionalProperties"), dict) and self._is_deep(field["additionalProperties"])
        )

    def _outline(self, field: Schema) -> dict[str, Any]:
        """Return the kinds alone of an argument with something inside."""
        if "type" in field:
            return {"type": field["type"]} | ({"items": {"type": "object"}} if field["type"] == "array" else {})
        if "anyOf" in field:
            return {"anyOf": [self._outline(branch) for branch in field["anyOf"]]}
        return {"type": self._resolved(field).get("type", "object")}

    def _resolved(self, node: Schema) -> Schema:
        reference = node.get("$ref")
        return node if reference is None else self._definitions.get(reference.removeprefix(_DEFINITIONS), {})

    # -- the notation ----------------------------------------------------------------------------------------------

    def _kind(self, node: Schema) -> str:
        """Return a kind in the notation; empty for text and numbers, whose names say it."""
        if "$ref" in node:
            return self._named(node["$ref"])
        if "enum" in node:
            return "|".join(map(str, node["enum"]))
        if "anyOf" in node:
            kinds = [self._kind(branch) for branch in node["anyOf"]]
            return " | ".join(dict.fromkeys(filter(None, kinds)))
        if "properties" in node:
            about = node.get("description", "")
            return f"{about} {self._object(node)}".strip()
        if node.get("type") == "array":
            return f"[{self._kind(_items(node))}]"
        if node.get("type") == "object":
            inner = node.get("additionalProperties")
            return f"{{name: {self._kind(inner)}}}" if isinstance(inner, dict) and inner else "{}"
        return "true|false" if node.get("type") == "boolean" else ""

    def _named(self, reference: str) -> str:
        name = reference.removeprefix(_DEFINITIONS)
        if self._uses.get(reference, 0) < 2:
            return self._kind(self._resolved({"$ref": reference}))
        if reference in self._told:
            return name
        self._told.add(reference)
        return f"{name} {self._kind(self._resolved({'$ref': reference}))}"

    def _object(self, node: Schema) -> str:
        required = node.get("required", ())
        return "{" + ", ".join(self._field(n, each, n in required) for n, each in node["properties"].items()) + "}"

    def _field(self, name: str, field: Schema, is_required: bool) -> str:
        about = field.get("description", "").rstrip(".")
        kind = "" if about and "anyOf" in field else self._kind(field)
        parts = [name, "*" if is_required else "", f": {kind}" if kind else ""]
        if default := field.get("default"):
            parts.append(f" = {orjson.dumps(default).decode().removesuffix('.0')}")
        if about and f"{name} {about}" not in self._told:
            self._told.add(f"{name} {about}")
            parts.append(f" ({about})")
        return "".join(parts)


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(reference := node.get("$ref"), str):
            yield reference
        for each in node.values():
            yield from _references(each)
    elif isinstance(node, list):
        for each in node:
            yield from _references(each)


def _items(field: Schema) -> Schema:
    """Return what a list holds; for a list of fixed length, what comes first."""
    if places := field.get("prefixItems"):
        return dict(places[0])
    items = field.get("items")
    return items if isinstance(items, dict) else {}


def _plain(node: Schema) -> dict[str, Any]:
    """Return the kind alone."""
    told = {key: node[key] for key in ("type", "enum") if key in node}
    if told.get("type") == "array":
        told["items"] = _plain(_items(node))
    elif "anyOf" in node:
        told["anyOf"] = [_plain(branch) for branch in node["anyOf"]]
    return told

"""How a profile tells a tool: few words, yet every argument and every field by its name; and what that costs."""

from pathlib import Path
from typing import Any

import jsonschema_rs
import orjson
import pytest

from metaforge import adapters
from metaforge.adapters import CATALOG, OPTIONAL
from metaforge.mcp.brief import brief_input, brief_output, brief_tool
from metaforge.mcp.instructions import instructions
from metaforge.mcp.listing import list_body
from metaforge.registry.profiles import BYTES_PER_TOKEN, CORE_TOKENS, MOST_TOKENS, PROFILES
from metaforge.tools.manifest import AdapterManifest, Tool


def shipped() -> list[Tool]:
    folder = Path(adapters.__file__).parent
    files = [folder / each / "manifest.json" for each in CATALOG if each not in OPTIONAL]
    return [tool for file in files for tool in AdapterManifest.from_json(orjson.loads(file.read_bytes())).tools]


TOOLS = shipped()
EVERY_TOOL = pytest.mark.parametrize("tool", TOOLS, ids=[tool.id for tool in TOOLS])


@pytest.mark.parametrize("name", PROFILES)
def test_the_list_of_a_profile_costs_few_tokens_with_every_program_there(name):
    served = [tool for tool in TOOLS if tool.id in PROFILES[name].tools]
    size_bytes = len(orjson.dumps(list_body(served, {}, is_brief=True)))
    most = CORE_TOKENS if name == "core" else MOST_TOKENS
    costs = sorted(((len(orjson.dumps(brief_tool(tool))) // BYTES_PER_TOKEN, tool.id) for tool in served), reverse=True)

    assert size_bytes / BYTES_PER_TOKEN < most, (
        f"{name}: {size_bytes / BYTES_PER_TOKEN:.0f} tokens; most in {costs[:8]}"
    )


def names_inside(schema: dict[str, Any]) -> set[str]:
    """Return the name of every field at any depth."""
    found: set[str] = set()

    def walk(node: Any) -> None:
        if isinstance(node, dict):
            if isinstance(node.get("properties"), dict):
                found.update(node["properties"])
                for each in node["properties"].values():
                    walk(each)
            for key, each in node.items():
                if key not in ("properties", "default", "enum"):
                    walk(each)
        elif isinstance(node, list):
            for each in node:
                walk(each)

    walk(schema)
    return found


@EVERY_TOOL
def test_no_argument_at_any_depth_is_lost(tool):
    told = orjson.dumps(brief_input(tool.input_schema)).decode()
    inside = names_inside({key: value for key, value in tool.input_schema.items() if key != "$defs"})
    inside |= names_inside({"$defs": list(tool.input_schema.get("$defs", {}).values())})
    assert {name for name in inside if name not in told} == set()


@EVERY_TOOL
def test_arguments_keep_what_is_required_and_what_they_may_be(tool):
    full, told = tool.input_schema, brief_input(tool.input_schema)

    assert list(told["properties"]) == list(full.get("properties", {}))
    assert told.get("required", []) == full.get("required", [])
    for name, field in full.get("properties", {}).items():
        assert told["properties"][name].get("enum") == field.get("enum")
        if field.keys() & {"type", "anyOf", "$ref", "enum"}:
            assert told["properties"][name].keys() & {"type", "anyOf", "enum"}, f"{name} has no kind"


@EVERY_TOOL
def test_every_field_of_a_result_is_named(tool):
    full, told = tool.output_schema, brief_output(tool.output_schema)
    root = full if "properties" in full else {"properties": {}}
    assert list(told.get("properties", {})) == list(root["properties"])
    assert told["type"] == "object"


@EVERY_TOOL
def test_what_is_listed_is_a_schema(tool):
    brief = brief_tool(tool)
    for schema in (brief["inputSchema"], brief["outputSchema"]):
        jsonschema_rs.meta.validate(schema)


SCHEMA = {
    "type": "object",
    "$defs": {
        "Place": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"face": {"type": "string", "description": "top or bottom."}},
            "required": ["face"],
        },
        "Load": {
            "type": "object",
            "properties": {
                "at": {"$ref": "#/$defs/Place"},
                "force_n": {"type": "array", "items": {"type": "number"}, "minItems": 3, "maxItems": 3},
                "kind": {"enum": ["dead", "live"], "default": "dead"},
                "scale_ratio": {"type": "number", "default": 2.0},
                "is_held": {"type": "boolean"},
            },
            "required": ["at", "force_n"],
        },
    },
    "properties": {
        "loads": {"type": "array", "items": {"$ref": "#/$defs/Load"}, "description": "What acts."},
        "held": {"$ref": "#/$defs/Place"},
        "material": {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"name": {"type": "string"}}}]},
        "size_mm": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": 9,
            "default": 1.5,
            "description": "Of an edge.",
        },
        "overwrite": {"type": "boolean", "default": False, "description": "Replace a file."},
        "plane": {"enum": ["XY", "XZ"], "type": "string", "description": "Which plane."},
        "path": {"type": "string", "format": "input-path", "pattern": "x", "maxLength": 9},
    },
    "required": ["loads"],
}


def test_what_lies_inside_an_argument_is_told_in_a_short_notation():
    told = brief_input(SCHEMA)["properties"]

    assert told["loads"] == {
        "type": "array",
        "items": {"type": "object"},
        "description": "What acts: [{at*: Place {face* (top or bottom)}, force_n*: [], kind: dead|live = \"dead\", "
        "scale_ratio = 2, is_held: true|false}]",
    }  # fmt: skip
    assert told["held"] == {"type": "object", "description": "Place"}
    assert told["material"] == {"anyOf": [{"type": "string"}, {"type": "object"}], "description": "{name}"}


def test_plain_arguments_keep_kind_limit_default_and_words_that_say_more_than_the_name():
    told = brief_input(SCHEMA)["properties"]

    assert told["size_mm"] == {"type": "number", "maximum": 9, "default": 1.5, "description": "Of an edge"}
    assert told["overwrite"] == {"type": "boolean"}
    assert told["plane"] == {"type": "string", "enum": ["XY", "XZ"]}
    assert told["path"] == {"type": "string"}


def test_results_are_told_with_kinds_and_depth_while_they_are_short():
    part = {"type": "object", "properties": {"volume_mm3": {"type": "number"}}, "required": ["volume_mm3"]}
    short = {
        "type": "object",
        "properties": {"part": {"$ref": "#/$defs/P"}},
        "$defs": {"P": part},
        "required": ["part"],
    }
    inner = {"type": "object", "properties": {"volume_mm3": {"type": "number"}}}
    assert brief_output(short) == {"type": "object", "properties": {"part": inner}}

    many = {f"length_{number}_mm": {"type": "number", "description": "x" * 50} for number in range(20)}
    assert brief_output({"type": "object", "properties": many}) == {
        "type": "object",
        "properties": {key: {} for key in many},
    }


@pytest.mark.parametrize("name", [None, *PROFILES])
def test_a_client_is_told_only_of_tools_that_it_is_served(name):
    import re

    profile = PROFILES[name] if name else None
    told = instructions(profile)
    named = set(re.findall(r"\b[a-z]+\.[a-z_]+\b", told))
    assert named <= (profile.tools if profile else {tool.id for tool in TOOLS})
    assert ("Served is the profile" in told) == bool(name)

"""Wherever a tool is named for a model or a client, it is one that ships."""

import json
import re
from pathlib import Path
from typing import Any

import orjson
import pytest

from metaforge import adapters
from metaforge.adapters import CATALOG, OPTIONAL

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(adapters.__file__).parent
TOOLS: dict[str, dict[str, Any]] = {
    tool["tool_id"]: tool
    for adapter_id in CATALOG
    if adapter_id not in OPTIONAL
    for tool in orjson.loads((FOLDER / adapter_id / "manifest.json").read_bytes())["tools"]
}
NAMED = re.compile(rf"\b(?:{'|'.join(CATALOG)})\.[a-z_]+\b")


def test_claude_code_is_allowed_only_tools_that_are_there_and_read():
    allowed = json.loads((ROOT / ".claude" / "settings.json").read_text())["permissions"]["allow"]
    reads = {f"mcp__metaforge__{name.replace('.', '_')}" for name, tool in TOOLS.items() if tool["effect"] == "read"}
    assert set(allowed) - reads == set()


@pytest.mark.parametrize("tool_id", TOOLS)
def test_descriptions_and_search_phrases_name_tools_that_are_there(tool_id):
    tool = TOOLS[tool_id]
    told = " ".join((tool["description"], tool["search_hint"], json.dumps(tool["input_schema"])))
    assert set(NAMED.findall(told)) <= TOOLS.keys()
    assert tool["search_hint"]

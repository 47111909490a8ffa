"""Clients that others wrote take a profile's short schemas, and call by them."""

import sys
from pathlib import Path
from typing import Any

import pytest
from house import STDIO, House
from mcp.client.stdio import StdioServerParameters
from scripted_model import Say, Use
from test_claude_code import SERVER, ClaudeCode, claude, era, over_stdio, seen_by, structure, words
from test_python_client import Opener

from metaforge.registry.profiles import PROFILES

__all__ = ["claude", "era"]

LIMIT = {"name": "light", "metric": "mass", "operator": "<=", "limit": 120, "unit": "g"}


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path, adapters="knowledge", METAFORGE_PROFILE="core", METAFORGE_FIXTURES="0")


async def test_the_official_client_lists_a_profile_and_takes_its_results(house: House) -> None:
    server = StdioServerParameters(
        command=sys.executable, args=list(STDIO), env=house.environment, cwd=str(house.workspace)
    )
    for spoken in ("handshake", "stateless"):
        async with Opener(server, spoken)() as client:
            listed = await client.list_tools()
            assert {tool.name for tool in listed.tools} == PROFILES["core"].tools
            project = await client.call_tool("project.create", {"name": f"Lamp {spoken}"})
            assert project.structured_content["name"] == f"Lamp {spoken}"
            kept = await client.call_tool("twin.record_constraint_set", {"title": "Lamp", "constraints": [LIMIT]})
            assert kept.structured_content["item_key"]


def test_claude_code_offers_a_profile_to_its_model_and_fills_what_lies_inside(
    claude: ClaudeCode, house: House, era: dict[str, str]
) -> None:
    steps = [
        Use("mcp__metaforge__project_create", {"name": "Lamp"}),
        Use("mcp__metaforge__twin_record_constraint_set", {"title": "Lamp", "constraints": [LIMIT]}),
        Use("mcp__metaforge__twin_trace_matrix", {}),
        Say("It may weigh 120 g."),
    ]
    allow = ["--allowedTools", f"mcp__{SERVER}"]
    model = claude.follow(steps, over_stdio(house), *allow, ENABLE_TOOL_SEARCH="false", **era)
    offered: dict[str, Any] = {tool["name"]: tool for body in model.requests for tool in body.get("tools") or []}
    ours = {name for name in offered if name.startswith("mcp__metaforge__")}

    assert ours == {f"mcp__metaforge__{tool_id.replace('.', '_')}" for tool_id in PROFILES["core"].tools}
    about = offered["mcp__metaforge__twin_record_constraint_set"]["input_schema"]["properties"]["constraints"]
    assert "name* (" in about["description"]
    project, kept, matrix = seen_by(model)
    assert not kept.get("is_error"), words(kept)
    assert structure(kept)["revision"] == 1
    assert "light" in words(matrix)
    assert structure(project)["name"] == "Lamp"

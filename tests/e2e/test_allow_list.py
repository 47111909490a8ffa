"""The repository's own Claude Code files: reads need no prompt, everything else still asks."""

import json
import sys
from pathlib import Path

import pytest
from house import House
from scripted_model import Say, Use
from test_claude_code import SERVER, ClaudeCode, claude, seen_by, words

__all__ = ["claude"]

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.e2e
@pytest.mark.program("cadquery")
def test_reads_run_unasked_and_writes_ask(claude: ClaudeCode, tmp_path: Path) -> None:
    house = House(tmp_path, adapters="cadquery")
    project = claude.folder / "project"
    (project / ".claude").mkdir()
    (project / ".claude" / "settings.json").write_bytes((ROOT / ".claude" / "settings.json").read_bytes())
    trusted = {"projects": {str(project): {"hasTrustDialogAccepted": True}}}
    (claude.folder / "home" / ".claude.json").write_text(json.dumps(trusted))
    server = json.loads((ROOT / ".mcp.json").read_text())["mcpServers"][SERVER]
    steps = [
        Use("mcp__metaforge__health_check", {}),
        Use("mcp__metaforge__cadquery_create_parametric", {"shape_type": "sphere", "parameters": {"radius_mm": 5}}),
        Say("One ran, one would have asked."),
    ]
    model = claude.follow(steps, server | {"env": house.settings}, METAFORGE_PYTHON=sys.executable)
    read, write = seen_by(model)
    assert "adapter_count" in words(read)
    assert "requested permissions" in words(write)

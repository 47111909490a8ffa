"""The official Inspector's command line against the real server, over stdio and over HTTP."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from house import STDIO, House


class Inspector:
    """Runs one method per process, as the Inspector does."""

    def __init__(self, node: str, program: Path, house: House, target: list[str]) -> None:
        self.command = [node, str(program), "--cli", *target]
        self.house = house

    def __call__(self, method: str, *options: str) -> Any:
        ran = subprocess.run(
            [*self.command, "--method", method, *options],
            capture_output=True,
            text=True,
            timeout=120,
            env={**self.house.environment, "HOME": os.environ.get("HOME", "/")},
            cwd=self.house.workspace,
        )
        assert ran.returncode == 0, ran.stderr[-2000:]
        return json.loads(ran.stdout)


@pytest.fixture(params=["stdio", "http"])
def inspector(request: pytest.FixtureRequest, house: House, package: Callable[[str], Path], node: str) -> Any:
    program = package("@modelcontextprotocol/inspector") / "cli" / "build" / "cli.js"
    if request.param == "stdio":
        environment = [word for pair in house.settings.items() for word in ("-e", "=".join(pair))]
        yield Inspector(node, program, house, [*environment, sys.executable, *STDIO])
    else:
        with house.listening() as url:
            yield Inspector(node, program, house, [url, "--transport", "http"])


def test_the_inspector_lists_tools(inspector: Inspector) -> None:
    tools = {tool["name"]: tool for tool in inspector("tools/list")["tools"]}
    assert tools["fixture.echo"]["inputSchema"]["required"] == ["text"]
    assert tools["fixture.echo"]["annotations"]["readOnlyHint"] is True


def test_the_inspector_calls_a_tool(inspector: Inspector) -> None:
    result = inspector("tools/call", "--tool-name", "fixtureproc.echo", "--tool-arg", "text=hi")
    assert result["structuredContent"]["text"] == "hi"


def test_the_inspector_lists_resources(inspector: Inspector) -> None:
    assert "resources" in inspector("resources/list")

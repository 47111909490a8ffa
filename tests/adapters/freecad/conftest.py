"""One adapter with a real FreeCAD for all tests of this folder; a workspace and a session for each."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from metaforge.adapters.freecad.server import FreecadServer
from metaforge.tools.server import OUTPUT, WORKSPACE


class Bench:
    """Calls tools as the engine does."""

    def __init__(self, server: FreecadServer, workspace: Path) -> None:
        self.server, self.workspace = server, workspace
        self.session = ""

    def _answer(self, tool: str, arguments: dict[str, Any], timeout_seconds: float) -> dict[str, Any]:
        marked = self.server.marked(f"freecad.{tool}")
        assert marked is not None, tool
        if self.session and "session_id" in marked.arguments.model_fields and "session_id" not in arguments:
            arguments = {"session_id": self.session, **arguments}
        params = {"tool_id": f"freecad.{tool}", "arguments": arguments, "timeout_seconds": timeout_seconds}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tool/call", "params": params}
        return json.loads(asyncio.run(self.server.handle_request(json.dumps(message))))

    def call(self, tool: str, *, timeout_seconds: float = 60.0, **arguments: Any) -> dict[str, Any]:
        """Return the result of a call that must succeed."""
        answer = self._answer(tool, arguments, timeout_seconds)
        assert "result" in answer, answer.get("error")
        return answer["result"]

    def data(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.call(tool, **arguments)["data"]

    def refused(self, tool: str, *, timeout_seconds: float = 60.0, **arguments: Any) -> dict[str, Any]:
        """Return the error of a call that must be refused."""
        answer = self._answer(tool, arguments, timeout_seconds)
        assert "error" in answer, answer.get("result")
        return answer["error"]

    def sketch(self, body: str, *elements: dict[str, Any], **more: Any) -> str:
        return str(self.data("create_sketch", body_id=body, elements=list(elements), **more)["obj_id"])

    def block(self, width: float = 40, length: float = 20, height: float = 12) -> str:
        """Make a body with one padded rectangle at the origin and return its id."""
        body = str(self.data("create_body", name="Block")["obj_id"])
        sketch = self.sketch(body, {"type": "rectangle", "corner_mm": [0, 0], "width_mm": width, "height_mm": length})
        self.data("pad_sketch", body_id=body, sketch_id=sketch, length_mm=height)
        return body


@pytest.fixture(scope="session")
def server() -> FreecadServer:
    made = FreecadServer()
    made.warm_up()
    return made


@pytest.fixture
def files(server: FreecadServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A bench without a session, for tools that work on files."""
    monkeypatch.setenv(WORKSPACE, str(tmp_path))
    monkeypatch.setenv(OUTPUT, str(tmp_path))
    return Bench(server, tmp_path)


@pytest.fixture
def bench(files: Bench) -> Iterator[Bench]:
    """A bench with a session of its own."""
    files.session = str(files.data("open_session", name="Test")["session_id"])
    yield files
    if files.session:
        files._answer("close_session", {}, 10.0)

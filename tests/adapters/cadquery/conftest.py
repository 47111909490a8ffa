"""One adapter for all tests of this folder, and a workspace for each."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from metaforge.adapters.cadquery.server import CadQueryServer


class Bench:
    """Calls tools as the engine does, with the real kernel."""

    def __init__(self, server: CadQueryServer, workspace: Path) -> None:
        self.server, self.workspace = server, workspace

    def _answer(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        params = {"tool_id": f"cadquery.{tool}", "arguments": arguments, "output_dir": str(self.workspace)}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tool/call", "params": params}
        return json.loads(asyncio.run(self.server.handle_request(json.dumps(message))))

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the result of a call that must succeed."""
        answer = self._answer(tool, arguments)
        assert "result" in answer, answer.get("error")
        return answer["result"]

    def data(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.call(tool, **arguments)["data"]

    def refused(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the error of a call that must be refused."""
        answer = self._answer(tool, arguments)
        assert "error" in answer, answer.get("result")
        return answer["error"]

    def shape(self, shape_type: str, path: str, **parameters: Any) -> dict[str, Any]:
        return self.data("create_parametric", shape_type=shape_type, parameters=parameters, output_path=path)


@pytest.fixture(scope="session")
def server() -> CadQueryServer:
    made = CadQueryServer()
    # As in a worker: what the kernel's library does not need for a part is not loaded.
    made.warm_up()
    return made


@pytest.fixture
def bench(server: CadQueryServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("METAFORGE_WORKER_WORKSPACE", str(tmp_path))
    return Bench(server, tmp_path)


@pytest.fixture
def case_bench(server: CadQueryServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], Bench]:
    """A bench whose workspace is a folder of inputs; what it writes goes elsewhere."""

    def bench_at(folder: Path) -> Bench:
        monkeypatch.setenv("METAFORGE_WORKER_WORKSPACE", str(folder))
        made = Bench(server, tmp_path)
        return made

    return bench_at

"""The adapter as its callers see it, and small schematics and boards of this project's own."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import drawings

sys.path.pop(0)

from metaforge.adapters.kicad.server import KicadServer


class Refused(Exception):
    """The tool answered with an error; `data` is its error data."""

    def __init__(self, message: str, data: dict[str, Any]) -> None:
        super().__init__(message)
        self.message, self.data = message, data


class Kicad:
    """Calls the adapter's tools in this process, with a workspace and an output folder."""

    def __init__(self, workspace: Path, output: Path) -> None:
        self.workspace, self.output = workspace, output
        self.server = KicadServer()

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        params = {
            "tool_id": f"kicad.{tool}", "arguments": arguments, "output_dir": str(self.output), "timeout_seconds": 200,
        }  # fmt: skip
        request = {"jsonrpc": "2.0", "id": 1, "method": "tool/call", "params": params}
        reply = json.loads(await self.server.handle_request(json.dumps(request)))
        if "error" in reply:
            raise Refused(reply["error"]["message"], reply["error"].get("data") or {})
        result: dict[str, Any] = reply["result"]
        return result

    async def data(self, tool: str, **arguments: Any) -> dict[str, Any]:
        found: dict[str, Any] = (await self.call(tool, **arguments))["data"]
        return found

    async def refused(self, tool: str, **arguments: Any) -> Refused:
        """Return the refusal of a call that must be refused; nothing may have been written."""
        with pytest.raises(Refused) as caught:
            await self.call(tool, **arguments)
        assert not any(path.is_file() for path in self.output.rglob("*")), "a refused call wrote a file"
        return caught.value

    def write(self, name: str, text: str) -> str:
        target = self.workspace / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        return name

    def written(self, name: str) -> str:
        return (self.output / name).read_text(encoding="utf-8")


@pytest.fixture
def draw() -> Any:
    """The module that draws schematics and boards."""
    return drawings


@pytest.fixture
def kicad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kicad:
    workspace, output = tmp_path / "workspace", tmp_path / "output"
    workspace.mkdir()
    output.mkdir()
    monkeypatch.setenv("METAFORGE_WORKER_WORKSPACE", str(workspace))
    return Kicad(workspace, output)


@pytest.fixture
def kicad_cases(kicad: Kicad, cases_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Kicad:
    """The same, with the shared cases as its workspace."""
    monkeypatch.setenv("METAFORGE_WORKER_WORKSPACE", str(cases_dir))
    return Kicad(cases_dir, kicad.output)


@pytest.fixture
def simulate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Simulate an exported netlist by its path, as it lies in a workspace beside the files that it includes."""
    pytest.importorskip("matplotlib")
    from metaforge.adapters.spice.server import SpiceServer

    async def run(kicad: Kicad, netlist: str, beside: list[str], **arguments: Any) -> dict[str, Any]:
        place = tmp_path / "simulation"
        shutil.copytree(kicad.output, place)
        for name in beside:
            shutil.copytree(kicad.workspace / name, place / name)
        monkeypatch.setenv("METAFORGE_WORKER_WORKSPACE", str(place))
        arguments |= {"netlist_path": netlist}
        params = {"tool_id": "spice.run_simulation", "arguments": arguments, "output_dir": str(tmp_path / "simulated")}
        request = {"jsonrpc": "2.0", "id": 1, "method": "tool/call", "params": params}
        reply = json.loads(await SpiceServer().handle_request(json.dumps(request)))
        assert "result" in reply, reply
        data: dict[str, Any] = reply["result"]["data"]
        return data

    return run

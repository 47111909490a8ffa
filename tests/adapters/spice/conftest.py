"""The adapter as its callers see it."""

import json
from pathlib import Path
from typing import Any

import pytest

from metaforge.adapters.spice.server import SpiceServer
from metaforge.formats.spice_raw import Plot, read_raw


class Refused(Exception):
    """The tool answered with an error; `data` is its error data."""

    def __init__(self, message: str, data: dict[str, Any]) -> None:
        super().__init__(message)
        self.message, self.data = message, data


class Spice:
    """Calls the adapter's tool in this process, with a workspace and an output folder."""

    def __init__(self, workspace: Path, output: Path) -> None:
        self.workspace, self.output = workspace, output
        self.server = SpiceServer()

    async def call(self, analysis_type: str, netlist: str | None = None, **arguments: Any) -> dict[str, Any]:
        arguments["analysis_type"] = analysis_type
        if netlist is not None:
            arguments["netlist"] = netlist
        params = {
            "tool_id": "spice.run_simulation",
            "arguments": arguments,
            "output_dir": str(self.output),
            "timeout_seconds": 120,
        }
        request = {"jsonrpc": "2.0", "id": 1, "method": "tool/call", "params": params}
        reply = json.loads(await self.server.handle_request(json.dumps(request)))
        if "error" in reply:
            raise Refused(reply["error"]["message"], reply["error"].get("data") or {})
        result: dict[str, Any] = reply["result"]
        return result

    async def data(self, analysis_type: str, netlist: str | None = None, **arguments: Any) -> dict[str, Any]:
        found: dict[str, Any] = (await self.call(analysis_type, netlist, **arguments))["data"]
        return found

    async def refused(self, analysis_type: str, netlist: str | None = None, **arguments: Any) -> Refused:
        """Return the refusal of a call that must be refused; nothing may have been written."""
        with pytest.raises(Refused) as caught:
            await self.call(analysis_type, netlist, **arguments)
        assert not any(self.output.rglob("*")), "a refused call wrote a file"
        return caught.value

    def write(self, name: str, text: str) -> str:
        target = self.workspace / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return name

    def plot(self, data: dict[str, Any]) -> Plot:
        return read_raw((self.output / data["waveforms"][0]).read_bytes())[0]


@pytest.fixture
def spice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Spice:
    workspace, output = tmp_path / "workspace", tmp_path / "output"
    workspace.mkdir()
    output.mkdir()
    monkeypatch.setenv("METAFORGE_WORKER_WORKSPACE", str(workspace))
    return Spice(workspace, output)


@pytest.fixture
def spice_cases(spice: Spice, cases_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Spice:
    """The same, with the shared cases as its workspace."""
    monkeypatch.setenv("METAFORGE_WORKER_WORKSPACE", str(cases_dir))
    return Spice(cases_dir, spice.output)

"""The adapter as its callers see it, and meshes of its own making."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from metaforge.adapters.calculix.server import CalculixServer
from metaforge.formats.frd import Results, read_frd

HEX_CORNERS = [(0, 0, 0), (2, 0, 0), (2, 2, 0), (0, 2, 0), (0, 0, 2), (2, 0, 2), (2, 2, 2), (0, 2, 2)]
HEX_MIDDLES = [
    (1, 0, 0), (2, 1, 0), (1, 2, 0), (0, 1, 0), (1, 0, 2), (2, 1, 2), (1, 2, 2), (0, 1, 2),
    (0, 0, 1), (2, 0, 1), (2, 2, 1), (0, 2, 1),
]  # fmt: skip


class Refused(Exception):
    """The tool answered with an error; `data` is its error data."""

    def __init__(self, message: str, data: dict[str, Any]) -> None:
        super().__init__(message)
        self.message, self.data = message, data


class Calculix:
    """Calls the adapter's tools in this process, with a workspace and an output folder."""

    def __init__(self, workspace: Path, output: Path) -> None:
        self.workspace, self.output = workspace, output
        self.server = CalculixServer()

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        params = {
            "tool_id": f"calculix.{tool}",
            "arguments": arguments,
            "output_dir": str(self.output),
            "timeout_seconds": 300,
        }
        request = {"jsonrpc": "2.0", "id": 1, "method": "tool/call", "params": params}
        reply = json.loads(await self.server.handle_request(json.dumps(request)))
        if "error" in reply:
            raise Refused(reply["error"]["message"], reply["error"].get("data") or {})
        result: dict[str, Any] = reply["result"]
        return result

    async def data(self, tool: str, **arguments: Any) -> dict[str, Any]:
        found: dict[str, Any] = (await self.call(tool, **arguments))["data"]
        return found

    def write(self, name: str, text: str) -> str:
        target = self.workspace / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return name

    def results(self, data: dict[str, Any]) -> Results:
        return read_frd((self.output / data["frd_file"]).read_bytes())


@pytest.fixture
def calculix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Calculix:
    workspace, output = tmp_path / "workspace", tmp_path / "output"
    workspace.mkdir()
    output.mkdir()
    monkeypatch.setenv("METAFORGE_WORKER_WORKSPACE", str(workspace))
    return Calculix(workspace, output)


@pytest.fixture(scope="session")
def refused() -> type[Refused]:
    return Refused


@pytest.fixture(scope="session")
def step_box(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Write a STEP box, or any boxes fused into one solid, with gmsh's own kernel."""
    gmsh = pytest.importorskip("gmsh")
    folder = tmp_path_factory.mktemp("step")

    def write(name: str, *boxes: tuple[float, ...]) -> Path:
        path = folder / f"{name}.step"
        if not path.exists():
            gmsh.initialize(interruptible=False)
            try:
                gmsh.option.setNumber("General.Terminal", 0)
                tags = [(3, gmsh.model.occ.addBox(*box)) for box in boxes]
                if len(tags) > 1:
                    gmsh.model.occ.fuse(tags[:1], tags[1:])
                gmsh.model.occ.synchronize()
                gmsh.write(str(path))
            finally:
                gmsh.finalize()
        return path

    return write


@pytest.fixture(scope="session")
def block() -> Callable[..., str]:
    """Return a box of hexahedra as cards, with a node set per face and an element set per half."""

    def make(
        cells: tuple[int, int, int], size: tuple[float, float, float], kind: str = "C3D20", elset: str = "BODY"
    ) -> str:
        nx, ny, nz = cells
        step = 2 if kind.startswith("C3D20") else 1
        pattern = HEX_CORNERS + HEX_MIDDLES if step == 2 else [tuple(v // 2 for v in c) for c in HEX_CORNERS]
        number: dict[tuple[int, int, int], int] = {}
        elements = []
        for i, j, k in np.ndindex(nx, ny, nz):
            keys = [(step * i + a, step * j + b, step * k + c) for a, b, c in pattern]
            elements.append([number.setdefault(key, len(number) + 1) for key in keys])
        scale = np.array(size) / (np.array(cells) * step)
        lines = ["*NODE, NSET=NALL"]
        lines += [f"{n}, " + ", ".join(f"{v:.9g}" for v in np.array(key) * scale) for key, n in number.items()]
        for half, mine in (("NEAR", elements[: len(elements) // 2]), ("FAR", elements[len(elements) // 2 :])):
            lines.append(f"*ELEMENT, TYPE={kind}, ELSET={half}")
            first = 1 if half == "NEAR" else len(elements) // 2 + 1
            for offset, nodes in enumerate(mine):
                row = [first + offset, *nodes]
                lines += [",".join(map(str, row[:12])) + ("," if len(row) > 12 else "")]
                lines += [",".join(map(str, row[12:]))] if len(row) > 12 else []
        lines += [f"*ELSET, ELSET={elset}", "NEAR, FAR"]
        for axis, (low, high) in enumerate((("X0", "X1"), ("Y0", "Y1"), ("Z0", "Z1"))):
            for name, value in ((low, 0), (high, cells[axis] * step)):
                lines.append(f"*NSET, NSET={name}")
                lines += [f"{n}," for key, n in number.items() if key[axis] == value]
        return "\n".join(lines) + "\n"

    return make

"""The whole pipeline over a design record of its own, on either database; geometry is measured by a stand-in."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from metaforge.app import App
from metaforge.approvals.model import Approver
from metaforge.core.errors import MetaForgeError
from metaforge.core.ids import new_call_id
from metaforge.settings import Settings
from metaforge.tools.context import Caller, Invocation, Outcome, Trust
from metaforge.twin.geometry import Measured
from metaforge.twin.model import Run

T = TypeVar("T")

STEP = b"ISO-10303-21;\nHEADER;\nENDSEC;\nDATA;\n#1=%s;\nENDSEC;\nEND-ISO-10303-21;\n"


class Scale:
    """Measures as it is told: these tests are about what becomes of the figures, not about kernels."""

    def __init__(self) -> None:
        self.answer: Measured | Exception = Measured(
            {
                "volume_mm3": 15000.0, "surface_area_mm2": 4600.0, "center_of_mass_mm": [0, 0, 5], "mass_kg": 0.12,
                "bounding_box_mm": {"size_mm": [50, 30, 10]}, "solids_count": 1, "is_valid": True, "parts_count": 1,
            },
            programs={"OCCT": "7.9"},
        )  # fmt: skip
        self.seen: list[tuple[bytes, str, Mapping[str, Any]]] = []

    async def measure(self, content: bytes, format: str, material: Mapping[str, Any], _: Invocation) -> Measured:
        self.seen.append((content, format, dict(material)))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Bench:
    """A server in this process, and a client of it."""

    def __init__(self, app: App, scale: Scale) -> None:
        self.app = app
        self.scale = scale
        self.caller = Caller("anna", Trust.LOCAL, "test", "1", "session-1")

    async def outcome(self, tool_id: str, /, **arguments: Any) -> Outcome:
        return await self.app.call_tool(tool_id, arguments, call_id=new_call_id(), caller=self.caller)

    async def do(self, tool_id: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its data, with its warnings beside them."""
        outcome = await self.outcome(tool_id, **arguments)
        return outcome.data | {"warnings": list(outcome.warnings)}

    async def refused(self, tool_id: str, /, **arguments: Any) -> Any:
        """Call a tool that must refuse, and return the refusal; nothing may have been written."""
        before = self.seq()
        with pytest.raises(MetaForgeError) as refusal:
            await self.outcome(tool_id, **arguments)
        assert self.seq() == before, "a refused call wrote something"
        return refusal.value

    async def decided(self, call: Awaitable[T], verdict: str) -> T:
        """Decide the call that waits, and return what came of it."""
        waiting = asyncio.ensure_future(call)
        ledger = self.app.approvals.ledger
        async with asyncio.timeout(10):
            while not (found := await asyncio.to_thread(ledger.entries)):  # noqa: ASYNC110 - another thread opens it
                await asyncio.sleep(0.005)
        anna = Approver("anna", True, "dashboard")
        await asyncio.to_thread(ledger.decide, found[0].approval_id, verdict, anna)
        return await waiting

    def seq(self) -> int:
        with self.app.twin_services.store.read() as view:
            return view.seq()

    def write_step(self, path: str, text: str = "bracket") -> bytes:
        """Put a file into the workspace that says it is STEP."""
        content = STEP % text.encode()
        target = self.app.workspace / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        return content

    async def commit(self, name: str = "Bracket", text: str = "bracket", **more: Any) -> dict[str, Any]:
        self.write_step(f"out/{text}.step", text)
        return await self.do("twin.commit_geometry", name=name, file_path=f"out/{text}.step", **more)

    def start_run(self, run_id: str, project_id: str) -> None:
        """Start a run and bind this client to it, as claiming a phase will."""
        with self.app.twin_services.store.change(author="flow") as change:
            change.put_run(Run(run_id, project_id, "running", "flow-1", True, "concept", "G1"))
        self.app.scopes.bind_run(self.caller, run_id, project_id)

    def close_run(self, run_id: str, decision: str) -> None:
        with self.app.twin_services.store.change(author="ben") as change:
            change.close_run(run_id, decision)

    def another(self, session_id: str, actor_id: str = "ben", trust: Trust = Trust.LOCAL) -> "Bench":
        """Return another client of the same server."""
        other = Bench(self.app, self.scale)
        other.caller = Caller(actor_id, trust, "test", "1", session_id)
        return other


@pytest.fixture
async def bench(tmp_path: Path, database_url: str) -> AsyncIterator[Bench]:
    environ = {
        "METAFORGE_HOME": str(tmp_path / "home"),
        "METAFORGE_WORKSPACE": str(tmp_path / "workspace"),
        "METAFORGE_DATABASE_URL": database_url,
        "METAFORGE_PRESTART": "false",
        "METAFORGE_ADAPTERS": "health",
    }
    app = App(Settings.load(environ), over_stdio=True)
    scale = Scale()
    app.__dict__["twin_services"] = replace(app.twin_services, measurer=scale)
    yield Bench(app, scale)
    await app.close()


@pytest.fixture
async def project_id(bench: Bench) -> str:
    """A project, opened by the bench's client."""
    made: str = (await bench.do("project.create", name="Widget mount"))["id"]
    return made

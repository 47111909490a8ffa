"""A held commit of geometry: a person sees the part that is there against the one that would be, measured and drawn."""

import asyncio
import importlib.util
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from metaforge.app import App
from metaforge.approvals.model import Approver, Entry
from metaforge.core.ids import new_call_id
from metaforge.settings import Settings
from metaforge.tools.context import Caller, Trust

pytestmark = pytest.mark.skipif(not importlib.util.find_spec("cadquery"), reason="needs the extra cadquery")
LOCAL = Caller("anna", Trust.LOCAL, "test", "1", "s1")
REMOTE = Caller("ben", Trust.UNTRUSTED, "agent", "1", "s2")


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    environ = {"METAFORGE_HOME": str(tmp_path / "home"), "METAFORGE_WORKSPACE": str(tmp_path / "work")}
    made = App(
        Settings.load({**environ, "METAFORGE_ADAPTERS": "cadquery", "METAFORGE_PRESTART": "false"}), over_stdio=True
    )
    yield made
    await made.close()


async def do(app: App, tool_id: str, caller: Caller = LOCAL, /, **arguments: Any) -> Any:
    return (await app.call_tool(tool_id, arguments, call_id=new_call_id(), caller=caller)).data


async def waiting(app: App) -> Entry:
    async with asyncio.timeout(60):
        while True:
            if found := await asyncio.to_thread(app.approvals.ledger.entries):
                return found[0]
            await asyncio.sleep(0.02)


async def box(app: App, path: str, height: float) -> None:
    size = {"width": 20, "length": 30, "height": height}
    await do(app, "cadquery.create_parametric", shape_type="box", parameters=size, output_path=path)


async def test_the_part_that_is_there_stands_against_the_one_that_would_be(app: App) -> None:
    project_id = (await do(app, "project.create", name="Leg"))["id"]
    await box(app, "out/one.step", 10)
    await box(app, "out/two.step", 25)
    await do(app, "twin.commit_geometry", name="Leg", file_path="out/one.step", project_id=project_id)
    arguments = {"name": "Leg", "file_path": "out/two.step", "project_id": project_id}
    files = sorted(each.relative_to(app.workspace) for each in app.workspace.rglob("*"))
    call = asyncio.create_task(do(app, "twin.commit_geometry", REMOTE, **arguments))
    entry = await waiting(app)
    change = entry.request.change
    assert change["now"]["CAD-LEG"]["ref"] == "CAD-LEG@1"
    assert change["now"]["CAD-LEG"]["measured"]["volume_mm3"] == pytest.approx(6000)
    assert change["after"]["CAD-LEG"]["ref"] == "CAD-LEG@2"
    assert change["after"]["CAD-LEG"]["measured"]["volume_mm3"] == pytest.approx(15000)
    (picture,) = change["pictures"]
    assert app.blobs.read(picture).startswith(b"\x89PNG")
    assert list(change["reads"]) == ["out/two.step"]
    assert entry.request.summary == "write CAD-LEG@2 'Leg' in place of CAD-LEG@1"
    left = sorted(each.relative_to(app.workspace) for each in app.workspace.rglob("*"))
    assert left == files, "trying it left nothing behind"
    await asyncio.to_thread(
        app.approvals.ledger.decide, entry.approval_id, "approve", Approver("anna", True, "dashboard")
    )
    assert (await call)["item_ref"] == "CAD-LEG@2"


async def test_a_file_that_is_another_by_the_time_it_is_approved_is_not_committed(app: App) -> None:
    project_id = (await do(app, "project.create", name="Leg"))["id"]
    await box(app, "out/one.step", 10)
    arguments = {"name": "Leg", "file_path": "out/one.step", "project_id": project_id}
    call = asyncio.create_task(do(app, "twin.commit_geometry", REMOTE, **arguments))
    entry = await waiting(app)
    path = app.workspace / "out/one.step"
    path.write_bytes(path.read_bytes().replace(b"10.", b"11."))
    await asyncio.to_thread(
        app.approvals.ledger.decide, entry.approval_id, "approve", Approver("anna", True, "dashboard")
    )
    with pytest.raises(Exception, match=r"out/one\.step is another file now"):
        await call
    found = await do(app, "twin.find_by_property", node_type="cad_model", property="name", value="Leg",
                     project_id=project_id)  # fmt: skip
    assert not found.get("nodes")

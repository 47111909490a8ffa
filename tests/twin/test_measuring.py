"""The real kernel measures exactly the kept bytes, in its box, and leaves nothing in the workspace."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from metaforge.app import App
from metaforge.core.errors import InvalidArguments, ToolError
from metaforge.core.ids import new_call_id
from metaforge.settings import Settings
from metaforge.tools.context import Caller, Invocation, Trust

pytestmark = [pytest.mark.program("cadquery"), pytest.mark.slow]


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    environ = {
        "METAFORGE_HOME": str(tmp_path / "home"),
        "METAFORGE_WORKSPACE": str(tmp_path / "workspace"),
        "METAFORGE_PRESTART": "false",
        "METAFORGE_ADAPTERS": "cadquery",
    }
    app = App(Settings.load(environ), over_stdio=True)
    yield app
    await app.close()


async def call(app: App, tool_id: str, **arguments: Any) -> Any:
    return await app.call_tool(tool_id, arguments, call_id=new_call_id(), caller=Caller("anna", Trust.LOCAL))


async def test_a_plate_with_a_hole_weighs_what_it_should_and_a_broken_file_is_not_measured(app: App) -> None:
    made = await call(
        app, "cadquery.create_parametric", shape_type="box", output_path="out/a.step",
        parameters={"width_mm": 50, "length_mm": 30, "height_mm": 10},
    )  # fmt: skip
    content = (app.workspace / made.data["cad_file"]).read_bytes()
    measurer = app.twin_services.measurer
    invocation = Invocation("c1", Caller("anna", Trust.LOCAL), 120.0)
    before = sorted(app.workspace.rglob("*"))

    found = await measurer.measure(content, "step", {"density_kg_m3": 2700.0}, invocation)

    assert found.problem == ""
    assert found.missing == []
    assert found.properties["volume_mm3"] == pytest.approx(50 * 30 * 10, rel=1e-9)
    assert found.properties["mass_kg"] == pytest.approx(50e-3 * 30e-3 * 10e-3 * 2700, rel=1e-9)
    assert found.properties["bounding_box_mm"]["size_mm"] == pytest.approx([50, 30, 10], abs=1e-5)
    assert found.programs

    for broken in (content.replace(b"CARTESIAN_POINT", b"CARTESIAN_PIONT"), content[: len(content) // 3]):
        with pytest.raises(ToolError) as refusal:
            await measurer.measure(broken, "step", {}, invocation)
        assert refusal.value.kind == "unreadable_geometry"
        assert ".metaforge" not in refusal.value.text()
    with pytest.raises(InvalidArguments, match="unobtainium"):
        await measurer.measure(content, "step", {"material": "unobtainium"}, invocation)
    assert (await measurer.measure(b"solid", "stl", {}, invocation)).problem == "stl files are not measured"
    assert sorted(app.workspace.rglob("*")) == before

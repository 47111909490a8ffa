"""A session under the engine: in its box a script reaches nothing, and its export is what the record would commit."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from metaforge.adapters.freecad.process import freecad_python
from metaforge.engine import sandbox
from metaforge.engine.source import ProcessSource
from metaforge.settings import Settings
from metaforge.store.blobs import BlobStore
from metaforge.tools.context import Caller, Invocation, Outcome
from metaforge.tools.generate import manifest_of
from metaforge.tools.manifest import AdapterManifest

pytestmark = pytest.mark.program("freecadcmd")
TARGET = "metaforge.adapters.freecad.server:FreecadServer"
PREFIXES = os.environ.get("METAFORGE_PROGRAM_PREFIXES", "")
"""Where the FreeCAD under test lies, if it is not the system's."""


class Shop:
    """A source of the adapter in real boxes."""

    def __init__(self, folder: Path, **more: str) -> None:
        self.workspace, home = folder / "workspace", folder / "home"
        self.workspace.mkdir()
        environ = {
            "PATH": os.environ["PATH"], "METAFORGE_HOME": str(home), "METAFORGE_PRESTART": "false",
            "METAFORGE_PROGRAM_PREFIXES": PREFIXES,
        }  # fmt: skip
        self.settings = Settings.load(environ | more)
        self.blobs = BlobStore(home / "blobs")
        manifest = AdapterManifest.from_json(manifest_of(TARGET))
        self.source = ProcessSource(manifest, self.settings, self.workspace, self.blobs)

    async def call(self, name: str, /, **arguments: Any) -> Outcome:
        tool = next(tool for tool in self.source.manifest.tools if tool.id == f"freecad.{name}")
        return await self.source.call(tool, arguments, Invocation("call-000001", Caller(), 120.0))


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    made = Shop(tmp_path)
    if not sandbox.find(made.settings).boxed:
        pytest.skip("no bubblewrap here")
    yield made
    await made.source.close()


HOSTILE = """
import os, socket
result = {}
def tried(name, what):
    try:
        result[name] = repr(what())
    except BaseException as fault:
        result[name] = type(fault).__name__
tried("passwords", lambda: open("/etc/passwd").read())
tried("elsewhere", lambda: open(SECRET).read())
tried("network", lambda: socket.create_connection(("127.0.0.1", 22), timeout=1))
tried("workspace", lambda: open("/workspace/planted.txt", "w"))
tried("others", lambda: [pid for pid in os.listdir("/proc") if pid.isdigit() and len(pid) > 4])
doc.addObject("Part::Box", "Box")
"""


async def test_a_script_in_a_session_reaches_neither_files_nor_network_nor_other_processes(shop: Shop) -> None:
    session = (await shop.call("open_session")).data["session_id"]
    secret = shop.workspace.parent / "secret.txt"
    secret.write_text("not yours")
    code = f"SECRET = {str(secret)!r}\n{HOSTILE}"
    result = (await shop.call("execute_code", session_id=session, code=code)).data["result"]
    assert result.pop("others") == "[]"
    assert set(result.values()) <= {"FileNotFoundError", "PermissionError", "OSError", "ConnectionRefusedError"}, result
    assert list(shop.workspace.iterdir()) == []
    # A session that ran a script still exports, into a place of its own and told apart.
    outcome = await shop.call("export_model", session_id=session, obj_id="Box", material="oak")
    assert outcome.files[0].path == "out/script-Box.step"
    assert outcome.files[0].media_type == "model/step"
    content = shop.blobs.read(outcome.files[0].sha256)
    assert content == (shop.workspace / "out/script-Box.step").read_bytes()
    assert b"COLOUR_RGB" in content


async def test_two_sessions_work_side_by_side_in_boxes_of_their_own(shop: Shop) -> None:
    opened = [(await shop.call("open_session", name=name)).data["session_id"] for name in ("A", "B")]
    sizes = {"length_mm": 1.0, "width_mm": 2.0, "height_mm": 3.0}
    made = await asyncio.gather(
        *(shop.call("create_primitive", session_id=each, kind="box", parameters=sizes) for each in opened)
    )
    assert [each.data["volume_mm3"] for each in made] == [pytest.approx(6), pytest.approx(6)]
    health = await shop.source.health(3.0)
    assert health.detail["sessions"]["open_count"] == 2
    await shop.call("close_session", session_id=opened[0])
    assert (await shop.call("describe_session", session_id=opened[1])).data["object_count"] == 1


@pytest.mark.skipif(bool(PREFIXES), reason="the FreeCAD under test lies elsewhere already")
async def test_a_freecad_elsewhere_runs_in_its_own_python_and_its_box_shows_all_of_its_folder(tmp_path: Path) -> None:
    prefix = tmp_path / "freecad"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "lib").mkdir()
    (prefix / "lib" / "names").write_text(f"export CAME_FROM={prefix}\n")
    for name, program in (("freecadcmd", which("freecadcmd")), ("python3", freecad_python())):
        script = prefix / "bin" / name
        script.write_text(f'#!/bin/sh\n. "{prefix}/lib/names" || exit 3\nexec {program} "$@"\n')
        script.chmod(0o755)
    shop = Shop(tmp_path, METAFORGE_PROGRAM_PREFIXES=f"{tmp_path / 'empty'}:{prefix}")
    if not sandbox.find(shop.settings).boxed:
        pytest.skip("no bubblewrap here")
    try:
        session = (await shop.call("open_session")).data["session_id"]
        code = "import os\nresult = os.environ['CAME_FROM']\ndoc.addObject('Part::Box', 'Box')"
        assert (await shop.call("execute_code", session_id=session, code=code)).data["result"] == str(prefix)
        assert (await shop.call("measure", session_id=session, obj_id="Box")).data["volume_mm3"] == pytest.approx(1000)
    finally:
        await shop.source.close()


def test_a_prefix_that_is_the_root_or_relative_is_told_and_not_used() -> None:
    for text in ("/", "freecad"):
        told = Settings.load({"PATH": "/usr/bin", "METAFORGE_PROGRAM_PREFIXES": f"/opt/freecad:{text}"})
        assert told.program_prefixes == ()
        assert told.environment["PATH"] == "/usr/bin"
        assert "absolute folders" in told.problems[0]
    told = Settings.load({"PATH": "/usr/bin", "METAFORGE_PROGRAM_PREFIXES": "/opt/freecad:/opt/kicad"})
    assert told.environment["PATH"] == "/opt/freecad/bin:/opt/kicad/bin:/usr/bin"

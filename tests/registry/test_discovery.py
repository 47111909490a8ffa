"""Adapters of other packages are found by entry point, and a broken one is told, not fatal."""

import sys
from pathlib import Path

import pytest

from metaforge.registry.discovery import discover, find_manifest

ADAPTER = '''
from metaforge.tools.server import McpToolServer
from metaforge.tools.tool import tool
from metaforge.tools.effect import Effect

class GearServer(McpToolServer):
    def __init__(self):
        super().__init__("gears", "2.0")

    @tool(effect=Effect.READ, capability="gears", title="Pitch diameter")
    def pitch(self, ctx, module_mm: float, teeth_count: int) -> dict[str, float]:
        """Return the pitch diameter."""
        return {"pitch_diameter_mm": module_mm * teeth_count}
'''


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    info = folder / "gears-2.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gears\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text("[metaforge.adapters]\ngears = gears_adapter:GearServer\n")
    (folder / "gears_adapter.py").write_text(ADAPTER)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return folder


def test_an_installed_package_brings_its_adapter(site: Path, tmp_path: Path) -> None:
    found = [each for each in discover(tmp_path / "cache") if each.adapter_id == "gears"]
    assert found[0].problem == ""
    assert found[0].manifest is not None
    assert found[0].manifest["tools"][0]["tool_id"] == "gears.pitch"
    assert found[0].folder == site, "its workers must be able to read a folder outside this environment"


def test_the_second_time_nothing_is_asked_or_generated(site: Path, tmp_path: Path) -> None:
    first = discover(tmp_path / "cache")
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "cache").iterdir()}
    (site / "unrelated.txt").write_text("a folder on the path changes, its packages do not")
    assert discover(tmp_path / "cache") == first
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "cache").iterdir()} == before


def test_a_change_beside_the_server_class_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "gears"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "results.py").write_text("UNIT = 'mm'\n")
    about = ADAPTER.replace('"""Return the pitch diameter."""', "").replace('title="Pitch diameter"', "title=UNIT")
    (package / "server.py").write_text("from gears.results import UNIT\n" + about)
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setenv("PYTHONPATH", str(package.parent))

    def title() -> str:
        found = find_manifest("gears", "gears.server:GearServer", tmp_path / "cache")
        assert found.manifest is not None, found.problem
        name: str = found.manifest["tools"][0]["name"]
        return name

    assert title() == "mm"
    (package / "results.py").write_text("UNIT = 'inch'\n")
    assert title() == "inch"


def test_an_adapter_that_fails_to_import_is_told_with_the_reason(site: Path, tmp_path: Path) -> None:
    (site / "gears_adapter.py").write_text("import nothing_of_the_kind\n")
    sys.modules.pop("gears_adapter", None)
    found = [each for each in discover(tmp_path / "cache") if each.adapter_id == "gears"]
    assert found[0].manifest is None
    assert "nothing_of_the_kind" in found[0].problem

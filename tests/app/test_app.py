"""The composed application: it always starts, and says what it could not load."""

from pathlib import Path

import pytest

from metaforge.adapters import registering as room
from metaforge.app import App
from metaforge.settings import BadSetting, Settings


def settings(tmp_path: Path, **also: str) -> Settings:
    (tmp_path / "work").mkdir(exist_ok=True)
    given = {
        "METAFORGE_HOME": str(tmp_path / "home"),
        "METAFORGE_WORKSPACE": str(tmp_path / "work"),
        "PATH": "/nowhere",
    }
    return Settings.load(given | also)


async def test_an_adapter_without_its_manifest_is_told_and_the_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "CATALOG", {"nothing": "metaforge.adapters.nothing.server:No", **room.CATALOG})
    app = App(settings(tmp_path), over_stdio=True)
    assert "health.check" in [tool.id for tool in app.listed_tools()]
    told = [entry for entry in app.list_meta()["unavailableAdapters"] if entry["adapterId"] == "nothing"]
    assert "manifest cannot be read" in told[0]["reason"]
    await app.close()


async def test_without_programs_it_starts_and_names_the_command_for_each(tmp_path: Path) -> None:
    app = App(settings(tmp_path), over_stdio=True)
    calculix = [entry for entry in app.list_meta()["unavailableAdapters"] if entry["adapterId"] == "calculix"]
    assert "calculix-ccx" in calculix[0]["install"]
    await app.close()


@pytest.mark.parametrize("workspace", ["/", "{tmp}", "{tmp}/home"])
def test_a_workspace_that_scripts_should_not_read_is_refused_at_start(tmp_path: Path, workspace: str) -> None:
    chosen = workspace.replace("{tmp}", str(tmp_path))
    with pytest.raises(BadSetting, match="is refused"):
        App(settings(tmp_path, METAFORGE_WORKSPACE=chosen), over_stdio=True)


async def test_a_folder_that_is_no_workspace_is_replaced_and_told_over_stdio(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = App(Settings.load({"METAFORGE_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}), over_stdio=True)
    assert app.workspace == tmp_path / "home" / "workspace"
    assert "is no workspace" in app.workspace_note
    await app.close()


async def test_adapters_are_chosen_by_name_and_switch(tmp_path: Path) -> None:
    app = App(
        settings(tmp_path, METAFORGE_ADAPTERS="cadquery,cadqery", METAFORGE_ADAPTER_CADQUERY_ENABLED="false"),
        over_stdio=True,
    )
    assert {tool.adapter_id for tool in app.listed_tools()} & {"cadquery", "calculix"} == set()
    assert "there is no adapter cadqery; there are: cadquery, calculix" in str(app.list_meta())
    await app.close()

"""A server with a profile: what it lists, what it says is missing, and what it does not run."""

from pathlib import Path
from typing import Any

import pytest

from metaforge.app import App
from metaforge.mcp.listing import Listing
from metaforge.mcp.service import ClientInfo
from metaforge.registry.profiles import PROFILES, OutsideProfile, UnknownProfile
from metaforge.settings import Settings
from metaforge.tools.context import Caller, Trust


def settings(tmp_path: Path, **also: str) -> Settings:
    (tmp_path / "work").mkdir(exist_ok=True)
    given = {
        "METAFORGE_HOME": str(tmp_path / "home"),
        "METAFORGE_WORKSPACE": str(tmp_path / "work"),
        "PATH": "/nowhere",
    }
    return Settings.load(given | also)


def caller(profile: str) -> Caller:
    return Caller("local", Trust.LOCAL, profile=profile)


def test_an_unknown_profile_stops_the_server_with_the_list(tmp_path: Path) -> None:
    with pytest.raises(UnknownProfile, match="core, mechanical, simulation, electronics, robotics"):
        App(settings(tmp_path, METAFORGE_PROFILE="mechanica"), over_stdio=True)
    assert not (tmp_path / "home").exists()


async def test_a_profile_lists_its_tools_in_the_order_of_the_whole_list(tmp_path: Path) -> None:
    app = App(settings(tmp_path), over_stdio=True)
    whole = [tool.id for tool in app.listed_tools()]
    for name, profile in PROFILES.items():
        listed = [tool.id for tool in app.listed_tools(name)]
        assert listed == [tool_id for tool_id in whole if tool_id in profile.tools]
    assert app.listed_tools("core")
    await app.close()


async def test_nothing_is_said_to_be_missing_when_every_adapter_is_loaded(tmp_path: Path) -> None:
    app = App(settings(tmp_path), over_stdio=True)
    for name in PROFILES:
        assert "profile" not in app.list_meta(name)
    assert app.list_meta("core") == {}
    await app.close()


async def test_tools_whose_adapter_is_not_loaded_are_missing(tmp_path: Path) -> None:
    app = App(settings(tmp_path, METAFORGE_ADAPTERS="calculix,freecad,cadquery,knowledge"), over_stdio=True)
    assert app.list_meta("simulation")["profile"] == {"name": "simulation", "missing": ["spice.run_simulation"]}
    assert "profile" not in app.list_meta()
    await app.close()


async def test_only_unavailable_tools_of_the_profile_are_told(tmp_path: Path) -> None:
    app = App(settings(tmp_path), over_stdio=True)
    told = app.list_meta("electronics")["unavailableAdapters"]
    tools = {tool for entry in told for tool in entry["tools"]}
    assert "kicad.run_drc" in tools
    assert tools <= PROFILES["electronics"].tools
    assert "calculix" in {entry["adapterId"] for entry in app.list_meta()["unavailableAdapters"]}
    await app.close()


async def test_an_adapter_that_cannot_be_loaded_is_told_in_every_profile(tmp_path: Path) -> None:
    app = App(settings(tmp_path, METAFORGE_ADAPTERS="cadqery"), over_stdio=True)
    assert "there is no adapter cadqery" in str(app.list_meta("core")["unavailableAdapters"])
    await app.close()


async def test_a_call_outside_the_profile_is_not_run_whatever_its_separators(tmp_path: Path) -> None:
    app = App(settings(tmp_path), over_stdio=True)
    for name in ("project.delete", "project_delete"):
        with pytest.raises(OutsideProfile, match=r"project\.delete was not run: it is not in the profile core"):
            await app.call_tool(name, {"id": "x"}, call_id="1", caller=caller("core"))
    outcome = await app.call_tool("project.list", {}, call_id="2", caller=caller("core"))
    assert outcome.data["total"] == 0
    await app.close()


async def test_a_slip_in_a_name_is_answered_with_names_of_the_profile_alone(tmp_path: Path) -> None:
    app = App(settings(tmp_path), over_stdio=True)
    suggested: dict[str, Any] = {}
    for profile in ("", "core"):
        with pytest.raises(Exception, match="Tool not found") as fault:
            await app.call_tool("project.dellete", {}, call_id="1", caller=caller(profile))
        suggested[profile] = fault.value.data  # type: ignore[attr-defined]
    assert "project.delete" in suggested[""]["did_you_mean"]
    assert set(suggested["core"]["did_you_mean"]) <= PROFILES["core"].tools
    assert suggested["core"]["tool_count"] == len(PROFILES["core"].tools)
    await app.close()


async def test_health_says_which_profile_is_served(tmp_path: Path) -> None:
    app = App(settings(tmp_path, METAFORGE_PROFILE="core"), over_stdio=True)
    report = await app.health(ClientInfo())
    assert report["profile"]["active"] == "core"
    assert report["profile"]["served_tool_count"] == len(app.listed_tools("core"))
    assert report["profile"]["available"] == list(PROFILES)
    asked = await app.health(ClientInfo(profile="robotics"))
    assert asked["profile"]["active"] == "robotics"
    await app.close()


async def test_health_says_nothing_of_profiles_where_there_is_none(tmp_path: Path) -> None:
    app = App(settings(tmp_path), over_stdio=True)
    assert "profile" not in await app.health(ClientInfo())
    await app.close()


async def test_adapters_outside_the_profile_are_not_started_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = App(settings(tmp_path, METAFORGE_PROFILE="electronics"), over_stdio=True)
    started: list[str] = []
    for source in app.registry.sources():
        monkeypatch.setattr(source, "prestart", lambda name=source.manifest.adapter_id: started.append(name))
    app.client_ready()
    assert {"kicad", "spice", "twin"} <= set(started)
    assert set(started) & {"calculix", "freecad"} == set()
    await app.close()


async def test_each_profile_has_a_list_of_its_own_that_is_encoded_once(tmp_path: Path) -> None:
    app = App(settings(tmp_path), over_stdio=True)
    listing = Listing(app)
    core, whole = listing.handshake("core"), listing.handshake()
    assert listing.handshake("core") is core
    assert listing.handshake() is whole
    assert listing.handshake("electronics") is not core
    assert len(listing.legacy(None, "core")["tools"]) == len(app.listed_tools("core"))
    await app.close()

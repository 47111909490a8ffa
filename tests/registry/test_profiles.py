"""Profiles: few tools each, all of them there, and an unknown name says which names there are."""

from pathlib import Path

import orjson
import pytest

from metaforge import adapters
from metaforge.adapters import CATALOG, OPTIONAL
from metaforge.core.codes import Code
from metaforge.registry.profiles import (
    MOST_TOOLS_COUNT,
    PROFILES,
    OutsideProfile,
    UnknownProfile,
    choose_profile,
    find_profile,
    profiles_with,
    refuse_outside,
)

NAMES = ["core", "mechanical", "simulation", "electronics", "robotics"]
FOLDER = Path(adapters.__file__).parent


def shipped() -> list[str]:
    manifests = [
        orjson.loads((FOLDER / each / "manifest.json").read_bytes()) for each in CATALOG if each not in OPTIONAL
    ]
    return [tool["tool_id"] for manifest in manifests for tool in manifest["tools"]]


def test_the_documented_profiles_are_there():
    assert list(PROFILES) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_profile_holds_twenty_to_forty_tools_each_named_once(name):
    told = PROFILES[name].ordered
    assert 20 <= len(told) <= MOST_TOOLS_COUNT
    assert len(set(told)) == len(told)


@pytest.mark.parametrize("name", NAMES)
def test_every_tool_that_a_profile_names_ships(name):
    assert PROFILES[name].tools - set(shipped()) == set()


def test_a_part_can_be_drawn_exported_committed_and_loaded_within_one_profile():
    way = ["open_session", "create_body", "create_sketch", "pad_sketch", "fillet", "measure", "export_model"]
    needed = {f"freecad.{step}" for step in way} | {"twin.commit_geometry", "calculix.run_fea", "twin.record_evidence"}
    assert needed <= PROFILES["mechanical"].tools


def test_a_board_can_be_checked_made_and_its_circuit_simulated_within_one_profile():
    way = ["run_erc", "run_drc", "export_bom", "export_netlist", "get_pin_mapping", "export_gerber"]
    assert {f"kicad.{step}" for step in way} | {"spice.run_simulation"} <= PROFILES["electronics"].tools


def test_an_unknown_name_comes_with_every_name_and_the_nearest():
    with pytest.raises(UnknownProfile) as refused:
        find_profile("mechanica")

    assert "there are: core, mechanical, simulation, electronics, robotics. Did you mean: mechanical" in str(
        refused.value
    )
    assert refused.value.data == {"code": "unknown_profile", "profile": "mechanica", "available": NAMES}
    assert refused.value.code == Code.INVALID_PARAMS


def test_a_name_like_none_of_them_is_not_guessed_at():
    with pytest.raises(UnknownProfile) as refused:
        find_profile("zzz")
    assert "Did you mean" not in str(refused.value)


@pytest.mark.parametrize(
    ("asked", "served", "chosen"),
    [("", "", ""), ("", "core", "core"), ("robotics", "", "robotics"), ("core", "core", "core")],
)
def test_a_connection_gets_what_it_asks_for_or_what_the_server_was_started_with(asked, served, chosen):
    assert choose_profile(asked, served) == chosen


def test_a_connection_cannot_widen_what_the_server_was_started_with():
    with pytest.raises(UnknownProfile, match="started with the profile core and serves no other") as refused:
        choose_profile("simulation", "core")
    assert refused.value.data["available"] == ["core"]


def test_a_connection_that_asks_for_an_unknown_profile_is_told_all_of_them():
    with pytest.raises(UnknownProfile) as refused:
        choose_profile("nope", "core")
    assert refused.value.data["available"] == NAMES


def test_a_tool_outside_the_profile_is_refused_with_where_it_is_served():
    refuse_outside("calculix.run_fea", "simulation")
    with pytest.raises(OutsideProfile) as refused:
        refuse_outside("calculix.run_fea", "electronics")

    assert "it is in: mechanical, simulation" in refused.value.message
    assert "--profile mechanical or without a profile" in refused.value.message
    assert refused.value.data["profiles"] == profiles_with("calculix.run_fea") == ["mechanical", "simulation"]
    assert refused.value.code == Code.TOOL_UNAVAILABLE


def test_a_tool_of_no_profile_is_refused_with_how_to_have_every_tool():
    with pytest.raises(OutsideProfile, match=r"no profile holds it\. To have it, a person starts the server without a"):
        refuse_outside("openscad.render", "core")

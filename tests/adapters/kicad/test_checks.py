"""ERC and DRC: what blocks and where, what was really used, and nothing taken for clean that was not checked."""

import json
from typing import Any

import pytest

pytestmark = pytest.mark.program("kicad-cli")


def kinds(data: dict[str, Any]) -> set[str]:
    return {each["type"] for each in data["violations"]}


async def test_a_schematic_is_judged_with_places_in_mm_and_what_to_do(kicad: Any, draw: Any) -> None:
    kicad.write("d.kicad_sch", draw.schematic(draw.part(10, "CHIP", "U1", "CHIP", 101.6, 101.6)))
    answer = await kicad.call("run_erc", schematic_file="d.kicad_sch")
    data = answer["data"]
    assert (data["passed"], data["sheets_count"], data["rules"].get("project_file")) == (False, 1, None)
    (power,) = [each for each in data["violations"] if each["type"] == "power_pin_not_driven"]
    assert power["blocking"] is True
    assert power["items"][0]["position_mm"] == [93.98, 101.6]
    assert "PWR_FLAG" in power["fix"]
    loose = [each["items"][0]["position_mm"] for each in data["violations"] if each["type"] == "pin_not_connected"]
    assert sorted(loose) == [[93.98, 101.6], [109.22, 101.6]]
    assert answer["summary"].startswith("ERC blocks: 3 errors in d.kicad_sch")
    assert answer["programs"].keys() == {"KiCad"}


async def test_a_clean_schematic_passes_and_says_by_which_rules(kicad: Any, draw: Any) -> None:
    kicad.write("d.kicad_sch", draw.divider())
    answer = await kicad.call("run_erc", schematic_file="d.kicad_sch", severity_filter="error")
    assert answer["data"]["passed"] is True
    assert answer["data"]["errors"] == 0
    assert answer["data"]["violations"] == []
    assert "KiCad's default rules" in answer["summary"]


async def test_what_the_project_accepts_or_ignores_is_told_apart(kicad: Any, draw: Any) -> None:
    kicad.write("d.kicad_sch", draw.schematic(draw.part(10, "CHIP", "U1", "CHIP", 101.6, 101.6)))
    zero = "00000000-0000-0000-0000-000000000000"
    accepted = f"pin_not_connected|1092200|1016000|{draw.uid(12)}|{zero}|/{draw.ROOT}|/{draw.ROOT}|"
    project = {
        "erc": {
            "erc_exclusions": [[accepted, "left open on purpose"]],
            "rule_severities": {"lib_symbol_issues": "ignore"},
        },
        "meta": {"filename": "d.kicad_pro", "version": 3},
    }
    kicad.write("d.kicad_pro", json.dumps(project))
    data = await kicad.data("run_erc", schematic_file="d.kicad_sch")
    assert data["excluded"] == 1
    assert data["by_type"]["pin_not_connected"] == 1
    (waived,) = [each for each in data["violations"] if each.get("excluded")]
    assert (waived["excluded"], waived["blocking"]) == ("left open on purpose", False)
    assert data["rules"]["project_file"] == "d.kicad_pro"
    assert data["rules"]["ignored_checks"] == ["lib_symbol_issues"]
    assert "lib_symbol_issues" not in data["by_type"]


SHEET_FAULTS = {
    "missing": ("absent.kicad_sch", None, "missing_sheet", "does not exist"),
    "long": ("n" * 300, None, "missing_sheet", "does not exist"),
    "itself": ("d.kicad_sch", None, "sheet_inside_itself", "inside itself"),
    "broken": ("sub.kicad_sch", "(kicad_sch (version 20250114)", "bad_schematic", "sub.kicad_sch cannot be loaded"),
    "another kind": ("sub.kicad_sch", "(kicad_pcb (version 1))", "bad_schematic", "holds a kicad_pcb"),
    "empty": ("sub.kicad_sch", "", "bad_schematic", "holds no list"),
    "newer": ("sub.kicad_sch", "(kicad_sch (version 20991231))", "newer_format", "newer KiCad"),
    "old": ("sub.kicad_sch", "EESchema Schematic File Version 4\n", "old_format", "KiCad 5 or older"),
    "outside": ("../../etc/passwd", None, "path_outside_workspace", "outside the workspace"),
    "nameless": ("", None, "missing_sheet", "names no file"),
}


@pytest.mark.parametrize("fault", SHEET_FAULTS)
@pytest.mark.parametrize("tool", ["run_erc", "export_netlist", "export_bom", "get_pin_mapping", "render"])
async def test_a_sheet_that_kicad_would_take_for_empty_is_an_error(
    kicad: Any, draw: Any, fault: str, tool: str
) -> None:
    file, text, kind, words = SHEET_FAULTS[fault]
    if text is not None:
        kicad.write(file, text)
    kicad.write("d.kicad_sch", draw.divider(draw.sheet(90, "Sub", file)))
    argument = "input_file" if tool == "render" else "schematic_file"
    refusal = await kicad.refused(tool, **{argument: "d.kicad_sch"})
    assert refusal.data["kind"] == kind
    assert words in refusal.message
    assert refusal.data["fix"]


async def test_sheets_that_contain_each_other_are_an_error(kicad: Any, draw: Any) -> None:
    kicad.write("a.kicad_sch", draw.divider(draw.sheet(90, "B", "b.kicad_sch")))
    kicad.write("b.kicad_sch", draw.divider(draw.sheet(91, "A", "a.kicad_sch")))
    refusal = await kicad.refused("run_erc", schematic_file="a.kicad_sch")
    assert "a.kicad_sch > b.kicad_sch > a.kicad_sch" in refusal.message


async def test_a_sheet_used_twice_counts_twice(kicad: Any, draw: Any) -> None:
    kicad.write("sub.kicad_sch", draw.divider())
    both = (draw.sheet(90, "One", "sub.kicad_sch"), draw.sheet(91, "Two", "sub.kicad_sch"))
    kicad.write("d.kicad_sch", draw.schematic(*both))
    assert (await kicad.data("run_erc", schematic_file="d.kicad_sch"))["sheets_count"] == 3


@pytest.mark.parametrize(("tool", "file"), [("run_erc", "d.kicad_sch"), ("run_drc", "d.kicad_pcb")])
async def test_a_project_that_cannot_be_read_is_an_error(kicad: Any, draw: Any, tool: str, file: str) -> None:
    kicad.write("d.kicad_sch", draw.divider())
    kicad.write("d.kicad_pcb", draw.board(draw.outline()))
    kicad.write("d.kicad_pro", '{"board": ')
    argument = "schematic_file" if tool == "run_erc" else "pcb_file"
    refusal = await kicad.refused(tool, **{argument: file})
    assert refusal.data["kind"] == "bad_project"
    assert "by its own defaults" in refusal.message


async def test_a_board_that_touches_between_two_nets_blocks_even_where_kicad_is_silent(kicad: Any, draw: Any) -> None:
    kicad.write(
        "d.kicad_pcb",
        draw.board(draw.outline(), draw.track(1, (5, 5), (25, 5), 1), draw.track(2, (15, 2), (15, 8), 2)),
    )
    data = await kicad.data("run_drc", pcb_file="d.kicad_pcb")
    assert (data["passed"], data["errors"], data["by_type"]["shorting_items"]) == (False, 1, 1)
    assert data["violations"][0]["items"][0]["position_mm"] == [15, 5]


async def test_a_short_that_kicad_tells_is_told_once(kicad: Any, draw: Any) -> None:
    pads = (
        draw.footprint(100, "R1", 4, 10, [(1, "GND"), (2, "VCC")]),
        draw.footprint(200, "R2", 20, 10, [(1, "GND"), (2, "VCC")]),
    )
    kicad.write("d.kicad_pcb", draw.board(draw.outline(), *pads, draw.track(1, (4, 10), (9, 10), 1)))
    data = await kicad.data("run_drc", pcb_file="d.kicad_pcb")
    about = [each for each in data["violations"] if each["type"] in ("shorting_items", "clearance", "tracks_crossing")]
    assert len(about) == 1
    assert data["unconnected_items"] >= 1


async def test_clearance_is_told_with_required_and_actual(kicad: Any, draw: Any) -> None:
    kicad.write(
        "d.kicad_pcb",
        draw.board(draw.outline(), draw.track(1, (5, 5), (25, 5), 1), draw.track(2, (5, 5.35), (25, 5.35), 2)),
    )
    data = await kicad.data("run_drc", pcb_file="d.kicad_pcb", severity_filter="error")
    (clearance,) = data["violations"]
    assert "clearance 0.2000 mm; actual 0.1000 mm" in clearance["description"]
    assert data["warnings"] == 2


async def test_limits_of_the_project_are_really_used_and_told(kicad: Any, draw: Any) -> None:
    kicad.write(
        "d.kicad_pcb",
        draw.board(draw.outline(), draw.track(1, (5, 5), (25, 5), 1), draw.track(2, (5, 6), (25, 6), 2)),
    )
    assert (await kicad.data("run_drc", pcb_file="d.kicad_pcb"))["errors"] == 0
    rules = {"board": {"design_settings": {"rules": {"min_clearance": 1.0}}}, "meta": {"version": 3}}
    kicad.write("d.kicad_pro", json.dumps(rules))
    data = await kicad.data("run_drc", pcb_file="d.kicad_pcb")
    assert data["by_type"]["clearance"] == 1
    assert data["rules"]["limits_mm"] == {"clearance": 1.0}


CUSTOM = '(version 1)\n(rule "wide" (constraint track_width (min 0.5mm)) (condition "A.NetName == \'GND\'"))\n'


async def test_a_boards_own_rules_are_used_and_proven(kicad: Any, draw: Any) -> None:
    kicad.write("d.kicad_pcb", draw.board(draw.outline(), draw.track(1, (5, 5), (25, 5), 1)))
    kicad.write("d.kicad_dru", CUSTOM)
    answer = await kicad.call("run_drc", pcb_file="d.kicad_pcb")
    rules = answer["data"]["rules"]
    assert (rules["custom_rules_file"], rules["custom_rules_count"], rules["custom_rules_loaded"]) == (
        "d.kicad_dru", 1, True,
    )  # fmt: skip
    assert answer["data"]["by_type"]["track_width"] == 1
    assert "and 1 of d.kicad_dru" in answer["summary"]
    assert not any("metaforge" in each["description"] for each in answer["data"]["violations"])


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (CUSTOM + "(rule", "cannot be read"),
        (CUSTOM + '(rule "x" (constraint nonsense (min 1mm)))', "does not understand"),
        (CUSTOM + '(rule "x" (constraint clearance (min 1furlong)))', "does not understand"),
        (CUSTOM + '(nonsense "x")', "does not understand"),
    ],
)
async def test_rules_that_kicad_passes_over_are_an_error(kicad: Any, draw: Any, rules: str, words: str) -> None:
    kicad.write("d.kicad_pcb", draw.board(draw.outline(), draw.track(1, (5, 5), (25, 5), 1)))
    kicad.write("mine.kicad_dru", rules)
    refusal = await kicad.refused("run_drc", pcb_file="d.kicad_pcb", rule_set="mine.kicad_dru")
    assert refusal.data["kind"] == "bad_rules"
    assert words in refusal.message


async def test_a_rule_whose_condition_kicad_cannot_evaluate_is_a_warning(kicad: Any, draw: Any) -> None:
    kicad.write("d.kicad_pcb", draw.board(draw.outline(), draw.track(1, (5, 5), (25, 5), 1)))
    kicad.write("d.kicad_dru", CUSTOM.replace("== 'GND'\"", "= 'GND'\""))
    answer = await kicad.call("run_drc", pcb_file="d.kicad_pcb")
    assert any("rule 'wide'" in each and "cannot evaluate it" in each for each in answer["warnings"])
    assert "track_width" not in answer["data"]["by_type"]


async def test_libraries_of_the_project_are_found_by_its_own_table(kicad: Any, draw: Any) -> None:
    library = draw.symbol("R", "R", *draw.RESISTOR_PINS).replace('"test:R"', '"R"')
    kicad.write("libs/test.kicad_sym", f'(kicad_symbol_lib (version 20241209) (generator "test") {library})\n')
    table = '(sym_lib_table (version 7) (lib (name "test")(type "KiCad")(uri "${KIPRJMOD}/../libs/test.kicad_sym")))'
    kicad.write("boards/sym-lib-table", table)
    kicad.write("boards/d.kicad_sch", draw.divider())
    kicad.write("boards/d.kicad_pro", '{"meta": {"filename": "d.kicad_pro", "version": 3}}')
    data = await kicad.data("run_erc", schematic_file="boards/d.kicad_sch")
    assert not any("does not include the symbol library" in each["description"] for each in data["violations"])


async def test_parity_is_tested_with_a_schematic_and_told_untested_without(kicad: Any, draw: Any) -> None:
    pads = draw.footprint(100, "R1", 4, 10, [(1, "GND"), (2, "VCC")])
    kicad.write("d.kicad_pcb", draw.board(draw.outline(), pads))
    alone = await kicad.call("run_drc", pcb_file="d.kicad_pcb")
    assert alone["data"]["schematic_parity"].startswith("there is no d.kicad_sch")
    assert "parity not tested" in alone["summary"]
    kicad.write("d.kicad_sch", draw.divider())
    data = await kicad.data("run_drc", pcb_file="d.kicad_pcb")
    assert (data["schematic_parity"], data["by_type"]["missing_footprint"]) == ("tested", 2)
    kicad.write("d.kicad_sch", draw.divider(draw.sheet(90, "Sub", "absent.kicad_sch")))
    broken = await kicad.data("run_drc", pcb_file="d.kicad_pcb")
    assert "does not exist" in broken["schematic_parity"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds no list"),
        ("solid part\nendsolid", "it begins with 'solid part endsolid'"),
        ("(kicad_sch (version 1))", "holds a kicad_sch"),
        ("(kicad_pcb (version 20991231))", "newer KiCad"),
        ('(kicad_pcb (version 20241229)\n (net 1 "GND', "line 2, offset 9"),
    ],
)
async def test_a_board_that_cannot_be_loaded_is_an_error_with_its_place(kicad: Any, text: str, words: str) -> None:
    kicad.write("d.kicad_pcb", text)
    assert words in (await kicad.refused("run_drc", pcb_file="d.kicad_pcb")).message


async def test_unfilled_zones_are_told(kicad: Any, draw: Any) -> None:
    zone = (
        f'(zone (net 1) (net_name "GND") (layer "F.Cu") (uuid "{draw.uid(700)}") (hatch edge 0.5) '
        "(connect_pads (clearance 0.5)) (min_thickness 0.25) (fill (thermal_gap 0.5) (thermal_bridge_width 0.5)) "
        "(polygon (pts (xy 2 2) (xy 28 2) (xy 28 18) (xy 2 18))))"
    )
    kicad.write("d.kicad_pcb", draw.board(draw.outline(), zone))
    answer = await kicad.call("run_drc", pcb_file="d.kicad_pcb")
    assert any("1 of 1 copper zones have no filled copper (GND)" in each for each in answer["warnings"])


async def test_a_long_list_is_cut_and_says_so(kicad: Any, draw: Any) -> None:
    loose = [draw.track(n, (2, 2 + n), (20, 2 + n), 1) for n in range(1, 12)]
    kicad.write("d.kicad_pcb", draw.board(draw.outline(), *loose))
    answer = await kicad.call("run_drc", pcb_file="d.kicad_pcb", max_violations=3)
    assert len(answer["data"]["violations"]) == 3
    found = answer["data"]["warnings"] + answer["data"]["errors"]
    assert found > 3
    assert any(f"3 of {found} findings are listed" in each for each in answer["warnings"])

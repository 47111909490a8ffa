"""The shared cases that concern schematics and boards: other people's designs, and one fault each."""

from pathlib import Path
from typing import Any

import pytest

from metaforge.formats.kicad_netlist import read_netlist

pytestmark = [pytest.mark.cases, pytest.mark.program("kicad-cli")]


def published(data: dict[str, Any]) -> int:
    """Count violations as KiCad's own regression tests do: libraries and slivers left out."""
    return sum(
        number
        for kind, number in data["by_type"].items()
        if not kind.startswith("lib_footprint") and kind != "copper_sliver"
    )


@pytest.mark.parametrize(
    ("issue", "violations"),
    [("issue2528", 1), ("issue5750", 4), ("issue6443", 0), ("issue6945", 2), ("issue7241", 1), ("issue8003", 2)],
)
async def test_boards_with_a_published_count(kicad_cases: Any, verdict: Any, issue: str, violations: int) -> None:
    case = f"kicad-s-drc-{issue}"
    data = await kicad_cases.data("run_drc", pcb_file=f"{case}/{issue}.kicad_pcb")
    verdict.equal(case, "violations", published(data), violations)
    if issue == "issue6945":
        verdict.equal(case, "its own rules loaded", data["rules"]["custom_rules_loaded"], True)


@pytest.mark.parametrize(("name", "nets"), [("bus_junctions", 3), ("complex_hierarchy", 52), ("prefix_bus_alias", 10)])
async def test_netlists_with_a_golden_file(
    kicad_cases: Any, cases_dir: Path, verdict: Any, name: str, nets: int
) -> None:
    case = f"kicad-s-netlist-{name}"
    data = await kicad_cases.data("export_netlist", schematic_file=f"{case}/{name}.kicad_sch")
    ours = read_netlist(kicad_cases.written(data["output_file"])).pin_groups()
    golden = read_netlist((cases_dir / case / f"{name}.net").read_text()).pin_groups()
    verdict.equal(case, "nets", data["total_nets"], nets)
    verdict.holds(case, "pin groups equal to golden", golden <= ours, "all", f"{len(golden & ours)} of {len(golden)}")


async def test_s20_valve_amplifier(kicad_cases: Any, verdict: Any) -> None:
    case = "kicad-s20-ecc83"
    schematic, board = f"{case}/ecc83-pp.kicad_sch", f"{case}/ecc83-pp.kicad_pcb"
    erc = await kicad_cases.data("run_erc", schematic_file=schematic)
    verdict.equal(case, "ERC errors/warnings", f"{erc['errors']}/{erc['warnings']}", "0/0")
    drc = await kicad_cases.data("run_drc", pcb_file=board)
    verdict.equal(case, "DRC violations", drc["total_violations"], 2)
    verdict.equal(case, "of kind silk_edge_clearance", drc["by_type"]["silk_edge_clearance"], 2)
    netlist = await kicad_cases.data("export_netlist", schematic_file=schematic)
    verdict.equal(case, "components in netlist", netlist["total_components"], 15)
    verdict.equal(case, "nets", netlist["total_nets"], 13)
    lines = [
        (await kicad_cases.data("export_bom", schematic_file=schematic, group_by=group))["unique_parts"]
        for group in ("reference", "value_footprint")
    ]
    verdict.equal(case, "BOM lines ungrouped/grouped", f"{lines[0]}/{lines[1]}", "11/10")
    made = await kicad_cases.data("export_gerber", pcb_file=board)
    verdict.equal(case, "Gerber + drill + job files", made["total_files"], 22)


async def test_s21_pic_programmer_and_user_s06_the_parity_trap(kicad_cases: Any, verdict: Any) -> None:
    case = "kicad-s21-pic-programmer"
    schematic, board = f"{case}/pic_programmer.kicad_sch", f"{case}/pic_programmer.kicad_pcb"
    erc = await kicad_cases.data("run_erc", schematic_file=schematic)
    verdict.equal(case, "ERC errors/warnings", f"{erc['errors']}/{erc['warnings']}", "0/1")
    drc = await kicad_cases.data("run_drc", pcb_file=board)
    verdict.equal(case, "DRC violations/unconnected", f"{drc['total_violations']}/{drc['unconnected_items']}", "1/0")
    verdict.equal(case, "schematic parity issues", drc["parity_issues"], 61)
    trap = "user-s06-drc-parity-trap"
    verdict.equal(trap, "parity with a schematic", f"{drc['schematic_parity']} {drc['parity_issues']}", "tested 61")
    alone = await kicad_cases.call("run_drc", pcb_file="small/p04_ok.kicad_pcb")
    verdict.told(trap, "parity without one", alone["data"]["schematic_parity"], "there is no p04_ok.kicad_sch")
    verdict.told(trap, "warning", alone["warnings"], "schematic parity was not tested")
    netlist = await kicad_cases.data("export_netlist", schematic_file=schematic)
    bom = await kicad_cases.data("export_bom", schematic_file=schematic, group_by="reference")
    verdict.equal(case, "components/BOM rows", f"{netlist['total_components']}/{bom['unique_parts']}", "63/56")


async def test_s22_custom_pads(kicad_cases: Any, verdict: Any) -> None:
    case = "kicad-s22-custom-pads"
    drc = await kicad_cases.data("run_drc", pcb_file=f"{case}/custom_pads_test.kicad_pcb")
    parity_warnings = drc["by_type"].get("footprint_symbol_mismatch", 0)
    verdict.equal(case, "DRC errors/warnings", f"{drc['errors']}/{drc['warnings'] - parity_warnings}", "3/1")
    verdict.equal(case, "of kind clearance", drc["by_type"]["clearance"], 3)
    netlist = await kicad_cases.data("export_netlist", schematic_file=f"{case}/custom_pads_test.kicad_sch")
    verdict.equal(case, "nets", netlist["total_nets"], 3)


@pytest.mark.program("ngspice")
async def test_s23_filter_simulates_from_its_schematic(kicad_cases: Any, verdict: Any, simulate: Any) -> None:
    case = "kicad-s23-sallen-key"
    schematic = f"{case}/sallen_key.kicad_sch"
    erc = await kicad_cases.data("run_erc", schematic_file=schematic)
    verdict.equal(case, "ERC errors/warnings", f"{erc['errors']}/{erc['warnings']}", "0/7")
    netlist = await kicad_cases.data("export_netlist", schematic_file=schematic, output_format="spice")
    verdict.equal(case, "components", netlist["total_components"], 8)
    data = await simulate(kicad_cases, netlist["output_file"], [case], analysis_type="ac")
    # Two equal RC stages at Q = 0.5: half power at sqrt(sqrt(2) - 1) / (2 pi R C).
    corner_hz = (2**0.5 - 1) ** 0.5 / (2 * 3.14159265358979 * 1e3 * 100e-9)
    verdict.near(case, "corner of its SPICE netlist, closed form", data["measurements"]["v(/lowpass)"]["corner_hz"],
                 corner_hz, rel=0.005)  # fmt: skip


async def test_small_short(kicad_cases: Any, verdict: Any) -> None:
    case = "small/p01_short"
    data = await kicad_cases.data("run_drc", pcb_file=f"{case}.kicad_pcb")
    verdict.equal(case, "blocking errors", data["errors"], 1)
    verdict.equal(case, "where they touch, mm", data["violations"][0]["items"][0]["position_mm"], [15.0, 5.0])
    verdict.told(case, "nets", data["violations"][0]["description"], "VCC and GND touch|GND and VCC touch")


async def test_small_clearance(kicad_cases: Any, verdict: Any) -> None:
    case = "small/p02_clearance_0p1"
    data = await kicad_cases.data("run_drc", pcb_file=f"{case}.kicad_pcb")
    verdict.equal(case, "errors", data["errors"], 1)
    verdict.told(case, "required and actual", data["violations"][0]["description"], r"0\.2000 mm; actual 0\.1000 mm")


async def test_small_good_board(kicad_cases: Any, verdict: Any) -> None:
    case = "small/p04_ok"
    data = await kicad_cases.data("run_drc", pcb_file=f"{case}.kicad_pcb")
    verdict.equal(case, "errors/warnings/passed", f"{data['errors']}/{data['warnings']}/{data['passed']}", "0/2/True")


async def test_small_truncated_board(kicad_cases: Any, verdict: Any) -> None:
    case = "small/p06_truncated"
    fault = await kicad_cases.refused("run_drc", pcb_file=f"{case}.kicad_pcb")
    verdict.refused(case, fault.message, r"p06_truncated\.kicad_pcb.*line 14, offset 44")


async def test_small_power_pin(kicad_cases: Any, verdict: Any) -> None:
    case = "small/e01_power_pin_not_driven"
    data = await kicad_cases.data("run_erc", schematic_file=f"{case}.kicad_sch")
    told = {each["type"]: each for each in data["violations"]}
    power, open_pin = told["power_pin_not_driven"], told["pin_not_connected"]
    verdict.told(case, "power_pin_not_driven", power["items"][0]["what"], "U1 Pin 1")
    verdict.told(case, "hint", power["fix"], "PWR_FLAG")
    verdict.equal(case, "its place, mm", power["items"][0]["position_mm"], [92.38, 100.0])
    verdict.told(case, "pin_not_connected", open_pin["items"][0]["what"], "U1 Pin 2")


async def test_hostile_encoding_of_a_schematic(kicad_cases: Any, verdict: Any) -> None:
    case = "hostile-s06-encodings"
    answer = await kicad_cases.call("run_erc", schematic_file=f"{case}/h10_latin1.kicad_sch")
    verdict.told(case, "Latin-1 schematic, warning", answer.get("warnings", []), "is not UTF-8")
    verdict.equal(case, "Latin-1 schematic, violations", answer["data"]["total_violations"], 0)


async def test_nothing_is_written_beside_the_cases(kicad_cases: Any, cases_dir: Path) -> None:
    before = listing(cases_dir)
    await kicad_cases.data("run_drc", pcb_file="kicad-s22-custom-pads/custom_pads_test.kicad_pcb")
    await kicad_cases.data("run_erc", schematic_file="kicad-s22-custom-pads/custom_pads_test.kicad_sch")
    assert listing(cases_dir) == before


def listing(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))

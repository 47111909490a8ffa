"""What is made from a schematic or a board: the right parts, nets and files, the same bytes for the same design."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.program("kicad-cli")


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_parts_are_grouped_as_asked(kicad: Any, draw: Any) -> None:
    kicad.write("d.kicad_sch", draw.divider())
    data = await kicad.data("export_bom", schematic_file="d.kicad_sch")
    assert (data["total_components"], data["unique_parts"]) == (3, 2)
    assert [(line["references"], line["value"], line["quantity"]) for line in data["lines"]] == [
        (["R1", "R2"], "10k", 2),
        (["R3"], "100k", 1),
    ]
    assert kicad.written(data["output_file"]).splitlines()[1] == '"R1, R2",10k,,2,'
    alone = await kicad.data("export_bom", schematic_file="d.kicad_sch", group_by="reference", output_path="all.csv")
    assert alone["unique_parts"] == 3


async def test_a_bom_has_the_fields_asked_for_and_marks_what_is_not_fitted(kicad: Any, draw: Any) -> None:
    more = '(property "MPN" "ERJ-1" (at 0 0 0))'
    first = draw.part(10, "R", "R1", "1k", 50.8, 50.8, more)
    second = draw.part(20, "R", "R2", "1k", 76.2, 50.8).replace("(dnp no)", "(dnp yes)")
    kicad.write("d.kicad_sch", draw.schematic(first, second))
    data = await kicad.data("export_bom", schematic_file="d.kicad_sch", group_by="reference", fields=["MPN"],
                            output_format="json")  # fmt: skip
    assert [(line["fields"]["MPN"], line["dnp"]) for line in data["lines"]] == [("ERJ-1", False), ("", True)]
    assert data["dnp_count"] == 1
    assert json.loads(kicad.written(data["output_file"]))["lines"][0]["fields"] == {"MPN": "ERJ-1"}
    fitted = await kicad.data("export_bom", schematic_file="d.kicad_sch", exclude_dnp=True, output_path="fitted")
    assert (fitted["total_components"], fitted["output_file"]) == (1, "fitted.csv")


async def test_the_xml_is_kicads_own(kicad: Any, draw: Any) -> None:
    kicad.write("sub/d.kicad_sch", draw.divider())
    data = await kicad.data("export_bom", schematic_file="sub/d.kicad_sch", output_format="xml")
    text = kicad.written(data["output_file"])
    assert text.count("<comp ref=") == 3
    assert "<source>sub/d.kicad_sch</source>" in text


async def test_a_netlist_tells_parts_and_nets(kicad: Any, draw: Any) -> None:
    kicad.write("d.kicad_sch", draw.divider())
    answer = await kicad.call("export_netlist", schematic_file="d.kicad_sch")
    assert (answer["data"]["total_components"], answer["data"]["total_nets"]) == (3, 3)
    assert answer["data"]["output_file"] == "kicad/d.net"
    assert '(source "d.kicad_sch")' in kicad.written("kicad/d.net")


@pytest.mark.parametrize("output_format", ["kicad", "spice", "cadstar"])
async def test_the_same_schematic_gives_the_same_netlist(kicad: Any, draw: Any, output_format: str) -> None:
    kicad.write("d.kicad_sch", draw.divider())
    await kicad.call("export_netlist", schematic_file="d.kicad_sch", output_format=output_format)
    first = tree(kicad.output)
    assert not any(re.search(rb"20\d\d-\d\d-\d\d", content) for content in first.values())
    await kicad.call("export_netlist", schematic_file="d.kicad_sch", output_format=output_format)
    assert tree(kicad.output) == first


async def test_a_name_of_our_own_choice_never_meets_another_netlist(kicad: Any, draw: Any) -> None:
    kicad.write("d.kicad_sch", draw.divider())
    kicad.write("kicad/d.net", "an older one")
    data = await kicad.data("export_netlist", schematic_file="d.kicad_sch")
    assert re.fullmatch(r"kicad/d-[0-9a-f]{8}\.net", data["output_file"])


SOURCE = (
    '(property "Sim.Device" "V" (at 0 0 0)) (property "Sim.Type" "DC" (at 0 0 0)) '
    '(property "Sim.Params" "dc=10" (at 0 0 0)) (property "Sim.Pins" "1=+ 2=-" (at 0 0 0))'
)


@pytest.mark.program("ngspice")
async def test_a_spice_netlist_simulates_by_its_path(kicad: Any, draw: Any, simulate: Any) -> None:
    source = draw.part(50, "R", "V1", "10", 76.2, 66.04, SOURCE)
    wires = (
        draw.wire(60, 88.9, 58.42, 76.2, 58.42), draw.wire(61, 76.2, 58.42, 76.2, 62.23),
        draw.wire(62, 88.9, 73.66, 76.2, 73.66), draw.wire(63, 76.2, 69.85, 76.2, 73.66),
    )  # fmt: skip
    text = draw.text(70, ".include models/extra.lib\\n.control\\nshell touch PWNED\\n.endc", 20, 20)
    kicad.write("models/extra.lib", "* nothing\n")
    kicad.write("d.kicad_sch", draw.divider(source, *wires, text, upper="3k", lower="1k"))
    answer = await kicad.call("export_netlist", schematic_file="d.kicad_sch", output_format="spice")
    assert answer["data"]["includes"] == ["models/extra.lib"]
    assert any(".control" in each for each in answer["warnings"])
    netlist = kicad.written(answer["data"]["output_file"])
    assert "PWNED" not in netlist
    assert '"../models/extra.lib"' in netlist
    data = await simulate(kicad, answer["data"]["output_file"], ["models"], analysis_type="op")
    assert data["results"]["v(/out)"]["final"] == pytest.approx(2.5, rel=1e-6)


async def test_parts_without_a_model_are_named_and_only_connectors_left_open(kicad: Any, draw: Any) -> None:
    parts = (draw.part(10, "CHIP", "U1", "X", 50.8, 50.8), draw.part(20, "CHIP", "J1", "Y", 101.6, 50.8))
    kicad.write("d.kicad_sch", draw.schematic(*parts))
    answer = await kicad.call("export_netlist", schematic_file="d.kicad_sch", output_format="spice")
    assert sorted(answer["data"]["without_model"]) == ["J1", "U1"]
    assert any("without a SPICE model: U1." in each for each in answer["warnings"])
    netlist = kicad.written(answer["data"]["output_file"])
    assert "* J1 has no SPICE model: left open" in netlist
    assert re.search(r"^U1 ", netlist, re.MULTILINE)


async def test_every_pin_tells_its_net(kicad: Any, draw: Any) -> None:
    kicad.write("d.kicad_sch", draw.divider(draw.part(80, "CHIP", "U1", "CHIP", 150.0, 101.6)))
    data = await kicad.data("get_pin_mapping", schematic_file="d.kicad_sch")
    assert (data["total_components"], data["total_pins"], data["unconnected_pins"]) == (4, 8, 2)
    pins = {part["reference"]: {pin["pin"]: pin.get("net") for pin in part["pins"]} for part in data["components"]}
    assert pins == {
        "R1": {"1": "/IN", "2": "/OUT"}, "R2": {"1": "/OUT", "2": "GND"}, "R3": {"1": "/IN", "2": "GND"},
        "U1": {"1": None, "2": None},
    }  # fmt: skip
    only = await kicad.data("get_pin_mapping", schematic_file="d.kicad_sch", component_filter="u*")
    (chip,) = only["components"]
    assert [(pin["name"], pin["type"]) for pin in chip["pins"]] == [("VCC", "power_in"), ("OUT", "output")]
    refusal = await kicad.refused("get_pin_mapping", schematic_file="d.kicad_sch", component_filter="Q*")
    assert "R1, R2, R3, U1" in refusal.data["fix"]


async def test_fabrication_files_are_whole_and_the_same_each_time(kicad: Any, draw: Any) -> None:
    pads = draw.footprint(100, "R1", 4, 10, [(1, "GND"), (2, "VCC")])
    kicad.write("d.kicad_pcb", draw.board(draw.outline(), pads, draw.via(300, 20, 10, 1), draw.via(310, 25, 10, 1)))
    answer = await kicad.call("export_gerber", pcb_file="d.kicad_pcb", positions=True, step=True)
    data = answer["data"]
    assert (data["output_dir"], data["holes_count"], data["placed_count"]) == ("kicad/d-fabrication", 2, 1)
    assert data["size_mm"] == [30, 20]
    assert {"F_Cu", "B_Cu", "Edge_Cuts"} <= set(data["layers_exported"])
    assert data["step_file"] == "kicad/d-fabrication/d.step"
    assert {"d-F_Cu.gtl", "d-Edge_Cuts.gm1", "d-job.gbrjob", "d.drl", "d-positions.csv"} <= set(data["files_generated"])
    assert len(answer["files"]) == data["total_files"] == len(data["files_generated"])
    first = tree(kicad.output)
    assert not any(re.search(rb"20\d\d-\d\d-\d\d", content) for content in first.values())
    await kicad.call("export_gerber", pcb_file="d.kicad_pcb", positions=True, step=True)
    assert tree(kicad.output) == first


async def test_only_the_layers_asked_for_are_plotted(kicad: Any, draw: Any) -> None:
    kicad.write("d.kicad_pcb", draw.board(draw.outline(), draw.track(1, (5, 5), (25, 5), 1)))
    data = await kicad.data("export_gerber", pcb_file="d.kicad_pcb", layers=["F.Cu", "Edge.Cuts"], drill=False,
                            output_dir="fab")  # fmt: skip
    assert data["files_generated"] == ["d-Edge_Cuts.gm1", "d-F_Cu.gtl", "d-job.gbrjob"]
    refusal = await kicad_refusal(kicad, "export_gerber", pcb_file="d.kicad_pcb", layers=["Top"])
    assert "F.Cu" in refusal.message


async def kicad_refusal(kicad: Any, tool: str, **arguments: Any) -> Any:
    for path in sorted(kicad.output.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    return await kicad.refused(tool, **arguments)


async def test_a_board_without_an_outline_is_not_made(kicad: Any, draw: Any) -> None:
    kicad.write("d.kicad_pcb", draw.board(draw.track(1, (5, 5), (25, 5), 1)))
    assert (await kicad.refused("export_gerber", pcb_file="d.kicad_pcb")).data["kind"] == "no_outline"


async def test_pictures_show_the_board_the_solid_and_the_sheet(kicad: Any, draw: Any) -> None:
    pytest.importorskip("pypdfium2")
    kicad.write("d.kicad_sch", draw.divider())
    kicad.write("d.kicad_pcb", draw.board(draw.outline(), draw.track(1, (5, 5), (25, 5), 1)))
    for arguments in (
        {"input_file": "d.kicad_pcb", "marks_mm": [[5, 5]]},
        {"input_file": "d.kicad_pcb", "view": "top"},
        {"input_file": "d.kicad_sch"},
    ):
        answer = await kicad.call("render", **arguments)
        png = (kicad.output / answer["data"]["picture_file"]).read_bytes()
        assert png.startswith(b"\x89PNG")
        assert 600 <= int.from_bytes(png[16:20], "big") <= 1280
        assert answer["pictures"][0]["caption"]
    shown = (await kicad.data("render", input_file="d.kicad_pcb", output_path="a.png"))["shown_mm"]
    assert shown[0] <= 0.1
    assert shown[2] == pytest.approx(34, abs=1)


async def test_marks_are_where_they_belong(kicad: Any, draw: Any) -> None:
    pytest.importorskip("pypdfium2")
    from PIL import Image

    kicad.write("d.kicad_pcb", draw.board(draw.outline(), draw.track(1, (5, 5), (25, 5), 1)))
    data = await kicad.data("render", input_file="d.kicad_pcb", marks_mm=[[15, 12]])
    left, top, right, _ = data["shown_mm"]
    image = Image.open(kicad.output / data["picture_file"])
    per_mm = image.width / (right - left)
    x, y = (15 - left) * per_mm, (12 - top) * per_mm
    ring = [image.getpixel((round(x + 20.5), round(y))), image.getpixel((round(x), round(y - 20.5)))]
    assert all(red > 180 and green < 80 for red, green, _ in ring)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"input_file": "d.txt"}, "input_file"),
        ({"input_file": "d.kicad_pcb", "marks_mm": [[1]]}, "marks_mm"),
    ],
)
async def test_what_cannot_be_drawn_is_refused(kicad: Any, draw: Any, arguments: Any, field: str) -> None:
    pytest.importorskip("pypdfium2")
    kicad.write("d.txt", "text")
    kicad.write("d.kicad_pcb", draw.board(draw.outline()))
    assert field in (await kicad.refused("render", **arguments)).data["fields"]

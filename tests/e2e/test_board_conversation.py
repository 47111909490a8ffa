"""“Check this board”: from verdicts to fabrication files, over the official Python client and in the closed box."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from conversations import ERAS, conversation, links, words
from house import House
from mcp_types import ImageContent

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "adapters" / "kicad"))
import drawings as draw

sys.path.pop(0)

pytestmark = [pytest.mark.program("kicad-cli"), pytest.mark.program("pypdfium2")]


@pytest.fixture
def bench(tmp_path: Path) -> House:
    """A server with KiCad, and a project: a board with a short, its schematic, rules and libraries of its own."""
    house = House(tmp_path, adapters="kicad,spice")
    project = house.workspace / "amp"
    library = draw.symbol("R", "R", *draw.RESISTOR_PINS).replace('"test:R"', '"R"')
    parts = (
        draw.footprint(100, "R1", 4, 10, [(1, "GND"), (2, "VCC")]),
        draw.footprint(200, "R2", 20, 10, [(2, "VCC"), (1, "GND")]),
    )
    files = {
        "amp.kicad_sch": draw.divider(),
        "amp.kicad_pcb": draw.board(
            draw.outline(), *parts, draw.track(1, (12, 4), (18, 4), 1), draw.track(2, (15, 2), (15, 6), 2)
        ),
        "amp.kicad_pro": json.dumps({"board": {"design_settings": {"rules": {"min_clearance": 0.2}}}, "meta": {}}),
        "amp.kicad_dru": '(version 1)\n(rule "wide" (constraint track_width (min 0.2mm)))\n',
        "sym-lib-table": '(sym_lib_table (version 7) (lib (name "test")(type "KiCad")'
        '(uri "${KIPRJMOD}/test.kicad_sym")(options "")(descr "")))',
        "test.kicad_sym": f'(kicad_symbol_lib (version 20241209) (generator "test") {library})\n',
    }
    project.mkdir()
    for name, text in files.items():
        (project / name).write_text(text)
    return house


@pytest.mark.parametrize("era", list(ERAS))
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_check_this_board(bench: House, era: str, transport: str) -> None:
    async with conversation(bench, era, transport) as client:
        schemas = {
            tool.name: jsonschema_rs.Draft202012Validator(tool.output_schema)
            for tool in (await client.list_tools()).tools
            if tool.name.startswith("kicad.")
        }

        async def ask(tool: str, **arguments: Any) -> Any:
            result = await client.call_tool(f"kicad.{tool}", arguments)
            assert not result.is_error, words(result)
            schemas[f"kicad.{tool}"].validate(result.structured_content)
            return result

        # The schematic is sound, and its own library was found: the box does not hide the project's table.
        erc = (await ask("run_erc", schematic_file="amp/amp.kicad_sch")).structured_content
        assert (erc["passed"], erc["total_violations"]) == (True, 0)

        # The board is not: a short that KiCad itself is silent about, by rules whose use is proven.
        checked = await ask("run_drc", pcb_file="amp/amp.kicad_pcb")
        drc = checked.structured_content
        assert "DRC blocks" in words(checked)
        assert len(words(checked)) < 480, "the first text is to stay below 120 tokens"
        assert drc["passed"] is False
        assert (drc["rules"]["custom_rules_loaded"], drc["rules"]["project_file"]) == (True, "amp/amp.kicad_pro")
        short = next(each for each in drc["violations"] if each["type"] == "shorting_items")
        assert short["items"][0]["position_mm"] == [15, 4]
        assert short["blocking"] is True
        assert drc["schematic_parity"] == "tested"
        assert drc["unconnected_items"] >= 2

        # The next step names the call that shows it.
        assert "kicad.render" in drc["next_step"]
        shown = await ask("render", input_file="amp/amp.kicad_pcb", marks_mm=[short["items"][0]["position_mm"]])
        (picture,) = [block for block in shown.content if isinstance(block, ImageContent)]
        assert _has_a_red_ring(picture.data)

        parts = (await ask("export_bom", schematic_file="amp/amp.kicad_sch")).structured_content
        assert (parts["total_components"], parts["unique_parts"]) == (3, 2)
        pins = (await ask("get_pin_mapping", schematic_file="amp/amp.kicad_sch")).structured_content
        assert (pins["total_pins"], pins["unconnected_pins"]) == (6, 0)
        netlist = await ask("export_netlist", schematic_file="amp/amp.kicad_sch")
        assert links(netlist)
        made = await ask("export_gerber", pcb_file="amp/amp.kicad_pcb", output_dir="amp/fab")
        assert made.structured_content["total_files"] == len(links(made))
        assert (bench.workspace / "amp/fab/amp-F_Cu.gtl").read_text().endswith("M02*\n")
        # The same again is the same: nothing to replace, nobody to ask.
        await ask("export_gerber", pcb_file="amp/amp.kicad_pcb", output_dir="amp/fab")
    beside = {path.name for path in (bench.workspace / "amp").iterdir() if path.is_file()}
    assert beside == {
        "amp.kicad_sch",
        "amp.kicad_pcb",
        "amp.kicad_pro",
        "amp.kicad_dru",
        "sym-lib-table",
        "test.kicad_sym",
    }


def _has_a_red_ring(data: str) -> bool:
    import base64

    from PIL import Image

    picture = Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")
    colours = picture.getcolors(maxcolors=1 << 24) or []
    return any(count > 100 and red > 200 and green < 60 and blue < 90 for count, (red, green, blue) in colours)


@pytest.mark.program("ngspice")
async def test_a_schematic_is_drawn_checked_and_simulated(bench: House) -> None:
    parts = [{"reference": name, "value": value} for name, value in (("R1", "10k"), ("C1", "15.9155n"))]
    source = {
        "reference": "V1", "value": "1", "symbol": "Simulation_SPICE:VDC",
        "fields": {"Sim.Params": "dc=0 ac=1"},
    }  # fmt: skip
    nets = {"in": ["V1.1", "R1.1"], "out": ["R1.2", "C1.1"], "GND": ["V1.2", "C1.2"]}
    async with conversation(bench, "stateless", "stdio") as client:

        async def ask(tool: str, **arguments: Any) -> Any:
            result = await client.call_tool(tool, arguments)
            assert not result.is_error, words(result)
            return result.structured_content

        drawn = await ask("kicad.generate_schematic", components=[*parts, source], nets=nets,
                          output_path="rc/rc.kicad_sch")  # fmt: skip
        assert (drawn["passed"], drawn["total_nets"]) == (True, 3)
        netlist = await ask("kicad.export_netlist", schematic_file="rc/rc.kicad_sch", output_format="spice")
        assert netlist.get("without_model") is None
        sweep = {"fstart": 10, "fstop": "1meg", "points": 50}
        found = await ask("spice.run_simulation", netlist_path=netlist["output_file"], analysis_type="ac",
                          params=sweep, probes=["/out"])  # fmt: skip
        assert found["measurements"]["v(/out)"]["corner_hz"] == pytest.approx(1000.0, rel=0.005)


@pytest.mark.parametrize(
    ("name", "text", "words_of_it"),
    [
        ("loop.kicad_sch", draw.divider(draw.sheet(90, "Loop", "loop.kicad_sch")), "inside itself"),
        ("out.kicad_sch", draw.divider(draw.sheet(90, "Out", "../../../etc/passwd")), "outside the workspace"),
        ("deep.kicad_sch", "(" * 100_000, "nested more than"),
    ],
)
async def test_hostile_files_are_refused_and_the_server_works_on(
    bench: House, name: str, text: str, words_of_it: str
) -> None:
    (bench.workspace / name).write_text(text)
    async with conversation(bench, "stateless", "stdio") as client:
        refused = await client.call_tool("kicad.run_erc", {"schematic_file": name})
        assert refused.is_error
        assert words_of_it in words(refused)
        assert "root:" not in words(refused)
        good = await client.call_tool("kicad.run_erc", {"schematic_file": "amp/amp.kicad_sch"})
        assert not good.is_error

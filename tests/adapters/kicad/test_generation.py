"""Schematics drawn from parts and nets: KiCad reads back what was asked for, and ERC has nothing against it."""

import itertools
import random
from typing import Any

import pytest

from metaforge.adapters.kicad.placing import Placed, place
from metaforge.adapters.kicad.symbols import box
from metaforge.adapters.kicad.wiring import ends_of, wire
from metaforge.formats.kicad_netlist import read_netlist
from metaforge.formats.kicad_symbol import Symbol

BLINKER: dict[str, Any] = {
    "components": [
        {"reference": "U1", "value": "NE555", "symbol": "Timer:NE555P"},
        {"reference": "R1", "value": "10k"},
        {"reference": "R2", "value": "47k"},
        {"reference": "R3", "value": "330"},
        {"reference": "C1", "value": "10u"},
        {"reference": "C2", "value": "10n"},
        {"reference": "D1", "value": "red", "symbol": "Device:LED", "fields": {"MPN": "LED-1"}},
        {"reference": "J1", "value": "5 V"},
    ],
    "nets": {
        "VCC": ["U1.VCC", "U1.4", "R1.1", "J1.1"],
        "GND": ["U1.GND", "C1.2", "C2.2", "D1.K", "J1.2"],
        "DIS": ["U1.7", "R1.2", "R2.1"],
        "THR": ["U1.2", "U1.6", "R2.2", "C1.1"],
        "CV": ["U1.5", "C2.1"],
        "OUT": ["U1.3", "R3.1"],
        "LED": ["R3.2", "D1.A"],
    },
}


@pytest.mark.program("kicad-cli")
async def test_a_parts_list_becomes_a_schematic_that_passes(kicad: Any) -> None:
    answer = await kicad.call("generate_schematic", **BLINKER, title="Blinker", output_path="blinker.kicad_sch")
    data = answer["data"]
    assert (data["output_file"], data["passed"], data["errors"], data["warnings"]) == ("blinker.kicad_sch", True, 0, 0)
    assert (data["total_components"], data["total_nets"]) == (8, 7)
    assert sorted(data["power_flags"]) == ["GND", "VCC"]
    assert (data["own_symbols"], data["unconnected_pins"]) == ([], [])
    assert any("told as supplied" in each for each in answer["warnings"])
    (kicad.workspace / "blinker.kicad_sch").write_text(kicad.written("blinker.kicad_sch"))
    pins = await kicad.data("get_pin_mapping", schematic_file="blinker.kicad_sch", component_filter="D1")
    assert {pin["name"]: pin["net"] for pin in pins["components"][0]["pins"]} == {"A": "/LED", "K": "GND"}
    bom = await kicad.data("export_bom", schematic_file="blinker.kicad_sch", fields=["MPN"])
    assert any(line["fields"] == {"MPN": "LED-1"} for line in bom["lines"])


@pytest.mark.program("kicad-cli")
async def test_the_same_parts_give_the_same_file(kicad: Any) -> None:
    await kicad.call("generate_schematic", **BLINKER)
    first = kicad.written("kicad/schematic.kicad_sch")
    await kicad.call("generate_schematic", **BLINKER)
    assert kicad.written("kicad/schematic.kicad_sch") == first


@pytest.mark.program("kicad-cli")
async def test_a_netlist_goes_there_and_back(kicad: Any, draw: Any) -> None:
    kicad.write("d.kicad_sch", draw.divider(draw.part(80, "CHIP", "U1", "CHIP", 150.0, 101.6)))
    exported = await kicad.data("export_netlist", schematic_file="d.kicad_sch")
    kicad.write("d.net", kicad.written(exported["output_file"]))
    answer = await kicad.call("generate_schematic", netlist_path="d.net", output_path="back.kicad_sch")
    assert answer["data"]["own_symbols"] == ["U1"]
    kicad.write("back.kicad_sch", kicad.written("back.kicad_sch"))
    again = await kicad.data("export_netlist", schematic_file="back.kicad_sch")
    before, after = (read_netlist(kicad.written(each["output_file"])) for each in (exported, again))
    assert after.pin_groups() == before.pin_groups()
    assert {part.reference: part.value for part in after.components} == {
        part.reference: part.value for part in before.components
    }


@pytest.mark.program("kicad-cli")
async def test_a_library_of_the_workspace_is_used(kicad: Any, draw: Any) -> None:
    library = draw.symbol("CHIP", "U", *draw.CHIP_PINS).replace('"test:CHIP"', '"CHIP"')
    kicad.write("libs/mine.kicad_sym", f'(kicad_symbol_lib (version 20241209) (generator "test") {library})\n')
    parts = [{"reference": "U1", "symbol": "mine:CHIP"}, {"reference": "R1", "value": "1k"}]
    nets = {"VCC": ["U1.VCC", "R1.1"], "OUT": ["U1.OUT", "R1.2"]}
    data = await kicad.data("generate_schematic", components=parts, nets=nets, symbol_files=["libs/mine.kicad_sym"])
    assert (data["passed"], data["own_symbols"]) == (True, [])


@pytest.mark.program("kicad-cli")
async def test_all_units_of_a_part_are_drawn_and_loose_pins_marked(kicad: Any) -> None:
    parts = [{"reference": "U1", "symbol": "Amplifier_Operational:LM358"}, {"reference": "J1"}]
    nets = {"VCC": ["U1.8", "J1.1"], "GND": ["U1.4", "J1.2"], "IN": ["U1.3", "J1.3"], "OUT": ["U1.1", "U1.2", "J1.4"]}
    answer = await kicad.call("generate_schematic", components=parts, nets=nets)
    assert answer["data"]["passed"] is True
    assert sorted(answer["data"]["unconnected_pins"]) == ["U1.5", "U1.6", "U1.7"]
    assert kicad.written(answer["data"]["output_file"]).count('(lib_id "Amplifier_Operational:LM358")') == 3


@pytest.mark.program("kicad-cli")
@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"nets": {"A": ["U1.99"]}}, "nets.A", "U1 has no pin '99'; it has 1 (GND)"),
        ({"nets": {"A": ["U7.1"]}}, "nets.A", "is no pin of a part"),
        ({"nets": {"A": ["R1.1"], "B": ["R1.1"]}}, "nets.B", "is on A already"),
        ({"components": []}, "components", "1 to 400 parts"),
        ({"components": [{"reference": "R1"}, {"reference": "R1"}]}, "components", "given twice"),
        ({"components": [{"reference": "resistor"}]}, "components", "letters and a number"),
        ({"components": None}, "components", "netlist_path"),
    ],
)
async def test_a_circuit_that_contradicts_itself_is_refused(
    kicad: Any, change: dict[str, Any], field: str, words: str
) -> None:
    arguments = {name: value for name, value in (BLINKER | change).items() if value is not None}
    refusal = await kicad.refused("generate_schematic", **arguments)
    assert field in refusal.data["fields"]
    assert words in refusal.message


@pytest.mark.program("kicad-cli")
async def test_an_unknown_symbol_names_its_neighbours(kicad: Any) -> None:
    parts = [{"reference": "U1", "symbol": "Timer:NE55"}]
    refusal = await kicad.refused("generate_schematic", components=parts, nets={})
    assert refusal.data["kind"] == "no_such_symbol"
    assert "NE55" in refusal.data["fix"]


def touching(first: Any, second: Any) -> bool:
    """Whether KiCad would connect two wires: an end of one lies on the other."""

    def on(point: Any, segment: Any) -> bool:
        (x1, y1), (x2, y2) = segment
        return min(x1, x2) <= point[0] <= max(x1, x2) and min(y1, y2) <= point[1] <= max(y1, y2)

    return any(on(end, second) for end in first) or any(on(end, first) for end in second)


@pytest.mark.parametrize("seed", range(12))
def test_wires_of_different_nets_never_touch(seed: int) -> None:
    chance = random.Random(seed)
    symbols: dict[str, Symbol] = {
        f"U{n}": box(f"B{n}", [(str(pin), "", "passive") for pin in range(1, chance.randint(2, 16))]) for n in range(14)
    }
    pins = [(reference, pin.number) for reference, symbol in symbols.items() for pin in symbol.pins]
    chance.shuffle(pins)
    nets = {f"N{n}": tuple(itertools.islice(pins, n * 3, n * 3 + chance.randint(2, 3))) for n in range(len(pins) // 3)}
    placed, _ = place(symbols, nets, frozenset())
    wiring = wire(placed, nets, frozenset())
    owner = _owners(placed, nets, wiring.wires, wiring.names)
    for one, other in itertools.combinations(range(len(wiring.wires)), 2):
        if owner[one] != owner[other]:
            assert not touching(wiring.wires[one], wiring.wires[other])
    for _, place_of_open in wiring.open:
        assert not any(touching((place_of_open, place_of_open), each) for each in wiring.wires)


def _owners(placed: list[Placed], nets: Any, wires: Any, names: Any) -> list[str]:
    """Return the net of each wire: that of its pin or name, or of a wire that shares an end with it."""
    ends = {end.at: pin for pin, (end, _) in ends_of(placed).items()}
    net_of = {pin: name for name, pins in nets.items() for pin in pins}
    named = {at: net_of[pin] for at, pin in ends.items() if pin in net_of} | {at: name for name, at, _ in names}
    found = [next((named[end] for end in each if end in named), "") for each in wires]
    while "" in found:
        index = found.index("")
        known = next(
            found[n]
            for n, each in enumerate(wires)
            if (found[n] and set(each) & set(wires[index])) or (found[n] and touching(each, wires[index]))
        )
        found[index] = known
    return found


@pytest.mark.parametrize("seed", range(6))
def test_parts_never_overlap(seed: int) -> None:
    chance = random.Random(seed)
    symbols = {
        f"U{n}": box(f"B{n}", [(str(pin), "", "passive") for pin in range(1, chance.randint(2, 30))]) for n in range(20)
    }
    placed, (_, width, height) = place(symbols, {}, frozenset())
    for one, other in itertools.combinations([each.extents() for each in placed], 2):
        apart = one[2] < other[0] or other[2] < one[0] or one[3] < other[1] or other[3] < one[1]
        assert apart
    assert all(left > 0 and right < width and top > 0 and bottom < height for left, top, right, bottom in
               (each.extents() for each in placed))  # fmt: skip

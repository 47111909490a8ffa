"""What SPICE reads otherwise than its author, or cannot solve: told before a number is believed."""

from typing import Any

import pytest

pytestmark = pytest.mark.program("ngspice")


async def warnings_of(spice: Any, analysis: str, netlist: str, **arguments: Any) -> list[str]:
    found: list[str] = (await spice.call(analysis, netlist, **arguments)).get("warnings", [])
    return found


async def test_an_element_in_the_first_line_is_told_and_leads_the_summary(spice: Any) -> None:
    answer = await spice.call("op", "V1 in 0 DC 5\nR1 in out 1k\nR2 out 0 1k\n.op\n.end\n")
    assert "The first line `V1 in 0 DC 5` was taken as the title" in answer["warnings"][0]
    assert answer["summary"].startswith("2 warnings, read them first")
    with_title = await spice.call("op", "divider\nV1 in 0 DC 5\nR1 in out 1k\nR2 out 0 1k\n.op\n.end\n")
    assert with_title["data"]["results"]["v(out)"]["final"] == pytest.approx(2.5)
    assert "warnings" not in with_title


@pytest.mark.parametrize(
    "first", [".param r=1k", ".include models.lib", ".model d1 d", "R9 in 0 {r}", "X1 in out half"]
)
async def test_other_lines_that_do_not_belong_in_the_title_are_told_too(spice: Any, first: str) -> None:
    netlist = f"{first}\nV1 in 0 5\nR1 in out 1k\nR2 out 0 1k\n.subckt half a b\nR1 a b 1\n.ends\n.end\n"
    assert any(f"The first line `{first}` was taken" in warning for warning in await warnings_of(spice, "op", netlist))


@pytest.mark.parametrize(
    "title",
    [
        "RC low pass 1 kHz", "divider with M vs MEG", "Class A amplifier 1 W", "Voltage in 0 to 5 V", ".title of KiCad",
        "* V1 in 0 5", "", "R in out", "Power supply 5 V 1 A", "Input to out at 1k",
    ],
)  # fmt: skip
async def test_a_title_that_is_one_is_left_alone(spice: Any, title: str) -> None:
    netlist = f"{title}\nV1 in 0 5\nR1 in out 1k\nR2 out 0 1k\n.end\n"
    assert await warnings_of(spice, "op", netlist) == []


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("1M", "1M = 1 milliohm; write 1MEG"),
        ("2.2Mohm", "2.2Mohm = 2.2 milliohm; write 2.2MEG"),
        ("4k7", "4k7 = 4000 ohm; write 4.7k"),
        ("2R2", "2R2 = 2 ohm; write 2.2"),
        ("1,5k", "SPICE has no decimal comma and reads 5k; write 1.5k"),
    ],
)
async def test_numbers_that_spice_reads_otherwise_are_told(spice: Any, value: str, told: str) -> None:
    found = await warnings_of(spice, "op", f"numbers\nV1 a 0 1\nR1 a 0 {value}\n.end\n")
    assert any(told in warning and "line 3: R1 a 0" in warning for warning in found), found


async def test_a_farad_is_not_an_f(spice: Any) -> None:
    netlist = "farad\nV1 a 0 1\nR1 a b 1k\nC1 b 0 1F\n.end\n"
    assert any("1F = 1 femtofarad; write 1" in warning for warning in await warnings_of(spice, "op", netlist))


@pytest.mark.parametrize(
    "value", ["1MEG", "1Meg", "1meg", "1m", "4.7k", "1e6", "10u", "100Kohm", "1kOhm", "{r}", "1mil"]
)
async def test_numbers_that_are_read_as_meant_are_left_alone(spice: Any, value: str) -> None:
    assert await warnings_of(spice, "op", f"numbers\n.param r=1k\nV1 a 0 1\nR1 a 0 {value}\n.end\n") == []


async def test_an_analysis_card_of_its_own_is_looked_at_too(spice: Any) -> None:
    netlist = "card\nV1 a 0 AC 1\nR1 a b 1k\nC1 b 0 1u\n.tran 1u 1M\n.end\n"
    assert any("1M = 1 milli; write 1MEG" in warning for warning in await warnings_of(spice, "transient", netlist))


async def test_a_circuit_without_ground_is_refused_with_the_node_that_may_be_meant(spice: Any) -> None:
    fault = await spice.refused("op", "no ground\nV1 vcc agnd 5\nR1 vcc agnd 1k\n.end\n")
    assert fault.data["kind"] == "no_ground"
    assert "agnd" in fault.data["fix"]


async def test_gnd_is_ground_in_any_case(spice: Any) -> None:
    data = await spice.data("op", "gnd\nV1 a GND 5\nR1 a Gnd 1k\n.end\n")
    assert data["results"]["i(v1)"]["final"] == pytest.approx(-5e-3)


async def test_a_current_that_can_go_nowhere_is_refused(spice: Any) -> None:
    for netlist, node in (
        ("capacitor\nI1 0 in 1m\nC1 in out 1u\nR2 out 0 2k\n.end\n", "in"),
        ("open\nI1 0 a 1m\nR1 b 0 1k\n.end\n", "a"),
        ("inside\nX1 in half\nC1 in 0 1u\n.subckt half a\nI1 0 a 1m\n.ends\n.end\n", "in"),
    ):
        fault = await spice.refused("op", netlist)
        assert fault.data["kind"] == "no_dc_path"
        assert f"from node {node}" in fault.message
        assert f"from {node} to 0" in fault.data["fix"]


async def test_a_swept_current_source_counts_although_its_own_value_is_zero(spice: Any) -> None:
    netlist = "sweep\nI1 0 in 0\nC1 in 0 1u\n.end\n"
    fault = await spice.refused("dc", netlist, params={"source": "I1", "start": 0, "stop": 1, "step": 0.1})
    assert fault.data["kind"] == "no_dc_path"


async def test_a_capacitor_that_a_current_charges_from_zero_is_simulated_with_a_warning(spice: Any) -> None:
    netlist = "charge\nI1 0 a PULSE(0 1m 0 1n 1n 1 2)\nC1 a 0 1u\n.end\n"
    answer = await spice.call("transient", netlist, params={"stop": "1m"}, probes=["a"])
    assert answer["data"]["results"]["v(a)"]["final"] == pytest.approx(1.0, rel=0.005)
    assert any("Floating: node a has no DC path" in warning for warning in answer["warnings"])


async def test_a_node_between_capacitors_is_told_and_its_response_still_right(spice: Any) -> None:
    netlist = "capacitive divider\nV1 in 0 AC 1\nC1 in out 1u\nC2 out 0 1u\n.end\n"
    answer = await spice.call("ac", netlist, params={"fstart": 1, "fstop": 1000}, at=[100], probes=["out"])
    assert answer["data"]["values_at"][0]["mag_db"] == pytest.approx(-6.0206, abs=1e-3)
    assert any("Floating: node out" in warning for warning in answer["warnings"])


async def test_a_gate_draws_no_current_but_drain_and_bulk_do(spice: Any) -> None:
    netlist = "gate\nVdd d 0 5\nVin in 0 AC 1\nC1 in g 1u\nM1 d g 0 0 n\n.model n nmos\n.end\n"
    found = await warnings_of(spice, "op", netlist)
    assert any("Floating: node g has" in warning for warning in found)


@pytest.mark.parametrize(
    ("elements", "words"),
    [
        ("V1 a 0 5\nV2 a 0 6\n", "V1 - V2; their voltages differ by 1 V"),
        ("V1 a 0 5\nV2 a 0 5\n", "V1 - V2. No current is defined"),
        ("V1 a b 1\nV2 b c 2\nV3 c a -3\nR2 c 0 1\n", "loop: V"),
        ("V1 a 0 5\nE1 a 0 c 0 2\nR2 c 0 1\n", "loop"),
        ("V1 a 0 5\nL1 a 0 1m\n", "DC voltage of 5 V drives the loop V1 - L1"),
        ("V1 a a 5\n", "short-circuited"),
    ],
)
async def test_a_loop_of_voltages_is_refused(spice: Any, elements: str, words: str) -> None:
    fault = await spice.refused("op", f"loop\n{elements}R1 a 0 1k\n.end\n")
    assert fault.data["kind"] == "voltage_loop"
    assert words in fault.message
    assert "resistor" in fault.data["fix"]


async def test_an_inductor_across_a_source_of_alternating_voltage_alone_is_simulated(spice: Any) -> None:
    netlist = "L\nV1 a 0 DC 0 AC 1\nL1 a 0 1m\n.end\n"
    answer = await spice.call("ac", netlist, params={"fstart": 1, "fstop": 1000}, at=[159.15494], probes=["i(L1)"])
    assert answer["data"]["values_at"][0]["mag_db"] == pytest.approx(0, abs=0.01)
    assert any("Loop of V1 - L1" in warning for warning in answer["warnings"])


async def test_a_misspelled_node_shows_as_one_that_only_one_terminal_touches(spice: Any) -> None:
    netlist = "typo\nV1 in 0 5\nR1 in outt 1k\nR2 out 0 1k\nR3 out 0 1k\n.end\n"
    assert any("connected to node outt" in warning for warning in await warnings_of(spice, "op", netlist))


@pytest.mark.parametrize(
    "elements",
    [
        "B1 out 0 V=v(ctrl)*2\nR2 out 0 1k\n",
        "E1 out 0 value={v(ctrl)*2}\nR2 out 0 1k\n",
        "E1 out 0 vol='2*v(ctrl)'\nR2 out 0 1k\n",
        "E1 out 0 POLY(1) (ctrl,0) 0 2\nR2 out 0 1k\n",
        "E1 out 0 ctrl 0 2\nR2 out 0 1k\n",
        "G1 0 out cur='2m*v(ctrl)'\nR2 out 0 1k\n",
        "X1 ctrl out twice\nR2 out 0 1k\n.subckt twice a b\nB1 b 0 V=2*v(a)\n.ends\n",
        "M1 out ctrl 0 power\nR2 out vdd 1k\nV2 vdd 0 5\n.model power vdmos(vto=5)\n",
        "X1 ring\nR2 ctrl 0 1\n.subckt ring\nR1 in 0 1\nR2 in 0 1\n.ends\n",
    ],
)
async def test_ways_to_control_something_are_all_understood(spice: Any, elements: str) -> None:
    assert await warnings_of(spice, "op", f"control\nV1 ctrl 0 1\n{elements}.end\n") == []


async def test_an_ac_analysis_without_an_ac_source_is_refused(spice: Any) -> None:
    fault = await spice.refused("ac", "silent\nVin in 0 5\nR1 in 0 1k\n.end\n", params={"fstart": 1, "fstop": 1000})
    assert fault.data["kind"] == "no_ac_source"
    assert "AC 1" in fault.data["fix"]
    assert "Vin" in fault.data["where"]


@pytest.mark.parametrize(
    ("line", "kind", "words"),
    [
        ("R1 in", "incomplete_element", "R1 is cut short: 2 words where at least 4 are needed"),
        ("r2 in out 5k", "duplicate_element", "stands twice"),
        ("D1 out 0 1N4148", "missing_model", "model 1N4148 is not defined"),
        ("Q1 in out 0 BC547", "missing_model", "model BC547 is not defined"),
        ("X1 in out 0 LM358", "missing_subcircuit", "subcircuit LM358 is not defined"),
        ("X1 in half", "wrong_port_count", "connects 1 nodes, but half has 2 ports"),
        ("R9 out 0 {value}", "missing_parameter", "value is used but not defined"),
        (".foo bar", "unknown_directive", ".foo is not a directive"),
        (".step param r 1 10 1", "unknown_directive", ".step"),
        (".subckt open a b", "subcircuit_not_closed", "has no .ends"),
    ],
)
async def test_a_damaged_line_is_named(spice: Any, line: str, kind: str, words: str) -> None:
    netlist = f"bad\nV1 in 0 5\nR1a in out 1k\nR2 out 0 1k\n.subckt half a b\nR1 a b 1\n.ends\n{line}\n"
    fault = await spice.refused("op", netlist)
    assert fault.data["kind"] == kind
    assert words in fault.message
    assert line.split()[0].lower() in fault.data["where"].lower() or kind in ("missing_parameter",)
    assert fault.data["fix"]


async def test_the_nearest_model_is_offered(spice: Any) -> None:
    fault = await spice.refused("op", "m\nV1 a 0 5\nR1 a b 1k\nD1 b 0 1N4148\n.model 1N4448 d\n.end\n")
    assert "did you mean 1n4448" in fault.data["fix"]
    assert fault.data["where"] == "line 4: D1 b 0 1N4148"


async def test_a_sine_that_is_sampled_too_coarsely_is_told(spice: Any) -> None:
    netlist = "sine\nV1 in 0 SIN(0 1 1meg)\nR1 in 0 1k\n.end\n"
    found = await warnings_of(spice, "transient", netlist, params={"stop": "1m", "step": "1u"})
    assert any("V1 at 1e+06 Hz gets only 1 time steps per period" in warning for warning in found)
    assert await warnings_of(spice, "transient", netlist, params={"stop": "10u", "max_step": "10n"}) == []


async def test_a_sweep_that_starts_at_the_corner_says_so(spice: Any) -> None:
    netlist = "RC\nV1 in 0 AC 1\nR1 in out 1k\nC1 out 0 159.155n\n.end\n"
    found = await warnings_of(spice, "ac", netlist, params={"fstart": 200, "fstop": 1e6}, probes=["out"])
    assert any("the sweep starts only 5.2 times below the corner" in warning for warning in found), found


async def test_a_pulse_that_leaves_out_its_width_is_one_pulse_in_every_version(spice: Any) -> None:
    netlist = "pulses\nV1 a 0 PULSE(0 1)\nV2 b 0 PULSE(0 1 0 1m 1m 0.2) AC 1\nR1 a 0 1\nR2 b 0 1\n.tran 0.01 1\n.end\n"
    answer = await spice.call("transient", netlist, probes=["a", "b"], at=[0.1, 0.9])
    values = [reading["value"] for reading in answer["data"]["values_at"]]
    assert values == pytest.approx([1, 1, 1, 0], abs=1e-6)
    assert len([warning for warning in answer["warnings"] if "PULSE leaves out" in warning]) == 2


async def test_a_circuit_without_an_operating_point_is_no_success(spice: Any) -> None:
    fault = await spice.refused("op", "none\nB1 out 0 V = v(out)*v(out)+1\n.end\n")
    assert fault.data["kind"] == "no_convergence"
    assert "No operating point" in fault.message
    assert "failed" in fault.data["log"]


async def test_a_transient_that_breaks_off_says_when_where_and_how_it_went(spice: Any) -> None:
    netlist = "blow-up\nC1 x 0 1 IC=1\nB1 0 x I = V(x)*V(x)\n.tran 1m 3 UIC\n.end\n"
    fault = await spice.refused("transient", netlist)
    assert fault.data["kind"] == "timestep_too_small"
    assert "broke off at 0.9996" in fault.message
    assert "node x" in fault.message
    half = fault.data["partial"]["time"].index(min(fault.data["partial"]["time"], key=lambda t: abs(t - 0.5)))
    assert fault.data["partial"]["v(x)"][half] == pytest.approx(1 / (1 - fault.data["partial"]["time"][half]), rel=0.01)


async def test_a_voltage_beyond_reason_is_doubted(spice: Any) -> None:
    found = await warnings_of(spice, "op", "huge\nI1 0 a 1\nR1 a 0 1e9\n.end\n")
    assert any("v(a) reaches 1e+09 V: is that meant?" in warning for warning in found)


async def test_what_ngspice_itself_warns_of_reaches_the_caller(spice: Any) -> None:
    netlist = "ignored\nV1 a 0 5\nR1 a b 1k\nD1 b 0 dd\n.model dd d(is=1e-14 bogus=3)\n.end\n"
    found = await warnings_of(spice, "op", netlist)
    assert any("bogus" in warning for warning in found), found


@pytest.mark.parametrize(("token", "number"), [("8e999999999999k", float("inf")), ("1e-999999999999u", 0.0)])
def test_an_exponent_beyond_all_bounds_is_a_number_like_any_other(token: str, number: float) -> None:
    from metaforge.adapters.spice.values import read_value

    assert read_value(token) == number

"""Circuits whose answers can be written down: every number within 0.5 % of its closed form."""

from math import asin, cos, exp, log, pi, sqrt
from typing import Any

import pytest

pytestmark = pytest.mark.program("ngspice")

WITHIN = 0.005
RC = """RC low pass
V1 in 0 DC 0 AC 1
R1 in out 1k
C1 out 0 159.155n
.end
"""
RLC_STEP = """series RLC, step
V1 in 0 PULSE(0 1 0 1n 1n 1 2)
R1 in a {r}
L1 a out 1m
C1 out 0 100n
.end
"""
BOLTZMANN_J_K = 1.380649e-23
ROOM_K = 300.15


async def test_a_divider_divides(spice: Any) -> None:
    data = await spice.data("op", "divider\nV1 in 0 10\nR1 in out 2k\nR2 out 0 3k\n.end\n")
    assert data["results"]["v(out)"] == {"unit": "V", "final": pytest.approx(6.0, rel=1e-9)}
    assert data["results"]["i(v1)"]["final"] == pytest.approx(-2e-3, rel=1e-9)
    assert data["results"]["v(in)"]["unit"] == "V"
    assert data["convergence"] == "converged"


async def test_a_sweep_is_read_at_its_points_forwards_and_backwards(spice: Any) -> None:
    netlist = "divider\nV1 in 0 1\nR1 in out 1k\nR2 out 0 1k\n.end\n"
    for start, stop, step in ((0, 5, 0.5), (5, 0, -0.5)):
        params = {"source": "V1", "start": start, "stop": stop, "step": step}
        data = await spice.data("dc", netlist, params=params, at=[2.25], probes=["out"])
        assert data["values_at"] == [{"vector": "v(out)", "at": 2.25, "value": pytest.approx(1.125)}]
        assert data["results"]["v(out)"]["max"] == pytest.approx(2.5)


async def test_a_diode_obeys_its_equation(spice: Any) -> None:
    netlist = "diode\nI1 0 a 1m\nD1 a 0 ideal\n.model ideal d(is=1e-14 n=1)\n.end\n"
    voltage_v = (await spice.data("op", netlist))["results"]["v(a)"]["final"]
    thermal_v = BOLTZMANN_J_K * ROOM_K / 1.602176634e-19
    assert voltage_v == pytest.approx(thermal_v * log(1e-3 / 1e-14 + 1), rel=WITHIN)


@pytest.mark.parametrize("points", [10, 20, 100])
async def test_a_low_pass_has_its_corner_at_half_power(spice: Any, points: int) -> None:
    params = {"fstart": 1, "fstop": "1meg", "points": points}
    data = await spice.data("ac", RC, params=params, probes=["out"], at=[1000])
    measured = data["measurements"]["v(out)"]
    assert measured["kind"] == "low-pass"
    assert measured["corner_hz"] == pytest.approx(1000, rel=WITHIN)
    assert data["values_at"][0]["mag_db"] == pytest.approx(-3.0103, abs=2e-3)
    assert data["values_at"][0]["phase_deg"] == pytest.approx(-45, abs=0.02)


async def test_a_high_pass_is_told_from_a_low_pass(spice: Any) -> None:
    netlist = "high pass\nV1 in 0 AC 1\nC1 in out 1u\nR1 out 0 1k\n.end\n"
    data = await spice.data("ac", netlist, params={"fstart": 1, "fstop": "100k"}, probes=["out"])
    measured = data["measurements"]["v(out)"]
    assert measured["kind"] == "high-pass"
    assert measured["corner_hz"] == pytest.approx(1 / (2 * pi * 1e-3), rel=WITHIN)


async def test_a_resonance_has_its_centre_width_and_quality(spice: Any) -> None:
    netlist = "band pass\nV1 in 0 AC 1\nL1 in a 1m\nC1 a out 25.33n\nR1 out 0 20\n.end\n"
    params = {"fstart": "1k", "fstop": "1meg", "points": 100}
    measured = (await spice.data("ac", netlist, params=params, probes=["out"]))["measurements"]["v(out)"]
    centre_hz = 1 / (2 * pi * sqrt(1e-3 * 25.33e-9))
    assert measured["kind"] == "band-pass"
    assert measured["center_hz"] == pytest.approx(centre_hz, rel=WITHIN)
    assert measured["bandwidth_hz"] == pytest.approx(20 / (2 * pi * 1e-3), rel=WITHIN)
    assert measured["quality_factor"] == pytest.approx(sqrt(1e-3 / 25.33e-9) / 20, rel=WITHIN)


async def test_a_twin_t_stops_its_band(spice: Any) -> None:
    netlist = (
        "twin T\nV1 in 0 AC 1\nR1 in a 10k\nR2 a out 10k\nC3 a 0 20n\nC1 in b 10n\nC2 b out 10n\nR3 b 0 5k\n"
        "R4 out 0 1000meg\n.end\n"
    )
    params = {"fstart": 1, "fstop": "1meg", "points": 100}
    measured = (await spice.data("ac", netlist, params=params, probes=["out"]))["measurements"]["v(out)"]
    assert measured["kind"] == "band-stop"
    assert measured["center_hz"] == pytest.approx(1 / (2 * pi * 1e-4), rel=WITHIN)
    assert measured["quality_factor"] == pytest.approx(0.25, rel=WITHIN)


async def test_a_butterworth_of_an_operational_amplifier_has_the_corner_it_was_made_for(spice: Any) -> None:
    netlist = "Sallen-Key\nV1 in 0 AC 1\nR1 in a 1k\nR2 a b 1k\nC1 a out 225.079n\nC2 b 0 112.540n\n"
    netlist += "E1 out 0 b out 1e6\n.end\n"
    params = {"fstart": 10, "fstop": "100k", "points": 30}
    data = await spice.data("ac", netlist, params=params, probes=["out"], at=["10k"])
    assert data["measurements"]["v(out)"]["corner_hz"] == pytest.approx(1000, rel=WITHIN)
    assert data["values_at"][0]["mag_db"] == pytest.approx(-40.0004, abs=0.02)


async def test_gain_falls_through_one_where_an_integrator_says(spice: Any) -> None:
    netlist = "integrator\nV1 in 0 AC 1\nR1 in n 1k\nC1 n out 1u\nE1 out 0 0 n 1e6\n.end\n"
    answer = await spice.call("ac", netlist, params={"fstart": 1, "fstop": "100k"}, probes=["out"])
    measured = answer["data"]["measurements"]["v(out)"]
    assert measured["unity_gain_hz"] == pytest.approx(1 / (2 * pi * 1e-3), rel=WITHIN)
    assert "corner_hz" not in measured
    assert any("widen" in warning for warning in answer["warnings"])


async def test_an_rc_step_rises_and_settles_as_its_time_constant_says(spice: Any) -> None:
    netlist = "RC step\nV1 in 0 PULSE(0 5 0 1n 1n 1 2)\nR1 in out 1k\nC1 out 0 1u\n.end\n"
    data = await spice.data("transient", netlist, params={"stop": "10m"}, at=["1m", "2.5m"], probes=["out"])
    for reading in data["values_at"]:
        assert reading["value"] == pytest.approx(5 * (1 - exp(-reading["at"] / 1e-3)), rel=WITHIN)
    measured = data["measurements"]["v(out)"]
    assert measured["kind"] == "step"
    assert measured["rise_time_seconds"] == pytest.approx(1e-3 * log(9), rel=WITHIN)
    assert measured["settling_time_seconds"] == pytest.approx(1e-3 * log(50), rel=WITHIN)
    assert measured["overshoot_percent"] == 0


@pytest.mark.parametrize("damping", [0.1, 0.3, 0.6])
async def test_an_rlc_step_overshoots_by_its_damping(spice: Any, damping: float) -> None:
    netlist = RLC_STEP.format(r=2 * damping * sqrt(1e-3 / 100e-9))
    data = await spice.data("transient", netlist, params={"stop": "1.5m", "step": "0.1u"}, probes=["out"])
    measured = data["measurements"]["v(out)"]
    assert measured["overshoot_percent"] == pytest.approx(100 * exp(-pi * damping / sqrt(1 - damping**2)), rel=WITHIN)
    assert data["results"]["v(out)"]["final"] == pytest.approx(1, rel=WITHIN)


async def test_settling_of_a_ringing_step_is_the_last_time_it_leaves_the_band(spice: Any) -> None:
    damping, natural_rad_s = 0.1, 1 / sqrt(1e-3 * 100e-9)
    netlist = RLC_STEP.format(r=2 * damping * sqrt(1e-3 / 100e-9))
    data = await spice.data("transient", netlist, params={"stop": "1.5m", "step": "0.1u"}, probes=["out"])
    damped_rad_s = natural_rad_s * sqrt(1 - damping**2)

    def error(t: float) -> float:
        phase = damped_rad_s * t
        decay = exp(-damping * natural_rad_s * t)
        return decay * (cos(phase) + damping / sqrt(1 - damping**2) * (1 - cos(phase) ** 2) ** 0.5 * _sign(phase))

    last = max(t for t in (k * 1e-8 for k in range(150_000)) if abs(error(t)) > 0.02)
    assert data["measurements"]["v(out)"]["settling_time_seconds"] == pytest.approx(last, rel=WITHIN)


def _sign(phase: float) -> float:
    return 1.0 if phase % (2 * pi) < pi else -1.0


async def test_a_step_that_has_not_come_to_rest_is_not_measured_as_one(spice: Any) -> None:
    netlist = "RC step\nV1 in 0 PULSE(0 5 0 1n 1n 1 2)\nR1 in out 1k\nC1 out 0 1u\n.end\n"
    data = await spice.data("transient", netlist, params={"stop": "2m"}, probes=["out"])
    assert data["measurements"]["v(out)"]["kind"] == "waveform"
    assert "settling_time_seconds" not in data["measurements"]["v(out)"]


async def test_a_sine_has_its_mean_rms_and_frequency(spice: Any) -> None:
    netlist = "sine\nV1 in 0 SIN(1 2 1k)\nR1 in 0 1k\n.end\n"
    data = await spice.data("transient", netlist, params={"stop": "5m", "step": "5u"}, probes=["in", "i(R1)"])
    measured = data["measurements"]["v(in)"]
    assert measured["kind"] == "oscillation"
    assert measured["frequency_hz"] == pytest.approx(1000, rel=WITHIN)
    assert measured["mean"] == pytest.approx(1, rel=WITHIN)
    assert measured["rms"] == pytest.approx(sqrt(1 + 2), rel=WITHIN)
    assert measured["peak_to_peak"] == pytest.approx(4, rel=WITHIN)
    assert data["measurements"]["i(r1)"]["rms"] == pytest.approx(1e-3 * sqrt(3), rel=WITHIN)
    assert data["results"]["i(r1)"]["unit"] == "A"


async def test_a_square_wave_has_its_duty(spice: Any) -> None:
    netlist = "square\nV1 in 0 PULSE(0 5 0 10n 10n 0.3m 1m)\nR1 in 0 1k\n.end\n"
    measured = (await spice.data("transient", netlist, params={"stop": "8m"}, probes=["in"]))["measurements"]["v(in)"]
    assert measured["duty_ratio"] == pytest.approx(0.3, rel=WITHIN)
    assert measured["mean"] == pytest.approx(1.5, rel=WITHIN)


async def test_the_ringing_of_a_tank_has_its_damped_frequency(spice: Any) -> None:
    netlist = "tank\nC1 a 0 100n IC=1\nL1 a 0 1m\nR1 a 0 1meg\n.end\n"
    params = {"stop": "0.5m", "step": "0.1u", "uic": True}
    measured = (await spice.data("transient", netlist, params=params, probes=["a"]))["measurements"]["v(a)"]
    assert measured["frequency_hz"] == pytest.approx(1 / (2 * pi * sqrt(1e-3 * 100e-9)), rel=WITHIN)


async def test_a_resistor_makes_its_noise(spice: Any) -> None:
    netlist = "noise\nV1 in 0 AC 1\nR1 in out 1k\nC1 out 0 1n\n.noise v(out) V1 dec 50 1 10g\n.end\n"
    data = await spice.data("noise", netlist, at=[10])
    density = next(r["value"] for r in data["values_at"] if r["vector"] == "onoise_spectrum")
    assert density == pytest.approx(sqrt(4 * BOLTZMANN_J_K * ROOM_K * 1000), rel=WITHIN)
    total_v = data["results"]["onoise_total"]["final"]
    assert total_v == pytest.approx(sqrt(BOLTZMANN_J_K * ROOM_K / 1e-9), rel=WITHIN)


async def test_poles_and_transfer_functions_are_told_with_their_units(spice: Any) -> None:
    poles = await spice.data("pole_zero", "RC\nV1 in 0 AC 1\nR1 in out 1k\nC1 out 0 10p\n.pz in 0 out 0 vol pz\n.end\n")
    assert poles["results"]["pole(1)"] == {"unit": "rad/s", "final": pytest.approx(-1e8, rel=1e-6), "final_imag": 0.0}
    ratio = await spice.data("transfer_function", "d\nV1 in 0 1\nR1 in out 1k\nR2 out 0 1k\n.tf v(out) V1\n.end\n")
    found = {name: result["final"] for name, result in ratio["results"].items()}
    assert found == pytest.approx({"transfer_function": 0.5, "input_impedance": 2000, "output_impedance": 500})


async def test_the_phase_of_a_lossless_line_is_its_delay(spice: Any) -> None:
    netlist = "line\nV1 in 0 AC 1\nR1 in a 50\nT1 a 0 out 0 Z0=50 TD=1u\nR2 out 0 50\n.end\n"
    data = await spice.data("ac", netlist, params={"fstart": "10k", "fstop": "100k", "points": 50}, at=["50k"],
                            probes=["out"])  # fmt: skip
    assert data["values_at"][0]["phase_deg"] == pytest.approx(-360 * 50e3 * 1e-6, rel=WITHIN)
    assert data["values_at"][0]["mag_db"] == pytest.approx(-6.0206, abs=0.01)


async def test_a_rectifier_conducts_above_its_threshold_only(spice: Any) -> None:
    netlist = "rectifier\nV1 in 0 SIN(0 10 50)\nD1 in out ideal\nR1 out 0 1k\n.model ideal d(is=1e-14 n=0.001)\n.end\n"
    params = {"stop": "80m", "step": "20u"}
    measured = (await spice.data("transient", netlist, params=params, probes=["out"]))["measurements"]["v(out)"]
    # A diode with hardly any threshold leaves half a sine: mean A / pi, above half its height 1/2 - asin(1/2)/pi.
    assert measured["mean"] == pytest.approx(10 / pi, rel=WITHIN)
    assert measured["duty_ratio"] == pytest.approx(0.5 - asin(0.5) / pi, rel=0.01)

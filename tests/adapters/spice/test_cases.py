"""The shared cases that concern circuits: other people's netlists with known answers, and one fault each."""

import re
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from metaforge.formats.spice_raw import Plot

pytestmark = [pytest.mark.cases, pytest.mark.program("ngspice")]


def table(path: Path) -> tuple[list[str], "np.ndarray[Any, Any]"]:
    """Read the tables that a simulator printed: rows of an index and numbers, complex ones by their parts.

    Returns:
        The headings of the columns after the index, and the values.
    """
    rows: dict[int, list[float]] = {}
    heading: list[str] = []
    for line in path.read_text("latin-1").splitlines():
        words = line.replace(",", " ").split()
        if words and words[0].lower() == "index":
            heading = [word.lower() for word in words[1:]]
        elif heading and words and words[0].isdigit() and len(words) > len(heading):
            rows.setdefault(int(words[0]), [float(word) for word in words[1:]])
    return heading, np.array([rows[index] for index in sorted(rows)])


def column(plot: Plot, name: str) -> "np.ndarray[Any, Any]":
    found = plot.column(name)
    assert found is not None, f"{name} is not among {[v.name for v in plot.variables]}"
    return found


def swing_error(plot: Plot, time: Any, reference: Any, name: str) -> "np.ndarray[Any, Any]":
    """Return the distance from a reference curve at its own times, as a share of its swing."""
    ours = np.interp(time, plot.scale, column(plot, name).real)
    return np.abs(ours - reference) / np.ptp(reference)  # type: ignore[no-any-return]


async def test_s01_rc_transient(spice_cases: Any, cases_dir: Path, verdict: Any) -> None:
    case = "spice-s01-rc-transient"
    data = await spice_cases.data("transient", netlist_path=f"{case}/rc.cir")
    plot = spice_cases.plot(data)
    numbers = _plotted(cases_dir / case / "rc.out")
    far = swing_error(plot, numbers[:, 0], numbers[:, 1], "v(2)").max()
    verdict.holds(case, f"v(2), {len(numbers)} rows of the reference", far < 0.002, "within 0.2 % of swing", far)
    ramp_s = 0.1
    closed = 1 - (np.exp(ramp_s) - 1) / ramp_s * np.exp(-7.0)
    verdict.near(case, "v(2) at 7 s, closed form", data["results"]["v(2)"]["final"], closed, rel=0.001)


def _plotted(path: Path) -> "np.ndarray[Any, Any]":
    """Read the numbers beside a line-printer plot: the scale and the first curve."""
    found = [
        [float(word) for word in match[0].split()]
        for line in path.read_text("latin-1").splitlines()
        if (match := re.match(r"(?:\s*[-+]?\d\.\d+e[-+]\d+){2}(?=\s+\.)", line))
    ]
    return np.array(found)


async def test_s02_mos_amplifier(spice_cases: Any, cases_dir: Path, verdict: Any) -> None:
    case = "spice-s02-mosamp"
    plot = spice_cases.plot(await spice_cases.data("transient", netlist_path=f"{case}/mosamp.cir"))
    heading, numbers = table(cases_dir / case / "mosamp.out")
    far = swing_error(plot, numbers[:, 0], numbers[:, heading.index("v(66)")], "v(66)")
    share = float((far < 0.005).mean())
    verdict.holds(case, "v(66) over time", share >= 0.98, "0.5 % of swing at 98 % of points", f"{share:.1%} of points")


async def test_s03_ring_oscillator(spice_cases: Any, cases_dir: Path, verdict: Any) -> None:
    case = "spice-s03-mes-ring-osc"
    data = await spice_cases.data("transient", netlist_path=f"{case}/mesosc.cir")
    heading, numbers = table(cases_dir / case / "mesosc.out")
    time, reference = numbers[:, 0], numbers[:, heading.index("v(8)")]
    plot = spice_cases.plot(data)
    # Versions that step otherwise keep the wave and move it by a fraction of a period.
    shifts = np.linspace(-5e-12, 5e-12, 101)
    far = min(float(np.abs(np.interp(time, plot.scale + s, column(plot, "v(8)")) - reference)[2:-2].max())
              for s in shifts)  # fmt: skip
    verdict.holds(case, "v(8), 201 rows", far < 0.02 * np.ptp(reference), "reference wave", far / np.ptp(reference))
    verdict.near(case, "frequency_hz", data["measurements"]["v(8)"]["frequency_hz"], 1.122e9, rel=0.002)


async def test_s04_pole(spice_cases: Any, verdict: Any) -> None:
    case = "spice-s04-pz-rc"
    data = await spice_cases.data("pole_zero", netlist_path=f"{case}/filt_rc.cir")
    verdict.near(case, "pole(1) rad/s", data["results"]["pole(1)"]["final"], -1e8, rel=1e-6)


async def test_s05_lossy_line(spice_cases: Any, cases_dir: Path, verdict: Any) -> None:
    case = "spice-s05-lossy-line"
    plot = spice_cases.plot(await spice_cases.data("transient", netlist_path=f"{case}/ltra1_1_line.cir"))
    heading, numbers = table(cases_dir / case / "ltra1_1_line.out")
    for name in ("v(2)", "v(3)"):
        far = swing_error(plot, numbers[:, 0], numbers[:, heading.index(name)], name)
        verdict.holds(case, f"{name} over time", np.quantile(far, 0.98) < 0.005, "0.5 % of swing", far.max())


async def test_s06_low_pass(spice_cases: Any, cases_dir: Path, verdict: Any) -> None:
    case = "spice-s06-lowpass-ac"
    data = await spice_cases.data("ac", netlist_path=f"{case}/lowpass.cir")
    _, numbers = table(cases_dir / case / "lowpass.out")
    ours = column(spice_cases.plot(data), "v(2)")
    verdict.equal(case, "rows", len(ours), len(numbers))
    far = np.abs(ours - (numbers[:, -2] + 1j * numbers[:, -1])).max()
    verdict.holds(case, "v(2), 31 rows", far < 1e-6, "reference +-1e-6", far)
    closed = 1 / (2 * np.pi * 5e3 * 1e-9)
    verdict.near(case, "corner_hz, closed form", data["measurements"]["v(2)"]["corner_hz"], closed, rel=0.005)


async def test_s07_soi_inverter_with_included_models(spice_cases: Any, cases_dir: Path, verdict: Any) -> None:
    case = "spice-s07-soi-inverter"
    plot = spice_cases.plot(await spice_cases.data("dc", netlist_path=f"{case}/inv2.cir"))
    heading, numbers = table(cases_dir / case / "inv2.out")
    far = np.abs(column(plot, "v(out)") - numbers[:, heading.index("v(out)")]).max()
    verdict.holds(case, f"v(out), {len(numbers)} rows", far < 3e-6, "reference +-3e-6 V", far)


async def test_s08_latch_against_another_simulator(spice_cases: Any, cases_dir: Path, verdict: Any) -> None:
    case = "spice-s08-mcnc-latch"
    data = await spice_cases.data("transient", netlist_path=f"{case}/latch.cir", at=["75n"])
    found = {reading["vector"]: reading["value"] for reading in data["values_at"]}
    verdict.near(case, "v(5) at 75 ns", found["v(5)"], 2.982, rel=0.01)
    verdict.near(case, "v(2) at 75 ns", found["v(2)"], 1.893, rel=0.01)


async def test_s09_an_output_that_cannot_be_printed_is_no_success(spice_cases: Any, verdict: Any) -> None:
    case = "spice-s09-mcnc-opampal-expression-print"
    fault = await spice_cases.refused("transient", netlist_path=f"{case}/opampal.cir")
    verdict.refused(case, fault.message, r"\{v\(301\)\+6\}.*is an expression")
    data = await spice_cases.data("transient", netlist_path=f"{case}/opampal.cir", probes=["v(305)"], at=["1m"])
    verdict.near(case, "v(305) at 1 ms, by probes", data["values_at"][0]["value"], -0.6507, rel=0.005)


async def test_user_s04_without_ground(spice_cases: Any, verdict: Any) -> None:
    case = "user-s04-pyspice-no-ground"
    fault = await spice_cases.refused("transient", netlist_path=f"{case}/nog.cir")
    verdict.refused(case, fault.message, "has no ground")
    data = await spice_cases.data("transient", netlist_path=f"{case}/nog_fixed.cir")
    verdict.near(case, "v(mid) with ground", data["results"]["v(mid)"]["final"], 10 / 3, rel=1e-4)


async def test_user_s05_current_into_a_capacitor(spice_cases: Any, verdict: Any) -> None:
    case = "user-s05-spicesharp-current-into-cap"
    fault = await spice_cases.refused("dc", netlist_path=f"{case}/u_spicesharp52.cir")
    verdict.refused(case, fault.message, "No DC path to ground from node in")
    data = await spice_cases.data("op", netlist_path=f"{case}/u_spicesharp52a.cir")
    verdict.near(case, "resistive v(in)", data["results"]["v(in)"]["final"], -300.0, rel=1e-6)


async def test_small_title_line(spice_cases: Any, cases_dir: Path, verdict: Any) -> None:
    case = "small/s01_title_line_eaten"
    answer = await spice_cases.call("op", netlist_path=f"{case}.cir")
    verdict.told(case, "warning", answer["warnings"], "first line `V1 in 0 DC 5` was taken as the title")
    text = "with a title\n" + (cases_dir / f"{case}.cir").read_text()
    data = await spice_cases.data("op", text)
    verdict.near(case, "out with a title line", data["results"]["v(out)"]["final"], 2.5, rel=1e-6)


async def test_small_mega_and_milli(spice_cases: Any, cases_dir: Path, verdict: Any) -> None:
    case = "small/s02_mega_milli"
    answer = await spice_cases.call("op", netlist_path=f"{case}.cir")
    verdict.told(case, "warning", answer["warnings"], "1M = 1 milliohm; write 1MEG")
    meant = (cases_dir / f"{case}.cir").read_text().replace("0 1M\n", "0 1MEG\n")
    verdict.near(
        case, "out with 1MEG", (await spice_cases.data("op", meant))["results"]["v(out)"]["final"], 5.0, rel=1e-6
    )


async def test_small_time_step(spice_cases: Any, verdict: Any) -> None:
    case = "small/s05_timestep_too_small"
    fault = await spice_cases.refused("transient", netlist_path=f"{case}.cir")
    verdict.refused(case, fault.message, r"broke off at 0\.9997? ?|0\.9996.*node x")
    partial = fault.data["partial"]
    verdict.holds(
        case, "partial data kept", len(partial["time"]) >= 20, "waveform up to 0.9997 s", len(partial["time"])
    )


async def test_small_good_filter(spice_cases: Any, verdict: Any) -> None:
    case = "small/s07_rc_ok"
    data = await spice_cases.data("ac", netlist_path=f"{case}.cir", at=[1000], probes=["out"])
    verdict.near(case, "mag_db at 1 kHz", data["values_at"][0]["mag_db"], -3.0103, abs=0.001)
    verdict.near(case, "phase_deg at 1 kHz", data["values_at"][0]["phase_deg"], -45.0, abs=0.01)
    verdict.near(case, "corner_hz at half power", data["measurements"]["v(out)"]["corner_hz"], 1000.0, rel=0.001)


@pytest.mark.parametrize(
    ("case", "file", "words"),
    [
        ("small/s08_control_shell", "small/s08_control_shell.cir", r"\.control runs commands"),
        ("small/s09_include_outside", "small/s09_include_outside.cir", "lies outside the workspace"),
        ("hostile-s03-spice-shell", "hostile-s03-spice-shell/h05_control_shell.cir", r"\.control runs commands"),
    ],
)
async def test_hostile_netlists_are_refused_and_leave_nothing(
    spice_cases: Any, cases_dir: Path, verdict: Any, case: str, file: str, words: str
) -> None:
    before = _count(cases_dir)
    fault = await spice_cases.refused("op", netlist_path=file)
    verdict.refused(case, fault.message, words)
    assert socket.gethostname() not in fault.message + str(fault.data)
    verdict.equal(case, "files left behind", _count(cases_dir) - before, 0)


def _count(folder: Path) -> int:
    return sum(1 for _ in folder.rglob("*"))

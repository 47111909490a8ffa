"""What the answer holds: files, thinned waveforms, pictures, and the same bytes for the same netlist."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from metaforge.adapters.spice.vectors import thinned
from metaforge.formats.spice_raw import read_raw

pytestmark = pytest.mark.program("ngspice")
STEP = "RC step\nV1 in 0 PULSE(0 5 0 1n 1n 1 2)\nR1 in out 1k\nC1 out 0 1u\n.tran 1u 10m\n.end\n"
SPIKE = "spike\nV1 in 0 PWL(0 0 5m 0 5.001m 9 5.002m 0)\nR1 in 0 1k\n.tran 1u 10m\n.end\n"


async def test_waveforms_and_deck_are_files_that_can_be_read_again(spice: Any) -> None:
    answer = await spice.call("transient", STEP, probes=["out"])
    raw = answer["data"]["waveforms"][0]
    assert {(file["path"], file["role"]) for file in answer["files"]} == {
        (raw, "waveforms"),
        (answer["data"]["deck_path"], "deck"),
    }
    (plot,) = read_raw((spice.output / raw).read_bytes())
    assert [variable.name for variable in plot.variables] == ["time", "v(out)"]
    assert len(plot.values) == answer["data"]["points_count"]
    assert answer["programs"]["ngspice"]


@pytest.mark.parametrize(
    ("analysis", "netlist"),
    [
        ("transient", STEP),
        ("ac", "f\nV1 a 0 AC 1\nR1 a b 1k\nC1 b 0 1u\n.ac dec 20 1 100k\n.end\n"),
        ("noise", "n\nV1 a 0 AC 1\nR1 a b 1k\nC1 b 0 1u\n.noise v(b) V1 dec 5 1 10k\n.end\n"),
        ("pole_zero", "RC\nV1 in 0 AC 1\nR1 in out 1k\nC1 out 0 10p\n.pz in 0 out 0 vol pz\n.end\n"),
    ],
)
async def test_the_same_netlist_gives_the_same_bytes(spice: Any, analysis: str, netlist: str) -> None:
    digests = set()
    for _ in range(4):
        data = await spice.data(analysis, netlist)
        digests.add(hashlib.sha256((spice.output / data["waveforms"][0]).read_bytes()).hexdigest())
    assert len(digests) == 1
    assert b"Date:" not in (spice.output / data["waveforms"][0]).read_bytes()[:500]


async def test_a_file_of_another_simulation_is_not_replaced(spice: Any) -> None:
    data = await spice.data("transient", STEP, output_path="results/step")
    assert data["waveforms"] == ["results/step.raw"]
    for name in (data["waveforms"][0], data["deck_path"]):
        spice.write(name, "")
        (spice.workspace / name).write_bytes((spice.output / name).read_bytes())
    assert (await spice.call("transient", STEP, output_path="results/step"))["data"]["waveforms"] == [
        "results/step.raw"
    ]
    with pytest.raises(Exception, match="holds another simulation"):
        await spice.call("transient", STEP.replace("1u\n", "2u\n"), output_path="results/step")
    again = await spice.data("transient", STEP.replace("1u\n", "2u\n"), output_path="results/step", overwrite=True)
    assert again["waveforms"] == ["results/step.raw"]


async def test_a_name_of_our_own_choice_never_collides(spice: Any) -> None:
    first = await spice.data("transient", STEP)
    for name in (first["waveforms"][0], first["deck_path"]):
        spice.write(name, "")
        (spice.workspace / name).write_bytes((spice.output / name).read_bytes())
    other = await spice.data("transient", STEP.replace("1k\n", "2k\n"))
    assert other["waveforms"] != first["waveforms"]


async def test_a_waveform_is_thinned_to_what_was_asked_for_and_keeps_its_peak(spice: Any) -> None:
    for most in (50, 200, 1000):
        data = await spice.data("transient", SPIKE, probes=["in"], max_points=most)
        curve = data["waveform_data"]
        assert data["points_count"] > 1000
        assert len(curve["time"]) == len(curve["v(in)"]) <= most
        assert max(curve["v(in)"]) == 9
        assert curve["time"] == sorted(curve["time"])
        assert (curve["time"][0], curve["time"][-1]) == (0, 0.01)
    assert "waveform_data" not in await spice.data("transient", SPIKE, max_points=0)


def test_thinning_follows_the_curve_and_not_the_clock() -> None:
    time = np.linspace(0, 1, 20_000)
    fast, slow = np.sin(2 * np.pi * 5 * time), np.where(np.abs(time - 0.7) < 1e-4, 5.0, 0.0)
    chosen = thinned(time, [fast, slow], 120)
    assert len(chosen) <= 120
    assert {0, 19_999} <= set(chosen.tolist())
    assert slow[chosen].max() == 5.0
    assert np.abs(np.interp(time, time[chosen], fast[chosen]) - fast).max() < 0.05


@pytest.mark.parametrize("points", [0, 1, 2, 3, 5])
def test_thinning_to_almost_nothing_still_gives_points_in_order(points: int) -> None:
    chosen = thinned(np.arange(100.0), [np.arange(100.0) % 7], points)
    assert list(chosen) == sorted(set(chosen))


async def test_points_outside_the_sweep_are_told_and_not_made_up(spice: Any) -> None:
    answer = await spice.call("transient", STEP, probes=["out"], at=[5e-3, 20e-3, 5e-3])
    assert [reading["at"] for reading in answer["data"]["values_at"]] == [5e-3]
    assert any("at 0.02 lies outside the sweep" in warning for warning in answer["warnings"])


async def test_at_needs_something_that_is_swept(spice: Any) -> None:
    fault = await spice.refused("op", STEP, at=[1])
    assert "sweeps nothing" in fault.message


async def test_inner_nodes_stay_out_unless_they_are_asked_for(spice: Any) -> None:
    netlist = "sub\nV1 in 0 1\nX1 in out s\nR1 out 0 1k\n.subckt s a b\nR1 a m 1k\nR2 m b 1k\n.ends\n.end\n"
    data = await spice.data("op", netlist)
    assert set(data["results"]) == {"v(in)", "v(out)", "i(v1)"}
    assert "v(x1.m)" in data["other_vectors"]


@pytest.mark.program("matplotlib")
@pytest.mark.parametrize(
    ("analysis", "netlist", "words"),
    [
        ("transient", STEP, "over time in s"),
        ("dc", "d\nV1 a 0 1\nR1 a b 1k\nR2 b 0 1k\n.dc V1 0 5 0.1\n.end\n", "over V1 in V"),
        ("ac", "f\nV1 a 0 AC 1\nR1 a b 1k\nC1 b 0 1u\n.ac dec 20 1 100k\n.end\n", "v(b) -3.01 dB at 159.2 Hz"),
        ("noise", "n\nV1 a 0 AC 1\nR1 a b 1k\nC1 b 0 1u\n.noise v(b) V1 dec 5 1 10k\n.end\n", "frequency in Hz"),
    ],
)
async def test_a_picture_shows_the_curves_with_their_units(spice: Any, analysis: str, netlist: str, words: str) -> None:
    answer = await spice.call(analysis, netlist, picture=True)
    (picture,) = answer["pictures"]
    content = (spice.output / picture["path"]).read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert len(content) < 400_000
    assert words in picture["caption"]
    assert answer["data"]["picture_file"] == picture["path"]
    assert _inked(spice.output / picture["path"]) > 0.005
    again = (await spice.call(analysis, netlist, picture=True))["data"]["picture_file"]
    assert (spice.output / again).read_bytes() == content


def _inked(path: Path) -> float:
    """Return the share of pixels with a colour of its own, which only curves have."""
    from matplotlib.image import imread

    pixels = imread(path)[:, :, :3]
    return float((np.ptp(pixels, axis=2) > 0.2).mean())


async def test_an_operating_point_has_no_picture_and_says_so(spice: Any) -> None:
    answer = await spice.call("op", STEP, picture=True)
    assert "pictures" not in answer
    assert any("No picture" in warning for warning in answer["warnings"])


async def test_the_summary_stands_alone_and_is_short(spice: Any) -> None:
    answer = await spice.call("ac", "f\nV1 a 0 AC 1\nR1 a b 1k\nC1 b 0 1u\n.ac dec 20 1 100k\n.end\n", probes=["b"])
    assert answer["summary"] == (
        "AC of `f`: v(b) is a low-pass, 0 dB in its pass band, corner (half power, -3.01 dB) at 159.2 Hz. (101 points.)"
    )
    assert "at: [frequency in Hz]" in answer["next_step"]

"""“Does this filter have its corner at 1 kHz?”, over real Claude Code: what its model is shown, the curve included."""

import base64
import io

import pytest
from house import House
from scripted_model import Json, Say, Step, Then, Use
from test_claude_code import SERVER, ClaudeCode, blocks, claude, era, over_stdio, seen_by, structure, words

__all__ = ["claude", "era"]

pytestmark = pytest.mark.program("ngspice", "matplotlib")
TOOL = f"mcp__{SERVER}__spice_run_simulation"
BOARD = """.title KiCad schematic
R1 /in /mid 1M
R2 /mid /out 10k
C1 /mid 0 15.9155n
C2 /out 0 1p
V1 /in 0 DC 0 AC 1
.end
"""
"""As drawn. To SPICE a capital M is milli, so its corner lies at 10 GHz."""
SWEEP = {
    "analysis_type": "ac",
    "params": {"fstart": 10, "fstop": "1meg", "points": 50},
    "probes": ["/out"],
    "at": [1000],
}


def _sweep_once_told(shown: list[Json]) -> Use:
    """The model asked without a sweep and was told what to give."""
    assert shown[-1]["is_error"]
    assert "fstart" in words(shown[-1])
    return Use(TOOL, {"netlist_path": "filter.cir", **SWEEP})


def _mended(shown: list[Json]) -> Use:
    """The model asks again with what the person meant, once the answer has told it that 1M is a milliohm."""
    assert "1M = 1 milliohm" in words(shown[-1])
    return Use(TOOL, {"netlist": BOARD.replace("1M\n", "10k\n"), **SWEEP, "picture": True})


def test_the_model_is_warned_then_told_the_corner_and_shown_the_curve(
    claude: ClaudeCode, workshop: House, era: dict[str, str]
) -> None:
    (workshop.workspace / "filter.cir").write_text(BOARD)
    steps: list[Step] = [
        Use(TOOL, {"netlist_path": "filter.cir", "analysis_type": "ac"}),
        Then(_sweep_once_told),
        Then(_mended),
        Say("Yes, once R1 is 10 k."),
    ]
    model = claude.follow(steps, over_stdio(workshop), "--allowedTools", f"mcp__{SERVER}", **era)
    _, drawn, mended = seen_by(model)

    wrong = structure(drawn)["measurements"].get("v(/out)", {})
    assert wrong.get("corner_hz") != pytest.approx(1000, rel=0.5), "the board as drawn has no corner there"

    assert not mended.get("is_error"), words(mended)
    answer = structure(mended)
    # Two sections whose second hardly loads the first: 1 / (2 pi 10k 15.9155n).
    assert answer["measurements"]["v(/out)"]["corner_hz"] == pytest.approx(1000.0, rel=0.005)
    assert answer["values_at"][0]["mag_db"] == pytest.approx(-3.01, abs=0.01)
    assert "warnings" not in answer
    assert answer["waveforms"]
    _is_a_drawn_curve(mended)
    kept = sorted(path.suffix for path in workshop.workspace.rglob("spice/*"))
    assert {".raw", ".cir", ".png"} <= set(kept)


def _is_a_drawn_curve(result: Json) -> None:
    """The picture in the model's own request is a PNG with something on it."""
    from PIL import Image

    (image,) = blocks(result, "image")
    assert image["source"]["type"] == "base64"
    assert image["source"]["media_type"] == "image/png"
    picture = Image.open(io.BytesIO(base64.b64decode(image["source"]["data"]))).convert("RGB")
    assert min(picture.size) >= 300
    colours = picture.getcolors(maxcolors=picture.width * picture.height) or []
    paper = max(count for count, _ in colours)
    assert len(colours) > 20, "axes, labels and a curve have more colours than that"
    assert 0.5 < paper / (picture.width * picture.height) < 0.99

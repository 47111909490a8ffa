"""Draw curves over time, frequency or a swept value: panels one below the other with one shared axis, as PNG.

Uses matplotlib's own rasteriser: no display, no window system, no state shared with anybody.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

WIDTH_PX, HEIGHT_PX, DPI = 960, 640, 100
COLOURS = ("#1f4e9c", "#c8501e", "#2a8a4a", "#8a3ea0", "#b08a00", "#0f8a96", "#a02f4f", "#555b66")
INK, FAINT = "#21262d", "#c9ced6"
MOST_POINTS = 4000
"""Of one curve: more cannot be seen on this width."""


@dataclass(frozen=True)
class Curve:
    """A name and its values over the shared axis."""

    name: str
    values: Floats


@dataclass(frozen=True)
class Panel:
    """Curves of one unit."""

    quantity: str
    unit: str
    curves: Sequence[Curve]


@dataclass(frozen=True)
class Mark:
    """A place on the shared axis to point out."""

    at: float
    words: str


def draw(
    path: Path,
    x: Floats,
    panels: Sequence[Panel],
    x_name: str,
    x_unit: str,
    title: str,
    subtitle: str,
    marks: Sequence[Mark] = (),
    *,
    logarithmic: bool = False,
) -> None:
    """Write the picture.

    Args:
        path: where the PNG goes.
        x: the shared axis.
        panels: top to bottom.
        x_name: what the axis shows.
        x_unit: its unit; written with prefixes such as kHz and us.
        title: the heading.
        subtitle: a line of numbers below it.
        marks: upright lines with words.
        logarithmic: whether equal distances are equal ratios.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with rc_context({"font.family": "DejaVu Sans", "font.size": 9, "text.parse_math": False}):
        figure = Figure(figsize=(WIDTH_PX / DPI, HEIGHT_PX / DPI), dpi=DPI, facecolor="white")
        FigureCanvasAgg(figure)
        axes: Any = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        for axis, panel in zip(axes, panels, strict=True):
            _draw_panel(axis, x, panel, logarithmic=logarithmic)
            for mark in marks:
                axis.axvline(mark.at, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
        _label_axis(axes[-1], x_name, x_unit)
        figure.suptitle(_shortened(title, 90), x=0.012, y=0.985, ha="left", va="top", fontsize=12, color=INK,
                        fontweight="bold")  # fmt: skip
        figure.text(0.012, 0.935, _shortened(subtitle, 130), ha="left", va="top", fontsize=9, color=INK)
        figure.subplots_adjust(left=0.09, right=0.975, bottom=0.085, top=0.885, hspace=0.12)
        figure.savefig(path, format="png", metadata={"Software": None})


def _draw_panel(axis: Any, x: Floats, panel: Panel, *, logarithmic: bool) -> None:
    for index, curve in enumerate(panel.curves):
        chosen = _visible(curve.values)
        axis.plot(x[chosen], curve.values[chosen], color=COLOURS[index % len(COLOURS)], linewidth=1.4, label=curve.name)
    if logarithmic:
        axis.set_xscale("log")
    if len(x) > 1 and x.min() < x.max():
        axis.set_xlim(float(x.min()), float(x.max()))
    axis.grid(True, which="major", color=FAINT, linewidth=0.7)
    if logarithmic:
        axis.grid(True, which="minor", axis="x", color=FAINT, linewidth=0.3)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    _scale_values(axis, panel)
    axis.legend(loc="best", fontsize=8, frameon=True, framealpha=0.85, edgecolor=FAINT)


def _scale_values(axis: Any, panel: Panel) -> None:
    from matplotlib.ticker import EngFormatter

    axis.set_ylabel(f"{panel.quantity}{f', {panel.unit}' if panel.unit else ''}", color=INK)
    if panel.unit not in ("dB", "deg", ""):
        axis.yaxis.set_major_formatter(EngFormatter(sep=""))


def _label_axis(axis: Any, name: str, unit: str) -> None:
    from matplotlib.ticker import EngFormatter

    axis.set_xlabel(f"{name}{f', {unit}' if unit else ''}", color=INK)
    if unit:
        axis.xaxis.set_major_formatter(EngFormatter(sep=""))


def _visible(values: Floats) -> "NDArray[np.int64]":
    """Return the points that show on the picture: the least and greatest of each small group."""
    count = len(values)
    if count <= MOST_POINTS:
        return np.arange(count)
    edges = np.linspace(0, count, MOST_POINTS // 2 + 1).astype(np.int64)
    kept: set[int] = {0, count - 1}
    for low, high in itertools.pairwise(edges):
        part = values[low:high]
        kept |= {int(low + part.argmin()), int(low + part.argmax())}
    return np.array(sorted(kept), np.int64)


def _shortened(words: str, longest: int) -> str:
    plain = "".join(each for each in words if each.isprintable())
    return plain if len(plain) <= longest else plain[: longest - 3] + "..."

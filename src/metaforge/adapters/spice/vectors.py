"""The vectors of a run: named as people name them, with units, values at a point, and thinned for reading."""

import re
from dataclasses import dataclass

import numpy as np

from metaforge.adapters.spice.probes import Probe
from metaforge.formats.spice_raw import Floats, Numbers, Plot

UNITS = {"voltage": "V", "current": "A", "time": "s", "frequency": "Hz", "voltage-density": "V/sqrt(Hz)",
         "current-density": "A/sqrt(Hz)", "temp-sweep": "C", "res-sweep": "ohm"}  # fmt: skip
_PARAMETER_UNITS = {"p": "W", "gm": "S", "gds": "S", "resistance": "ohm", "capacitance": "F", "inductance": "H"}
SMALLEST_MAGNITUDE = 1e-30
"""Below this a magnitude counts as zero; its decibels end here instead of at minus infinity."""


@dataclass(frozen=True)
class Vector:
    """One quantity over the scale.

    Attributes:
        name: `v(out)`, `i(v1)`, `@q1[ic]`.
        unit: V, A ...
        values: real, or complex for an AC analysis.
    """

    name: str
    unit: str
    values: Numbers

    @property
    def is_complex(self) -> bool:
        return bool(np.iscomplexobj(self.values))

    def magnitude_db(self) -> Floats:
        """Return 20 log10 of the magnitude."""
        db: Floats = 20 * np.log10(np.maximum(np.abs(self.values), SMALLEST_MAGNITUDE))
        return db

    def phase_deg(self) -> Floats:
        """Return the phase without jumps of 360 degrees."""
        phase: Floats = np.degrees(np.unwrap(np.angle(self.values)))
        return phase


def clean_name(name: str) -> str:
    """Return a raw file's name without what ngspice wraps around names that are no node's."""
    lowered = name.lower()
    match = re.fullmatch(r"[vi]\((@.+|pole\(\d+\)|zero\(\d+\)|[vi]-sweep|.*_noise.*|[oi]noise.*|.*impedance.*|transfer_"
                         r"function|temp-sweep|res-sweep)\)", lowered)  # fmt: skip
    if match is None:
        return lowered
    inner = match[1]
    if "input_impedance" in inner or "output_impedance" in inner:
        return "input_impedance" if "input" in inner else "output_impedance"
    return inner


def _unit(name: str, type_: str, plot: str) -> str:
    if name in ("input_impedance", "output_impedance"):
        return "ohm"
    if name == "transfer_function":
        return "output/input"
    if name.startswith(("pole(", "zero(")):
        return "rad/s"
    if "spectrum" in name:
        return "V/sqrt(Hz)" if "current" not in type_ else "A/sqrt(Hz)"
    if name.startswith("@"):
        parameter = name[name.index("[") + 1 : -1] if "[" in name else ""
        return (
            "A"
            if re.fullmatch(r"i|i[a-z]|i[a-z]\d?", parameter)
            else "V"
            if re.fullmatch(r"v\w*", parameter)
            else _PARAMETER_UNITS.get(parameter, "")
        )
    return UNITS.get(type_, "")


def all_vectors(plot: Plot) -> list[Vector]:
    """Return every vector of a plot but its scale; all of them where nothing was swept."""
    first = 1 if has_scale(plot) else 0
    found: list[Vector] = []
    for index, variable in enumerate(plot.variables[first:], first):
        name = clean_name(variable.name)
        found.append(Vector(name, _unit(name, variable.type, plot.name), plot.values[:, index]))
    return found


def has_scale(plot: Plot) -> bool:
    """Whether the first variable is what the others are plotted over."""
    return plot.variables[0].type in ("time", "frequency") or clean_name(plot.variables[0].name).endswith("-sweep")


def probed(plot: Plot, probes: list[Probe]) -> list[Vector]:
    """Return the vectors of these probes, differences computed; those that are not in the plot are left out."""
    known = {vector.name: vector for vector in all_vectors(plot)}
    known |= {
        f"v({vector.name})": vector for vector in list(known.values()) if not vector.name.startswith(("v(", "i("))
    }
    found: list[Vector] = []
    for probe in probes:
        parts = [known.get(name) for name in probe.vectors]
        if any(part is None for part in parts):
            continue
        first = parts[0]
        assert first is not None
        values = first.values if len(parts) == 1 else first.values - parts[1].values  # type: ignore[union-attr]
        unit = "A" if probe.label.startswith("i(") else first.unit
        found.append(Vector(probe.label, unit, values))
    return found


def value_at(scale: Floats, values: Floats, at: float) -> float:
    """Return a value between points, by a straight line; `at` lies within the scale."""
    return float(np.interp(at, scale, values))


def smooth_value_at(scale: Floats, values: Floats, at: float) -> float:
    """Return a value between points of a smooth curve, by the cubic through the four nearest points."""
    if len(scale) < 4:
        return value_at(scale, values, at)
    right = int(np.clip(np.searchsorted(scale, at), 1, len(scale) - 1))
    start = int(np.clip(right - 2, 0, len(scale) - 4))
    x, y = scale[start : start + 4], values[start : start + 4]
    if (np.diff(x) <= 0).any() or float(np.ptp(y)) > 40:
        return value_at(scale, values, at)
    total = 0.0
    for index in range(4):
        others = np.delete(x, index)
        total += float(y[index] * np.prod((at - others) / (x[index] - others)))
    return total


def thinned(scale: Floats, columns: list[Floats], points: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Choose the points that show the curves best: largest triangles, over all curves at once.

    The first and last point, and the highest and lowest of every curve, are always among them.

    Args:
        scale: what the curves are plotted over.
        columns: the curves, one value per point of the scale.
        points: how many to keep at most.

    Returns:
        Rising indices into the scale.
    """
    count = len(scale)
    if count <= points or points < 3:
        return np.arange(count) if count <= points else np.array([0, count - 1][:points], np.int64)
    spans = [max(float(np.ptp(column)), 1e-300) for column in columns]
    y = np.array([column / span for column, span in zip(columns, spans, strict=True)])
    # By number rather than by value: a logarithmic or a repeated sweep is seen as evenly as it is plotted.
    x = np.arange(count) / count
    edges = np.linspace(1, count - 1, points - 1).astype(np.int64)
    chosen = [0]
    for low, high, after in zip(edges[:-1], edges[1:], [*edges[2:], count], strict=True):
        high = max(high, low + 1)
        middle_x = x[high - 1 : after].mean() if after > high - 1 else x[-1]
        middle_y = y[:, high - 1 : after].mean(axis=1) if after > high - 1 else y[:, -1]
        last = chosen[-1]
        area = np.abs(
            (x[last] - middle_x) * (y[:, low:high] - y[:, last : last + 1])
            - (x[last] - x[low:high]) * (middle_y[:, None] - y[:, last : last + 1])
        ).sum(axis=0)
        chosen.append(int(low + area.argmax()))
    extremes = {int(index) for column in columns for index in (column.argmax(), column.argmin())}
    kept = sorted({*chosen, count - 1, *extremes})
    if len(kept) > points:
        # Extremes push out the points next to them.
        fixed = {0, count - 1, *extremes}
        spare = [index for index in kept if index not in fixed]
        room = max(points - len(fixed), 0)
        places = np.linspace(0, len(spare) - 1, room).astype(int).tolist() if room and spare else []
        kept = sorted(fixed | {spare[place] for place in places})
    return np.array(kept, np.int64)

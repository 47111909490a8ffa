"""Draw the curves of a simulation."""

from pathlib import Path

import numpy as np

from metaforge.adapters.spice.answers import SimulationAnswer
from metaforge.adapters.spice.values import engineering
from metaforge.adapters.spice.vectors import Vector
from metaforge.engineering.pictures_waveform import Curve, Mark, Panel, draw
from metaforge.formats.spice_raw import Floats, Plot


def draw_waveforms(path: Path, answer: SimulationAnswer, plot: Plot, vectors: list[Vector]) -> str:
    """Draw magnitude and phase of an AC analysis, else one panel per unit; return the caption."""
    x_label, x_unit = _axis(answer)
    logarithmic = answer.scale == "frequency" and len(plot.scale) > 2 and plot.scale[-1] > 3 * plot.scale[0]
    panels = _bode(vectors) if plot.is_complex else _by_unit(vectors)
    marks = _marks(answer)
    subtitle = "; ".join(mark.words for mark in marks) or f"{answer.points_count} points"
    title = f"{answer.title or 'netlist'}: {answer.analysis_type}"
    draw(path, plot.scale, panels, x_label, x_unit, title, subtitle, marks, logarithmic=logarithmic)
    names = ", ".join(vector.name for vector in vectors)
    return f"{title}; {names} over {x_label}{f' in {x_unit}' if x_unit else ''}; {subtitle}"


def _axis(answer: SimulationAnswer) -> tuple[str, str]:
    """Return what the shared axis shows, and its unit."""
    if answer.scale in ("time", "frequency"):
        return answer.scale, "s" if answer.scale == "time" else "Hz"
    swept = answer.analysis.split()[1]
    return swept, {"v": "V", "i": "A", "r": "ohm", "t": "C"}.get(swept[0].lower(), "")


def _bode(vectors: list[Vector]) -> list[Panel]:
    magnitudes = tuple(Curve(vector.name, vector.magnitude_db()) for vector in vectors)
    phases = tuple(Curve(vector.name, vector.phase_deg()) for vector in vectors)
    return [Panel("magnitude", "dB", magnitudes), Panel("phase", "deg", phases)]


def _by_unit(vectors: list[Vector]) -> list[Panel]:
    panels: list[Panel] = []
    for unit in dict.fromkeys(vector.unit for vector in vectors):
        curves = tuple(Curve(v.name, _real(v)) for v in vectors if v.unit == unit)
        panels.append(Panel({"V": "voltage", "A": "current"}.get(unit, "value"), unit, curves))
    return panels[:3]


def _real(vector: Vector) -> Floats:
    values: Floats = np.asarray(vector.values.real, np.float64)
    return values


def _marks(answer: SimulationAnswer) -> list[Mark]:
    """Mark the corners that were measured, and the points that were asked for."""
    marks: list[Mark] = []
    for name, measured in list((answer.measurements or {}).items())[:8]:
        for where in (measured.get("corner_hz"), measured.get("lower_corner_hz"), measured.get("upper_corner_hz")):
            if where is not None and len(marks) < 3:
                marks.append(Mark(float(where), f"{name} -3.01 dB at {engineering(float(where), 'Hz')}"))
    return marks

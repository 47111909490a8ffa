"""Measure the curves, and say in a few words what came out."""

import numpy as np

from metaforge.adapters.spice.answers import Measured, Reading, SimulationAnswer, VectorResult
from metaforge.adapters.spice.measure_ac import measure_response
from metaforge.adapters.spice.measure_time import measure_waveform
from metaforge.adapters.spice.reading import decibels, rounded
from metaforge.adapters.spice.values import engineering
from metaforge.adapters.spice.vectors import Vector
from metaforge.formats.spice_raw import Plot

_SHOWN = 3
_SCALE_UNITS = {
    "frequency": "Hz", "time": "s", "v-sweep": "V", "i-sweep": "A", "temp-sweep": "C", "res-sweep": "ohm",
}  # fmt: skip


def measure(plot: Plot, vectors: list[Vector], kind: str) -> tuple[dict[str, Measured], list[str]]:
    """Measure each curve, and return what is doubtful about it."""
    found: dict[str, Measured] = {}
    doubts: list[str] = []
    for vector in vectors:
        if kind == "ac":
            measured, doubt = _response(plot, vector)
        elif kind == "transient":
            measured, doubt = _waveform(plot, vector), ""
        else:
            continue
        if measured is not None:
            found[vector.name] = measured
        if doubt and measured is not None and vector.name.startswith("v("):
            doubts.append(f"{vector.name}: {doubt}")
    return found, doubts[:3]


def _response(plot: Plot, vector: Vector) -> tuple[Measured | None, str]:
    response = measure_response(plot.scale, vector)
    if response is None:
        return None, ""
    band, center = response.bandwidth_hz, response.center_hz
    return _told(
        response.kind,
        passband_db=decibels(response.passband_db),
        corner_hz=response.corner_hz,
        lower_corner_hz=response.lower_corner_hz,
        upper_corner_hz=response.upper_corner_hz,
        center_hz=center,
        bandwidth_hz=band,
        quality_factor=center / band if center and band else None,
        peak_db=decibels(response.peak_db),
        peak_hz=response.peak_hz,
        unity_gain_hz=response.unity_gain_hz,
        phase_at_unity_deg=response.phase_at_unity_deg,
    ), response.doubt


def _waveform(plot: Plot, vector: Vector) -> Measured | None:
    told = measure_waveform(plot.scale, vector)
    if told is None:
        return None
    kind = "oscillation" if told.frequency_hz else "step" if told.settling_time_seconds is not None else "waveform"
    return _told(kind, **vars(told))


def _told(kind: str, **measured: float | None) -> Measured:
    """Return what there is, to six digits."""
    found = {name: rounded(value, 6) for name, value in measured.items() if value is not None and np.isfinite(value)}
    return {"kind": kind, **found}


def summarise(answer: SimulationAnswer, warnings: list[str]) -> str:
    """Return the verdict, a few numbers with units, and how doubtful they are."""
    kind = answer.analysis_type.replace("_", " ")
    parts = [f"{len(warnings)} warning{'s' * (len(warnings) > 1)}, read them first." if warnings else "",
             f"{kind.upper() if len(kind) < 3 else kind.capitalize()} of `{answer.title or 'netlist'}`:"]  # fmt: skip
    names = list(answer.results)
    if answer.values_at:
        names = []
        parts.append("; ".join(_reading_text(reading, answer) for reading in answer.values_at[:4]) + ".")
    measured = [text for name in list(answer.measurements or {})[:6] if (text := _measured_text(name, answer))]
    parts += measured[:2]
    if not measured:
        parts.append("; ".join(_result_text(name, answer.results[name]) for name in names[: 2 * _SHOWN]))
    if answer.points_count > 1:
        parts.append(f"({answer.points_count} points.)")
    if answer.convergence != "converged":
        parts.append(f"The operating point {answer.convergence.replace('_', ' ')}.")
    return " ".join(part for part in parts if part)


def _db(value: float | None) -> str:
    """Write decibels to a hundredth; what is not worth that is zero."""
    return f"{round(value or 0.0, 2) + 0.0:g}"


def _reading_text(reading: Reading, answer: SimulationAnswer) -> str:
    unit = answer.results[reading.vector].unit
    place = engineering(reading.at, _SCALE_UNITS.get(answer.scale, ""))
    if reading.mag_db is not None:
        return f"{reading.vector} at {place}: {_db(reading.mag_db)} dB, {reading.phase_deg:.4g} deg"
    return f"{reading.vector} at {place}: {engineering(reading.value or 0.0, unit)}"


def _measured_text(name: str, answer: SimulationAnswer) -> str:
    measured = (answer.measurements or {})[name]
    kind = measured["kind"]
    value = {key: float(number) for key, number in measured.items() if key != "kind"}
    if "corner_hz" in value:
        return (
            f"{name} is a {kind}, {_db(value['passband_db'])} dB in its pass band, corner (half power, -3.01 dB) at "
            f"{engineering(value['corner_hz'], 'Hz')}."
        )
    if kind in ("band-pass", "band-stop") and "center_hz" in value:
        return (
            f"{name} is a {kind} from {engineering(value['lower_corner_hz'], 'Hz')} to "
            f"{engineering(value['upper_corner_hz'], 'Hz')} (half power), peak {_db(value['peak_db'])} dB at "
            f"{engineering(value['peak_hz'], 'Hz')}."
        )
    unit = answer.results[name].unit
    if "settling_time_seconds" in value:
        return (
            f"{name} steps to {engineering(answer.results[name].final or 0.0, unit)}, overshoot "
            f"{value['overshoot_percent']:.3g} %, settled to 2 % in {engineering(value['settling_time_seconds'], 's')}."
        )
    if "frequency_hz" in value:
        return (
            f"{name} repeats at {engineering(value['frequency_hz'], 'Hz')}, peak to peak "
            f"{engineering(value['peak_to_peak'], unit)}, mean {engineering(value['mean'], unit)}."
        )
    return ""


def _result_text(name: str, result: VectorResult) -> str:
    if result.mag_db_final is not None:
        return f"{name} {_db(result.mag_db_min)} to {_db(result.mag_db_max)} dB"
    if result.min is None:
        imaginary = f" + {result.final_imag:.6g}i" if result.final_imag else ""
        return f"{name} = {_plain(result.final or 0.0, result.unit)}{imaginary}"
    low, high = _plain(result.min, result.unit), _plain(result.max or 0.0, result.unit)
    return f"{name} {low} to {high}, at the end {_plain(result.final or 0.0, result.unit)}"


def _plain(value: float, unit: str) -> str:
    return engineering(value, unit) if unit in ("V", "A", "ohm", "s", "Hz") else f"{value:.6g} {unit}".rstrip()


def next_step(answer: SimulationAnswer, has_params: bool, *, picture: bool) -> str:
    """Return the call that usually follows."""
    if answer.analysis_type == "op":
        return "spice.run_simulation with analysis_type ac or transient shows how the circuit behaves around this point"
    if answer.analysis_type == "ac" and not answer.values_at:
        return "pass at: [frequency in Hz] to read magnitude and phase at a point"
    if not picture and answer.scale:
        return "pass picture: true to see the curves"
    return "twin.record_evidence can cite this call for a requirement"

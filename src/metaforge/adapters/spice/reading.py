"""Turn vectors into the numbers of the answer."""

import numpy as np

from metaforge.adapters.spice.answers import Reading, VectorResult
from metaforge.adapters.spice.vectors import Vector, clean_name, smooth_value_at, thinned, value_at
from metaforge.formats.spice_raw import Floats, Plot


def rounded(value: float, digits: int = 9) -> float:
    """Round to significant digits."""
    return float(f"{value:.{digits}g}")


def decibels(value: float) -> float:
    """Round decibels to a millionth: what is smaller is nothing."""
    return round(value, 6) + 0.0


def results(vectors: list[Vector], kind: str) -> dict[str, VectorResult]:
    """Return each vector's final, least and greatest value."""
    found: dict[str, VectorResult] = {}
    for vector in vectors:
        if kind == "ac":
            db = vector.magnitude_db()
            found[vector.name] = VectorResult(
                vector.unit,
                mag_db_final=decibels(float(db[-1])),
                mag_db_min=decibels(float(db.min())),
                mag_db_max=decibels(float(db.max())),
                phase_deg_final=rounded(float(np.degrees(np.angle(vector.values[-1])))),
            )
        elif len(vector.values) == 1:
            value = vector.values[0]
            imaginary = rounded(float(value.imag)) if vector.is_complex else None
            found[vector.name] = VectorResult(vector.unit, rounded(float(value.real)), final_imag=imaginary)
        else:
            values = vector.values.real
            found[vector.name] = VectorResult(
                vector.unit,
                rounded(float(values[-1])),
                rounded(float(values.min())),
                rounded(float(values.max())),
            )
    return found


def readings(scale: Floats, vectors: list[Vector], places: list[float], kind: str) -> tuple[list[Reading], list[str]]:
    """Return the vectors' values at points of the scale, and warnings for points outside it."""
    if not places:
        return [], []
    order = scale if (np.diff(scale) > 0).all() else scale[::-1]
    if not (np.diff(order) > 0).all():
        return [], ["at was not read: the sweep passes its points more than once"]
    low, high = float(order[0]), float(order[-1])
    slack = 1e-9 * max(abs(low), abs(high))
    inside = [place for place in places if low - slack <= place <= high + slack]
    warnings = [
        f"at {place:g} lies outside the sweep, {low:g} to {high:g}: no value there"
        for place in places
        if place not in inside
    ]
    return [
        _reading(scale, order, vector, min(max(place, low), high), kind) for place in inside for vector in vectors
    ], warnings


def _reading(scale: Floats, order: Floats, vector: Vector, place: float, kind: str) -> Reading:
    def along(values: Floats) -> Floats:
        return values if order is scale else values[::-1]

    if kind == "ac":
        x, where = np.log10(order), float(np.log10(place))
        db = smooth_value_at(x, along(vector.magnitude_db()), where)
        phase = smooth_value_at(x, along(vector.phase_deg()), where)
        turned = (phase + 180) % 360 - 180
        return Reading(vector.name, place, mag_db=decibels(db), phase_deg=rounded(turned, 7))
    return Reading(vector.name, place, rounded(value_at(order, along(vector.values.real), place)))


def thinned_waveforms(plot: Plot, vectors: list[Vector], points: int) -> dict[str, list[float]]:
    """Return the curves over the scale, thinned to at most `points`."""
    columns: dict[str, Floats] = {}
    for vector in vectors:
        if plot.is_complex:
            columns[f"{vector.name} dB"] = vector.magnitude_db()
            columns[f"{vector.name} deg"] = vector.phase_deg()
        else:
            columns[vector.name] = np.asarray(vector.values, np.float64)
    chosen = thinned(plot.scale, list(columns.values()), points)
    scale = clean_name(plot.variables[0].name)
    return {
        name: [rounded(float(v), 6) for v in column[chosen]] for name, column in {scale: plot.scale, **columns}.items()
    }

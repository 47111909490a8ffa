"""Measure a frequency response: what kind of filter it is, its corners at half power, its peak, where gain is one."""

from dataclasses import dataclass

import numpy as np

from metaforge.adapters.spice.vectors import Vector, smooth_value_at
from metaforge.formats.spice_raw import Floats

HALF_POWER_DB = 20 * float(np.log10(np.sqrt(0.5)))
"""-3.0103 dB."""
_FLAT_DB_PER_DECADE = 1.5
_NEAR_EDGE_RATIO = 20.0
_LEAST_FALL_DB = 3.2


@dataclass(frozen=True)
class Response:
    """A measured response. None: it has no such thing within the sweep.

    Attributes:
        kind: `low-pass`, `high-pass`, `band-pass`, `band-stop`, `flat`, or `other`.
        passband_db: the level that corners are measured from.
        corner_hz: of a low-pass or high-pass, half the power below the pass band.
        lower_corner_hz, upper_corner_hz: of a band-pass or band-stop.
        center_hz: their geometric mean.
        peak_db, peak_hz: where the gain is highest.
        unity_gain_hz: where the gain falls through 0 dB for the last time.
        phase_at_unity_deg: the phase there.
        doubt: why a corner may be off, or is missing.
    """

    kind: str
    passband_db: float
    peak_db: float
    peak_hz: float
    corner_hz: float | None = None
    lower_corner_hz: float | None = None
    upper_corner_hz: float | None = None
    unity_gain_hz: float | None = None
    phase_at_unity_deg: float | None = None
    doubt: str = ""

    @property
    def center_hz(self) -> float | None:
        if self.lower_corner_hz is None or self.upper_corner_hz is None:
            return None
        return float(np.sqrt(self.lower_corner_hz * self.upper_corner_hz))

    @property
    def bandwidth_hz(self) -> float | None:
        if self.lower_corner_hz is None or self.upper_corner_hz is None:
            return None
        return self.upper_corner_hz - self.lower_corner_hz


def measure_response(frequency_hz: Floats, vector: Vector) -> Response | None:
    """Measure one response; None where there are too few points, or nothing but zero."""
    if len(frequency_hz) < 4 or (np.diff(frequency_hz) <= 0).any() or not np.abs(vector.values).max() > 0:
        return None
    x, db = np.log10(frequency_hz), vector.magnitude_db()
    at_peak = int(db.argmax())
    kind, level = _kind(x, db)
    unity = _falls(x, db, 0.0)
    unity_x = unity[-1] if unity else None
    phase = smooth_value_at(x, vector.phase_deg(), unity_x) if unity_x is not None else None
    told = Response(
        kind, level, float(db[at_peak]), float(frequency_hz[at_peak]),
        unity_gain_hz=None if unity_x is None else 10**unity_x, phase_at_unity_deg=phase,
    )  # fmt: skip
    return _with_corners(told, x, db, at_peak)


def _kind(x: Floats, db: Floats) -> tuple[str, float]:
    low, high, top = float(db[0]), float(db[-1]), float(db.max())
    low_flat, high_flat = (
        abs(_slope(x, db, first=True)) < _FLAT_DB_PER_DECADE,
        (abs(_slope(x, db, first=False)) < _FLAT_DB_PER_DECADE),
    )
    if top - float(db.min()) < _LEAST_FALL_DB:
        return "flat", top
    if low_flat and high_flat and abs(low - high) < _LEAST_FALL_DB:
        if min(low, high) - float(db.min()) > _LEAST_FALL_DB:
            return "band-stop", max(low, high)
        return "band-pass", top
    if low_flat and low > high:
        return "low-pass", low
    if high_flat and high > low:
        return "high-pass", high
    if top - max(low, high) > _LEAST_FALL_DB:
        return "band-pass", top
    return "other", top


def _slope(x: Floats, db: Floats, *, first: bool) -> float:
    """Return the slope in dB per decade over the outermost quarter decade, at least two points."""
    inside = x <= x[0] + 0.25 if first else x >= x[-1] - 0.25
    count = max(int(inside.sum()), 2)
    part = slice(0, count) if first else slice(len(x) - count, len(x))
    return float((db[part][-1] - db[part][0]) / (x[part][-1] - x[part][0]))


def _crossings(x: Floats, db: Floats, level: float, *, rising: bool) -> list[float]:
    side = db >= level
    places = np.flatnonzero(~side[:-1] & side[1:] if rising else side[:-1] & ~side[1:])
    return [_solve(x, db, int(index), level) for index in places]


def _falls(x: Floats, db: Floats, level: float) -> list[float]:
    return _crossings(x, db, level, rising=False)


def _rises(x: Floats, db: Floats, level: float) -> list[float]:
    return _crossings(x, db, level, rising=True)


def _solve(x: Floats, db: Floats, index: int, level: float) -> float:
    """Return where the smooth curve crosses a level between two points, by halving."""
    low, high = float(x[index]), float(x[index + 1])
    above = db[index] >= level
    for _ in range(60):
        middle = (low + high) / 2
        if (smooth_value_at(x, db, middle) >= level) == above:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _with_corners(told: Response, x: Floats, db: Floats, at_peak: int) -> Response:
    from dataclasses import replace

    level = told.passband_db + HALF_POWER_DB
    falls, rises = _falls(x, db, level), _rises(x, db, level)
    if told.kind == "low-pass" and falls:
        corner = falls[-1]
        return replace(told, corner_hz=10**corner, doubt=_doubt(x, db, corner, corner - x[0], "starts", "below"))
    if told.kind == "high-pass" and rises:
        corner = rises[0]
        return replace(told, corner_hz=10**corner, doubt=_doubt(x, db, corner, x[-1] - corner, "ends", "above"))
    if told.kind == "band-pass":
        below = [each for each in rises if each <= x[at_peak]]
        above = [each for each in falls if each >= x[at_peak]]
        lower, upper = below[-1] if below else None, above[0] if above else None
        doubt = _coarse(x, db, *(each for each in (lower, upper) if each is not None))
        return replace(
            told, lower_corner_hz=None if lower is None else 10**lower,
            upper_corner_hz=None if upper is None else 10**upper, doubt=doubt,
        )  # fmt: skip
    if told.kind == "band-stop" and falls and rises:
        return replace(told, lower_corner_hz=10 ** falls[0], upper_corner_hz=10 ** rises[-1],
                       doubt=_coarse(x, db, falls[0], rises[-1]))  # fmt: skip
    if told.kind == "flat":
        return told
    return replace(told, doubt="the gain still changes at both ends of the sweep: widen it to see the pass band")


def _doubt(x: Floats, db: Floats, corner: float, gap: float, edge: str, side: str) -> str:
    if gap < np.log10(_NEAR_EDGE_RATIO):
        return (
            f"the sweep {edge} only {10**gap:.2g} times {side} the corner, where the pass band is not flat yet: sweep "
            f"at least {_NEAR_EDGE_RATIO:.0f} times {side} it"
        )
    return _coarse(x, db, corner)


def _coarse(x: Floats, db: Floats, *corners: float) -> str:
    """Return a doubt where the straight and the smooth line through the points cross a level far apart."""
    for corner in corners:
        index = int(np.clip(np.searchsorted(x, corner) - 1, 0, len(x) - 2))
        level = smooth_value_at(x, db, corner)
        share = (level - db[index]) / (db[index + 1] - db[index]) if db[index + 1] != db[index] else 0.0
        straight = float(x[index] + share * (x[index + 1] - x[index]))
        if abs(straight - corner) * np.log(10) > 0.02:
            return "few points near the corner: sweep with at least 50 points a decade for an exact one"
    return ""

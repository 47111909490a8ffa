"""Measure a waveform over time: a step's overshoot, rise and settling; an oscillation's frequency; mean and rms."""

import itertools
from dataclasses import dataclass, replace

import numpy as np

from metaforge.adapters.spice.vectors import Vector
from metaforge.formats.spice_raw import Floats

SETTLING_BAND_RATIO = 0.02
_REST_RATIO = 0.003
"""How much the last tenth of a run may still move, as a share of the step, for its end to count as the final value."""
_LEAST_PERIODS = 3
_ALIKE_RATIO = 0.03


@dataclass(frozen=True)
class Waveform:
    """A measured waveform. None: it has no such thing.

    Attributes:
        mean, rms: weighted by time, over the whole run; over whole periods of an oscillation.
        peak_to_peak: highest minus lowest.
        rise_time_seconds: 10 % to 90 % of a step up; fall_time_seconds of a step down.
        overshoot_percent: beyond the final value, of the step.
        settling_time_seconds: from the step's start until it stays within 2 % of the step around the final value.
        frequency_hz: of an oscillation that repeats itself.
        duty_ratio: share of a period above the middle.
    """

    mean: float
    rms: float
    peak_to_peak: float
    rise_time_seconds: float | None = None
    fall_time_seconds: float | None = None
    overshoot_percent: float | None = None
    settling_time_seconds: float | None = None
    frequency_hz: float | None = None
    duty_ratio: float | None = None


def measure_waveform(time_seconds: Floats, vector: Vector) -> Waveform | None:
    """Measure one waveform; None where there are too few points."""
    if len(time_seconds) < 4 or vector.is_complex or time_seconds[-1] <= time_seconds[0]:
        return None
    values = np.asarray(vector.values, np.float64)
    span = float(np.ptp(values))
    told = Waveform(*_mean_and_rms(time_seconds, values), span)
    if span <= 1e-9 * max(float(np.abs(values).max()), 1e-12):
        return told
    periodic = _oscillation(time_seconds, values, told)
    return periodic if periodic is not None else _step(time_seconds, values, told)


def _mean_and_rms(time: Floats, values: Floats) -> tuple[float, float]:
    duration = float(time[-1] - time[0])
    if duration <= 0:
        return float(values.mean()), float(np.sqrt((values**2).mean()))
    steps = np.diff(time)
    first, second = values[:-1], values[1:]
    mean = float((steps * (first + second)).sum() / 2 / duration)
    # A straight line from a to b has the mean square (a^2 + a b + b^2) / 3.
    square = float((steps * (first**2 + first * second + second**2)).sum() / 3 / duration)
    return mean, float(np.sqrt(max(square, 0.0)))


def _crossings(time: Floats, values: Floats, level: float, *, rising: bool) -> Floats:
    side = values >= level
    places = np.flatnonzero(~side[:-1] & side[1:] if rising else side[:-1] & ~side[1:])
    rise = values[places + 1] - values[places]
    found: Floats = time[places] + (level - values[places]) / rise * (time[places + 1] - time[places])
    return found


def _oscillation(time: Floats, values: Floats, told: Waveform) -> Waveform | None:
    """Measure what repeats itself: at least three periods at the end that are alike in length and height."""
    late = values[time >= time[0] + 0.5 * (time[-1] - time[0])]
    if len(late) < 4 or float(np.ptp(late)) < 0.05 * told.peak_to_peak:
        return None
    level = (float(late.max()) + float(late.min())) / 2
    rises = _crossings(time, values, level, rising=True)
    rises = rises[-(2 * _LEAST_PERIODS + 1) :] if len(rises) > 2 * _LEAST_PERIODS else rises
    if len(rises) < _LEAST_PERIODS + 1:
        return None
    periods = np.diff(rises)
    if float(np.ptp(periods)) > _ALIKE_RATIO * float(periods.mean()):
        return None
    heights = [float(np.ptp(values[(time >= a) & (time <= b)])) for a, b in itertools.pairwise(rises)]
    if min(heights) < (1 - 2 * _ALIKE_RATIO) * max(heights):
        # It rings down or up: the step is what counts.
        return None
    grid = np.concatenate([[rises[0]], time[(time > rises[0]) & (time < rises[-1])], [rises[-1]]])
    inside = np.interp(grid, time, values)
    mean, rms = _mean_and_rms(grid, inside)
    above = _time_above(grid, inside, level)
    return replace(
        told, mean=mean, rms=rms, frequency_hz=1 / float(periods.mean()), duty_ratio=above / (rises[-1] - rises[0])
    )


def _time_above(time: Floats, values: Floats, level: float) -> float:
    falls = _crossings(time, values, level, rising=False)
    rises = np.concatenate([[time[0]], _crossings(time, values, level, rising=True)])
    return float(sum(fall - rises[rises <= fall][-1] for fall in falls))


def _step(time: Floats, values: Floats, told: Waveform) -> Waveform:
    """Measure a step: from the first value to the last, where the last tenth of the run has come to rest."""
    first, final = float(values[0]), float(values[-1])
    height = final - first
    tail = values[time >= time[-1] - 0.1 * (time[-1] - time[0])]
    at_rest = float(np.abs(tail - final).max(initial=0.0)) <= _REST_RATIO * abs(height)
    if abs(height) < 0.2 * told.peak_to_peak or not at_rest:
        return told
    share = (values - first) / height
    start = _first(time, share, 1e-3)
    ten, ninety = _first(time, share, 0.1), _first(time, share, 0.9)
    outside = np.flatnonzero(np.abs(share - 1) > SETTLING_BAND_RATIO)
    last = int(outside[-1]) if len(outside) else 0
    edge = 1 + SETTLING_BAND_RATIO if share[last] > 1 else 1 - SETTLING_BAND_RATIO
    settled = float(np.interp(edge, *_rising_pair(share[last : last + 2], time[last : last + 2])))
    took = ninety - ten
    return replace(
        told,
        rise_time_seconds=took if height > 0 else None,
        fall_time_seconds=took if height < 0 else None,
        overshoot_percent=max(0.0, 100 * (float(share.max()) - 1)),
        settling_time_seconds=settled - start,
    )


def _rising_pair(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    return (x, y) if x[-1] >= x[0] else (x[::-1], y[::-1])


def _first(time: Floats, share: Floats, level: float) -> float:
    index = int(np.argmax(share >= level))
    if index == 0:
        return float(time[0])
    low, high = share[index - 1], share[index]
    return float(time[index - 1] + (level - low) / (high - low) * (time[index] - time[index - 1]))

"""What the tool answers: the JSON side, free of numpy. None means: not part of this analysis.

Class docstrings are read by models in every `tools/list`: they are short on purpose.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class VectorResult:
    """Final, min and max over the run; of an AC analysis in dB and degrees."""

    unit: str
    final: float | None = None
    min: float | None = None
    max: float | None = None
    mag_db_final: float | None = None
    mag_db_min: float | None = None
    mag_db_max: float | None = None
    phase_deg_final: float | None = None
    final_imag: float | None = None


@dataclass(frozen=True)
class Reading:
    """One vector at one point of the scale."""

    vector: str
    at: float
    value: float | None = None
    mag_db: float | None = None
    phase_deg: float | None = None


@dataclass(frozen=True)
class Measured:
    """Corners are at half power, -3.0103 dB from passband_db; settling is to 2 % of the step."""

    kind: str
    passband_db: float | None = None
    corner_hz: float | None = None
    lower_corner_hz: float | None = None
    upper_corner_hz: float | None = None
    center_hz: float | None = None
    bandwidth_hz: float | None = None
    quality_factor: float | None = None
    peak_db: float | None = None
    peak_hz: float | None = None
    unity_gain_hz: float | None = None
    phase_at_unity_deg: float | None = None
    mean: float | None = None
    rms: float | None = None
    peak_to_peak: float | None = None
    rise_time_seconds: float | None = None
    fall_time_seconds: float | None = None
    overshoot_percent: float | None = None
    settling_time_seconds: float | None = None
    frequency_hz: float | None = None
    duty_ratio: float | None = None


@dataclass(frozen=True)
class SimulationAnswer:
    """waveform_data has one list per name, all over the scale, thinned to max_points."""

    analysis: str
    """The card that was run."""
    analysis_type: str
    title: str
    convergence: str
    plot: str
    scale: str
    points_count: int
    results: dict[str, VectorResult]
    sim_time_seconds: float
    waveforms: list[str]
    deck_path: str
    values_at: list[Reading] | None = None
    measurements: dict[str, Measured] | None = None
    waveform_data: dict[str, list[float]] | None = None
    other_vectors: list[str] | None = None
    picture_file: str | None = None

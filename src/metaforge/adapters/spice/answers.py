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


Measured = dict[str, float | str]
"""`kind`, and what was measured by its name and unit: `corner_hz`, `overshoot_percent` ... A schema of all the names
would cost every listing more than it tells: a result shows those it has."""


@dataclass(frozen=True)
class SimulationAnswer:
    """measurements: kind, passband_db, corner_hz (half power, -3.0103 dB), center_hz, bandwidth_hz, unity_gain_hz ...;
    overshoot_percent, rise_time_seconds, settling_time_seconds (2 %), frequency_hz, mean, rms ... waveform_data: one
    list per name over the scale."""

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

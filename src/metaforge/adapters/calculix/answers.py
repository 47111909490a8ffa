"""What the tools answer: the JSON side, free of numpy. None means: not part of this analysis.

Class docstrings are read by models in every `tools/list`: they are short on purpose.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

Vector = Sequence[float]
"""x, y, z."""


@dataclass(frozen=True)
class Peak:
    """Largest stress; possibly singular where a support, sharp corner or point load lies within zone_mm."""

    von_mises_mpa: float
    at_mm: Vector
    region: str
    possibly_singular: bool
    reason: str = ""
    zone_mm: float | None = None
    outside_mpa: float | None = None
    outside_at_mm: Vector | None = None


@dataclass(frozen=True)
class SupportEcho:
    """As understood."""

    place: str
    faces: list[str]
    node_count: int
    held: list[str]
    reaction_n: Vector | None = None


@dataclass(frozen=True)
class LoadEcho:
    """As understood, with what acts in all."""

    place: str
    faces: list[str]
    kind: str
    area_mm2: float | None = None
    total_n: Vector | None = None
    total_w: float | None = None


@dataclass(frozen=True)
class MeshEcho:
    """Size and worst elements."""

    element_types: dict[str, int]
    min_scaled_jacobian_ratio: float
    max_aspect_ratio: float
    element_size_mm: float | None = None
    volume_mm3: float | None = None


@dataclass(frozen=True)
class MaterialEcho:
    """As used."""

    name: str
    youngs_modulus_mpa: float | None = None
    poissons_ratio: float | None = None
    density_kg_m3: float | None = None
    yield_strength_mpa: float | None = None
    thermal_conductivity_w_mk: float | None = None
    source: str = ""


@dataclass(frozen=True)
class Convergence:
    """Changes from a coarser mesh to this one."""

    coarse_size_mm: float
    coarse_element_count: int
    displacement_change_ratio: float
    peak_change_ratio: float
    verdict: str
    outside_change_ratio: float | None = None


@dataclass(frozen=True)
class FeaAnswer:
    """Results in the input file's frame."""

    load_case: str
    analysis_type: str
    input_kind: str
    mesh_elements: int
    mesh_nodes: int
    solver_time_seconds: float
    mesh: MeshEcho
    frd_file: str
    max_von_mises_mpa: dict[str, float] | None = None
    peak: Peak | None = None
    max_displacement_mm: float | None = None
    max_displacement_at_mm: Vector | None = None
    max_displacement_vector_mm: Vector | None = None
    reactions_n: Vector | None = None
    applied_n: Vector | None = None
    balance_error_ratio: float | None = None
    factor_of_safety: float | None = None
    factor_of_safety_outside_zone: float | None = None
    frequencies_hz: list[float] | None = None
    rigid_body_mode_count: int | None = None
    buckling_factors: list[float] | None = None
    min_temperature_c: float | None = None
    max_temperature_c: float | None = None
    supports: list[SupportEcho] = field(default_factory=list)
    loads: list[LoadEcho] = field(default_factory=list)
    materials: dict[str, MaterialEcho] = field(default_factory=dict)
    convergence: Convergence | None = None
    coordinate_frame: str = "the input file's own x, y, z"
    meshing_time_seconds: float | None = None
    picture_file: str | None = None
    deck_file: str | None = None


@dataclass(frozen=True)
class ThermalMoment:
    """One moment."""

    time_seconds: float
    min_temperature_c: float
    max_temperature_c: float


@dataclass(frozen=True)
class ThermalAnswer:
    """Results in the input file's frame; temperature_distribution_c is the hottest spot of each region."""

    analysis_mode: str
    input_kind: str
    min_temperature_c: float
    max_temperature_c: float
    max_temperature_at_mm: Vector
    min_temperature_at_mm: Vector
    mesh_elements: int
    mesh_nodes: int
    solver_time_seconds: float
    mesh: MeshEcho
    frd_file: str
    temperature_distribution_c: dict[str, float] = field(default_factory=dict)
    mean_temperature_c: dict[str, float] = field(default_factory=dict)
    heat_in_w: float | None = None
    heat_out_w: float | None = None
    balance_error_ratio: float | None = None
    max_heat_flux_w_m2: float | None = None
    history: list[ThermalMoment] | None = None
    supports: list[SupportEcho] = field(default_factory=list)
    loads: list[LoadEcho] = field(default_factory=list)
    materials: dict[str, MaterialEcho] = field(default_factory=dict)
    meshing_time_seconds: float | None = None
    picture_file: str | None = None
    deck_file: str | None = None


@dataclass(frozen=True)
class BadElementEcho:
    """Inside out."""

    element_id: int
    element_type: str
    centroid_mm: Vector
    scaled_jacobian_ratio: float


@dataclass(frozen=True)
class MeshVerdict:
    """Whether it can be solved, and what is wrong."""

    valid: bool
    element_count: int
    node_count: int
    element_types: dict[str, int]
    max_aspect_ratio: float
    min_scaled_jacobian_ratio: float
    issues: list[str]
    bad_elements: list[BadElementEcho]
    bounding_box_mm: list[float]
    volume_mm3: float | None = None
    element_sets: dict[str, int] = field(default_factory=dict)
    node_sets: dict[str, int] = field(default_factory=dict)
    surfaces: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Accuracy:
    """Whether the peak stands far above the rest."""

    suspicious: bool
    reason: str
    max_to_median_ratio: float | None = None


@dataclass(frozen=True)
class StressSummary:
    """Nodal von Mises."""

    nodes: int
    max_mpa: float
    min_mpa: float
    avg_mpa: float
    max_at_mm: Vector
    max_node: int
    accuracy: Accuracy


@dataclass(frozen=True)
class DisplacementSummary:
    """Nodal."""

    nodes: int
    max_mm: float
    max_at_mm: Vector
    max_node: int
    max_vector_mm: Vector


@dataclass(frozen=True)
class TemperatureSummary:
    """Nodal."""

    nodes: int
    min_c: float
    max_c: float
    max_at_mm: Vector


@dataclass(frozen=True)
class NodeResult:
    """One node."""

    node: int
    at_mm: Vector
    von_mises_mpa: float | None = None
    displacement_mm: Vector | None = None
    temperature_c: float | None = None


@dataclass(frozen=True)
class ResultMetadata:
    """What the file holds."""

    blocks: list[str]
    increments: int
    complete: bool
    solver_version: str = ""
    element_count: int = 0


@dataclass(frozen=True)
class ExtractedResults:
    """Last increment of the file."""

    node_count: int
    metadata: ResultMetadata
    stress: StressSummary | None = None
    displacement: DisplacementSummary | None = None
    temperature: TemperatureSummary | None = None
    node_data: list[NodeResult] | None = None
    node_data_omitted: int | None = None

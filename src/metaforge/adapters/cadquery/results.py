"""What the tools return: every number with its unit in its name, lengths in mm, the frame of the file."""

from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import WithJsonSchema

from metaforge.engineering.solid_guard import SolidFacts

# Three numbers, told to a model in a quarter of the tokens.
_NUMBERS = WithJsonSchema({"type": "array", "items": {"type": "number"}})
Vector = Annotated[tuple[float, float, float], _NUMBERS]
Direction = Annotated[tuple[float, float, float], WithJsonSchema({"type": "array"})]
"""Three numbers without a unit: a unit vector, a colour."""
Matrix = Annotated[tuple[Vector, Vector, Vector], WithJsonSchema({"type": "array"})]


@dataclass(frozen=True)
class BoundingBox:
    min_mm: Vector
    max_mm: Vector
    size_mm: Vector


def bounding_box(facts: SolidFacts) -> BoundingBox:
    """Return the box of measured facts; they have geometry."""
    bounds = facts.bounds_mm or (0.0,) * 6
    rounded = tuple(_rounded(value) for value in bounds)
    size = tuple(_rounded(high - low) for low, high in zip(bounds[:3], bounds[3:], strict=True))
    return BoundingBox(rounded[:3], rounded[3:], size)  # type: ignore[arg-type]


def size_words(facts: SolidFacts) -> str:
    """Say the extent: `50 x 30 x 10 mm`."""
    return " x ".join(f"{_rounded(length):.6g}" for length in facts.size_mm) + " mm"


def _rounded(value: float) -> float:
    """Kernels blow up boxes by their tolerance of 1e-7 mm; a nanometre is enough."""
    return round(value, 6) + 0.0


@dataclass(frozen=True)
class ShapeResult:
    cad_file: str
    volume_mm3: float
    surface_area_mm2: float
    bounding_box_mm: BoundingBox
    solids_count: int
    parameters_used: dict[str, Any]
    axes: str
    material: str | None = None
    density_kg_m3: float | None = None
    mass_kg: float | None = None


@dataclass(frozen=True)
class BooleanResult:
    output_file: str
    operation: str
    result_volume_mm3: float
    result_area_mm2: float
    bounding_box_mm: BoundingBox
    solids_count: int
    volume_change_mm3: float


@dataclass(frozen=True)
class Face:
    name: str
    type: str
    area_mm2: float
    centroid_mm: Vector
    normal: Direction | None = None
    radius_mm: float | None = None
    side: str | None = None


@dataclass(frozen=True)
class PartInfo:
    name: str
    solids_count: int
    volume_mm3: float
    colour_srgb: Direction | None = None


@dataclass(frozen=True)
class Properties:
    volume_mm3: float | None = None
    surface_area_mm2: float | None = None
    center_of_mass_mm: Vector | None = None
    bounding_box_mm: BoundingBox | None = None
    inertia_mm5: Matrix | None = None
    inertia_kg_mm2: Matrix | None = None
    principal_inertia_mm5: Direction | None = None
    mass_kg: float | None = None
    density_kg_m3: float | None = None
    solids_count: int | None = None
    shells_count: int | None = None
    faces_count: int | None = None
    is_valid: bool | None = None
    source_unit: str | None = None
    parts: list[PartInfo] | None = None
    parts_count: int | None = None
    distinct_parts_count: int | None = None
    colours_srgb: list[Direction] | None = None
    faces: list[Face] | None = None


@dataclass(frozen=True)
class PropertiesResult:
    file: str
    properties: Properties


@dataclass(frozen=True)
class ExportResult:
    output_file: str
    file_size_bytes: int
    format: str
    triangles_count: int | None = None


@dataclass(frozen=True)
class Deltas:
    """Against an earlier revision; size along x, y, z."""

    compared_to: str
    volume_mm3: float
    volume_percent: float | None
    surface_area_mm2: float
    size_mm: Vector
    solids_count: int


@dataclass(frozen=True)
class ScriptResult:
    cad_file: str
    script_text: str
    volume_mm3: float
    surface_area_mm2: float
    bounding_box_mm: BoundingBox
    solids_count: int
    parts: list[PartInfo]
    stdout: str = ""
    deltas: Deltas | None = None


@dataclass(frozen=True)
class Placement:
    """Translation, then rotation by an angle about an axis through the part's origin."""

    name: str
    position_mm: Vector
    rotation_axis: Direction
    rotation_deg: float


@dataclass(frozen=True)
class Residual:
    constraint: str
    distance_mm: float
    angle_deg: float


@dataclass(frozen=True)
class Interference:
    part_a: str
    part_b: str
    volume_mm3: float


@dataclass(frozen=True)
class AssemblyResult:
    assembly_file: str
    part_count: int
    total_volume_mm3: float
    bounding_box_mm: BoundingBox
    interference_check_passed: bool
    interferences: list[Interference]
    placements: list[Placement]
    parts: list[PartInfo]
    residuals: list[Residual] = field(default_factory=list)
    largest_residual_mm: float | None = None
    largest_residual_deg: float | None = None
    pairs_checked_count: int = 0


@dataclass(frozen=True)
class Boss:
    x_mm: float
    y_mm: float
    outer_diameter_mm: float
    hole_diameter_mm: float
    height_mm: float


@dataclass(frozen=True)
class MountingInfo:
    boss_count: int
    bosses: list[Boss]
    board_underside_z_mm: float


@dataclass(frozen=True)
class EnclosureResult:
    cad_file: str
    internal_volume_mm3: float
    external_dimensions_mm: Vector
    internal_dimensions_mm: Vector
    mounting_info: MountingInfo
    volume_mm3: float
    parts: list[PartInfo]
    cutouts_count: int
    axes: str
    mass_kg: float | None = None

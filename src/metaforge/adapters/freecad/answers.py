"""What the FreeCAD adapter's tools return."""

from dataclasses import dataclass
from typing import Literal

Box = tuple[float, float, float, float, float, float]
Vector = tuple[float, float, float]


@dataclass(frozen=True)
class SurfaceSet:
    """One surface set. `normal` is the mean outward normal; zeros where it cancels, as on a full cylinder."""

    bbox_mm: Box
    centroid_mm: Vector
    area_mm2: float
    normal: Vector
    kind: str


@dataclass(frozen=True)
class QualityMetrics:
    """Element quality by Verdict's definitions; the ideal element has 1 and 1."""

    min_scaled_jacobian_ratio: float
    max_aspect_ratio: float
    mean_aspect_ratio: float
    worst_element_id: int
    min_edge_mm: float
    max_edge_mm: float
    volume_error_ratio: float
    """Volume of the mesh over that of the CAD model, less 1."""


@dataclass(frozen=True)
class MeshAnswer:
    """A mesh file and what is in it."""

    mesh_file: str
    num_nodes: int
    num_elements: int
    element_types: dict[str, int]
    quality_metrics: QualityMetrics
    surface_sets: dict[str, SurfaceSet]
    surface_set_count: int
    element_sets: dict[str, int]
    mesh_bbox_mm: Box
    coordinate_frame: Literal["twin"]
    placement_baked: bool
    element_size_mm: float
    element_size_from: str
    volume_mm3: float
    mesher: str
    """Program and algorithm that made the mesh."""

"""A finite element mesh in millimetres, the way CalculiX names its elements.

Arrays keep node and element *ids* (positive, as in the deck), not positions; `positions` turns ids into rows.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ElementBlock:
    """Elements of one type.

    Attributes:
        type: CalculiX's name, such as `C3D10`.
        ids: element ids, shape (m,).
        nodes: node ids in CalculiX's order, shape (m, nodes per element).
        section: name of the element set that gives them a material; empty when none does.
    """

    type: str
    ids: Ids
    nodes: Ids
    section: str = ""


@dataclass(frozen=True)
class Surface:
    """A named set of element faces with its geometry.

    Attributes:
        faces: element id and CalculiX face number (1-based) per row, shape (f, 2).
        bbox_mm: xmin, ymin, zmin, xmax, ymax, zmax.
        centroid_mm: area-weighted centroid.
        area_mm2: total area.
        normal: mean outward unit normal; zeros where it cancels (a closed or round face).
        kind: `plane`, `cylinder`, `cone`, `sphere`, `torus` or `other`, from the CAD face.
    """

    faces: Ids
    bbox_mm: tuple[float, float, float, float, float, float]
    centroid_mm: tuple[float, float, float]
    area_mm2: float
    normal: tuple[float, float, float]
    kind: str = "other"


@dataclass(frozen=True)
class Mesh:
    """Nodes, elements and named sets.

    Attributes:
        node_ids: shape (n,), sorted.
        coordinates_mm: shape (n, 3).
        blocks: elements by type.
        node_sets, element_sets: name -> ids.
        surfaces: name -> Surface.
    """

    node_ids: Ids
    coordinates_mm: Floats
    blocks: tuple[ElementBlock, ...]
    node_sets: dict[str, Ids] = field(default_factory=dict)
    element_sets: dict[str, Ids] = field(default_factory=dict)
    surfaces: dict[str, Surface] = field(default_factory=dict)

    @property
    def node_count(self) -> int:
        return len(self.node_ids)

    @property
    def element_count(self) -> int:
        return sum(len(block.ids) for block in self.blocks)

    def positions(self, ids: Ids) -> Ids:
        """Return the rows of `coordinates_mm` for node ids.

        Raises:
            KeyError: a node id that the mesh does not have, named.
        """
        rows = np.searchsorted(self.node_ids, ids)
        rows = np.clip(rows, 0, len(self.node_ids) - 1)
        missing = self.node_ids[rows] != ids
        if missing.any():
            raise KeyError(int(np.asarray(ids)[missing].flat[0]))
        return np.asarray(rows, dtype=np.int64)

    def points_mm(self, ids: Ids) -> Floats:
        """Return coordinates of node ids, shape of `ids` + (3,)."""
        return np.asarray(self.coordinates_mm[self.positions(ids)], dtype=np.float64)

    def bbox_mm(self) -> tuple[float, float, float, float, float, float]:
        low, high = self.coordinates_mm.min(axis=0), self.coordinates_mm.max(axis=0)
        return (*map(float, low), *map(float, high))  # type: ignore[return-value]

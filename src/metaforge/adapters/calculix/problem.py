"""A boundary value problem in N-mm-MPa-t-s (heat in mW), ready to be written as a deck."""

from dataclasses import dataclass, field

import numpy as np

from metaforge.engineering.materials import Material
from metaforge.engineering.mesh import Floats, Ids, Mesh

TEMPERATURE_DOF = 11
T_MM3_PER_KG_M3 = 1e-12
MM2_S2K_PER_J_KGK = 1e6
MW_PER_W = 1000.0
MW_MM2_PER_W_M2 = 1e-3


@dataclass(frozen=True)
class Fixed:
    """Degrees of freedom (1 to 3 in mm, 11 in deg C) given at nodes."""

    label: str
    nodes: Ids
    values: dict[int, float]


@dataclass(frozen=True)
class Applied:
    """A load as nodal values.

    Attributes:
        label: what the caller asked for, in words.
        nodes: shape (n,).
        values: forces in N, shape (n, 3); heat in mW, shape (n, 1).
    """

    label: str
    nodes: Ids
    values: Floats

    @property
    def total(self) -> Floats:
        return np.asarray(self.values.sum(axis=0))


@dataclass(frozen=True)
class Film:
    """Convection on element faces."""

    label: str
    faces: Ids
    film_w_m2k: float
    ambient_c: float


@dataclass(frozen=True)
class Transient:
    """Duration of a transient and its fixed step."""

    duration_seconds: float
    step_seconds: float


@dataclass(frozen=True)
class Problem:
    """Everything a solve needs.

    Attributes:
        analysis: `static_stress`, `modal`, `buckling` or `thermal`.
        materials: by element section.
        temperature_c: of the whole part in a static analysis.
        reference_temperature_c: free of thermal stress; the start of a thermal analysis.
    """

    analysis: str
    mesh: Mesh
    materials: dict[str, Material]
    fixed: tuple[Fixed, ...] = ()
    applied: tuple[Applied, ...] = ()
    films: tuple[Film, ...] = ()
    temperature_c: float | None = None
    reference_temperature_c: float = 20.0
    mode_count: int = 0
    transient: Transient | None = None
    notes: tuple[str, ...] = field(default=())

    def fixed_nodes(self) -> Ids:
        """Return every node that anything is fixed at."""
        found = [each.nodes for each in self.fixed]
        return np.unique(np.concatenate(found)) if found else np.empty(0, dtype=np.int64)

    def held_mask(self, dofs: tuple[int, ...]) -> "np.ndarray[tuple[int, int], np.dtype[np.bool_]]":
        """Return, per node row and degree of freedom, whether it is given."""
        mask = np.zeros((self.mesh.node_count, len(dofs)), dtype=np.bool_)
        for each in self.fixed:
            rows = self.mesh.positions(each.nodes)
            for column, dof in enumerate(dofs):
                if dof in each.values:
                    mask[rows, column] = True
        return mask

    def applied_at_nodes(self, width: int) -> Floats:
        """Return the sum of all nodal loads per node row, shape (n, width)."""
        total = np.zeros((self.mesh.node_count, width))
        for each in self.applied:
            np.add.at(total, self.mesh.positions(each.nodes), each.values)
        return total

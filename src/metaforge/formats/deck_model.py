"""What the cards of a deck mean: nodes, elements, sets, surfaces, materials, sections, supports, loads, steps.

Only what the checks before a solve need; CalculiX itself reads the rest. Names are upper-case. `inp_model` fills it.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from metaforge.formats.inp import Card

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]

MAX_ID = 50_000_000
"""CalculiX sizes its tables by the highest id: 2e9 asks for 13 GB whatever the mesh."""

NODES_PER_ELEMENT = {
    "C3D4": 4, "C3D5": 5, "C3D6": 6, "C3D8": 8, "C3D8R": 8, "C3D8I": 8, "C3D10": 10, "C3D10T": 10, "C3D15": 15,
    "C3D20": 20, "C3D20R": 20, "C3D20RI": 20, "DC3D4": 4, "DC3D6": 6, "DC3D8": 8, "DC3D10": 10, "DC3D15": 15,
    "DC3D20": 20, "F3D4": 4, "F3D6": 6, "F3D8": 8, "S3": 3, "S4": 4, "S4R": 4, "S6": 6, "S8": 8, "S8R": 8,
    "M3D3": 3, "M3D4": 4, "M3D4R": 4, "M3D6": 6, "M3D8": 8, "M3D8R": 8, "CPS3": 3, "CPS4": 4, "CPS4R": 4,
    "CPS6": 6, "CPS8": 8, "CPS8R": 8, "CPE3": 3, "CPE4": 4, "CPE4R": 4, "CPE6": 6, "CPE8": 8, "CPE8R": 8,
    "CAX3": 3, "CAX4": 4, "CAX4R": 4, "CAX6": 6, "CAX8": 8, "CAX8R": 8, "B21": 2, "B31": 2, "B31R": 2, "B32": 3,
    "B32R": 3, "T2D2": 2, "T3D2": 2, "T3D3": 3, "SPRINGA": 2, "SPRING1": 1, "SPRING2": 2, "DASHPOTA": 2,
    "GAPUNI": 2, "MASS": 1, "DCOUP3D": 1, "D": 3, "COH3D6": 6, "COH3D8": 8,
}  # fmt: skip
"""Types whose node count is known; others (user elements) are taken line by line."""

PROCEDURES = (
    "STATIC", "FREQUENCY", "BUCKLE", "HEAT TRANSFER", "UNCOUPLED TEMPERATURE-DISPLACEMENT",
    "COUPLED TEMPERATURE-DISPLACEMENT", "DYNAMIC", "MODAL DYNAMIC", "STEADY STATE DYNAMICS", "COMPLEX FREQUENCY",
    "VISCO", "GREEN", "SENSITIVITY", "ELECTROMAGNETICS", "CFD", "CRACK PROPAGATION", "FEASIBLE DIRECTION",
    "SUBSTRUCTURE GENERATE",
)  # fmt: skip


@dataclass(frozen=True)
class ElementRows:
    """The elements of one *ELEMENT card."""

    type: str
    elset: str
    ids: Ids
    nodes: Ids
    line: int


@dataclass
class Material:
    """What a *MATERIAL says at its first temperature; None where it says nothing."""

    name: str
    line: int
    youngs_modulus: float | None = None
    poissons_ratio: float | None = None
    density: float | None = None
    conductivity: float | None = None
    specific_heat: float | None = None
    expansion: float | None = None
    keywords: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Section:
    """A section card: which elements, which material, and its first numbers (thickness, area ...)."""

    keyword: str
    elset: str
    material: str
    values: tuple[float, ...]
    line: int


@dataclass(frozen=True)
class Fixing:
    """One line of *BOUNDARY: nodes, first to last degree of freedom, value."""

    nodes: Ids
    first: int
    last: int
    value: float
    step: int
    line: int


@dataclass(frozen=True)
class PointLoad:
    """One line of *CLOAD or *CFLUX: the value goes to every node."""

    nodes: Ids
    dof: int
    value: float
    step: int


@dataclass
class DeckModel:
    """The model a deck describes."""

    node_ids: Ids = field(default_factory=lambda: np.empty(0, np.int64))
    coordinates: Floats = field(default_factory=lambda: np.empty((0, 3)))
    elements: list[ElementRows] = field(default_factory=list)
    node_sets: dict[str, Ids] = field(default_factory=dict)
    element_sets: dict[str, Ids] = field(default_factory=dict)
    surfaces: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """Element surfaces: element id and face number; faces of other kinds are left out."""
    materials: dict[str, Material] = field(default_factory=dict)
    sections: list[Section] = field(default_factory=list)
    fixings: list[Fixing] = field(default_factory=list)
    point_loads: list[PointLoad] = field(default_factory=list)
    procedures: list[tuple[str, Card]] = field(default_factory=list)
    """One per step: keyword and card."""
    keywords: set[str] = field(default_factory=set)
    links: list[Ids] = field(default_factory=list)
    """Groups of nodes tied to each other by equations, ties, rigid bodies or couplings."""
    loaded_steps: set[int] = field(default_factory=set)
    """Steps, from 1, with any load card."""

    @property
    def step_count(self) -> int:
        return len(self.procedures)

    def nodes_named(self, word: str) -> Ids | None:
        """Return the nodes of a set, or the node whose id `word` is; None when there are none."""
        if is_id(word):
            return np.array([int(word)], dtype=np.int64)
        return self.node_sets.get(word.upper())


def is_id(text: str) -> bool:
    """Whether a field is a node or element number: up to ten ASCII digits."""
    return text.isascii() and text.isdigit() and len(text) <= 10

"""Is every body held? Count the rigid-body motions that supports leave free, before a solver divides by them.

A held degree of freedom at point p along d stops the motions (t, r) with d.t + (p x d).r != 0. The rank of all such
rows, body by body, is what is held; its null space is what can still move.
"""

from dataclasses import dataclass

import numpy as np

from metaforge.engineering.boundary import components
from metaforge.engineering.element_types import ELEMENT_TYPES
from metaforge.engineering.mesh import Floats, Ids, Mesh

_ALL = (0, 1, 2, 3, 4, 5)
_IN_PLANE = (0, 1, 5)
_AXIAL = (1,)
_TOLERANCE = 1e-7


@dataclass(frozen=True)
class Held:
    """Degrees of freedom held at nodes: 1 to 3 translations, 4 to 6 rotations."""

    nodes: Ids
    dofs: tuple[int, ...]


@dataclass(frozen=True)
class LooseBody:
    """A body that can move without straining.

    Attributes:
        element_sets: names of the sections it consists of.
        node_ids: its nodes.
        centroid_mm: mean of its nodes.
        motions: what it can do, in words; one per free rigid-body motion.
    """

    element_sets: tuple[str, ...]
    node_ids: Ids
    centroid_mm: tuple[float, float, float]
    motions: tuple[str, ...]

    @property
    def node_count(self) -> int:
        return len(self.node_ids)


def loose_bodies(mesh: Mesh, held: list[Held], links: "list[Ids] | None" = None) -> list[LooseBody]:
    """Return the bodies that supports do not hold.

    Args:
        held: every held degree of freedom.
        links: groups of nodes tied to each other by equations, ties or rigid bodies.
    """
    body = components(mesh, links or [])
    count = int(body.max()) + 1 if len(body) else 0
    motions = _motions_by_body(mesh, body, count)
    rows_of: list[list[Floats]] = [[] for _ in range(count)]
    for each in held:
        nodes = each.nodes[np.isin(each.nodes, mesh.node_ids)]
        rows = mesh.positions(nodes)
        for number in np.unique(body[rows]):
            if number >= 0:
                points = mesh.coordinates_mm[rows[body[rows] == number]]
                rows_of[int(number)] += [_stopped(points, dof) for dof in each.dofs if 1 <= dof <= 6]
    found = []
    for number in range(count):
        inside = body == number
        points = mesh.coordinates_mm[inside]
        free = _free_motions(rows_of[number], points, motions[number])
        if free:
            centre = points.mean(axis=0)
            sets = tuple(sorted({b.section for b in mesh.blocks if len(b.ids) and _touches(mesh, b.nodes, inside)}))
            where = (float(centre[0]), float(centre[1]), float(centre[2]))
            found.append(LooseBody(sets, mesh.node_ids[inside], where, tuple(free)))
    return found


def _touches(mesh: Mesh, nodes: Ids, inside: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> bool:
    return bool(inside[mesh.positions(nodes[:, 0])].any())


def _motions_by_body(mesh: Mesh, body: Ids, count: int) -> list[tuple[int, ...]]:
    """Return which of the six motions a body has at all: plane and axisymmetric models have fewer."""
    motions: list[tuple[int, ...]] = [_ALL] * count
    for block in mesh.blocks:
        kind = ELEMENT_TYPES.get(block.type.upper())
        use = kind.use if kind else ""
        if use in ("plane_stress", "plane_strain", "axisymmetric") and len(block.ids):
            for number in np.unique(body[mesh.positions(block.nodes[:, 0])]):
                motions[int(number)] = _AXIAL if use == "axisymmetric" else _IN_PLANE
    return motions


def _stopped(points: Floats, dof: int) -> Floats:
    rows = np.zeros((len(points), 6))
    if dof > 3:
        rows[:, dof - 1] = 1.0
        return rows
    direction = np.zeros(3)
    direction[dof - 1] = 1.0
    rows[:, :3] = direction
    rows[:, 3:] = np.cross(points, direction)
    return rows


def _free_motions(stopped: list[Floats], points: Floats, motions: tuple[int, ...]) -> list[str]:
    size = float(np.ptp(points, axis=0).max()) or 1.0
    centre = points.mean(axis=0)
    rows = np.concatenate(stopped) if stopped else np.zeros((0, 6))
    rows = rows.copy()
    # Rotations are taken about the body's centre and scaled to its size, so that rank does not hang on units.
    rows[:, 3:] = (rows[:, 3:] - np.cross(centre, rows[:, :3])) / size
    rows = rows[:, list(motions)]
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    values, vectors = np.linalg.eigh(rows.T @ rows)
    limit = max(float(values.max(initial=0.0)), 1.0) * _TOLERANCE
    full = np.zeros((6, len(values)))
    full[list(motions)] = vectors
    return _named(full[:, values <= limit], len(motions))


def _named(free: Floats, possible: int) -> list[str]:
    """Say each free motion in words, pure translations and rotations about the axes first."""
    count = free.shape[1]
    if not count:
        return []
    words = [
        f"{'translation along' if index < 3 else 'rotation about'} {'xyz'[index % 3]}"
        for index in range(6)
        if np.linalg.norm(free[index]) > 1 - 1e-6
    ]
    return words + ["a combined translation and rotation"] * (count - len(words)) if count <= possible else words

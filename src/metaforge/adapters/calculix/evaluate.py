"""From result file to findings, and whether to believe them: balance, size, plausibility."""

from dataclasses import dataclass

import numpy as np

from metaforge.adapters.calculix.answers import Peak
from metaforge.adapters.calculix.fields import (
    Vector,
    largest_by_region,
    magnitude_field,
    number,
    point,
    region_nodes,
    result_mesh,
    stress_field,
)
from metaforge.adapters.calculix.peak import judge_peak
from metaforge.adapters.calculix.problem import Problem
from metaforge.core.errors import ToolError
from metaforge.engineering.mesh import Floats, Ids, Mesh
from metaforge.formats.frd import Results

BALANCE_LIMIT_RATIO = 0.01
LARGE_DISPLACEMENT_RATIO = 0.1
FLOWN_AWAY_RATIO = 10.0


@dataclass(frozen=True)
class Strength:
    """What a static solve found."""

    by_region: dict[str, float]
    peak: Peak | None
    max_displacement_mm: float
    max_displacement_at_mm: Vector
    max_displacement_vector_mm: Vector


@dataclass(frozen=True)
class Balance:
    """Reactions against loads; the error is relative to the larger of them."""

    reactions_n: Vector
    applied_n: Vector
    error_ratio: float


def evaluate_strength(
    results: Results, regions: dict[str, Ids], support_nodes: Ids, point_load_nodes: Ids, zone_mm: float | None = None
) -> Strength:
    """Find the largest stress and displacement of the last increment.

    Raises:
        ToolError: the model moved many times its own size.
    """
    mesh = result_mesh(results)
    block = results.last("DISP")
    assert block is not None
    moved = magnitude_field(block, mesh)
    row = moved.largest()
    refuse_flown_away(float(moved.values[row]), mesh)
    stress = stress_field(results, mesh)
    nodes = region_nodes(mesh, regions)
    peak = judge_peak(stress, mesh, nodes, support_nodes, point_load_nodes, zone_mm) if stress is not None else None
    vector = block.values[np.flatnonzero(block.node_ids == moved.node_ids[row])[0], :3]
    return Strength(
        largest_by_region(stress, nodes) if stress is not None else {},
        peak,
        number(moved.values[row]),
        moved.at(row),
        point(vector),
    )


def refuse_flown_away(moved_mm: float, mesh: Mesh) -> None:
    """Raise when a model moved many times its own size: that is no deformation.

    Raises:
        ToolError: says how far it moved.
    """
    size = _size(mesh)
    if moved_mm > FLOWN_AWAY_RATIO * size:
        raise ToolError(
            f"The model moved {moved_mm:.3g} mm, {moved_mm / size:.3g} times its own size of {size:.4g} mm: "
            "it is not held, or its stiffness or loads are in the wrong unit; nothing of this is reported",
            kind="flown_away",
            fix="hold every body, and check that E is in MPa and forces in N",
        )


def displacement_warnings(moved_mm: float, mesh: Mesh) -> list[str]:
    """Return a warning when the displacement is too large for linear theory."""
    size = _size(mesh)
    if moved_mm <= LARGE_DISPLACEMENT_RATIO * size:
        return []
    return [
        f"The largest displacement, {moved_mm:.4g} mm, is {moved_mm / size:.0%} of the model's size: linear theory "
        "does not hold there; check load and stiffness, or use a deck with *STEP, NLGEOM"
    ]


def _size(mesh: Mesh) -> float:
    return float(np.ptp(mesh.coordinates_mm, axis=0).max()) or 1.0


def balance_of(
    results: Results, mesh: Mesh, held: "np.ndarray[tuple[int, int], np.dtype[np.bool_]]", applied: Floats
) -> Balance | None:
    """Hold the solver's nodal forces against the loads.

    The result file's nodal force is reaction plus load; on held degrees of freedom the load is taken off.

    Args:
        mesh: the mesh that was solved.
        held: per node row and direction, whether it is held.
        applied: loads per node row in N.

    Returns:
        None when the file does not hold the force of every node.
    """
    block = results.last("FORC")
    if block is None or len(block.node_ids) != mesh.node_count or not np.isin(block.node_ids, mesh.node_ids).all():
        return None
    forces = np.zeros((mesh.node_count, 3))
    forces[mesh.positions(block.node_ids)] = block.values[:, :3]
    reactions = np.where(held, forces - applied, 0.0)
    total, load = reactions.sum(axis=0), applied.sum(axis=0)
    scale = max(float(np.linalg.norm(total)), float(np.linalg.norm(load)), 1e-3 * float(np.abs(forces).sum()), 1e-30)
    error = float(np.linalg.norm(total + load)) / scale
    # Result files carry six digits: what is below that share of the forces at work is noise.
    noise = 1e-6 * float(np.abs(forces).sum())
    clean = np.where(np.abs(total) < noise, 0.0, total)
    return Balance(point(clean), point(load), float(f"{error:.3g}"))


def support_reactions(results: Results, problem: Problem) -> list[Vector | None]:
    """Return what each support carries, in N; a node held twice counts for the first support."""
    block = results.last("FORC")
    if block is None:
        return [None] * len(problem.fixed)
    mesh = problem.mesh
    forces = np.zeros((mesh.node_count, 3))
    forces[mesh.positions(block.node_ids)] = block.values[:, :3]
    forces -= problem.applied_at_nodes(3)
    noise = 1e-6 * float(np.abs(forces).sum())
    taken = np.zeros((mesh.node_count, 3), dtype=np.bool_)
    found: list[Vector | None] = []
    for fixed in problem.fixed:
        rows = mesh.positions(fixed.nodes)
        mine = np.zeros_like(taken)
        for dof in fixed.values:
            mine[rows, dof - 1] = True
        mine &= ~taken
        taken |= mine
        total = np.where(mine, forces, 0.0).sum(axis=0)
        found.append(point(np.where(np.abs(total) < noise, 0.0, total)))
    return found


def refuse_out_of_balance(balance: Balance | None) -> None:
    """Raise when reactions do not answer the loads within 1 %.

    Raises:
        ToolError: both sums and the error.
    """
    if balance is not None and balance.error_ratio > BALANCE_LIMIT_RATIO:
        raise ToolError(
            f"Reactions {list(balance.reactions_n)} N do not answer the loads {list(balance.applied_n)} N: "
            f"{balance.error_ratio:.1%} is missing (limit {BALANCE_LIMIT_RATIO:.0%}); the result is not reported",
            kind="out_of_balance",
            fix="look for bodies that are not held and for elements of very different stiffness",
        )

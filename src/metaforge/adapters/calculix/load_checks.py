"""Loads and held values that solve without a word and answer another question than was meant."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from metaforge.adapters.calculix.answers import LoadEcho
from metaforge.adapters.calculix.arguments import HeatLoad, Load
from metaforge.adapters.calculix.problem import TEMPERATURE_DOF, Problem
from metaforge.core.errors import InvalidArguments

ABSOLUTE_ZERO_C = -273.15
CANCELLED_RATIO = 1e-9
"""Nodal loads whose sum is below this share of what was applied are nothing but rounding."""
HELD_RATIO = 0.5
_GRAVITY_MM_S2 = (9700.0, 9900.0)


def refuse_impossible_temperatures(loads: Sequence[HeatLoad], initial_temperature_c: float) -> None:
    """Raise for a temperature below absolute zero.

    Raises:
        InvalidArguments: names the field and its value.
    """
    given = [("initial_temperature_c", initial_temperature_c)]
    for index, load in enumerate(loads):
        for name in ("temperature_c", "ambient_c", "reference_temperature_c"):
            value = getattr(load, name, None)
            if value is not None:
                given.append((f"loads.{index}.{name}", value))
    for name, value in given:
        if value < ABSOLUTE_ZERO_C:
            raise InvalidArguments(
                f"{name} {value:g} deg C is below absolute zero, {ABSOLUTE_ZERO_C} deg C",
                fields={name: f">= {ABSOLUTE_ZERO_C}"},
            )


def load_warnings(problem: Problem, loads: Sequence[HeatLoad], echoes: Sequence[LoadEcho]) -> list[str]:
    """Return what is doubtful about the loads of a problem, in sentences with numbers."""
    thermal = problem.analysis == "thermal"
    if problem.analysis == "modal":
        return _modal(loads)
    warnings = [*_held_loads(problem, echoes, 1 if thermal else 3), *_held_twice(problem)]
    if not thermal:
        warnings += [*_nothing(problem), *_gravity(loads)]
    return warnings


def _modal(loads: Sequence[HeatLoad]) -> list[str]:
    if not loads:
        return []
    count = f"{len(loads)} load{'s' if len(loads) > 1 else ''}"
    return [
        f"loads play no part in a modal analysis: {count} left out. These are the frequencies of the unloaded part; "
        "tension raises them and compression lowers them"
    ]


def _held_loads(problem: Problem, echoes: Sequence[LoadEcho], width: int) -> list[str]:
    if not problem.applied:
        return []
    held = problem.held_mask((1, 2, 3) if width == 3 else (TEMPERATURE_DOF,))
    mine = [echo for echo in echoes if (echo.total_n if width == 3 else echo.total_w) is not None]
    found = []
    for load, echo in zip(problem.applied, mine, strict=True):
        on_held = np.abs(load.values[held[problem.mesh.positions(load.nodes)]]).sum()
        total = np.abs(load.values).sum()
        if total and on_held > HELD_RATIO * total:
            share = f"{on_held / total:.0%}"
            found.append(
                f"{share} of the load on {echo.place} acts on held nodes and strains nothing"
                if width == 3
                else f"{share} of the heat on {echo.place} enters nodes held at a temperature and warms nothing"
            )
    return found


def _held_twice(problem: Problem) -> list[str]:
    """Two values for the same nodes: the solver keeps one of them, and where the faces meet there is a jump."""
    found = []
    for one, other in combinations(problem.fixed, 2):
        differ = [dof for dof, value in one.values.items() if other.values.get(dof, value) != value]
        count = len(np.intersect1d(one.nodes, other.nodes)) if differ else 0
        if not count:
            continue
        dof = differ[0]
        unit, what = ("deg C", "heat flow") if dof == TEMPERATURE_DOF else ("mm", "stress and reactions")
        found.append(
            f"{count} nodes belong to both '{one.label}' ({one.values[dof]:g} {unit}) and '{other.label}' "
            f"({other.values[dof]:g} {unit}): where they meet the {what} is singular and grows with every finer mesh"
        )
    return found


def _nothing(problem: Problem) -> list[str]:
    warmed = problem.temperature_c is not None and problem.temperature_c != problem.reference_temperature_c
    if warmed or any(any(each.values.values()) for each in problem.fixed):
        return []
    applied = sum(float(np.abs(each.values).sum()) for each in problem.applied)
    left = float(np.abs(problem.applied_at_nodes(3)).sum())
    if left > CANCELLED_RATIO * applied:
        return []
    why = "the loads cancel out node by node" if applied else "every load is zero"
    return [f"Nothing is loaded: {why}, so stress and displacement are zero whatever the part"]


def _gravity(loads: Sequence[HeatLoad]) -> list[str]:
    low, high = _GRAVITY_MM_S2
    for load in loads:
        vector = load.acceleration_m_s2 if isinstance(load, Load) else None
        size = float(np.linalg.norm(vector)) if vector is not None else 0.0
        if low <= size <= high:
            return [f"An acceleration of {size:g} m/s2 is 1000 g: was it given in mm/s2? Gravity is 9.81 m/s2"]
    return []

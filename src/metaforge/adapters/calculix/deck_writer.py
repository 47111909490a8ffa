"""Write a problem as a CalculiX deck. The same problem gives the same bytes."""

from collections.abc import Iterator

import numpy as np

from metaforge.adapters.calculix.problem import (
    MM2_S2K_PER_J_KGK,
    MW_MM2_PER_W_M2,
    T_MM3_PER_KG_M3,
    TEMPERATURE_DOF,
    Problem,
)
from metaforge.engineering.materials import Material
from metaforge.engineering.mesh import ElementBlock, Ids

MOST_OUTPUTS = 50
"""A transient writes at most about this many moments: result files stay readable."""


def write_deck(problem: Problem) -> str:
    """Return the deck's text."""
    return "\n".join(_lines(problem)) + "\n"


def set_name(name: str) -> str:
    """Return a name CalculiX takes: capitals, digits, underscores, at most 60."""
    return "".join(c if c.isalnum() and c.isascii() else "_" for c in name.upper())[:60]


def _lines(problem: Problem) -> Iterator[str]:
    yield "** N-mm-MPa-t-s; heat in mW"
    yield "*NODE, NSET=NALL"
    for ident, (x, y, z) in zip(problem.mesh.node_ids.tolist(), problem.mesh.coordinates_mm.tolist(), strict=True):
        yield f"{ident},{x:.10g},{y:.10g},{z:.10g}"
    for block in problem.mesh.blocks:
        yield from _elements(block)
    yield from _materials(problem)
    if problem.temperature_c is not None or problem.analysis == "thermal":
        yield "*INITIAL CONDITIONS, TYPE=TEMPERATURE"
        yield f"NALL,{problem.reference_temperature_c:.10g}"
    for index, fixed in enumerate(problem.fixed, start=1):
        yield f"** {fixed.label}"
        yield f"*NSET, NSET=SUPPORT_{index}"
        yield from _id_lines(fixed.nodes)
    yield "*BOUNDARY"
    for index, fixed in enumerate(problem.fixed, start=1):
        for dof, value in fixed.values.items():
            if value == 0 or problem.analysis == "modal":
                yield f"SUPPORT_{index},{dof},{dof}"
    yield from _step(problem)


def _elements(block: ElementBlock) -> Iterator[str]:
    yield f"*ELEMENT, TYPE={block.type}, ELSET={set_name(block.section)}"
    for ident, nodes in zip(block.ids.tolist(), block.nodes.tolist(), strict=True):
        values = [ident, *nodes]
        for start in range(0, len(values), 16):
            row = ",".join(map(str, values[start : start + 16]))
            yield row + ("," if start + 16 < len(values) else "")


def _materials(problem: Problem) -> Iterator[str]:
    for section, material in problem.materials.items():
        name = set_name(f"M_{section}")
        yield f"** {material.name}: {material.source}"
        yield f"*MATERIAL, NAME={name}"
        yield from _properties(material)
        yield f"*SOLID SECTION, ELSET={set_name(section)}, MATERIAL={name}"


def _properties(material: Material) -> Iterator[str]:
    if material.youngs_modulus_mpa is not None:
        yield "*ELASTIC"
        yield f"{material.youngs_modulus_mpa:.10g},{material.poissons_ratio or 0.0:.10g}"
    if material.density_kg_m3 is not None:
        yield "*DENSITY"
        yield f"{material.density_kg_m3 * T_MM3_PER_KG_M3:.10g}"
    if material.expansion_per_k is not None:
        yield "*EXPANSION"
        yield f"{material.expansion_per_k:.10g}"
    if material.thermal_conductivity_w_mk is not None:
        # W/(m K) and mW/(mm K) are the same number.
        yield "*CONDUCTIVITY"
        yield f"{material.thermal_conductivity_w_mk:.10g}"
    if material.specific_heat_j_kgk is not None:
        yield "*SPECIFIC HEAT"
        yield f"{material.specific_heat_j_kgk * MM2_S2K_PER_J_KGK:.10g}"


def _step(problem: Problem) -> Iterator[str]:
    yield _step_card(problem)
    yield from _procedure(problem)
    if problem.analysis != "modal":
        yield from _prescribed(problem)
        yield from _point_loads(problem)
        yield from _film_lines(problem)
    if problem.temperature_c is not None:
        yield "*TEMPERATURE"
        yield f"NALL,{problem.temperature_c:.10g}"
    yield from _requests(problem)
    yield "*END STEP"


def _step_card(problem: Problem) -> str:
    if problem.transient is None:
        return "*STEP"
    increments = round(problem.transient.duration_seconds / problem.transient.step_seconds)
    return f"*STEP, INC={max(100, 2 * increments + 10)}"


def _procedure(problem: Problem) -> Iterator[str]:
    if problem.analysis == "static_stress":
        yield "*STATIC"
    elif problem.analysis == "modal":
        yield "*FREQUENCY"
        yield f"{problem.mode_count}"
    elif problem.analysis == "buckling":
        yield "*BUCKLE"
        yield f"{problem.mode_count},1.E-3"
    elif problem.transient is None:
        yield "*HEAT TRANSFER, STEADY STATE"
    else:
        yield "*HEAT TRANSFER, DIRECT"
        yield f"{problem.transient.step_seconds:.10g},{problem.transient.duration_seconds:.10g}"


def _prescribed(problem: Problem) -> Iterator[str]:
    rows = [
        f"SUPPORT_{index},{dof},{dof},{value:.10g}"
        for index, fixed in enumerate(problem.fixed, start=1)
        for dof, value in fixed.values.items()
        if value != 0
    ]
    if rows:
        yield "*BOUNDARY"
        yield from rows


def _point_loads(problem: Problem) -> Iterator[str]:
    if not problem.applied:
        return
    width = problem.applied[0].values.shape[1]
    total = problem.applied_at_nodes(width)
    yield "*CFLUX" if width == 1 else "*CLOAD"
    for column in range(width):
        dof = TEMPERATURE_DOF if width == 1 else column + 1
        for row in np.flatnonzero(total[:, column]):
            yield f"{problem.mesh.node_ids[row]},{dof},{total[row, column]:.10g}"


def _film_lines(problem: Problem) -> Iterator[str]:
    if not problem.films:
        return
    yield "*FILM"
    for film in problem.films:
        for element, face in film.faces.tolist():
            yield f"{element},F{face},{film.ambient_c:.10g},{film.film_w_m2k * MW_MM2_PER_W_M2:.10g}"


def _requests(problem: Problem) -> Iterator[str]:
    if problem.analysis == "thermal":
        if problem.transient is not None:
            count = round(problem.transient.duration_seconds / problem.transient.step_seconds)
            yield f"*NODE FILE, FREQUENCY={max(1, count // MOST_OUTPUTS)}"
            yield "NT"
            return
        yield "*NODE FILE"
        yield "NT,RFL"
        yield "*EL FILE"
        yield "HFL"
        return
    yield "*NODE FILE"
    yield "U,RF" if problem.analysis == "static_stress" else "U"
    if problem.analysis == "static_stress":
        yield "*EL FILE"
        yield "S"


def _id_lines(ids: Ids) -> Iterator[str]:
    values = ids.tolist()
    for start in range(0, len(values), 12):
        yield ",".join(map(str, values[start : start + 12])) + ","

"""Draw what a solve found."""

from pathlib import Path

import numpy as np

from metaforge.adapters.calculix.answers import FeaAnswer, ThermalAnswer
from metaforge.adapters.calculix.build import Built
from metaforge.adapters.calculix.fields import Field, result_mesh, scalar_field, stress_field
from metaforge.engineering.mesh import Floats, Mesh
from metaforge.engineering.pictures_fea import Arrow, Picture, draw
from metaforge.formats.frd import ResultBlock, Results

MOST_SUPPORT_MARKS = 60
MOST_ARROWS = 9


def draw_fea(path: Path, results: Results, answer: FeaAnswer, built: Built | None) -> str:
    """Draw stresses, the first mode shape or temperatures, and return the caption."""
    mesh = result_mesh(results)
    if answer.analysis_type == "thermal":
        return _draw_temperature(path, results, mesh, answer.load_case, answer.mesh_elements)
    moved = _displacements(results, mesh, first=answer.analysis_type != "static_stress")
    supports, arrows = _supports(built), _arrows(built)
    if answer.analysis_type == "static_stress":
        stress = stress_field(results, mesh)
        if stress is not None:
            values = _spread(stress, mesh)
            title = f"{answer.load_case}: von Mises stress"
            subtitle = _stress_line(answer)
            picture = Picture(
                mesh, values, "von Mises, MPa", title, subtitle, int(np.nanargmax(values)), moved, supports, arrows
            )
            factor = draw(picture, path)
            return f"Von Mises stress in MPa on the deformed part (displacements x {factor:g}); {subtitle}"
    length = np.linalg.norm(moved, axis=1) if moved is not None else np.zeros(mesh.node_count)
    if answer.frequencies_hz:
        title = f"{answer.load_case}: first mode, {answer.frequencies_hz[0]:.5g} Hz"
        subtitle = "shape only: amplitudes have no scale; " + ", ".join(f"{f:.5g}" for f in answer.frequencies_hz[:5])
        subtitle += " Hz"
        length = length / max(float(length.max()), 1e-30)
        words = "amplitude"
    elif answer.buckling_factors:
        title = f"{answer.load_case}: first buckling shape, {answer.buckling_factors[0]:.5g} times the load"
        subtitle, words = "shape only: amplitudes have no scale", "amplitude"
        length = length / max(float(length.max()), 1e-30)
    else:
        title, words = f"{answer.load_case}: displacement", "displacement, mm"
        subtitle = f"max displacement {answer.max_displacement_mm or 0:.4g} mm, {answer.mesh_elements} elements"
    is_mode = answer.analysis_type != "static_stress"
    picture = Picture(
        mesh, length, words, title, subtitle, int(length.argmax()), moved, supports, () if is_mode else arrows, is_mode
    )
    draw(picture, path)
    return f"{title}; {subtitle}"


def _stress_line(answer: FeaAnswer) -> str:
    text = ""
    if answer.peak is not None:
        text = f"max {answer.peak.von_mises_mpa:.4g} MPa"
        if answer.peak.possibly_singular and answer.peak.outside_mpa is not None:
            text += f" (possibly singular; {answer.peak.outside_mpa:.4g} MPa away from it)"
    return text + f", max displacement {answer.max_displacement_mm:.4g} mm, {answer.mesh_elements} elements"


def draw_heat(path: Path, results: Results, answer: ThermalAnswer) -> str:
    """Draw temperatures, and return the caption."""
    return _draw_temperature(path, results, result_mesh(results), answer.analysis_mode, answer.mesh_elements)


def _draw_temperature(path: Path, results: Results, mesh: Mesh, label: str, elements: int) -> str:
    block = results.last("NDTEMP")
    assert block is not None
    values = _spread(scalar_field(block, mesh), mesh)
    subtitle = f"{np.nanmin(values):.5g} to {np.nanmax(values):.5g} deg C, {elements} elements"
    title = f"{label.replace('_', ' ')}: temperature"
    draw(Picture(mesh, values, "deg C", title, subtitle, int(np.nanargmax(values))), path)
    return f"Temperature in deg C; {subtitle}"


def _spread(field: Field, mesh: Mesh) -> Floats:
    values = np.full(mesh.node_count, np.nan)
    values[mesh.positions(field.node_ids)] = field.values
    return values


def _displacements(results: Results, mesh: Mesh, *, first: bool) -> Floats | None:
    blocks = results.named("DISP")
    if not blocks:
        return None
    block = _first_elastic(blocks) if first else blocks[-1]
    moved = np.zeros((mesh.node_count, 3))
    known = np.isin(block.node_ids, mesh.node_ids)
    moved[mesh.positions(block.node_ids[known])] = block.values[known][:, :3]
    return moved


def _first_elastic(blocks: list[ResultBlock]) -> ResultBlock:
    """Return the first mode that is no rigid-body motion: the first above a thousandth of the highest frequency."""
    highest = max(abs(block.value) for block in blocks)
    return next((block for block in blocks if block.value > 1e-3 * highest), blocks[0])


def _supports(built: Built | None) -> list[tuple[float, float, float]]:
    if built is None:
        return []
    nodes = built.problem.fixed_nodes()
    points = built.problem.mesh.points_mm(nodes[:: max(1, len(nodes) // MOST_SUPPORT_MARKS)])
    return [(float(x), float(y), float(z)) for x, y, z in points]


def _arrows(built: Built | None) -> list[Arrow]:
    """Return a few arrows per load, where its largest nodal forces act."""
    arrows: list[Arrow] = []
    for load in built.problem.applied if built is not None else ():
        if load.values.shape[1] != 3:
            continue
        strength = np.linalg.norm(load.values, axis=1)
        rows = np.flatnonzero(strength > 0.2 * strength.max(initial=0.0))
        rows = rows[:: max(1, len(rows) // MOST_ARROWS)][:MOST_ARROWS]
        for row, (x, y, z) in zip(rows, built.problem.mesh.points_mm(load.nodes[rows]) if built else (), strict=True):
            fx, fy, fz = (float(value) for value in load.values[row])
            arrows.append(Arrow((float(x), float(y), float(z)), (fx, fy, fz)))
    return arrows

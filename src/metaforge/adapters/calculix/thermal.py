"""Heat conduction, steady and transient: temperatures, and heat in against heat out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from metaforge.adapters.calculix.answers import FeaAnswer, ThermalAnswer, ThermalMoment
from metaforge.adapters.calculix.arguments import HeatLoad
from metaforge.adapters.calculix.build import Built, Wanted, build_problem
from metaforge.adapters.calculix.fields import Field, largest_by_region, number, region_nodes, result_mesh, scalar_field
from metaforge.adapters.calculix.job import Outputs, drawn, mesh_echo, solve_problem
from metaforge.adapters.calculix.meshed import Meshed, material_echoes, material_warnings
from metaforge.adapters.calculix.problem import (
    MW_MM2_PER_W_M2,
    MW_PER_W,
    Film,
    Problem,
    Transient,
)
from metaforge.adapters.calculix.summary import thermal_summary
from metaforge.core.errors import InvalidArguments, ToolError
from metaforge.engineering.consistent_loads import area_shares
from metaforge.engineering.mesh import Floats
from metaforge.formats.frd import Results
from metaforge.tools.context import Answer, Picture, ToolContext

BALANCE_LIMIT_RATIO = 0.01
RESULT_DIGITS_RATIO = 1e-6
DEFAULT_STEPS = 50
MOST_STEPS = 2000
MOST_MOMENTS = 50


@dataclass(frozen=True)
class ThermalRequest:
    """What the caller wants."""

    loads: Sequence[HeatLoad]
    mode: str
    duration_seconds: float | None
    time_step_seconds: float | None
    initial_temperature_c: float
    picture: bool
    outputs: Outputs


def run_heat(request: ThermalRequest, meshed: Meshed, ctx: ToolContext) -> Answer[ThermalAnswer]:
    """Solve, judge and write.

    Raises:
        ToolError, InvalidArguments: with the cause in the field's words.
    """
    transient = _transient(request)
    built = build_problem(
        meshed.mesh,
        meshed.materials,
        Wanted("thermal", (), request.loads, transient=transient, initial_temperature_c=request.initial_temperature_c),
    )
    spent = meshed.meshing_time_seconds or 0.0
    solved, deck, outputs = solve_problem(built.problem, ctx, ("NDTEMP",), spent, request.outputs)
    mesh = result_mesh(solved.results)
    block = solved.results.last("NDTEMP")
    assert block is not None
    heat = scalar_field(block, mesh)
    hot, cold = heat.largest(), int(heat.values.argmin())
    nodes = region_nodes(mesh, meshed.regions)
    answer = ThermalAnswer(
        analysis_mode=request.mode,
        input_kind=meshed.kind,
        min_temperature_c=number(heat.values.min()),
        max_temperature_c=number(heat.values.max()),
        max_temperature_at_mm=heat.at(hot),
        min_temperature_at_mm=heat.at(cold),
        temperature_distribution_c=largest_by_region(heat, nodes),
        mean_temperature_c={
            name: number(heat.values[np.isin(heat.node_ids, ids)].mean()) for name, ids in nodes.items()
        },
        mesh_elements=meshed.mesh.element_count,
        mesh_nodes=meshed.mesh.node_count,
        solver_time_seconds=round(solved.solver_time_seconds, 3),
        mesh=mesh_echo(meshed.quality, meshed.element_size_mm, meshed.volume_mm3),
        frd_file=str(outputs.frd),
        deck_file=str(outputs.deck),
        loads=built.loads,
        materials=material_echoes(meshed.materials),
        meshing_time_seconds=meshed.meshing_time_seconds,
        max_heat_flux_w_m2=_largest_flux(solved.results),
        history=_history(solved.results) if transient is not None else None,
    )
    warnings = [*meshed.warnings, *material_warnings(meshed.materials), *built.warnings, *solved.warnings]
    if transient is None:
        answer = _with_balance(answer, solved.results, built.problem, heat)
    else:
        warnings += _transient_warnings(built, heat)
    files = outputs.write(ctx, solved, deck)
    pictures: tuple[Picture, ...] = ()
    if request.picture:
        from metaforge.adapters.calculix.show import draw_heat

        pictures, notes = drawn(outputs, ctx, lambda path: draw_heat(path, solved.results, answer), files)
        warnings += notes
        answer = replace(answer, picture_file=str(outputs.picture) if pictures else None)
    return Answer(
        answer,
        summary=thermal_summary(answer),
        warnings=tuple(dict.fromkeys(warnings)),
        next_step=f"calculix.extract_results with frd_path: {answer.frd_file}",
        files=tuple(files),
        pictures=pictures,
        programs={"ccx": solved.version, **meshed.programs},
    )


def as_fea(
    load_case: str, loads: Sequence[HeatLoad], picture: bool, outputs: Outputs, meshed: Meshed, ctx: ToolContext
) -> Answer[FeaAnswer]:
    """Solve steady heat and answer in the shape of `run_fea`."""
    request = ThermalRequest(loads, "steady_state", None, None, 20.0, picture, outputs)
    found = run_heat(request, meshed, ctx)
    heat = found.data
    answer = FeaAnswer(
        load_case=load_case,
        analysis_type="thermal",
        input_kind=heat.input_kind,
        mesh_elements=heat.mesh_elements,
        mesh_nodes=heat.mesh_nodes,
        solver_time_seconds=heat.solver_time_seconds,
        mesh=heat.mesh,
        frd_file=heat.frd_file,
        min_temperature_c=heat.min_temperature_c,
        max_temperature_c=heat.max_temperature_c,
        balance_error_ratio=heat.balance_error_ratio,
        loads=heat.loads,
        materials=heat.materials,
        meshing_time_seconds=heat.meshing_time_seconds,
        picture_file=heat.picture_file,
        deck_file=heat.deck_file,
    )
    return Answer(answer, found.summary, found.warnings, found.next_step, found.files, found.pictures, found.programs)


def _transient(request: ThermalRequest) -> Transient | None:
    if request.mode == "steady_state":
        return None
    if request.duration_seconds is None:
        raise InvalidArguments(
            "A transient needs duration_seconds", fields={"duration_seconds": "how long to follow the heat, in s"}
        )
    step = request.time_step_seconds or request.duration_seconds / DEFAULT_STEPS
    count = request.duration_seconds / step
    if count < 1 or count > MOST_STEPS:
        raise InvalidArguments(
            f"{request.duration_seconds:g} s in steps of {step:g} s are {count:.0f} steps; 1 to {MOST_STEPS} can be",
            fields={"time_step_seconds": f"{request.duration_seconds / MOST_STEPS:g} or more"},
        )
    return Transient(request.duration_seconds, step)


def _largest_flux(results: Results) -> float | None:
    """Return the largest heat flux in W/m2; the file has mW/mm2."""
    block = results.last("FLUX")
    if block is None or not len(block.values):
        return None
    return number(float(np.linalg.norm(block.values[:, :3], axis=1).max()) / MW_MM2_PER_W_M2)


def _history(results: Results) -> list[ThermalMoment]:
    blocks = [block for block in results.named("NDTEMP") if block.complete and len(block.values)]
    picked = np.unique(np.linspace(0, len(blocks) - 1, min(len(blocks), MOST_MOMENTS)).round().astype(int))
    return [
        ThermalMoment(
            number(blocks[i].value), number(blocks[i].values[:, 0].min()), number(blocks[i].values[:, 0].max())
        )
        for i in picked
    ]


def _with_balance(answer: ThermalAnswer, results: Results, problem: Problem, heat: Field) -> ThermalAnswer:
    """Hold heat put in and drawn at held temperatures against convection.

    Raises:
        ToolError: more than 1 % is missing.
    """
    block = results.last("RFL")
    if block is None or len(block.node_ids) != problem.mesh.node_count:
        return answer
    flow = np.zeros((problem.mesh.node_count, 1))
    flow[problem.mesh.positions(block.node_ids)] = block.values[:, :1]
    films = [_convected(problem, film, heat) for film in problem.films]
    convected = np.sum(films, axis=0) if films else np.zeros_like(flow)
    # Heat conducted away from a node is what was put in there, less what convection took.
    drawn = flow - problem.applied_at_nodes(1) + convected
    free = np.ones(problem.mesh.node_count, dtype=np.bool_)
    parts = [float(load.total[0]) for load in problem.applied] + [-float(film.sum()) for film in films]
    for fixed in problem.fixed:
        rows = problem.mesh.positions(fixed.nodes)
        rows = rows[free[rows]]
        free[rows] = False
        parts.append(float(drawn[rows].sum()))
    heat_in, heat_out = sum(p for p in parts if p > 0), -sum(p for p in parts if p < 0)
    scale = max(heat_in, heat_out)
    missing = abs(heat_in - heat_out)
    error = missing / scale if missing > _rounding_mw(problem, heat) else 0.0
    if error > BALANCE_LIMIT_RATIO:
        raise ToolError(
            f"Heat in ({heat_in / MW_PER_W:.4g} W) and out ({heat_out / MW_PER_W:.4g} W) differ by {error:.1%} "
            f"(limit {BALANCE_LIMIT_RATIO:.0%}); the result is not reported",
            kind="out_of_balance",
            fix="use a smaller element_size_mm",
        )
    return replace(
        answer,
        heat_in_w=number(heat_in / MW_PER_W),
        heat_out_w=number(heat_out / MW_PER_W),
        balance_error_ratio=float(f"{error:.3g}"),
    )


def _rounding_mw(problem: Problem, heat: Field) -> float:
    """Return the heat that six digits of a temperature stand for: a part that is warm all over conducts nothing."""
    warmth = float(np.abs(heat.values).max())
    conductivity = max(material.thermal_conductivity_w_mk or 0.0 for material in problem.materials.values())
    conducted = conductivity * float(np.ptp(problem.mesh.coordinates_mm, axis=0).max())
    films = sum(
        f.film_w_m2k * MW_MM2_PER_W_M2 * float(area_shares(problem.mesh, f.faces)[1].sum()) for f in problem.films
    )
    return RESULT_DIGITS_RATIO * warmth * (conducted + films)


def _convected(problem: Problem, film: Film, heat: Field) -> Floats:
    """Return the heat (mW) that convection takes from each node, to the accuracy of nodal areas."""
    taken = np.zeros((problem.mesh.node_count, 1))
    nodes, areas = area_shares(problem.mesh, film.faces)
    temperatures = heat.values[np.searchsorted(heat.node_ids, nodes)]
    coefficient = film.film_w_m2k * MW_MM2_PER_W_M2
    taken[problem.mesh.positions(nodes), 0] = coefficient * areas * (temperatures - film.ambient_c)
    return taken


def _transient_warnings(built: Built, heat: Field) -> list[str]:
    """Warn when temperatures leave the range that data allow: the step is too long for the mesh, or too short."""
    problem = built.problem
    if problem.applied:
        return []
    given = [value for fixed in problem.fixed for value in fixed.values.values()]
    given += [film.ambient_c for film in problem.films] + [problem.reference_temperature_c]
    low, high = min(given), max(given)
    slack = 0.01 * max(high - low, 1e-9)
    if heat.values.min() < low - slack or heat.values.max() > high + slack:
        return [
            f"Temperatures from {heat.values.min():.4g} to {heat.values.max():.4g} deg C leave the range of what was "
            f"given ({low:g} to {high:g}): use longer time steps or a smaller element size"
        ]
    return []

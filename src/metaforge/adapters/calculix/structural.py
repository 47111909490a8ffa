"""Stress, modes and buckling of a part: from STEP or mesh to judged numbers."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from metaforge.adapters.calculix.answers import Convergence, FeaAnswer, SupportEcho
from metaforge.adapters.calculix.arguments import Load, Support
from metaforge.adapters.calculix.build import Built, Wanted, build_problem
from metaforge.adapters.calculix.deck_writer import write_deck
from metaforge.adapters.calculix.evaluate import (
    Balance,
    Strength,
    balance_of,
    displacement_warnings,
    evaluate_strength,
    refuse_out_of_balance,
    support_reactions,
)
from metaforge.adapters.calculix.fields import number
from metaforge.adapters.calculix.job import Outputs, drawn, mesh_echo, run_deck, solve_problem
from metaforge.adapters.calculix.meshed import Meshed, material_echoes, material_warnings, mesh_cad
from metaforge.adapters.calculix.solver import Solved
from metaforge.adapters.calculix.summary import fea_next_step, fea_summary
from metaforge.core.errors import ToolError
from metaforge.engineering.materials import Material
from metaforge.formats.dat import read_buckling_factors, read_frequencies
from metaforge.tools.context import Answer, Picture, ToolContext

COARSER = 1.5
CONVERGED_RATIO = 0.05
RIGID_RATIO = 1e-4
"""A mode whose eigenvalue is below this share of the first elastic one is a rigid-body motion."""
NEEDS = {"static_stress": ("DISP", "STRESS"), "modal": ("DISP",), "buckling": ()}


@dataclass(frozen=True)
class StructuralRequest:
    """What the caller wants of a part without a complete deck."""

    path: str
    load_case: str
    analysis: str
    supports: Sequence[Support]
    loads: Sequence[Load]
    mode_count: int
    mesh_convergence: bool
    picture: bool
    outputs: Outputs
    material: Material | None
    materials: dict[str, Material]


def run_structural(request: StructuralRequest, meshed: Meshed, ctx: ToolContext) -> Answer[FeaAnswer]:
    """Solve, judge and write.

    Raises:
        ToolError, InvalidArguments: with the cause in the field's words.
    """
    started = time.monotonic()
    built = build_problem(
        meshed.mesh,
        meshed.materials,
        Wanted(request.analysis, request.supports, request.loads, request.mode_count),
    )
    if request.analysis == "modal" and built.rigid_body_modes:
        # The rigid-body modes come first and are not what was asked for.
        built = replace(built, problem=replace(built.problem, mode_count=request.mode_count + built.rigid_body_modes))
    spent = meshed.meshing_time_seconds or 0.0
    solved, deck, outputs = solve_problem(built.problem, ctx, NEEDS[request.analysis], spent, request.outputs)
    warnings = [*meshed.warnings, *material_warnings(meshed.materials), *built.warnings, *solved.warnings]
    answer = FeaAnswer(
        load_case=request.load_case,
        analysis_type=request.analysis,
        input_kind=meshed.kind,
        mesh_elements=meshed.mesh.element_count,
        mesh_nodes=meshed.mesh.node_count,
        solver_time_seconds=round(solved.solver_time_seconds, 3),
        mesh=mesh_echo(meshed.quality, meshed.element_size_mm, meshed.volume_mm3),
        frd_file=str(outputs.frd),
        deck_file=str(outputs.deck),
        supports=built.supports,
        loads=built.loads,
        materials=material_echoes(meshed.materials),
        meshing_time_seconds=meshed.meshing_time_seconds,
    )
    strength: Strength | None = None
    if request.analysis == "static_stress":
        strength = evaluate_strength(
            solved.results, meshed.regions, built.problem.fixed_nodes(), built.point_load_nodes
        )
        answer = _with_strength(answer, strength, meshed, built, solved)
        warnings += displacement_warnings(strength.max_displacement_mm, meshed.mesh) + _yield_warnings(answer)
    elif request.analysis == "modal":
        answer = with_frequencies(answer, solved.dat, built.rigid_body_modes)
    else:
        answer = with_buckling_factors(answer, solved.dat)
    if request.mesh_convergence and strength is not None:
        spent += time.monotonic() - started
        convergence, note = _convergence(request, meshed, strength, ctx, spent)
        answer = replace(answer, convergence=convergence)
        warnings += note
    elif request.mesh_convergence:
        warnings.append(f"mesh_convergence compares static_stress results; it does nothing for {request.analysis}")
    return finish(answer, outputs, solved, deck, warnings, ctx, request.picture, built, meshed.programs)


def finish(
    answer: FeaAnswer,
    outputs: Outputs,
    solved: Solved,
    deck: str,
    warnings: list[str],
    ctx: ToolContext,
    picture: bool,
    built: Built | None,
    programs: dict[str, str],
) -> Answer[FeaAnswer]:
    """Write the files and say the verdict."""
    files = outputs.write(ctx, solved, deck)
    pictures: tuple[Picture, ...] = ()
    if picture:
        from metaforge.adapters.calculix.show import draw_fea

        pictures, notes = drawn(outputs, ctx, lambda path: draw_fea(path, solved.results, answer, built), files)
        warnings = [*warnings, *notes]
        answer = replace(answer, picture_file=str(outputs.picture) if pictures else None)
    return Answer(
        answer,
        summary=fea_summary(answer),
        warnings=tuple(dict.fromkeys(warnings)),
        next_step=fea_next_step(answer),
        files=tuple(files),
        pictures=pictures,
        programs={"ccx": solved.version, **programs},
    )


def _with_strength(answer: FeaAnswer, strength: Strength, meshed: Meshed, built: Built, solved: Solved) -> FeaAnswer:
    problem = built.problem
    held, applied = problem.held_mask((1, 2, 3)), problem.applied_at_nodes(3)
    balance = balance_of(solved.results, problem.mesh, held, applied)
    refuse_out_of_balance(balance)
    reactions = support_reactions(solved.results, problem)
    supports: list[SupportEcho] = [
        replace(echo, reaction_n=reaction) for echo, reaction in zip(answer.supports, reactions, strict=True)
    ]
    answer = replace(answer, supports=supports)
    return with_findings(
        answer, strength, balance, {name: m.yield_strength_mpa for name, m in meshed.materials.items()}
    )


def with_findings(
    answer: FeaAnswer, strength: Strength, balance: Balance | None, yields_mpa: dict[str, float | None]
) -> FeaAnswer:
    """Fill in stresses, displacements, balance and, where the yield strength is known, factors of safety."""
    peak = strength.peak
    known = [value for value in yields_mpa.values() if value is not None]
    lowest = min(known) if known and len(known) == len(yields_mpa) else None
    return replace(
        answer,
        max_von_mises_mpa=strength.by_region or None,
        peak=peak,
        max_displacement_mm=strength.max_displacement_mm,
        max_displacement_at_mm=strength.max_displacement_at_mm,
        max_displacement_vector_mm=strength.max_displacement_vector_mm,
        reactions_n=balance.reactions_n if balance else None,
        applied_n=balance.applied_n if balance else None,
        balance_error_ratio=balance.error_ratio if balance else None,
        factor_of_safety=_factor(lowest, peak.von_mises_mpa if peak else None),
        factor_of_safety_outside_zone=_factor(lowest, peak.outside_mpa if peak else None),
    )


def _yield_warnings(answer: FeaAnswer) -> list[str]:
    """Warn where the material yields: a linear analysis knows nothing of that."""
    singular = answer.peak is not None and answer.peak.possibly_singular
    factor = answer.factor_of_safety_outside_zone if singular else answer.factor_of_safety
    if factor is None or factor >= 1 or answer.peak is None:
        return []
    stress = answer.peak.outside_mpa if singular else answer.peak.von_mises_mpa
    return [
        f"The material yields: {stress:.4g} MPa{' outside the singular zone' if singular else ''} is "
        f"{1 / factor:.3g} times the yield strength, and a linear analysis does not hold there"
    ]


def _factor(yield_mpa: float | None, stress_mpa: float | None) -> float | None:
    if yield_mpa is None or not stress_mpa:
        return None
    return float(f"{yield_mpa / stress_mpa:.3g}")


def with_frequencies(answer: FeaAnswer, dat: str, rigid_body_modes: int) -> FeaAnswer:
    """Fill in the natural frequencies, rigid-body modes apart.

    Raises:
        ToolError: no frequency, or a negative one that is no rigid-body mode.
    """
    modes = read_frequencies(dat)
    if not modes:
        raise ToolError("CalculiX found no frequency", kind="no_results", fix="ask for fewer modes, check density")
    rest = [mode.eigenvalue for mode in modes if mode.number > rigid_body_modes]
    lowest = min((value for value in rest if value > 0), default=float("inf"))
    # Numbers count from the first rigid-body mode even where a lower limit leaves those out of the table.
    elastic = [mode for mode in modes if mode.number > rigid_body_modes or mode.eigenvalue > RIGID_RATIO * lowest]
    if not elastic:
        raise ToolError(
            f"CalculiX found rigid-body modes only ({len(modes)})", kind="no_results", fix="ask for more modes"
        )
    if any(mode.eigenvalue < 0 for mode in elastic):
        raise ToolError(
            f"Mode {elastic[0].number} has a negative eigenvalue ({elastic[0].eigenvalue:.3g}): the model is unstable "
            "or not connected",
            kind="negative_eigenvalue",
            fix="check supports and preload",
        )
    return replace(
        answer,
        frequencies_hz=[number(mode.frequency_hz) for mode in elastic],
        rigid_body_mode_count=rigid_body_modes,
    )


def with_buckling_factors(answer: FeaAnswer, dat: str) -> FeaAnswer:
    """Fill in the factors by which the load may grow before the part buckles.

    Raises:
        ToolError: there is none, or none that is positive: CalculiX looks for the nearest factors above zero, and what
            it prints below is neither the nearest of the reversed load nor any other buckling load.
    """
    factors = read_buckling_factors(dat)
    positive = [number(each) for each in factors if each > 0]
    if not factors:
        raise ToolError("CalculiX found no buckling factor", kind="no_results", fix="check the loads")
    if not positive:
        raise ToolError(
            f"The load does not buckle the part: none of {len(factors)} buckling factors is positive",
            kind="does_not_buckle",
            fix="check the sign of the load: compression presses on the part; reverse it to find its buckling load",
        )
    return replace(answer, buckling_factors=positive)


def _convergence(
    request: StructuralRequest, meshed: Meshed, fine: Strength, ctx: ToolContext, spent_seconds: float
) -> tuple[Convergence | None, list[str]]:
    """Solve again on a mesh COARSER times as coarse and compare."""
    if meshed.kind != "step" or meshed.element_size_mm is None:
        return None, ["mesh_convergence needs a STEP file: a given mesh cannot be made coarser"]
    ctx.progress(0.7, "solving a coarser mesh for comparison")
    coarse_mesh = mesh_cad(request.path, ctx, request.material, request.materials, meshed.element_size_mm * COARSER)
    built = build_problem(
        coarse_mesh.mesh, coarse_mesh.materials, Wanted("static_stress", request.supports, request.loads)
    )
    solved = run_deck(write_deck(built.problem), ctx, built.problem.mesh, NEEDS["static_stress"], spent_seconds)
    # The same zone in mm, so that both meshes are read at the same places.
    zone = fine.peak.zone_mm if fine.peak else None
    coarse = evaluate_strength(
        solved.results, coarse_mesh.regions, built.problem.fixed_nodes(), built.point_load_nodes, zone
    )
    if fine.peak is None or coarse.peak is None:
        return None, []
    outside = _change(fine.peak.outside_mpa, coarse.peak.outside_mpa)
    moved = _change(fine.max_displacement_mm, coarse.max_displacement_mm) or 0.0
    peak = _change(fine.peak.von_mises_mpa, coarse.peak.von_mises_mpa) or 0.0
    judged = outside if fine.peak.possibly_singular and outside is not None else peak
    steady = abs(moved) <= CONVERGED_RATIO and abs(judged) <= CONVERGED_RATIO
    what = "stress outside the zone" if fine.peak.possibly_singular else "peak stress"
    verdict = (
        f"{'converged' if steady else 'not converged'}: displacement {moved:+.1%}, {what} {judged:+.1%} from "
        f"{coarse_mesh.element_size_mm:.3g} mm to {meshed.element_size_mm:.3g} mm (limit {CONVERGED_RATIO:.0%})"
    )
    convergence = Convergence(
        coarse_mesh.element_size_mm or 0.0, coarse_mesh.mesh.element_count, moved, peak, verdict, outside
    )
    fix = f"; use element_size_mm {meshed.element_size_mm / COARSER:.3g}"
    return convergence, [] if steady else [f"Mesh {verdict}{fix}"]


def _change(fine: float | None, coarse: float | None) -> float | None:
    if fine is None or not coarse or not np.isfinite(coarse):
        return None
    return float(f"{fine / coarse - 1:.3g}")

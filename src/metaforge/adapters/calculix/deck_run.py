"""A complete deck: checked, given the result requests it lacks, solved as it stands, judged."""

from dataclasses import replace

import numpy as np

from metaforge.adapters.calculix.answers import FeaAnswer, MaterialEcho
from metaforge.adapters.calculix.deck_checks import contact_only_bodies, pre_solve_warnings, rigid_body_modes
from metaforge.adapters.calculix.deck_source import Source, step_analysis
from metaforge.adapters.calculix.evaluate import (
    BALANCE_LIMIT_RATIO,
    Balance,
    balance_of,
    displacement_warnings,
    evaluate_strength,
)
from metaforge.adapters.calculix.fields import number, result_mesh, scalar_field
from metaforge.adapters.calculix.job import Outputs, mesh_echo, run_deck
from metaforge.adapters.calculix.meshed import regions_of
from metaforge.adapters.calculix.problem import T_MM3_PER_KG_M3
from metaforge.adapters.calculix.solver import Solved
from metaforge.adapters.calculix.structural import finish, with_buckling_factors, with_findings, with_frequencies
from metaforge.core.errors import InvalidArguments, ToolError
from metaforge.engineering.element_types import ELEMENT_TYPES
from metaforge.engineering.mesh import Floats, Ids
from metaforge.engineering.mesh_quality import measure
from metaforge.formats.inp import Card, fields
from metaforge.tools.context import Answer, ToolContext

_WANTED = {
    "static_stress": (("NODE FILE", ("U", "RF")), ("EL FILE", ("S",))),
    "modal": (("NODE FILE", ("U",)),),
    "buckling": (("NODE FILE", ("U",)),),
    "thermal": (("NODE FILE", ("NT",)),),
}
_NEEDS = {"static_stress": ("DISP",), "modal": ("DISP",), "buckling": (), "thermal": ("NDTEMP",)}
_SAME_AS = {"NODE OUTPUT": "NODE FILE", "ELEMENT OUTPUT": "EL FILE"}
# What carries forces past *BOUNDARY: sums over held nodes say nothing there.
_OPEN_BALANCE = frozenset(
    {"CONTACT PAIR", "TIE", "EQUATION", "MPC", "RIGID BODY", "COUPLING", "DISTRIBUTING COUPLING", "TRANSFORM",
     "CYCLIC SYMMETRY MODEL", "PRE-TENSION SECTION", "SPRING", "DASHPOT", "GAP", "DYNAMIC"}
)  # fmt: skip


def run_complete_deck(
    source: Source, load_case: str, analysis: str, outputs: Outputs, picture: bool, ctx: ToolContext
) -> Answer[FeaAnswer]:
    """Solve a deck that has its own *STEP.

    Raises:
        InvalidArguments: the deck computes something else than asked.
        ToolError: it cannot be right, or could not be solved.
    """
    found = step_analysis(source)
    if found != analysis:
        raise InvalidArguments(
            f"The deck's last step is *{source.model.procedures[-1][0]}: that is analysis_type {found}, not {analysis}",
            fields={"analysis_type": found},
        )
    quality = measure(source.mesh)
    warnings = pre_solve_warnings(source, quality, analysis)
    deck = complete(source, analysis)
    outputs = outputs.settle(deck, ctx)
    solved = _solve(source, deck, analysis, ctx)
    answer = FeaAnswer(
        load_case=load_case,
        analysis_type=analysis,
        input_kind="deck",
        mesh_elements=source.mesh.element_count,
        mesh_nodes=source.mesh.node_count,
        solver_time_seconds=round(solved.solver_time_seconds, 3),
        mesh=mesh_echo(quality, None, number(quality.volume_mm3) if quality.volume_mm3 > 0 else None),
        frd_file=str(outputs.frd),
        deck_file=str(outputs.deck),
        materials=_echoes(source),
        coordinate_frame="the deck's own x, y, z",
    )
    if analysis == "static_stress":
        answer = _judge(answer, source, solved, warnings)
    elif analysis == "modal":
        answer = with_frequencies(answer, solved.dat, rigid_body_modes(source))
    elif analysis == "buckling":
        answer = with_buckling_factors(answer, solved.dat)
    else:
        block = solved.results.last("NDTEMP")
        assert block is not None
        heat = scalar_field(block, result_mesh(solved.results))
        answer = replace(
            answer, min_temperature_c=number(heat.values.min()), max_temperature_c=number(heat.values.max())
        )
    return finish(answer, outputs, solved, deck, [*warnings, *solved.warnings], ctx, picture, None, {})


def _solve(source: Source, deck: str, analysis: str, ctx: ToolContext) -> Solved:
    try:
        return run_deck(deck, ctx, source.mesh, _NEEDS[analysis], 0.0)
    except ToolError as fault:
        bodies = contact_only_bodies(source)
        if fault.kind not in ("no_convergence", "singular_matrix", "not_finite") or not bodies:
            raise
        raise ToolError(
            f"The solution does not converge: {bodies[0]} is held only by contact, and until it touches nothing "
            "stops it",
            kind="held_only_by_contact",
            where=fault.where,
            fix="prescribe a displacement instead of the force, tie the body down with a soft spring, or close the "
            "gap with *CONTACT PAIR, ADJUST",
        ) from None


def complete(source: Source, analysis: str) -> str:
    """Return the deck with the results that judging needs asked for in every step."""
    cards = list(source.cards)
    at = 0
    while at < len(cards):
        if cards[at].keyword == "STEP":
            end = next((i for i in range(at, len(cards)) if cards[i].keyword == "END STEP"), len(cards))
            body = _with_requests(cards[at:end], analysis)
            cards[at:end] = body
            at += len(body)
        at += 1
    return replace(source, cards=cards).text()


def _with_requests(step: list[Card], analysis: str) -> list[Card]:
    made = list(step)
    for keyword, wanted in _WANTED[analysis]:
        rows = [i for i, card in enumerate(made) if _SAME_AS.get(card.keyword, card.keyword) == keyword]
        if not rows:
            made.append(Card(keyword, {}, 0, [", ".join(wanted)], [0], text=f"*{keyword}"))
            continue
        card = made[rows[0]]
        have = {name.upper() for row in card.rows for name in fields(row)}
        missing = [name for name in wanted if name not in have]
        if missing:
            first = ", ".join([*(fields(card.rows[0]) if card.rows else []), *missing])
            made[rows[0]] = replace(card, rows=[first, *card.rows[1:]])
    return made


def _judge(answer: FeaAnswer, source: Source, solved: Solved, warnings: list[str]) -> FeaAnswer:
    held_nodes = _held_nodes(source)
    regions = regions_of(source.mesh)
    strength = evaluate_strength(solved.results, regions, held_nodes, _point_load_nodes(source))
    warnings += displacement_warnings(strength.max_displacement_mm, result_mesh(solved.results))
    balance = _balance(source, solved)
    if balance is None:
        warnings.append(
            "Reactions were not held against the loads: shells, beams, ties and contact carry forces in other ways too"
        )
    elif balance.error_ratio > BALANCE_LIMIT_RATIO:
        warnings.append(
            f"Reactions {list(balance.reactions_n)} N do not answer the loads {list(balance.applied_n)} N: "
            f"{balance.error_ratio:.1%} is missing"
        )
    return with_findings(answer, strength, balance, {})


def _held_nodes(source: Source) -> Ids:
    nodes = [f.nodes for f in source.model.fixings if 1 <= f.first <= 6]
    return np.unique(np.concatenate(nodes)) if nodes else np.empty(0, np.int64)


def _point_load_nodes(source: Source) -> Ids:
    """Return loaded nodes when only a few are: a force on one node is a point load."""
    nodes = [load.nodes for load in source.model.point_loads if load.value]
    loaded = np.unique(np.concatenate(nodes)) if nodes else np.empty(0, np.int64)
    return loaded if len(loaded) <= 3 else np.empty(0, np.int64)


def _balance(source: Source, solved: Solved) -> Balance | None:
    mesh = source.mesh
    solid = all((kind := ELEMENT_TYPES.get(b.type)) is not None and kind.use == "solid" for b in mesh.blocks)
    if not solid or source.model.keywords & _OPEN_BALANCE:
        return None
    used = np.unique(np.concatenate([b.nodes.ravel() for b in mesh.blocks]))
    inside = np.isin(mesh.node_ids, used)
    mesh = replace(mesh, node_ids=mesh.node_ids[inside], coordinates_mm=mesh.coordinates_mm[inside])
    held = np.zeros((mesh.node_count, 3), dtype=np.bool_)
    for fixing in source.model.fixings:
        nodes = fixing.nodes[np.isin(fixing.nodes, mesh.node_ids)]
        for dof in range(max(1, fixing.first), min(3, fixing.last) + 1):
            held[mesh.positions(nodes), dof - 1] = True
    applied = _applied(source, solved, mesh.node_ids, held)
    return balance_of(solved.results, mesh, held, applied) if applied is not None else None


def _applied(
    source: Source, solved: Solved, node_ids: Ids, held: "np.ndarray[tuple[int, int], np.dtype[np.bool_]]"
) -> Floats | None:
    """Return the loads per node: from *CLOAD where that is all there is, else as the solver took them."""
    applied = np.zeros((len(node_ids), 3))
    simple = source.model.step_count == 1 and not source.model.keywords & {
        "DLOAD", "DSLOAD", "TEMPERATURE", "AMPLITUDE", "INITIAL CONDITIONS",
    }  # fmt: skip
    if simple:
        for load in source.model.point_loads:
            if 1 <= load.dof <= 3:
                rows = np.searchsorted(node_ids, load.nodes[np.isin(load.nodes, node_ids)])
                np.add.at(applied[:, load.dof - 1], rows, load.value)
        return applied
    block = solved.results.last("FORC")
    if block is None or not np.isin(node_ids, block.node_ids).all():
        return None
    order = np.argsort(block.node_ids)
    forces = block.values[order][np.searchsorted(block.node_ids[order], node_ids), :3]
    return np.where(held, 0.0, forces)


def _echoes(source: Source) -> dict[str, MaterialEcho]:
    return {
        section.elset: MaterialEcho(
            material.name,
            material.youngs_modulus,
            material.poissons_ratio,
            None if material.density is None else number(material.density / T_MM3_PER_KG_M3),
            None,
            material.conductivity,
            f"the deck, line {material.line}",
        )
        for section in source.model.sections
        if (material := source.model.materials.get(section.material)) is not None
    }

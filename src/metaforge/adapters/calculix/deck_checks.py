"""Judge a complete deck before CalculiX sees it: it solves nonsense without a word."""

from collections.abc import Iterator

import numpy as np

from metaforge.adapters.calculix.deck_source import Source
from metaforge.adapters.calculix.element_traps import element_warnings, refuse_inverted
from metaforge.core.errors import ToolError
from metaforge.engineering.element_types import ELEMENT_TYPES
from metaforge.engineering.mesh_quality import Quality
from metaforge.engineering.restraint import Held, LooseBody, loose_bodies
from metaforge.engineering.unit_plausibility import check_material, check_size

_NO_SECTION_NEEDED = frozenset({"MASS", "DCOUP3D", "SPRINGA", "SPRING1", "SPRING2", "DASHPOTA", "GAPUNI"})
_NO_STIFFNESS_CHECK = frozenset(
    {"SPRINGA", "SPRING1", "SPRING2", "DASHPOTA", "GAPUNI", "TRANSFORM", "RIGID BODY", "COUPLING",
     "DISTRIBUTING COUPLING", "MPC", "CYCLIC SYMMETRY MODEL", "USER ELEMENT"}
)  # fmt: skip
"""Keywords and types whose own rules decide what is held; their models are judged by the result instead."""
_CONTACT = frozenset({"CONTACT PAIR", "CONTACT FILE", "SURFACE INTERACTION"})


def pre_solve_warnings(source: Source, quality: Quality, analysis: str) -> list[str]:
    """Check a deck.

    Returns:
        Warnings, each a sentence with a number.

    Raises:
        ToolError: it cannot give a right answer: no material, elements inside out, nothing held.
    """
    _refuse_no_section(source)
    refuse_inverted(quality)
    warnings = [*_unit_warnings(source)]
    if analysis != "thermal":
        warnings = [*element_warnings(source.mesh, quality), *_plane_stress_warnings(source), *warnings]
    if analysis in ("static_stress", "buckling"):
        warnings += _restraint_warnings(source)
        if not source.model.loaded_steps and not any(f.value for f in source.model.fixings):
            warnings.append("No load in any step and no displacement prescribed: every result will be 0")
    if analysis == "thermal":
        _refuse_no_sink(source)
    return warnings


def rigid_body_modes(source: Source) -> int:
    """Return how many rigid-body motions the deck leaves free: modes of zero frequency."""
    return sum(len(body.motions) for body in _loose(source))


def _refuse_no_section(source: Source) -> None:
    model = source.model
    bare = [
        np.asarray(block.ids)
        for block in source.mesh.blocks
        if not block.section and block.type not in _NO_SECTION_NEEDED
    ]
    if bare:
        ids = np.sort(np.concatenate(bare))
        materials = ", ".join(model.materials) or "none"
        known = ", ".join(sorted({s.elset for s in model.sections})) or "none"
        raise ToolError(
            f"Elements {_ranges(ids)} have no section, and so no material",
            kind="no_material",
            where=f"{len(ids)} of {source.mesh.element_count} elements",
            fix="add *SOLID SECTION, ELSET=..., MATERIAL=... for them "
            f"(sections cover: {known}; materials: {materials})",
        )
    for section in model.sections:
        if section.material and section.material not in model.materials:
            raise ToolError(
                f"The section of element set {section.elset} names material {section.material}, which is not defined",
                kind="no_material",
                where=f"line {section.line}, *{section.keyword}",
                fix=f"define it with *MATERIAL, or use: {', '.join(model.materials) or 'none'}",
            )
        if section.elset and section.elset not in model.element_sets:
            raise ToolError(
                f"A section names element set {section.elset}, which is not defined",
                kind="unknown_set",
                where=f"line {section.line}, *{section.keyword}",
                fix=f"define it, or use: {', '.join(sorted(model.element_sets)[:12]) or 'none'}",
            )


def _plane_stress_warnings(source: Source) -> Iterator[str]:
    """CalculiX expands plane stress elements into solids one section thickness high."""
    for section in source.model.sections:
        thickness = section.values[0] if section.values else 1.0
        for block in source.mesh.blocks:
            kind = ELEMENT_TYPES.get(block.type)
            if block.section != section.elset or kind is None or kind.use != "plane_stress":
                continue
            corners = source.mesh.points_mm(block.nodes[:, : len(kind.family.corners)])
            edge = float(np.median(np.linalg.norm(corners[:, 1] - corners[:, 0], axis=1)))
            if thickness > 0.1 * edge:
                yield (
                    f"Plane stress elements in {section.elset} have thickness {thickness:g} mm against edges of "
                    f"{edge:.3g} mm: CalculiX expands them into solids, and stresses near steep gradients come out "
                    f"too high (47 % in NAFEMS T1); use a thickness of {edge / 100:.2g} mm or less and scale the loads"
                )
                break


def _unit_warnings(source: Source) -> list[str]:
    warnings: list[str] = []
    for material in source.model.materials.values():
        warnings += check_material(
            youngs_modulus_mpa=material.youngs_modulus,
            poissons_ratio=material.poissons_ratio,
            density_t_mm3=material.density,
            conductivity_w_mk=material.conductivity,
            expansion_per_k=material.expansion,
            named=material.name,
        )
    if source.mesh.node_count and not warnings:
        warnings += check_size(float(np.ptp(source.mesh.coordinates_mm, axis=0).max()))
    return warnings


def _loose(source: Source) -> list[LooseBody]:
    held = [
        Held(fixing.nodes, tuple(range(fixing.first, min(fixing.last, 6) + 1)))
        for fixing in source.model.fixings
        if 1 <= fixing.first <= 6
    ]
    return loose_bodies(source.mesh, held, source.model.links)


def _restraint_warnings(source: Source) -> list[str]:
    loose = _loose(source)
    if not loose:
        return []
    keywords = source.model.keywords | {block.type for block in source.mesh.blocks}
    if keywords & _CONTACT:
        return [f"{_named(body, source)} is held only by contact" for body in loose]
    if keywords & _NO_STIFFNESS_CHECK:
        return []
    body = loose[0]
    count = sum(len(each.motions) for each in loose)
    plural = "s" if count > 1 else ""
    raise ToolError(
        f"The model is not restrained ({count} rigid-body mode{plural}): {_named(body, source)} is free in "
        f"{', '.join(body.motions)}",
        kind="not_restrained",
        where=f"around [{', '.join(f'{v:.4g}' for v in body.centroid_mm)}] mm",
        fix="hold it with *BOUNDARY: a face in x, y and z, or at least three nodes not on one line",
        rigid_body_modes=count,
    )


def _named(body: LooseBody, source: Source) -> str:
    """Name a body by the element sets that are exactly it, else by its sections."""
    whole = []
    for name, elements in source.mesh.element_sets.items():
        rows = [block.nodes[np.isin(block.ids, elements)].ravel() for block in source.mesh.blocks]
        if np.array_equal(np.unique(np.concatenate(rows)), body.node_ids):
            whole.append(name)
    sets = ", ".join(whole or [name for name in body.element_sets if name])
    return f"the body of {body.node_count} nodes" + (f" in {sets}" if sets else "")


def contact_only_bodies(source: Source) -> list[str]:
    """Return the bodies that nothing but contact holds, in words."""
    return [_named(body, source) for body in _loose(source)] if source.model.keywords & _CONTACT else []


def _refuse_no_sink(source: Source) -> None:
    model = source.model
    fixed = any(f.first in (0, 11) or f.first <= 11 <= f.last for f in model.fixings)
    steady = any("STEADYSTATE" in card.parameters for keyword, card in model.procedures if keyword == "HEAT TRANSFER")
    if steady and not fixed and not model.keywords & {"FILM", "RADIATE", "SFILM", "SRADIATE"}:
        raise ToolError(
            "No temperature is fixed and no surface is cooled: heat has nowhere to go, and there is no steady state",
            kind="no_heat_sink",
            fix="fix a temperature with *BOUNDARY (degree of freedom 11), or add *FILM",
        )


def _ranges(ids: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> str:
    """Write ids as ranges: 1-5, 9."""
    breaks = np.flatnonzero(np.diff(ids) > 1)
    starts, ends = [0, *(breaks + 1)], [*breaks, len(ids) - 1]
    parts = [f"{ids[a]}-{ids[b]}" if a != b else f"{ids[a]}" for a, b in zip(starts, ends, strict=True)]
    return ", ".join(parts[:6]) + (" ..." if len(parts) > 6 else "")

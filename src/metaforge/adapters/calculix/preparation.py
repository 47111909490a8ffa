"""Make a mesh and its materials ready for a problem: solids only, one section per material, no property missing."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from metaforge.core.errors import InvalidArguments, ToolError
from metaforge.engineering.element_types import ELEMENT_TYPES
from metaforge.engineering.materials import Material
from metaforge.engineering.mesh import ElementBlock, Ids, Mesh


def solids_only(mesh: Mesh, sections: Mapping[str, str] | None = None) -> tuple[Mesh, list[str]]:
    """Keep the solid elements, with one section `EALL` unless sections are given, and say what was left out."""
    kept: list[ElementBlock] = []
    dropped: dict[str, int] = {}
    for block in mesh.blocks:
        kind = ELEMENT_TYPES.get(block.type)
        if kind is None or kind.use != "solid":
            dropped[block.type] = dropped.get(block.type, 0) + len(block.ids)
            continue
        section = block.section if sections is not None else "EALL"
        name = block.type.removeprefix("D") if block.type.startswith("DC3D") else block.type
        kept.append(ElementBlock(name, block.ids, block.nodes, section))
    if not kept:
        raise ToolError(
            "The mesh has no solid elements"
            + (f", only {', '.join(f'{n} {t}' for t, n in dropped.items())}" if dropped else ""),
            kind="no_solids",
            fix="mesh the volume (C3D10), or give a complete deck with sections and a *STEP for shells and beams",
        )
    used = np.unique(np.concatenate([block.nodes.ravel() for block in kept]))
    warnings = []
    if dropped:
        text = ", ".join(f"{count} {name}" for name, count in dropped.items())
        warnings.append(f"Left out of the solve: {text}; only solid elements are used")
    inside = np.isin(mesh.node_ids, used)
    node_sets = {name: ids[np.isin(ids, used)] for name, ids in mesh.node_sets.items()}
    solid = replace(
        mesh, node_ids=mesh.node_ids[inside], coordinates_mm=mesh.coordinates_mm[inside], blocks=tuple(kept),
        node_sets={name: ids for name, ids in node_sets.items() if len(ids)},
    )  # fmt: skip
    return solid, warnings


def split_by_set(mesh: Mesh, names: Sequence[str]) -> Mesh:
    """Give the elements of named element sets their own section, so that each can have its own material.

    Raises:
        InvalidArguments: there is no such element set.
    """
    blocks = list(mesh.blocks)
    for name in names:
        ids = look_up(mesh.element_sets, name, "element set")
        split: list[ElementBlock] = []
        for block in blocks:
            inside = np.isin(block.ids, ids)
            for mask, section in ((inside, name), (~inside, block.section)):
                if mask.any():
                    split.append(ElementBlock(block.type, block.ids[mask], block.nodes[mask], section))
        blocks = split
    return replace(mesh, blocks=tuple(blocks))


def look_up(sets: Mapping[str, Ids], name: str, what: str) -> Ids:
    """Return a set by its name, whatever its case.

    Raises:
        InvalidArguments: there is none; the nearest are listed.
    """
    known = {each.lower(): each for each in sets}
    if name.lower() in known:
        return sets[known[name.lower()]]
    near = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.4)
    listed = ", ".join([known[each] for each in near] or list(sets)[:12]) or "none"
    raise InvalidArguments(
        f"The mesh has no {what} {name!r}; {'nearest' if near else 'it has'}: {listed}",
        fields={what.replace(" ", "_"): f"one of {', '.join(list(sets)[:12]) or 'none'}"},
        did_you_mean=[known[each] for each in near],
    )


def refuse_missing_properties(
    materials: Mapping[str, Material], analysis: str, *, transient: bool, accelerated: bool, heated: bool
) -> None:
    """Raise when a material lacks a number that the analysis needs.

    Raises:
        InvalidArguments: every missing property, by material.
    """
    needs: dict[str, str] = {}
    if analysis == "thermal":
        needs["thermal_conductivity_w_mk"] = "heat conduction"
        if transient:
            needs |= {"density_kg_m3": "a transient", "specific_heat_j_kgk": "a transient"}
    else:
        needs |= {"youngs_modulus_mpa": "stiffness", "poissons_ratio": "stiffness"}
    if analysis == "modal" or accelerated:
        needs["density_kg_m3"] = "inertia"
    if analysis != "thermal" and heated:
        needs["expansion_per_k"] = "thermal stress"
    for material in materials.values():
        missing = {name: why for name, why in needs.items() if getattr(material, name) is None}
        if missing:
            text = ", ".join(f"{name} (for {why})" for name, why in missing.items())
            raise InvalidArguments(
                f"Material {material.name!r} lacks {text}",
                fields={f"material.{name}": "a number, or a material name that has it" for name in missing},
            )

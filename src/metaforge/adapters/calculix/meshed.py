"""A mesh with its materials, from a STEP file or a mesh file: what a problem is built on."""

import time
from dataclasses import dataclass

import numpy as np

from metaforge.adapters.calculix.answers import MaterialEcho
from metaforge.adapters.calculix.arguments import MaterialChoice
from metaforge.adapters.calculix.deck_source import Source
from metaforge.adapters.calculix.element_traps import element_warnings, refuse_inverted
from metaforge.adapters.calculix.fields import number
from metaforge.adapters.calculix.preparation import solids_only, split_by_set
from metaforge.adapters.calculix.problem import MM2_S2K_PER_J_KGK, T_MM3_PER_KG_M3
from metaforge.core.errors import FailureMode, InvalidArguments, ToolError
from metaforge.engineering.materials import Material, find_material
from metaforge.engineering.mesh import Ids, Mesh
from metaforge.engineering.mesh_quality import Quality, measure
from metaforge.engineering.unit_plausibility import check_material, check_size
from metaforge.tools.context import ToolContext

AnyMaterial = str | MaterialChoice | None


@dataclass(frozen=True)
class Meshed:
    """A mesh ready to be solved.

    Attributes:
        kind: `step` or `mesh`.
        mesh: solids, every block with a section that has a material.
        materials: by section.
        regions: element ids by the name results are told under.
    """

    kind: str
    mesh: Mesh
    materials: dict[str, Material]
    regions: dict[str, Ids]
    quality: Quality
    element_size_mm: float | None
    volume_mm3: float | None
    meshing_time_seconds: float | None
    warnings: list[str]
    programs: dict[str, str]


def resolve_material(choice: AnyMaterial) -> Material | None:
    """Return the material a caller means: a name, numbers, or both."""
    if choice is None:
        return None
    return find_material(choice) if isinstance(choice, str) else choice.resolve()


def mesh_cad(
    path: str, ctx: ToolContext, material: Material | None, by_solid: dict[str, Material], size_mm: float | None
) -> Meshed:
    """Mesh a STEP file with quadratic tetrahedra.

    Raises:
        ToolError: gmsh is missing, or the part cannot be meshed.
        InvalidArguments: no material.
    """
    try:
        from metaforge.engineering.meshing import mesh_step
    except ModuleNotFoundError as fault:
        raise ToolError(
            f"A STEP file needs the mesher, and Python module {fault.name} is not installed",
            kind="module_missing",
            fix="pip install 'metaforge[cadquery]', or give mesh_file",
            failure_mode=FailureMode.ENVIRONMENT,
        ) from None
    started = time.monotonic()
    made = mesh_step(
        ctx.input_file(path), size_mm=size_mm, progress=lambda f, text: ctx.progress(0.02 + 0.25 * f, text)
    )
    mesh = split_by_set(made.mesh, list(by_solid))
    materials = _materials_by_section(mesh, material, by_solid)
    regions = dict(made.mesh.element_sets) or {"part": np.concatenate([b.ids for b in mesh.blocks])}
    return Meshed(
        "step", mesh, materials, regions, made.quality, number(made.size_mm), number(made.volume_mm3),
        round(time.monotonic() - started, 3), list(made.warnings), {made.program[0]: made.program[1]},
    )  # fmt: skip


def mesh_from_deck(
    source: Source, material: Material | None, by_set: dict[str, Material], *, mechanical: bool
) -> Meshed:
    """Take the mesh of a file without *STEP, with the caller's material or the file's own.

    Raises:
        ToolError: no solids, inverted elements.
        InvalidArguments: no material.
    """
    own = {} if material is not None or by_set else _own_materials(source)
    mesh, warnings = solids_only(source.mesh, {name: name for name in own} if own else None)
    quality = measure(mesh)
    refuse_inverted(quality)
    warnings += element_warnings(mesh, quality) if mechanical else ()
    if own:
        materials = own
        _refuse_uncovered(mesh, own)
    else:
        mesh = split_by_set(mesh, list(by_set))
        materials = _materials_by_section(mesh, material, by_set)
    warnings += check_size(float(np.ptp(mesh.coordinates_mm, axis=0).max()))
    return Meshed(
        "mesh", mesh, materials, regions_of(mesh), quality, None, number(quality.volume_mm3), None, warnings, {}
    )


def _materials_by_section(mesh: Mesh, material: Material | None, by_set: dict[str, Material]) -> dict[str, Material]:
    sections = {block.section for block in mesh.blocks}
    left = sections - set(by_set)
    if left and material is None:
        raise InvalidArguments(
            "No material: give a name from the table, such as steel-316, or youngs_modulus_mpa and poissons_ratio",
            fields={"material": "a name or numbers"},
        )
    found = dict(by_set)
    if material is not None:
        found |= dict.fromkeys(sorted(left), material)
    return found


def _own_materials(source: Source) -> dict[str, Material]:
    found: dict[str, Material] = {}
    for section in source.model.sections:
        material = source.model.materials.get(section.material)
        if material is None or (material.youngs_modulus is None and material.conductivity is None):
            continue
        found[section.elset] = Material(
            material.name, material.youngs_modulus, material.poissons_ratio,
            None if material.density is None else material.density / T_MM3_PER_KG_M3, None, material.conductivity,
            None if material.specific_heat is None else material.specific_heat / MM2_S2K_PER_J_KGK,
            material.expansion, source=f"the mesh file, line {material.line}",
        )  # fmt: skip
    return found


def _refuse_uncovered(mesh: Mesh, own: dict[str, Material]) -> None:
    bare = sum(len(block.ids) for block in mesh.blocks if block.section not in own)
    if bare:
        raise InvalidArguments(
            f"{bare} of {mesh.element_count} elements have no material in the mesh file",
            fields={"material": "a name or numbers for the whole part"},
        )


def regions_of(mesh: Mesh) -> dict[str, Ids]:
    """Return the element sets results are told by: sections first, then other sets that differ from them."""
    solids = np.sort(np.concatenate([block.ids for block in mesh.blocks]))
    regions: dict[str, Ids] = {}
    for section in dict.fromkeys(block.section for block in mesh.blocks):
        ids = np.sort(np.concatenate([block.ids for block in mesh.blocks if block.section == section]))
        same = [name for name, members in mesh.element_sets.items() if np.array_equal(np.sort(members), ids)]
        name = section if section in mesh.element_sets or section not in ("", "EALL") else next(iter(same), "part")
        regions[name] = ids
    for name, ids in mesh.element_sets.items():
        known = any(np.array_equal(np.sort(ids), each) for each in regions.values())
        if not known and len(regions) < 20 and np.isin(ids, solids).any():
            regions[name] = ids
    return regions


def material_warnings(materials: dict[str, Material]) -> list[str]:
    """Return what looks like a wrong unit in materials."""
    warnings: list[str] = []
    for material in {id(each): each for each in materials.values()}.values():
        warnings += check_material(
            youngs_modulus_mpa=material.youngs_modulus_mpa,
            poissons_ratio=material.poissons_ratio,
            density_t_mm3=None if material.density_kg_m3 is None else material.density_kg_m3 * T_MM3_PER_KG_M3,
            conductivity_w_mk=material.thermal_conductivity_w_mk,
            expansion_per_k=material.expansion_per_k,
            named=material.name,
        )
    return warnings


def material_echoes(materials: dict[str, Material]) -> dict[str, MaterialEcho]:
    """Return the materials as they were used, by section."""
    return {
        "part" if section == "EALL" else section: MaterialEcho(
            m.name, m.youngs_modulus_mpa, m.poissons_ratio, m.density_kg_m3, m.yield_strength_mpa,
            m.thermal_conductivity_w_mk, m.source,
        )
        for section, m in materials.items()
    }  # fmt: skip

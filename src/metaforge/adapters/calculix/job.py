"""One job from input to files: which kind of input it is, its mesh, the solve, and what is written."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from metaforge.adapters.calculix.answers import MaterialEcho, MeshEcho
from metaforge.adapters.calculix.arguments import MaterialChoice
from metaforge.adapters.calculix.build import solids_only, split_by_set
from metaforge.adapters.calculix.deck_checks import refuse_inverted
from metaforge.adapters.calculix.deck_source import Source, read_source
from metaforge.adapters.calculix.deck_writer import write_deck
from metaforge.adapters.calculix.fields import number
from metaforge.adapters.calculix.problem import MM2_S2K_PER_J_KGK, T_MM3_PER_KG_M3, Problem
from metaforge.adapters.calculix.solver import Solved, solve
from metaforge.core.errors import FailureMode, InvalidArguments, ToolError
from metaforge.engineering.materials import Material, find_material
from metaforge.engineering.mesh import Ids, Mesh
from metaforge.engineering.mesh_quality import Quality, measure
from metaforge.engineering.unit_plausibility import check_material, check_size
from metaforge.tools.context import OutputFile, Picture, ToolContext

CAD_SUFFIXES = (".step", ".stp", ".stl")
DECK_SUFFIXES = (".inp", ".dat", ".msh.inp")
RESERVE_SECONDS = 5.0
"""Kept back from the call's deadline for reading results and writing files."""

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


def input_path(step_file: str | None, mesh_file: str | None) -> str:
    """Return the one input file.

    Raises:
        InvalidArguments: none, or both.
    """
    if (step_file is None) == (mesh_file is None):
        raise InvalidArguments(
            "Give step_file (a STEP part) or mesh_file (an .inp deck or mesh), one of them",
            fields={"step_file": "a .step file", "mesh_file": "an .inp file"},
        )
    return step_file or mesh_file or ""


def is_cad(path: str) -> bool:
    """Whether the file is geometry that must be meshed first."""
    return path.lower().endswith(CAD_SUFFIXES)


def open_deck(path: str, ctx: ToolContext) -> Source:
    """Read a deck or mesh file.

    Raises:
        ToolError: it is none.
    """
    return read_source(path, ctx.workspace)


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


def mesh_from_deck(source: Source, material: Material | None, by_set: dict[str, Material]) -> Meshed:
    """Take the mesh of a file without *STEP, with the caller's material or the file's own.

    Raises:
        ToolError: no solids, inverted elements.
        InvalidArguments: no material.
    """
    own = {} if material is not None or by_set else _own_materials(source)
    mesh, warnings = solids_only(source.mesh, {name: name for name in own} if own else None)
    quality = measure(mesh)
    refuse_inverted(quality)
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


def mesh_echo(quality: Quality, size_mm: float | None, volume_mm3: float | None) -> MeshEcho:
    """Return the mesh's size and worst elements."""
    measured = bool(len(quality.element_ids))
    return MeshEcho(
        dict(quality.types),
        number(quality.min_scaled_jacobian_ratio) if measured else 0.0,
        number(quality.max_aspect_ratio) if measured else 0.0,
        size_mm,
        volume_mm3,
    )


def solve_problem(
    problem: Problem, ctx: ToolContext, needs: tuple[str, ...], spent_seconds: float
) -> tuple[Solved, str]:
    """Write the deck and solve it; returns the solve and the deck's text."""
    deck = write_deck(problem)
    return run_deck(deck, ctx, problem.mesh, needs, spent_seconds), deck


def run_deck(deck: str, ctx: ToolContext, mesh: Mesh, needs: tuple[str, ...], spent_seconds: float) -> Solved:
    """Solve a deck within what is left of the call's time."""
    ctx.progress(0.3, f"solving {mesh.node_count} nodes with CalculiX")
    left = max(1.0, ctx.timeout_seconds - spent_seconds - RESERVE_SECONDS)
    folder = ctx.scratch / "ccx"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    return solve(deck, folder, mesh, needs=needs, timeout_seconds=left, progress=ctx.progress)


@dataclass(frozen=True)
class Outputs:
    """Where a job's files go, relative to the workspace."""

    frd: PurePosixPath

    @property
    def deck(self) -> PurePosixPath:
        return self.frd.with_suffix(".inp")

    @property
    def picture(self) -> PurePosixPath:
        return self.frd.with_suffix(".png")

    @classmethod
    def choose(cls, output_path: str | None, source: str, load_case: str) -> "Outputs":
        """Take the caller's path, or `fea/<input>-<load case>.frd`."""
        if output_path:
            path = PurePosixPath(output_path)
            return cls(path if path.suffix.lower() == ".frd" else path.with_name(path.name + ".frd"))
        slug = re.sub(r"[^A-Za-z0-9_.-]+", "-", load_case).strip("-.") or "case"
        return cls(PurePosixPath("fea") / f"{Path(source).stem}-{slug}.frd")

    def write(self, ctx: ToolContext, solved: Solved, deck: str) -> list[OutputFile]:
        """Write result file and deck, and return them for the answer."""
        ctx.output_file(str(self.frd)).write_bytes(solved.frd)
        ctx.output_file(str(self.deck)).write_text(deck, encoding="utf-8")
        return [
            OutputFile(self.frd, "application/x-calculix-frd", "results"),
            OutputFile(self.deck, "text/x-calculix-inp", "deck"),
        ]


def drawn(
    outputs: Outputs, ctx: ToolContext, draw: Callable[[Path], str], files: list[OutputFile]
) -> tuple[tuple[Picture, ...], list[str]]:
    """Draw the picture and add it to the files; where it cannot be drawn the results still count, with a warning."""
    ctx.progress(0.95, "drawing")
    try:
        caption = draw(ctx.output_file(str(outputs.picture)))
    except ModuleNotFoundError as fault:
        return (), [f"No picture: Python module {fault.name} is not installed (pip install 'metaforge[cadquery]')"]
    except ToolError as fault:
        return (), [f"No picture: {fault.message}; {fault.fix}"]
    files.append(OutputFile(outputs.picture, "image/png", "picture"))
    return (Picture(outputs.picture, caption),), []

"""Judge a mesh: what is wrong with it, element by element."""

import numpy as np

from metaforge.adapters.calculix.answers import BadElementEcho, MeshVerdict
from metaforge.adapters.calculix.deck_source import Source
from metaforge.adapters.calculix.fields import number
from metaforge.engineering.boundary import components
from metaforge.engineering.element_types import ELEMENT_TYPES
from metaforge.engineering.mesh import Mesh
from metaforge.engineering.mesh_quality import Quality, measure
from metaforge.engineering.unit_plausibility import check_size
from metaforge.formats.inp import BadDeck
from metaforge.tools.context import Answer

MIN_SCALED_JACOBIAN = 0.1
"""Below this an element is so distorted that its stresses mean little (Verdict's acceptable range starts at 0.2)."""
_LINEAR = {"C3D4": "C3D10", "C3D6": "C3D15", "S3": "S6", "CPS3": "CPS6", "CPE3": "CPE6"}


def report_mesh(source: Source, max_aspect_ratio: float) -> Answer[MeshVerdict]:
    """Return a verdict with every issue found.

    Raises:
        BadDeck: the file holds no nodes, and so no mesh.
    """
    mesh = source.mesh
    if not mesh.node_count:
        raise BadDeck("The file holds no nodes: it is no mesh", fix="give an .inp mesh, as freecad.generate_mesh makes")
    quality = measure(mesh)
    fatal, minor = _fatal_issues(mesh, quality), _minor_issues(mesh, quality, max_aspect_ratio)
    aspect_bad = bool(len(quality.element_ids)) and quality.max_aspect_ratio > max_aspect_ratio
    valid = not fatal and not aspect_bad and bool(mesh.element_count)
    verdict = MeshVerdict(
        valid=valid,
        element_count=mesh.element_count,
        node_count=mesh.node_count,
        element_types=dict(quality.types),
        max_aspect_ratio=number(quality.max_aspect_ratio) if len(quality.element_ids) else 0.0,
        min_scaled_jacobian_ratio=number(quality.min_scaled_jacobian_ratio) if len(quality.element_ids) else 0.0,
        issues=[*fatal, *minor],
        bad_elements=[
            BadElementEcho(each.element_id, each.type, each.centroid_mm, each.scaled_jacobian_ratio)
            for each in quality.bad_elements()
        ],
        bounding_box_mm=[number(value) for value in mesh.bbox_mm()] if mesh.node_count else [],
        volume_mm3=number(quality.volume_mm3) if quality.volume_mm3 > 0 else None,
        element_sets={name: len(ids) for name, ids in list(mesh.element_sets.items())[:40]},
        node_sets={name: len(ids) for name, ids in list(mesh.node_sets.items())[:40]},
        surfaces=list(source.model.surfaces)[:40],
    )
    return Answer(
        verdict, summary=_summary(verdict), next_step="" if valid else "freecad.generate_mesh on the STEP file"
    )


def _summary(verdict: MeshVerdict) -> str:
    types = ", ".join(f"{count} {name}" for name, count in verdict.element_types.items())
    text = f"{'valid' if verdict.valid else 'NOT valid'}: {types}, {verdict.node_count} nodes; max aspect ratio "
    text += f"{verdict.max_aspect_ratio:.3g}, worst scaled Jacobian {verdict.min_scaled_jacobian_ratio:.3g}."
    return text + (f" {len(verdict.issues)} issue(s): {verdict.issues[0]}" if verdict.issues else " No issue.")


def _fatal_issues(mesh: Mesh, quality: Quality) -> list[str]:
    issues = []
    if not mesh.element_count:
        return ["the file has no elements"]
    negative = quality.negative_ids
    if len(negative):
        worst = quality.bad_elements(1)[0]
        issues.append(
            f"{len(negative)} of {len(quality.element_ids)} elements are turned inside out somewhere (scaled Jacobian "
            f"<= 0; worst: element {worst.element_id} at {list(worst.centroid_mm)} mm, "
            f"{worst.scaled_jacobian_ratio:.3g}): reverse their node order or mesh finer"
        )
    all_ids = np.concatenate([block.ids for block in mesh.blocks])
    repeated = len(all_ids) - len(np.unique(all_ids))
    if repeated:
        issues.append(f"{repeated} element numbers are used twice: CalculiX keeps the last only")
    twins = _duplicate_elements(mesh)
    if twins:
        issues.append(f"{twins} elements have the same nodes as another one: stiffness counts double there")
    return issues


def _minor_issues(mesh: Mesh, quality: Quality, max_aspect_ratio: float) -> list[str]:
    issues = []
    if len(quality.element_ids):
        stretched = int((quality.aspect_ratio > max_aspect_ratio).sum())
        if stretched:
            row = int(quality.aspect_ratio.argmax())
            issues.append(
                f"{stretched} elements have an aspect ratio above {max_aspect_ratio:g} (worst: element "
                f"{quality.element_ids[row]}, {quality.aspect_ratio[row]:.3g})"
            )
        poor = quality.scaled_jacobian_ratio
        count = int(((poor > 0) & (poor < MIN_SCALED_JACOBIAN)).sum())
        if count:
            issues.append(
                f"{count} elements have a scaled Jacobian below {MIN_SCALED_JACOBIAN:g}: stresses are poor there"
            )
    for name, count in quality.types.items():
        if name in _LINEAR:
            issues.append(f"{count} {name} elements are linear and too stiff: use {_LINEAR[name]}")
        elif name in ("B31", "B31R"):
            issues.append(f"{count} {name} elements: two-node beams are wrong in CalculiX, use B32R")
        elif name not in ELEMENT_TYPES:
            issues.append(f"{count} elements of type {name} have no shape that can be measured")
    return [*issues, *_node_issues(mesh), *check_size(float(np.ptp(mesh.coordinates_mm, axis=0).max()))]


def _node_issues(mesh: Mesh) -> list[str]:
    issues = []
    body = components(mesh)
    orphans = mesh.node_ids[body < 0]
    if len(orphans):
        listed = ", ".join(str(i) for i in orphans[:6])
        issues.append(f"{len(orphans)} nodes belong to no element: {listed}{' ...' if len(orphans) > 6 else ''}")
    bodies = int(body.max(initial=-1)) + 1
    if bodies > 1:
        issues.append(f"the mesh falls into {bodies} bodies that share no node: each needs its own supports or ties")
    size = float(np.ptp(mesh.coordinates_mm, axis=0).max()) or 1.0
    cells = np.round(mesh.coordinates_mm[body >= 0] / (1e-7 * size)).astype(np.int64)
    doubles = len(cells) - len(np.unique(cells, axis=0))
    if doubles:
        issues.append(f"{doubles} nodes lie exactly on another node: parts that should be joined may not be")
    return issues


def _duplicate_elements(mesh: Mesh) -> int:
    count = 0
    for width in {block.nodes.shape[1] for block in mesh.blocks}:
        rows = np.concatenate([np.sort(b.nodes, axis=1) for b in mesh.blocks if b.nodes.shape[1] == width])
        count += len(rows) - len(np.unique(rows, axis=0))
    return count

"""Is the largest stress real? Peaks at supports, re-entrant corners and point loads grow with every refinement.

The exact linear-elastic solution has no limit there, so the value says more about the mesh than about the part.
The rule: a peak counts as possibly singular when it lies within ZONE_ELEMENTS element edges of such a place and is
more than RISE_RATIO above the largest stress outside that zone, which stands beside it.
"""

import numpy as np

from metaforge.adapters.calculix.answers import Peak
from metaforge.adapters.calculix.fields import Field, number, region_of
from metaforge.engineering.boundary import boundary_faces, reentrant_nodes, within
from metaforge.engineering.mesh import Ids, Mesh

ZONE_ELEMENTS = 2.0
RISE_RATIO = 0.05


def judge_peak(
    stress: Field, mesh: Mesh, regions: dict[str, Ids], support_nodes: Ids, point_load_nodes: Ids, zone_mm: float | None
) -> Peak:
    """Return the peak with its verdict.

    Args:
        stress: von Mises stress in MPa.
        mesh: the mesh that the field belongs to.
        regions: node ids by region.
        support_nodes: nodes where displacements are held.
        point_load_nodes: nodes that carry a force on their own.
        zone_mm: radius of the zone; None takes ZONE_ELEMENTS typical element edges.
    """
    row = stress.largest()
    zone = zone_mm if zone_mm is not None else ZONE_ELEMENTS * edge_length(mesh)
    sources = {
        "a support": support_nodes,
        "a re-entrant corner": reentrant_nodes(mesh, boundary_faces(mesh)),
        "a point load": point_load_nodes,
    }
    near = np.zeros(len(stress.node_ids), dtype=np.bool_)
    reasons = []
    for name, nodes in sources.items():
        known = nodes[np.isin(nodes, mesh.node_ids)]
        inside = within(stress.points_mm, mesh.points_mm(known), zone) if len(known) else np.zeros_like(near)
        if inside[row]:
            reasons.append(name)
        near |= inside
    outside = stress.largest(~near) if not near.all() else None
    if outside is not None and stress.values[row] <= (1 + RISE_RATIO) * stress.values[outside]:
        reasons.clear()
    elements = f"{zone / edge_length(mesh):.2g} element edges"
    return Peak(
        von_mises_mpa=number(stress.values[row]),
        at_mm=stress.at(row),
        region=region_of(int(stress.node_ids[row]), regions),
        possibly_singular=bool(reasons),
        reason=f"within {zone:.3g} mm ({elements}) of {' and '.join(reasons)}" if reasons else "",
        zone_mm=number(zone),
        outside_mpa=number(stress.values[outside]) if outside is not None else None,
        outside_at_mm=stress.at(outside) if outside is not None else None,
    )


def edge_length(mesh: Mesh) -> float:
    """Return the typical corner-to-corner edge in mm: the cube root of six root two volumes would say the same."""
    lengths = []
    for block in mesh.blocks:
        if block.nodes.shape[1] >= 3 and len(block.ids):
            corners = mesh.points_mm(block.nodes[:, :3])
            lengths += [np.linalg.norm(corners[:, 1] - corners[:, 0], axis=1)]
            lengths += [np.linalg.norm(corners[:, 2] - corners[:, 1], axis=1)]
    return float(np.median(np.concatenate(lengths))) if lengths else 1.0

"""Judge whether loose triangles close a volume."""

from dataclasses import dataclass

import numpy as np

from metaforge.core.errors import ToolError
from metaforge.engineering.mesh import Floats, Ids

WELD_RATIO = 1e-7
"""Corners nearer than this share of the part's diagonal are one corner."""


@dataclass(frozen=True)
class ClosedSurface:
    """A triangle surface that closes one volume.

    Attributes:
        triangles: corners facing outward, shape (t, 3, 3).
    """

    triangles: Floats
    volume_mm3: float
    area_mm2: float


def close_surface(triangles: Floats, name: str) -> ClosedSurface:
    """Return the surface with its measures.

    Args:
        triangles: corners, shape (t, 3, 3).
        name: what to call the file in messages.

    Raises:
        ToolError: open edges, edges that more than two facets share, facets that face both ways, or several shells.
    """
    corners = _weld(triangles)
    corners = corners[(corners != np.roll(corners, 1, axis=1)).all(axis=1)]
    directed = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]])
    edges, uses = np.unique(np.sort(directed, axis=1), axis=0, return_counts=True)
    open_edges, shared = int((uses == 1).sum()), int((uses > 2).sum())
    if open_edges or shared:
        what = f"{open_edges} open edges" if open_edges else f"{shared} edges shared by more than two facets"
        raise ToolError(
            f"{name}: the surface is not closed ({what} among {len(edges)}), so it has no volume to mesh",
            kind="surface_not_closed",
            where=name,
            fix="close the holes in the CAD system, or export the part as STEP",
            open_edges=open_edges,
        )
    turned = len(directed) - len(np.unique(directed, axis=0))
    if turned:
        raise ToolError(
            f"{name}: facets face both ways ({turned} edges are run through twice in one direction)",
            kind="surface_not_oriented",
            where=name,
            fix="turn all normals outward, or export the part as STEP",
        )
    shells = _count_shells(corners)
    if shells > 1:
        raise ToolError(
            f"{name} holds {shells} separate closed surfaces; one is meshed at a time",
            kind="several_shells",
            where=name,
            fix="export the part as STEP, where solids and their cavities are told apart",
        )
    a, b, c = triangles[:, 0], triangles[:, 1], triangles[:, 2]
    volume = float((a * np.cross(b, c)).sum() / 6)
    area = float(np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2)
    return ClosedSurface(triangles if volume > 0 else triangles[:, ::-1], abs(volume), area)


def _weld(triangles: Floats) -> Ids:
    """Number the corners so that equal ones have one number, shape (t, 3)."""
    points = triangles.reshape(-1, 3)
    low = points.min(axis=0)
    size = float(np.linalg.norm(points.max(axis=0) - low)) or 1.0
    cells = np.round((points - low) / (WELD_RATIO * size)).astype(np.int64)
    return np.asarray(np.unique(cells, axis=0, return_inverse=True)[1].reshape(-1, 3), dtype=np.int64)


def _count_shells(corners: Ids) -> int:
    """Count groups of facets that share corners, by spreading the lowest number until nothing changes."""
    label = np.arange(corners.max() + 1)
    while True:
        lowest = label[corners].min(axis=1)
        spread = label.copy()
        np.minimum.at(spread, corners.ravel(), np.repeat(lowest, 3))
        spread = spread[spread]
        if (spread == label).all():
            return len(np.unique(label[corners]))
        label = spread

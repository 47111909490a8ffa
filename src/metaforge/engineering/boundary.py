"""The skin of a solid mesh: its outer faces, where it turns inward, which parts hang together."""

import numpy as np
from numpy.typing import NDArray

from metaforge.engineering.element_types import ELEMENT_TYPES, QUAD4, QUAD8, TRI3, TRI6, Family, shape_gradients
from metaforge.engineering.mesh import Floats, Ids, Mesh
from metaforge.engineering.surface_geometry import face_nodes

REENTRANT_DEG = 30.0
"""An edge is a re-entrant corner when the skin turns inward there by more than this."""

_SHAPES: dict[int, Family] = {3: TRI3, 6: TRI6, 4: QUAD4, 8: QUAD8}
"""Face shape by its number of nodes."""
_MIX = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5], dtype=np.uint64)


def boundary_faces(mesh: Mesh) -> Ids:
    """Return the faces of solid elements that no other element shares: element id and face number per row."""
    faces: list[Ids] = []
    keys: list[NDArray[np.uint64]] = []
    for block in mesh.blocks:
        kind = ELEMENT_TYPES.get(block.type.upper())
        if kind is None or kind.use != "solid" or not len(block.ids):
            continue
        for number, corners in enumerate(kind.family.faces, start=1):
            keys.append(_key(block.nodes[:, list(corners)]))
            faces.append(np.column_stack([block.ids, np.full(len(block.ids), number, dtype=np.int64)]))
    if not keys:
        return np.empty((0, 2), dtype=np.int64)
    key = np.concatenate(keys)
    _, inverse, counts = np.unique(key, return_inverse=True, return_counts=True)
    return np.asarray(np.concatenate(faces)[counts[inverse] == 1])


def _key(nodes: Ids) -> NDArray[np.uint64]:
    """Return one number per row that does not depend on the order of its nodes."""
    ordered = np.sort(nodes, axis=1).astype(np.uint64)
    mixed = np.zeros(len(nodes), dtype=np.uint64)
    for column in range(ordered.shape[1]):
        value = (ordered[:, column] + np.uint64(1)) * _MIX[column]
        mixed = (mixed ^ (value >> np.uint64(29)) ^ value) * _MIX[0]
    return mixed


def reentrant_nodes(mesh: Mesh, faces: Ids) -> Ids:
    """Return the nodes on edges where the skin turns inward by more than REENTRANT_DEG.

    Args:
        faces: the skin, as `boundary_faces` gives it.
    """
    ends, middles, inward = _sharp_edges(mesh, faces)
    found = np.concatenate([ends[inward].ravel(), middles[inward]])
    return np.unique(found[found > 0])


def feature_edges(mesh: Mesh, faces: Ids) -> Ids:
    """Return the edges where the skin turns by more than REENTRANT_DEG, as straight pieces: node pairs (e, 2)."""
    ends, middles, _ = _sharp_edges(mesh, faces)
    bent = middles > 0
    halves = [np.column_stack([ends[bent, 0], middles[bent]]), np.column_stack([middles[bent], ends[bent, 1]])]
    return np.concatenate([ends[~bent], *halves])


def _sharp_edges(mesh: Mesh, faces: Ids) -> tuple[Ids, Ids, NDArray[np.bool_]]:
    """Return end nodes, middle node or 0, and whether the skin turns inward, of every sharp edge."""
    keys, normals, centroids, ends, middles = _edges(mesh, faces)
    order = np.argsort(keys, kind="stable")
    first, second = order[:-1], order[1:]
    paired = keys[first] == keys[second]
    first, second = first[paired], second[paired]
    turn = np.clip((normals[first] * normals[second]).sum(axis=1), -1.0, 1.0)
    rises = ((centroids[second] - centroids[first]) * normals[first]).sum(axis=1)
    sharp = turn < np.cos(np.radians(REENTRANT_DEG))
    return ends[first[sharp]], middles[first[sharp]], rises[sharp] > 0


def _edges(mesh: Mesh, faces: Ids) -> tuple[NDArray[np.uint64], Floats, Floats, Ids, Ids]:
    """Return for every edge of every face: key, the face's normal there, its centroid, end nodes, middle node or 0."""
    inside = _element_centres(mesh, faces[:, 0])
    columns: list[tuple[NDArray[np.uint64], Floats, Floats, Ids, Ids]] = []
    for rows, nodes in face_nodes(mesh, faces):
        family = _SHAPES[nodes.shape[1]]
        points = mesh.points_mm(nodes)
        corners = len(family.corners)
        centroid = points[:, :corners].mean(axis=1)
        at = _edge_middles(family)
        tangents = np.moveaxis(np.tensordot(points, shape_gradients(family, at), axes=([1], [1])), 1, 3)
        normals = np.cross(tangents[:, :, 0], tangents[:, :, 1])
        normals /= np.maximum(np.linalg.norm(normals, axis=2, keepdims=True), 1e-300)
        outward = ((centroid - inside[rows])[:, None, :] * normals).sum(axis=2, keepdims=True)
        normals = np.where(outward < 0, -normals, normals)
        for index, (a, b) in enumerate(family.edges):
            pair = nodes[:, [a, b]]
            middle = nodes[:, corners + index] if family.quadratic else np.zeros(len(nodes), dtype=np.int64)
            columns.append((_key(pair), normals[:, index], centroid, pair, middle))
    if not columns:
        empty = np.empty((0, 3))
        return np.empty(0, np.uint64), empty, empty, np.empty((0, 2), np.int64), np.empty(0, np.int64)
    keys, normal, centre, ends, middles = zip(*columns, strict=True)
    return (
        np.concatenate(keys),
        np.concatenate(normal),
        np.concatenate(centre),
        np.concatenate(ends),
        np.concatenate(middles),
    )


def _edge_middles(family: Family) -> tuple[tuple[float, ...], ...]:
    corners = np.array(family.corners, dtype=np.float64)
    return tuple(tuple(map(float, (corners[a] + corners[b]) / 2)) for a, b in family.edges)


def _element_centres(mesh: Mesh, ids: Ids) -> Floats:
    centres = np.zeros((len(ids), 3))
    for block in mesh.blocks:
        kind = ELEMENT_TYPES.get(block.type.upper())
        if kind is None or not len(block.ids):
            continue
        order = np.argsort(block.ids, kind="stable")
        rows = order[np.clip(np.searchsorted(block.ids, ids, sorter=order), 0, len(order) - 1)]
        here = block.ids[rows] == ids
        centres[here] = mesh.points_mm(block.nodes[rows[here]][:, : len(kind.family.corners)]).mean(axis=1)
    return centres


def components(mesh: Mesh, links: "tuple[Ids, ...] | list[Ids]" = ()) -> Ids:
    """Return a body number, from 0, for every node row: nodes of one element, or of one link, are one body.

    Nodes that belong to no element and no link get -1.
    """
    groups = [mesh.positions(block.nodes) for block in mesh.blocks if len(block.ids)]
    for link in links:
        known = link[np.isin(link, mesh.node_ids)]
        if len(known):
            groups.append(mesh.positions(known)[None, :])
    label = np.arange(mesh.node_count, dtype=np.int64)
    used = np.zeros(mesh.node_count, dtype=np.bool_)
    for rows in groups:
        used[rows.ravel()] = True
    while True:
        before = label.copy()
        for rows in groups:
            least = label[rows].min(axis=1)
            np.minimum.at(label, rows.ravel(), np.repeat(least, rows.shape[1]))
        label = label[label]
        if np.array_equal(label, before):
            break
    label[~used] = -1
    _, numbers = np.unique(label[used], return_inverse=True)
    label[used] = numbers
    return label


def within(points: Floats, sources: Floats, radius: float) -> NDArray[np.bool_]:
    """Return which points lie within a radius of any source; cells of that size keep the work small."""
    near = np.zeros(len(points), dtype=np.bool_)
    if not len(sources) or not len(points) or radius <= 0:
        return near
    low = np.minimum(points.min(axis=0), sources.min(axis=0)) - radius
    span = np.ceil((np.maximum(points.max(axis=0), sources.max(axis=0)) - low) / radius).astype(np.int64) + 3
    weights = np.array([span[1] * span[2], span[2], 1], dtype=np.int64)
    cell = np.floor((points - low) / radius).astype(np.int64) @ weights
    source_cell = np.floor((sources - low) / radius).astype(np.int64) @ weights
    order = np.argsort(source_cell)
    source_cell, sources = source_cell[order], sources[order]
    for offset in np.ndindex(3, 3, 3):
        wanted = cell + (np.array(offset) - 1) @ weights
        start = np.searchsorted(source_cell, wanted, side="left")
        count = np.searchsorted(source_cell, wanted, side="right") - start
        open_rows = np.flatnonzero((count > 0) & ~near)
        for chunk in np.array_split(open_rows, max(1, int(count[open_rows].sum()) // 2_000_000 + 1)):
            repeats = count[chunk]
            owner = np.repeat(chunk, repeats)
            ahead = np.arange(int(repeats.sum())) - np.repeat(np.cumsum(repeats) - repeats, repeats)
            gap = points[owner] - sources[start[owner] + ahead]
            near[owner[(gap * gap).sum(axis=1) <= radius * radius]] = True
    return near

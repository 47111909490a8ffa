"""Measure a surface of triangles, and find the edges worth drawing."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from metaforge.core.errors import ToolError
from metaforge.formats.stl import read_stl

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]
SHARP_COSINE = 0.94
"""Two facets that meet at more than 20 degrees make an edge worth drawing."""


@dataclass(frozen=True)
class Surface:
    """Points in mm and the three corners of every facet."""

    points_mm: Floats
    corners: Ids

    @property
    def facets(self) -> Floats:
        return np.asarray(self.points_mm[self.corners], np.float64)

    def volume_mm3(self) -> float:
        a, b, c = self.facets.transpose(1, 0, 2)
        return float((a * np.cross(b, c)).sum() / 6)

    def area_mm2(self) -> float:
        return float(np.linalg.norm(self._crosses(), axis=1).sum() / 2)

    def open_edges_count(self) -> int:
        """Count edges that are not run through once in each direction: such a surface encloses nothing."""
        edges = self._edges()
        there = {tuple(edge) for edge in edges.tolist()}
        return sum((end, start) not in there for start, end in there) + len(edges) - len(there)

    def sharp_edges_mm(self) -> list[Floats]:
        """Return the edges between facets that turn, each as two points."""
        crosses = self._crosses()
        normals = crosses / np.maximum(np.linalg.norm(crosses, axis=1, keepdims=True), 1e-300)
        edges = np.sort(self._edges(), axis=1)
        owner = np.tile(np.arange(len(self.corners)), 3)
        order = np.lexsort((edges[:, 1], edges[:, 0]))
        first, second = order[:-1], order[1:]
        same = (edges[first] == edges[second]).all(axis=1)
        turned = (normals[owner[first]] * normals[owner[second]]).sum(axis=1) < SHARP_COSINE
        return list(self.points_mm[edges[first[same & turned]]])

    def _crosses(self) -> Floats:
        a, b, c = self.facets.transpose(1, 0, 2)
        return np.cross(b - a, c - a)

    def _edges(self) -> Ids:
        return np.concatenate([self.corners[:, pair] for pair in ([0, 1], [1, 2], [2, 0])])


def read_surface(path: Path) -> Surface:
    """Read STL or OFF.

    Raises:
        ToolError: the file is cut short or holds no facets.
    """
    if path.suffix.lower() == ".off":
        return _read_off(path)
    facets = read_stl(path.read_bytes(), path.name)
    points, inverse = np.unique(facets.reshape(-1, 3), axis=0, return_inverse=True)
    return Surface(points, inverse.reshape(-1, 3).astype(np.int64))


def _read_off(path: Path) -> Surface:
    words = path.read_text("ascii", "replace").split()
    try:
        points_count, faces_count = int(words[1]), int(words[2])
        end = 4 + 3 * points_count
        points = np.array(words[4:end], np.float64).reshape(points_count, 3)
        corners = []
        for _ in range(faces_count):
            count = int(words[end])
            face = [int(word) for word in words[end + 1 : end + 1 + count]]
            corners += [(face[0], face[k], face[k + 1]) for k in range(1, count - 1)]
            end += 1 + count
        surface = Surface(points, np.array(corners, np.int64).reshape(-1, 3))
        if words[0] != "OFF" or not corners or surface.corners.max() >= points_count:
            raise ValueError("no facets, or corners that are not there")
    except (IndexError, ValueError) as fault:
        raise ToolError(f"{path.name} is no complete OFF file: {fault}", kind="bad_off", where=path.name) from None
    return surface

"""Read fields off a result file: its mesh, stresses per region, where things are largest."""

from dataclasses import dataclass

import numpy as np

from metaforge.engineering.mesh import ElementBlock, Floats, Ids, Mesh
from metaforge.formats.frd import ResultBlock, Results, von_mises

Vector = tuple[float, float, float]

_TYPES = {
    1: "C3D8", 2: "C3D6", 3: "C3D4", 4: "C3D20", 5: "C3D15", 6: "C3D10", 7: "S3", 8: "S6", 9: "S4", 10: "S8",
    11: "B31", 12: "B32",
}  # fmt: skip
# The file puts the nodes of upright edges before those of the top face; decks have them the other way round.
_ORDER = {4: [*range(12), *range(16, 20), *range(12, 16)], 5: [*range(9), *range(12, 15), *range(9, 12)]}


def result_mesh(results: Results) -> Mesh:
    """Return the mesh a result file is about: shells and beams as the solids CalculiX makes of them."""
    order = np.argsort(results.node_ids, kind="stable")
    blocks = []
    for kind, (ids, nodes) in results.elements.items():
        nodes = nodes[:, _ORDER[kind]] if kind in _ORDER else nodes
        known = np.isin(nodes, results.node_ids).all(axis=1)
        blocks.append(ElementBlock(_TYPES[kind], ids[known], nodes[known]))
    return Mesh(results.node_ids[order], results.coordinates_mm[order], tuple(blocks))


@dataclass(frozen=True)
class Field:
    """One number per node.

    Attributes:
        node_ids: shape (n,), sorted.
        values: shape (n,).
        points_mm: shape (n, 3).
    """

    node_ids: Ids
    values: Floats
    points_mm: Floats

    def largest(self, among: "np.ndarray[tuple[int], np.dtype[np.bool_]] | None" = None) -> int:
        """Return the row of the largest value, among the given rows."""
        values = self.values if among is None else np.where(among, self.values, -np.inf)
        return int(values.argmax())

    def at(self, row: int) -> Vector:
        return point(self.points_mm[row])


def point(values: Floats) -> Vector:
    """Return a point as plain numbers, rounded to the file's six digits."""
    x, y, z = (float(f"{float(value):.6g}") + 0.0 for value in values)
    return (x, y, z)


def number(value: float) -> float:
    """Return a plain number with six digits, which is what result files carry."""
    return float(f"{float(value):.6g}") + 0.0


def stress_field(results: Results, mesh: Mesh) -> Field | None:
    """Return the von Mises stress (MPa) of the last increment."""
    block = results.last("STRESS")
    if block is None or block.values.shape[1] < 6:
        return None
    return _field(block, von_mises(block.values), mesh)


def magnitude_field(block: ResultBlock, mesh: Mesh) -> Field:
    """Return the length of a vector field, such as displacement in mm."""
    return _field(block, np.linalg.norm(block.values[:, :3], axis=1), mesh)


def scalar_field(block: ResultBlock, mesh: Mesh) -> Field:
    """Return the first component of a field, such as temperature in deg C."""
    return _field(block, block.values[:, 0], mesh)


def _field(block: ResultBlock, values: Floats, mesh: Mesh) -> Field:
    known = np.isin(block.node_ids, mesh.node_ids)
    ids, kept = block.node_ids[known], values[known]
    order = np.argsort(ids, kind="stable")
    return Field(ids[order], kept[order], mesh.points_mm(ids[order]))


def region_nodes(mesh: Mesh, regions: dict[str, Ids]) -> dict[str, Ids]:
    """Return the nodes of each region's elements; regions without elements in the file are left out."""
    found: dict[str, Ids] = {}
    for name, elements in regions.items():
        parts = [block.nodes[np.isin(block.ids, elements)].ravel() for block in mesh.blocks]
        nodes = np.unique(np.concatenate(parts)) if parts else np.empty(0, np.int64)
        if len(nodes):
            found[name] = nodes
    return found


def largest_by_region(field: Field, nodes: dict[str, Ids]) -> dict[str, float]:
    """Return the largest value in each region."""
    found = {}
    for name, ids in nodes.items():
        inside = np.isin(field.node_ids, ids)
        if inside.any():
            found[name] = number(field.values[inside].max())
    return found


def region_of(node: int, nodes: dict[str, Ids]) -> str:
    """Return the first region that has a node."""
    return next((name for name, ids in nodes.items() if node in ids), "")

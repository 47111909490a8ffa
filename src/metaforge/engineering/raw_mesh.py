"""What the mesher left: tetrahedra, and the triangles on each CAD face."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metaforge.core.errors import FailureMode, ToolError
from metaforge.engineering.element_types import TET4
from metaforge.engineering.mesh import ElementBlock, Floats, Ids
from metaforge.engineering.mesh_sizes import CadFace


@dataclass(frozen=True)
class RawMesh:
    """Tetrahedra in CalculiX's node order, and the triangles on each CAD face.

    Attributes:
        node_ids, coordinates_mm: nodes that tetrahedra use, numbered from 1.
        tetrahedra: node ids, shape (m, 4 or 10); element ids are 1 ... m in this order.
        solids: element ids of each solid.
        triangles: corner node ids of the triangles on each CAD face, by gmsh's tag.
    """

    node_ids: Ids
    coordinates_mm: Floats
    tetrahedra: Ids
    solids: dict[str, Ids]
    triangles: dict[int, Ids]

    def blocks(self, type_name: str) -> tuple[ElementBlock, ...]:
        ids = np.arange(1, len(self.tetrahedra) + 1, dtype=np.int64)
        return (ElementBlock(type_name, ids, self.tetrahedra, section="EALL"),)

    def match_faces(self, faces: Sequence[CadFace]) -> list[tuple[CadFace, Ids]]:
        """Return element ids and CalculiX face numbers on each CAD face."""
        corners = np.sort(self.tetrahedra[:, np.array(TET4.faces)].reshape(-1, 3), axis=1)
        keys = _keys(corners, len(self.node_ids))
        order = np.argsort(keys, kind="stable")
        matched: list[tuple[CadFace, Ids]] = []
        for face in faces:
            wanted = _keys(np.sort(self.triangles[face.tag], axis=1), len(self.node_ids))
            at = np.clip(np.searchsorted(keys, wanted, sorter=order), 0, len(keys) - 1)
            rows = order[at]
            if (keys[rows] != wanted).any():
                raise ToolError(
                    f"{int((keys[rows] != wanted).sum())} triangles of face {face.tag} touch no element",
                    kind="mesh_not_conformal",
                    failure_mode=FailureMode.ENVIRONMENT,
                )
            members = np.column_stack([rows // 4 + 1, rows % 4 + 1]).astype(np.int64)
            matched.append((face, members[np.lexsort((members[:, 1], members[:, 0]))]))
        return matched


def _keys(corners: Ids, base: int) -> Ids:
    # Three ids below 2**21 fit one 63-bit number; meshes are limited far below that.
    assert base < 2**21
    return np.asarray((corners[:, 0] << 42) | (corners[:, 1] << 21) | corners[:, 2])

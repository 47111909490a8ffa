"""Write a tetrahedral mesh as an I-DEAS universal file (.unv): nodes, elements and groups. Arrays in, text out.

Datasets 2411 (nodes), 2412 (elements) and 2467 (groups), in fixed columns.
"""

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from metaforge.core.errors import ToolError
from metaforge.formats.inp_mesh import MeshLike

Ids = NDArray[np.int64]

_DELIMITER = "    -1"
# Descriptor, and the order in which a universal file lists CalculiX's nodes: a quadratic tetrahedron goes around its
# first face corner by corner with the nodes between, then the edges up to the last corner.
_TYPES = {"C3D4": (111, [0, 1, 2, 3]), "C3D10": (118, [0, 4, 1, 5, 2, 6, 7, 8, 9, 3])}
_NODE_ENTITY, _ELEMENT_ENTITY = 7, 8


def write_unv(mesh: MeshLike) -> str:
    """Return the file's text; node sets and element sets become groups.

    Raises:
        ToolError: elements other than C3D4 and C3D10.
    """
    return "\n".join(_lines(mesh)) + "\n"


def _lines(mesh: MeshLike) -> Iterator[str]:
    yield from (_DELIMITER, "  2411")
    for node, (x, y, z) in zip(mesh.node_ids.tolist(), mesh.coordinates_mm.tolist(), strict=True):
        yield f"{node:10d}{1:10d}{1:10d}{11:10d}"
        yield f"{x:25.16E}{y:25.16E}{z:25.16E}".replace("E", "D")
    yield from (_DELIMITER, _DELIMITER, "  2412")
    for block in mesh.blocks:
        if block.type not in _TYPES:
            raise ToolError(f"{block.type} elements cannot be written as .unv: C3D4 and C3D10 can", kind="not_written")
        descriptor, order = _TYPES[block.type]
        for element, nodes in zip(block.ids.tolist(), block.nodes[:, order].tolist(), strict=True):
            yield f"{element:10d}{descriptor:10d}{1:10d}{1:10d}{7:10d}{len(nodes):10d}"
            yield from _columns(nodes, 8)
    yield _DELIMITER
    yield from _groups(mesh.node_sets, _NODE_ENTITY, 1)
    yield from _groups(mesh.element_sets, _ELEMENT_ENTITY, 1 + len(mesh.node_sets))


def _groups(sets: Mapping[str, Ids], entity: int, first: int) -> Iterator[str]:
    if not sets:
        return
    yield from (_DELIMITER, "  2467")
    for number, (name, ids) in enumerate(sets.items(), start=first):
        yield f"{number:10d}" + f"{0:10d}" * 6 + f"{len(ids):10d}"
        yield name
        yield from _columns([value for i in ids.tolist() for value in (entity, i, 0, 0)], 8)
    yield _DELIMITER


def _columns(values: list[int], per_line: int) -> Iterator[str]:
    for start in range(0, len(values), per_line):
        yield "".join(f"{value:10d}" for value in values[start : start + per_line])

"""Write a mesh as a CalculiX input file: nodes, elements, sets, surfaces; no material, no step. Arrays in, text out."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]

SET_ENTRIES_PER_LINE = 10
ELEMENT_ENTRIES_PER_LINE = 15
"""CalculiX takes at most 16 entries on a line; a longer element goes on after a trailing comma."""


class Block(Protocol):
    """Elements of one type; `section` names their element set."""

    @property
    def type(self) -> str: ...
    @property
    def ids(self) -> Ids: ...
    @property
    def nodes(self) -> Ids: ...
    @property
    def section(self) -> str: ...


class MeshLike(Protocol):
    """What is written."""

    @property
    def node_ids(self) -> Ids: ...
    @property
    def coordinates_mm(self) -> Floats: ...
    @property
    def blocks(self) -> Sequence[Block]: ...
    @property
    def node_sets(self) -> Mapping[str, Ids]: ...
    @property
    def element_sets(self) -> Mapping[str, Ids]: ...


def write_mesh(mesh: MeshLike, surfaces: Mapping[str, Ids], comments: Iterable[str] = ()) -> str:
    """Return the file's text.

    Args:
        surfaces: element id and face number per row, by surface name.
        comments: lines for the head of the file.
    """
    return "\n".join(_lines(mesh, surfaces, comments)) + "\n"


def _lines(mesh: MeshLike, surfaces: Mapping[str, Ids], comments: Iterable[str]) -> Iterator[str]:
    yield from (f"** {' '.join(comment.split())}" for comment in comments)
    yield "*NODE, NSET=NALL"
    for node, (x, y, z) in zip(mesh.node_ids.tolist(), mesh.coordinates_mm.tolist(), strict=True):
        # CalculiX reads at most 20 characters of a number.
        yield f"{node}, {x:.12g}, {y:.12g}, {z:.12g}"
    for block in mesh.blocks:
        yield f"*ELEMENT, TYPE={block.type}" + (f", ELSET={block.section}" if block.section else "")
        for element, nodes in zip(block.ids.tolist(), block.nodes.tolist(), strict=True):
            yield from _wrapped([element, *nodes], ELEMENT_ENTRIES_PER_LINE)
    for name, ids in mesh.element_sets.items():
        yield f"*ELSET, ELSET={name}"
        yield from _wrapped(ids.tolist(), SET_ENTRIES_PER_LINE)
    for name, ids in mesh.node_sets.items():
        yield f"*NSET, NSET={name}"
        yield from _wrapped(ids.tolist(), SET_ENTRIES_PER_LINE)
    for name, faces in surfaces.items():
        yield f"*SURFACE, NAME={name}, TYPE=ELEMENT"
        for element, number in faces.tolist():
            yield f"{element}, S{number}"


def _wrapped(values: list[int], per_line: int) -> Iterator[str]:
    for start in range(0, len(values), per_line):
        more = "," if start + per_line < len(values) else ""
        yield ", ".join(map(str, values[start : start + per_line])) + more

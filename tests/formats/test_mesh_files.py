"""Meshes written and read again: .inp, .unv, .stl."""

import contextlib
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from metaforge.core.errors import ToolError
from metaforge.formats.inp import read_cards
from metaforge.formats.inp_mesh import write_mesh
from metaforge.formats.inp_model import read_model
from metaforge.formats.stl import BadStl, read_stl, write_stl
from metaforge.formats.unv_mesh import write_unv

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Block:
    type: str
    ids: Ids
    nodes: Ids
    section: str = "EALL"


@dataclass(frozen=True)
class TinyMesh:
    node_ids: Ids
    coordinates_mm: NDArray[np.float64]
    blocks: tuple[Block, ...]
    node_sets: dict[str, Ids] = field(default_factory=dict)
    element_sets: dict[str, Ids] = field(default_factory=dict)


CORNERS = np.array([(0.0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)])
EDGES = [(0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3)]
TET10 = TinyMesh(
    np.arange(1, 11),
    np.vstack([CORNERS, [(CORNERS[a] + CORNERS[b]) / 2 for a, b in EDGES]]),
    (Block("C3D10", np.array([1]), np.arange(1, 11)[None]),),
    {"N_face_1": np.array([1, 2, 3, 5, 6, 7])},
    {"solid_1": np.array([1])},
)


def test_an_inp_mesh_reads_back_as_it_was_written() -> None:
    faces = {"face_1": np.array([(1, 1)]), "face_2": np.array([(1, 3), (1, 4)])}
    text = write_mesh(TET10, faces, ["lengths in mm\nand no second line"])
    assert text.startswith("** lengths in mm and no second line\n*NODE")
    model = read_model(read_cards(text))
    assert np.array_equal(model.node_ids, TET10.node_ids)
    assert np.allclose(model.coordinates, TET10.coordinates_mm)
    (rows,) = model.elements
    assert (rows.type, rows.elset) == ("C3D10", "EALL")
    assert np.array_equal(rows.nodes, TET10.blocks[0].nodes)
    assert model.node_sets["N_FACE_1"].tolist() == [1, 2, 3, 5, 6, 7]
    assert model.element_sets["SOLID_1"].tolist() == [1]
    assert model.surfaces == {"FACE_1": [(1, 1)], "FACE_2": [(1, 3), (1, 4)]}


def test_lines_stay_within_what_calculix_reads() -> None:
    nodes = np.arange(1, 21)
    points = np.full((20, 3), -1.2345678901234567e-5)
    mesh = TinyMesh(nodes, points, (Block("C3D20", np.array([1]), nodes[None]),), {"N": np.arange(1, 21)})
    lines = write_mesh(mesh, {}).splitlines()
    assert all(len(line.split(",")) <= 16 for line in lines)
    assert all(len(number.strip()) <= 20 for line in lines[1:21] for number in line.split(","))
    assert np.array_equal(read_model(read_cards("\n".join(lines))).elements[0].nodes, nodes[None])


def test_unv_lists_nodes_in_the_order_that_gmsh_writes_and_reads(tmp_path: Path) -> None:
    gmsh = pytest.importorskip("gmsh")
    ours = tmp_path / "ours.unv"
    ours.write_text(write_unv(TET10))
    gmsh.initialize(readConfigFiles=False, interruptible=False)
    try:
        gmsh.option.setNumber("General.Terminal", 0)
        gmsh.model.occ.addBox(0, 0, 0, 1, 1, 1)
        gmsh.model.occ.synchronize()
        gmsh.option.setNumber("Mesh.ElementOrder", 2)
        gmsh.model.mesh.generate(3)
        gmsh.write(str(tmp_path / "theirs.unv"))
        tags, flat, _ = gmsh.model.mesh.getNodes()
        points = dict(zip(tags.tolist(), flat.reshape(-1, 3).tolist(), strict=True))
        gmsh.clear()
        gmsh.open(str(ours))
        _, nodes = gmsh.model.mesh.getElementsByType(11)
        assert len(nodes) == 10
        jacobians = gmsh.model.mesh.getJacobians(11, [0.25, 0.25, 0.25])[1]
        assert jacobians[0] == pytest.approx(1)
    finally:
        gmsh.finalize()
    # In gmsh's own file every middle node lies between the corners that this order names.
    rows = re.findall(
        r"^ +\d+ +118(?: +\d+){3} +10\n((?: +\d+)+\n(?: +\d+)+)$", (tmp_path / "theirs.unv").read_text(), re.M
    )
    assert rows
    for row in rows[:50]:
        n = [np.array(points[int(word)]) for word in row.split()]
        for middle, (a, b) in {1: (0, 2), 3: (2, 4), 5: (4, 0), 6: (0, 9), 7: (2, 9), 8: (4, 9)}.items():
            assert np.allclose(n[middle], (n[a] + n[b]) / 2)


def test_unv_refuses_what_it_cannot_write() -> None:
    brick = TinyMesh(np.arange(1, 9), np.zeros((8, 3)), (Block("C3D8", np.array([1]), np.arange(1, 9)[None]),))
    with pytest.raises(ToolError, match="C3D8"):
        write_unv(brick)


TRIANGLE = np.array([[(0.0, 0, 0), (2, 0, 0), (0, 2, 0)]])


def test_stl_comes_back_with_normals_by_the_right_hand_rule() -> None:
    data = write_stl(TRIANGLE)
    assert np.allclose(read_stl(data, "t.stl"), TRIANGLE)
    assert np.frombuffer(data, "<f4", 3, 84).tolist() == [0, 0, 1]


def test_text_stl_is_read() -> None:
    loop = b"outer loop\nvertex 0 0 0\nvertex 2 0 0\nvertex 0 2e0 0\nendloop\n"
    text = b"solid x\nfacet normal 0 0 1\n" + loop + b"endfacet\nendsolid x\n"
    assert np.allclose(read_stl(text, "t.stl"), TRIANGLE)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello",
        b"solid x\nvertex 0 0 0\n",
        b"solid x\nendsolid x\n",
        b"solid x\nvertex 0 0 0\nvertex 1 0 0\nendsolid",
        b"solid x\nvertex 0 0 0\nvertex 1 0 0\nvertex a b c\nendsolid",
        b"solid x\nvertex 0 0 0\nvertex 1 0 0\nvertex nan 0 0\nendsolid",
        write_stl(TRIANGLE)[:-1],
    ],
)
def test_damaged_stl_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(BadStl, match=r"part\.stl"):
        read_stl(data, "part.stl")


@given(st.binary(max_size=400))
def test_no_bytes_crash_the_stl_reader(data: bytes) -> None:
    for start in (b"", b"solid "):
        with contextlib.suppress(BadStl):
            assert np.isfinite(read_stl(start + data, "x.stl")).all()

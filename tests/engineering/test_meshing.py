"""Meshing real STEP files with gmsh, against closed forms and CadQuery's own placement of parts."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gmsh")

from metaforge.core.errors import InvalidArguments, ToolError
from metaforge.engineering import heartbeat, mesh_sizes, meshing, meshing_gmsh
from metaforge.engineering.element_types import ELEMENT_TYPES
from metaforge.engineering.faces import select
from metaforge.engineering.heartbeat import no_progress
from metaforge.engineering.mesh import Mesh
from metaforge.engineering.mesh_quality import measure
from metaforge.engineering.mesh_sizes import MOST_ELEMENTS, wall_thickness_mm
from metaforge.engineering.meshing import MeshResult, add_position_sets, mesh_step
from metaforge.engineering.meshing_input import read_input
from metaforge.engineering.surface_geometry import face_areas_mm2, face_nodes, face_vectors

StepWriter = Callable[[str, Callable[[Any], object]], Path]

pytestmark = pytest.mark.program("gmsh")


def block(occ: Any) -> None:
    occ.addBox(0, 0, 0, 50, 30, 10)


def tube(occ: Any) -> None:
    solid, bore = occ.addCylinder(0, 0, 0, 0, 0, 20, 10), occ.addCylinder(0, 0, 0, 0, 0, 20, 9.7)
    occ.cut([(3, solid)], [(3, bore)])


def l_bracket(occ: Any) -> None:
    base, wall = occ.addBox(0, 0, 0, 60, 40, 5), occ.addBox(0, 0, 0, 5, 40, 40)
    occ.fuse([(3, base)], [(3, wall)])


@pytest.fixture(scope="module")
def block_mesh(tmp_path_factory: pytest.TempPathFactory) -> MeshResult:
    import gmsh

    path = tmp_path_factory.mktemp("block") / "block.step"
    gmsh.initialize(readConfigFiles=False, interruptible=False)
    gmsh.option.setNumber("General.Terminal", 0)
    block(gmsh.model.occ)
    gmsh.model.occ.synchronize()
    gmsh.write(str(path))
    gmsh.finalize()
    return mesh_step(path, size_mm=4)


def test_a_block_keeps_its_volume_box_and_six_faces(block_mesh: MeshResult) -> None:
    mesh = block_mesh.mesh
    assert block_mesh.volume_mm3 == pytest.approx(15000, rel=1e-9)
    assert block_mesh.cad_volume_mm3 == pytest.approx(15000, rel=1e-9)
    assert block_mesh.cad_area_mm2 == pytest.approx(2 * (1500 + 500 + 300))
    assert mesh.bbox_mm() == pytest.approx((0, 0, 0, 50, 30, 10), abs=1e-9)
    assert block_mesh.quality.types == {"C3D10": mesh.element_count}
    assert block_mesh.warnings == ()
    expected = {"top": 1500, "bottom": 1500, "left": 300, "right": 300, "front": 500, "back": 500}
    for side, area in expected.items():
        (name,) = select(mesh.surfaces, side)
        surface = mesh.surfaces[name]
        assert surface.kind == "plane"
        assert surface.area_mm2 == pytest.approx(area)
        assert face_areas_mm2(mesh, surface.faces).sum() == pytest.approx(area)


def test_every_face_number_points_outward_where_its_surface_does(block_mesh: MeshResult) -> None:
    mesh = block_mesh.mesh
    for name, surface in mesh.surfaces.items():
        vectors, centroids = face_vectors(mesh, surface.faces)
        units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        assert np.allclose(units, surface.normal, atol=1e-9), name
        # Each element face lies on the block's side that its normal names.
        axis = int(np.abs(surface.normal).argmax())
        side = (0, (50, 30, 10)[axis])[surface.normal[axis] > 0]
        assert np.allclose(centroids[:, axis], side)


def test_surfaces_cover_the_whole_skin_once(block_mesh: MeshResult) -> None:
    mesh = block_mesh.mesh
    members = np.vstack([surface.faces for surface in mesh.surfaces.values()])
    assert len(np.unique(members, axis=0)) == len(members)
    vectors, centroids = face_vectors(mesh, members)
    assert np.allclose(vectors.sum(axis=0), 0, atol=1e-9)
    assert (vectors * centroids).sum() / 3 == pytest.approx(15000)


def test_quadratic_nodes_lie_between_the_corners_that_calculix_expects(block_mesh: MeshResult) -> None:
    block_of = block_mesh.mesh.blocks[0]
    points = block_mesh.mesh.points_mm(block_of.nodes)
    for k, (a, b) in enumerate(ELEMENT_TYPES["C3D10"].family.edges):
        assert np.allclose(points[:, 4 + k], (points[:, a] + points[:, b]) / 2, atol=1e-9)
    assert block_mesh.quality.min_scaled_jacobian_ratio > 0.1


def test_node_sets_are_the_nodes_of_the_surfaces(block_mesh: MeshResult) -> None:
    mesh = add_position_sets(block_mesh.mesh)
    top = mesh.node_sets["N_top"]
    at_top = mesh.node_ids[np.isclose(mesh.coordinates_mm[:, 2], 10)]
    assert top.tolist() == at_top.tolist()
    assert mesh.surfaces["top"].area_mm2 == pytest.approx(1500)
    assert set(mesh.surfaces) >= {"top", "bottom", "left", "right", "front", "back", "face_1", "face_6"}


def test_a_point_on_a_face_chooses_it_by_its_true_distance(block_mesh: MeshResult) -> None:
    mesh = block_mesh.mesh
    assert select(mesh.surfaces, {"near_mm": [25, 15, 10.5]}, mesh=mesh) == select(mesh.surfaces, "top")
    with pytest.raises(InvalidArguments, match="equally near to 2 faces"):
        select(mesh.surfaces, {"near_mm": [50, 15, 0]}, mesh=mesh)


def test_the_same_file_makes_the_same_mesh(write_step: StepWriter) -> None:
    path = write_step("l.step", l_bracket)
    first, second = mesh_step(path, size_mm=6).mesh, mesh_step(path, size_mm=6).mesh
    assert np.array_equal(first.coordinates_mm, second.coordinates_mm)
    assert np.array_equal(first.blocks[0].nodes, second.blocks[0].nodes)


def test_a_sphere_has_its_area_and_volume_and_no_sides(write_step: StepWriter) -> None:
    made = mesh_step(write_step("ball.step", lambda occ: occ.addSphere(0, 0, 0, 5)))
    (surface,) = made.mesh.surfaces.values()
    assert surface.kind == "sphere"
    assert surface.normal == (0, 0, 0)
    assert surface.area_mm2 == pytest.approx(math.pi * 100)
    assert face_areas_mm2(made.mesh, surface.faces).sum() == pytest.approx(math.pi * 100, rel=1e-3)
    assert made.volume_mm3 == pytest.approx(4 / 3 * math.pi * 125, rel=1e-3)
    with pytest.raises(InvalidArguments, match="names no face"):
        select(made.mesh.surfaces, "top")


@pytest.mark.parametrize("side_mm", [1e5, 1e6, 1e8])
def test_a_part_of_any_size_is_meshed_in_its_own_coordinates(write_step: StepWriter, side_mm: float) -> None:
    def drilled(occ: Any) -> None:
        solid = occ.addBox(side_mm, 0, 0, side_mm, side_mm / 2, side_mm / 4)
        bore = occ.addCylinder(1.5 * side_mm, side_mm / 4, 0, 0, 0, side_mm / 4, side_mm / 8)
        occ.cut([(3, solid)], [(3, bore)])

    made = mesh_step(write_step("large.step", drilled))
    volume_mm3 = side_mm**3 * (1 / 8 - math.pi / 64 / 4)
    assert made.cad_volume_mm3 == pytest.approx(volume_mm3)
    assert made.volume_mm3 == pytest.approx(volume_mm3, rel=2e-3)
    assert made.size_mm == pytest.approx(0.0609 * side_mm, rel=0.01)
    low, high = made.mesh.coordinates_mm.min(axis=0), made.mesh.coordinates_mm.max(axis=0)
    assert low == pytest.approx([side_mm, 0, 0], abs=1e-9 * side_mm)
    assert high == pytest.approx([2 * side_mm, side_mm / 2, side_mm / 4])
    (top,) = select(made.mesh.surfaces, "top")
    assert made.mesh.surfaces[top].area_mm2 == pytest.approx(side_mm**2 * (1 / 2 - math.pi / 64))
    assert sorted(surface.kind for surface in made.mesh.surfaces.values()) == ["cylinder"] + 6 * ["plane"]


def test_linear_elements_on_request(write_step: StepWriter) -> None:
    made = mesh_step(write_step("block.step", block), size_mm=8, order=1)
    assert made.quality.types == {"C3D4": made.mesh.element_count}
    assert made.mesh.blocks[0].nodes.shape[1] == 4
    assert made.volume_mm3 == pytest.approx(15000)
    (top,) = select(made.mesh.surfaces, "top")
    assert {nodes.shape[1] for _, nodes in face_nodes(made.mesh, made.mesh.surfaces[top].faces)} == {3}


@pytest.mark.parametrize("algorithm", ["delaunay", "frontal", "hxt"])
def test_every_algorithm_fills_the_part(write_step: StepWriter, algorithm: str) -> None:
    made = mesh_step(write_step("l.step", l_bracket), size_mm=8, algorithm=algorithm)
    assert made.volume_mm3 == pytest.approx(60 * 40 * 5 + 5 * 40 * 35)
    assert not len(made.quality.negative_ids)


def test_the_default_size_of_a_bracket_follows_its_wall(write_step: StepWriter) -> None:
    made = mesh_step(write_step("l.step", l_bracket))
    assert made.wall_mm == pytest.approx(5)
    assert made.size_mm == pytest.approx(2.5)
    assert made.size_reason == "wall / 2"
    assert 3_000 <= made.mesh.element_count <= 60_000


@pytest.mark.parametrize(
    ("build", "wall_mm"),
    [
        (block, 10.0),
        (tube, 0.3),
        (l_bracket, 5.0),
        (lambda occ: occ.addBox(0, 0, 0, 100, 100, 1), 1.0),
    ],
)
def test_wall_thickness_is_measured_through_the_part(
    write_step: StepWriter, build: Callable[[Any], object], wall_mm: float
) -> None:
    source = read_input(write_step("part.step", build))
    with meshing_gmsh.Session() as session:
        geometry = session.load(source)
        triangles = session.surface_triangles(geometry.longest_mm / 10)
    # A coarse tube is measured between its flats and edges.
    assert wall_thickness_mm(triangles) == pytest.approx(wall_mm, rel=0.25)
    assert wall_thickness_mm(triangles[:, ::-1]) == pytest.approx(wall_thickness_mm(triangles), rel=0.02)


@pytest.fixture
def small_budget(monkeypatch: pytest.MonkeyPatch) -> int:
    """A tenth of the usual number of elements, so that tests at the limit stay quick."""
    for module in (meshing, mesh_sizes):
        monkeypatch.setattr(module, "DEFAULT_MOST_ELEMENTS", 6_000)
    monkeypatch.setattr(mesh_sizes, "FEWEST_ELEMENTS", 1_000)
    return 6_000


def test_a_thin_part_gets_a_size_that_keeps_the_mesh_solvable_and_says_so(
    write_step: StepWriter, small_budget: int
) -> None:
    made = mesh_step(write_step("sheet.step", lambda occ: occ.addBox(0, 0, 0, 60, 60, 0.3)))
    assert made.size_reason == f"at most {small_budget} elements"
    assert small_budget / 2 < made.mesh.element_count < 2 * small_budget
    assert any("wall of about 0.3 mm has 1 element(s) through it" in warning for warning in made.warnings)
    assert made.volume_mm3 == pytest.approx(60 * 60 * 0.3)
    assert made.quality.min_scaled_jacobian_ratio > 0.01


def test_too_fine_a_size_is_refused_before_meshing_with_one_that_fits(write_step: StepWriter) -> None:
    path = write_step("block.step", block)
    with pytest.raises(ToolError, match="makes about") as refused:
        mesh_step(path, size_mm=0.2)
    fault = refused.value
    assert fault.kind == "too_many_elements"
    assert fault.data["element_count"] > MOST_ELEMENTS
    fits = fault.data["suggested_size_mm"]
    assert f"{fits:.3g} or more" in fault.fix
    # The estimate is a bound from above: what it allows is not refused.
    assert 6 * 15000 / fits**3 <= MOST_ELEMENTS


def test_many_small_holes_are_followed_less_closely_and_the_part_is_still_meshed(
    write_step: StepWriter, small_budget: int
) -> None:
    def perforated(occ: Any) -> None:
        plate = occ.addBox(0, 0, 0, 30, 30, 5)
        centres = [(5 + 10 * i, 5 + 10 * j) for i in range(3) for j in range(3)]
        occ.cut([(3, plate)], [(3, occ.addCylinder(x, y, 0, 0, 0, 5, 0.5)) for x, y in centres])

    made = mesh_step(write_step("perforated.step", perforated))
    assert any("8 instead of 12 elements around a circle" in warning for warning in made.warnings)
    assert made.mesh.element_count < 3 * small_budget
    assert made.volume_mm3 == pytest.approx(30 * 30 * 5 - 9 * math.pi * 0.25 * 5, rel=1e-3)


def test_elements_bent_inside_out_by_a_thin_wall_are_straightened_out(write_step: StepWriter) -> None:
    path = write_step("tube.step", tube)
    with meshing_gmsh.Session() as session:
        geometry = session.load(read_input(path))
        session.mesh_surfaces(10)
        raw = session.mesh_volumes(2, no_progress)
    bent = measure(Mesh(raw.node_ids, raw.coordinates_mm, raw.blocks("C3D10")))
    assert len(bent.negative_ids) > 10
    made = mesh_step(path, size_mm=10)
    assert not len(made.quality.negative_ids)
    assert made.volume_mm3 == pytest.approx(geometry.volume_mm3, rel=5e-3)


def test_elements_that_stay_inside_out_are_refused_with_count_worst_value_and_size(
    write_step: StepWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_step("tube.step", tube)
    # What a mesher without untangling leaves.
    monkeypatch.setattr(meshing_gmsh.Session, "untangle", lambda self, order, progress: meshing_gmsh._extract(order, 1))
    with pytest.raises(ToolError, match="turned inside out") as refused:
        mesh_step(path, size_mm=10)
    fault = refused.value
    assert fault.kind == "bad_elements"
    assert fault.data["bad_elements"] > 10
    assert fault.data["min_scaled_jacobian_ratio"] < 0
    assert fault.data["suggested_size_mm"] == pytest.approx(0.3, rel=0.05)
    assert f"element_size_mm {fault.data['suggested_size_mm']:.3g} or less" in fault.fix
    assert fault.where.startswith("element ")


def test_touching_solids_share_nodes_and_the_face_between_is_no_surface(write_step: StepWriter) -> None:
    def pair(occ: Any) -> None:
        occ.addBox(0, 0, 0, 20, 10, 10)
        occ.addBox(20, 0, 0, 20, 10, 10)

    made = mesh_step(write_step("pair.step", pair), size_mm=4)
    mesh = made.mesh
    assert (made.solids, made.bodies) == (2, 1)
    assert set(mesh.element_sets) == {"solid_1", "solid_2"}
    assert sum(len(ids) for ids in mesh.element_sets.values()) == mesh.element_count
    assert len(mesh.surfaces) == 10
    assert any("touch at 1 faces and are meshed as bonded" in warning for warning in made.warnings)
    assert made.cad_area_mm2 == pytest.approx(2 * (400 + 400 + 100))
    assert select(mesh.surfaces, "top") == [n for n, s in mesh.surfaces.items() if s.normal[2] > 0.99]
    assert len(select(mesh.surfaces, "top")) == 2
    halves = [measure(_only(mesh, ids)).volume_mm3 for ids in mesh.element_sets.values()]
    assert halves == pytest.approx([2000, 2000])


def _only(mesh: Mesh, ids: Any) -> Mesh:
    from metaforge.engineering.mesh import ElementBlock

    whole = mesh.blocks[0]
    kept = np.isin(whole.ids, ids)
    return Mesh(mesh.node_ids, mesh.coordinates_mm, (ElementBlock(whole.type, whole.ids[kept], whole.nodes[kept]),))


def test_solids_apart_are_counted_and_overlapping_ones_are_told_with_the_volume(write_step: StepWriter) -> None:
    def three(occ: Any) -> None:
        occ.addBox(0, 0, 0, 10, 10, 10)
        occ.addBox(5, 0, 0, 10, 10, 10)
        occ.addBox(40, 0, 0, 5, 5, 5)

    made = mesh_step(write_step("three.step", three), size_mm=3)
    assert made.bodies == 2
    assert made.volume_mm3 == pytest.approx(1500 + 125)
    assert any("overlap by 500 mm3" in warning for warning in made.warnings)
    assert any(warning.startswith("2 bodies share no node") for warning in made.warnings)


def test_a_turned_and_moved_part_of_an_assembly_is_meshed_where_the_kernel_puts_it(tmp_path: Path) -> None:
    cadquery = pytest.importorskip("cadquery")
    part = cadquery.Workplane().box(50, 30, 10, centered=False)
    assembly = cadquery.Assembly()
    place = cadquery.Location(cadquery.Vector(5, 6, 7), cadquery.Vector(1, 0, 0), 90)
    assembly.add(part, loc=place)
    assembly.export(str(tmp_path / "placed.step"))
    box = cadquery.importers.importStep(str(tmp_path / "placed.step")).val().BoundingBox()

    made = mesh_step(tmp_path / "placed.step", size_mm=5)
    assert made.placement_baked
    assert made.mesh.bbox_mm() == pytest.approx((box.xmin, box.ymin, box.zmin, box.xmax, box.ymax, box.zmax), abs=1e-6)
    # Turned by 90 degrees about x: the 50 x 30 face that was on top (z = 10) now looks along -y.
    assert made.mesh.bbox_mm() == pytest.approx((5, -4, 7, 55, 6, 37), abs=1e-6)
    (front,) = select(made.mesh.surfaces, "front")
    assert made.mesh.surfaces[front].area_mm2 == pytest.approx(1500)


def test_a_part_without_transform_says_that_nothing_was_placed(block_mesh: MeshResult) -> None:
    assert block_mesh.placement_baked is False


def test_progress_is_told_from_reading_to_checking(write_step: StepWriter) -> None:
    told: list[tuple[float, str]] = []
    mesh_step(write_step("block.step", block), size_mm=5, progress=lambda share, text: told.append((share, text)))
    shares = [share for share, _ in told]
    assert shares == sorted(shares)
    assert told[0][1] == "reading block.step"
    assert any("filling the volume" in text for _, text in told)


def test_a_long_step_keeps_reporting(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    monkeypatch.setattr(heartbeat, "HEARTBEAT_SECONDS", 0.001)
    told: list[str] = []
    enough = threading.Event()

    def progress(share: float, text: str) -> None:
        told.append(text)
        if len(told) > 3:
            enough.set()

    with heartbeat.heartbeat(progress, 0.1, 0.9, "filling"):
        assert enough.wait(30)
    assert told[0] == "filling"
    assert told[1].startswith("filling, ")


# Bad input


def test_open_faces_are_refused_with_the_number_of_open_edges(write_step: StepWriter) -> None:
    import gmsh

    def lidless(occ: Any) -> None:
        box = occ.addBox(0, 0, 0, 10, 10, 10)
        occ.remove([(3, box)])
        occ.remove([(2, 6)])

    path = write_step("lidless.step", lidless)
    assert not gmsh.isInitialized()
    with pytest.raises(ToolError, match=r"5 faces and no solid: its surface is not closed \(4 open edges\)") as refused:
        mesh_step(path)
    assert refused.value.kind == "surface_not_closed"


def test_loose_faces_that_close_a_volume_are_sewn_and_told(write_step: StepWriter) -> None:
    def quilt(occ: Any) -> None:
        occ.remove([(3, occ.addBox(0, 0, 0, 10, 10, 10))])

    made = mesh_step(write_step("quilt.step", quilt))
    assert made.volume_mm3 == pytest.approx(1000)
    assert any("6 loose faces and no solid: they were sewn into 1 solid" in warning for warning in made.warnings)


def test_a_step_file_without_geometry_says_so(tmp_path: Path) -> None:
    path = tmp_path / "empty.step"
    path.write_text(
        "ISO-10303-21;\nHEADER;\nFILE_DESCRIPTION((''),'2;1');\nFILE_NAME('','',(''),(''),'','','');\n"
        "FILE_SCHEMA(('AUTOMOTIVE_DESIGN'));\nENDSEC;\nDATA;\n#1=APPLICATION_CONTEXT('x');\nENDSEC;\nEND-ISO-10303-21;\n"
    )
    with pytest.raises(ToolError) as refused:
        mesh_step(path)
    assert refused.value.kind in ("no_geometry", "unreadable_geometry")


def test_a_truncated_file_is_refused_before_the_kernel_reads_it(write_step: StepWriter) -> None:
    path = write_step("block.step", block)
    path.write_bytes(path.read_bytes()[:4000])
    with pytest.raises(ToolError, match="cut short"):
        mesh_step(path)


def test_a_byte_order_mark_does_not_stop_the_mesher(write_step: StepWriter) -> None:
    path = write_step("block.step", block)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert mesh_step(path, size_mm=8).volume_mm3 == pytest.approx(15000)


def test_a_gmsh_script_is_never_run(tmp_path: Path) -> None:
    path = tmp_path / "part.geo"
    path.write_text(f'SystemCall "touch {tmp_path}/ran";\n')
    with pytest.raises(InvalidArguments, match="SystemCall"):
        mesh_step(path)
    assert not (tmp_path / "ran").exists()


def test_a_script_named_step_is_not_taken_for_one(tmp_path: Path) -> None:
    path = tmp_path / "part.step"
    path.write_text(f'SystemCall "touch {tmp_path}/ran";\n')
    with pytest.raises(ToolError, match="not a STEP file"):
        mesh_step(path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(("size_mm", "order"), [(0, 2), (-1, 2), (math.nan, 2), (math.inf, 2), (5, 3)])
def test_impossible_sizes_and_orders_are_refused(write_step: StepWriter, size_mm: float, order: int) -> None:
    with pytest.raises(InvalidArguments):
        mesh_step(write_step("block.step", block), size_mm=size_mm, order=order)


def test_a_fault_leaves_the_mesher_ready_for_the_next_part(write_step: StepWriter) -> None:
    path = write_step("block.step", block)
    with pytest.raises(ToolError):
        mesh_step(path, size_mm=0.1)
    assert mesh_step(path, size_mm=8).volume_mm3 == pytest.approx(15000)


def test_the_stl_of_a_mesh_encloses_the_part(block_mesh: MeshResult) -> None:
    from metaforge.engineering.closed_surface import close_surface
    from metaforge.formats.stl import read_stl

    surface = close_surface(read_stl(meshing.stl_bytes(block_mesh.mesh), "block.stl"), "block.stl")
    assert surface.volume_mm3 == pytest.approx(15000, rel=1e-6)
    assert surface.area_mm2 == pytest.approx(4600, rel=1e-6)

"""The shared cases that concern meshing: published volumes, and files that must be refused in the field's words."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("gmsh")

from metaforge.core.errors import MetaForgeError, ToolError
from metaforge.engineering.meshing import MeshResult, mesh_step

pytestmark = [pytest.mark.cases, pytest.mark.program("gmsh")]


def case(cases_dir: Path, case_id: str) -> tuple[Path, dict[str, Any]]:
    known = {each["id"]: each for each in json.loads((cases_dir / "cases.json").read_text())["cases"]}
    found = known[case_id]
    return cases_dir / found["files"][0], {each["quantity"]: each["value"] for each in found["expected"]}


def mesh_case(cases_dir: Path, case_id: str) -> tuple[MeshResult, dict[str, Any]]:
    path, expected = case(cases_dir, case_id)
    return mesh_step(path), expected


@pytest.mark.parametrize(
    ("case_id", "solids"),
    [
        ("cad-s02-red-cube-blue-cylinder", 2),
        ("cad-s03-revolved-sphere", 1),
        ("cad-s04-tet-centimetre", 1),
        ("cad-s05-le10", 1),
        ("cad-s06-occt-screw", 1),
        ("cad-s08-capacitor", 1),
        ("cad-s09-catia-product", 2),
        pytest.param("cad-s01-as1-ac-214", 18, marks=pytest.mark.slow),
    ],
)
def test_the_mesh_has_the_parts_volume_box_and_solids(cases_dir: Path, case_id: str, solids: int, verdict: Any) -> None:
    made, expected = mesh_case(cases_dir, case_id)
    assert made.solids == solids
    assert made.cad_volume_mm3 == pytest.approx(expected["volume mm3"], rel=1e-5)
    verdict.near(case_id, "volume of the mesh, mm3", made.volume_mm3, expected["volume mm3"], rel=1e-3)
    # Nodes lie on the part; where no vertex or edge is outermost, the box ends within an element's sagitta.
    assert made.mesh.bbox_mm() == pytest.approx(tuple(expected["bbox mm"]), abs=max(0.02, 0.005 * made.size_mm))
    assert not len(made.quality.negative_ids)


@pytest.mark.slow
def test_a_threaded_screw_is_meshed_and_its_volume_difference_told(cases_dir: Path, verdict: Any) -> None:
    made, _ = mesh_case(cases_dir, "cad-s11-countersunk-screw")
    off = made.volume_mm3 / made.cad_volume_mm3 - 1
    told = any(f"({off:+.2%})" in warning for warning in made.warnings)
    verdict.holds("cad-s11-countersunk-screw", "volume of the mesh", told and abs(off) < 0.02, "told, below 2 %", off)


@pytest.mark.parametrize("name", ["u01_block_inch.step", "u03_block_mm.step"])
def test_inches_and_millimetres_make_the_same_block(cases_dir: Path, name: str) -> None:
    made = mesh_step(cases_dir / "small" / name)
    assert made.volume_mm3 == pytest.approx(25.4 * 50.8 * 76.2)
    low, high = made.mesh.bbox_mm()[:3], made.mesh.bbox_mm()[3:]
    assert [b - a for a, b in zip(low, high, strict=True)] == pytest.approx([25.4, 50.8, 76.2])


def test_a_block_mislabelled_in_metres_is_told(cases_dir: Path) -> None:
    made = mesh_step(cases_dir / "small" / "u04_block_mislabelled_metre.step")
    assert any("76.2 m long" in warning for warning in made.warnings)


def test_a_mark_before_the_header_does_not_matter(cases_dir: Path) -> None:
    made = mesh_step(cases_dir / "hostile-s06-encodings" / "h10_utf8bom_crlf.step")
    assert made.volume_mm3 == pytest.approx(1785.3981633974483, rel=1e-4)


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("cad-s07-shells-not-solids-SOT23/SOT23.stp", "73 faces and no solid"),
        ("cad-s10-no-geometry/Aufspannung.stp", "has no geometry"),
        ("cad-s12-mixed-units-segfault/U008.stp", "mixes length units"),
        ("small/u05_not_a_step.step", "not a STEP file"),
        ("small/g01_flipped_hole_stl.stl", r"surface is not closed \(\d+ open edges"),
        ("small/g01_open_surface.geo", "none is run"),
        ("small/g03_order2_coarse_thin_ring.geo", "none is run"),
        ("small/g05_cube_ok.geo", "none is run"),
        ("hostile-s01-assembly-bomb/h01_assembly_bomb_2e24.step", "33,554,431 part occurrences"),
        ("hostile-s06-encodings/h10_utf16.step", "UTF-16"),
    ],
)
def test_bad_files_are_refused_in_the_fields_words(cases_dir: Path, file: str, words: str, verdict: Any) -> None:
    with pytest.raises(MetaForgeError) as caught:
        mesh_step(cases_dir / file)
    case = file.rpartition(".")[0] if file.startswith("small") else file.partition("/")[0]
    verdict.refused(case, str(caught.value), words)


def test_a_script_that_runs_commands_is_refused_unread(
    cases_dir: Path, tmp_path: Path, monkeypatch: Any, verdict: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    for script in (cases_dir / "hostile-s04-gmsh-systemcall").iterdir():
        if script.suffix == ".geo":
            with pytest.raises(MetaForgeError) as caught:
                mesh_step(script)
            verdict.refused("hostile-s04-gmsh-systemcall", str(caught.value), "SystemCall")
    verdict.equal("hostile-s04-gmsh-systemcall", "files left behind", len(list(tmp_path.iterdir())), 0)


def test_the_thin_ring_and_the_cube_of_the_scripts_mesh_right_as_step(
    cases_dir: Path, tmp_path: Path, verdict: Any
) -> None:
    """g03 and g05 as STEP: a ring of 10 mm radius, 0.3 mm wall, at 12 mm; a 10 mm cube at 2.5 mm."""
    import gmsh

    for name in ("ring", "cube"):
        gmsh.initialize(readConfigFiles=False, interruptible=False)
        gmsh.option.setNumber("General.Terminal", 0)
        occ = gmsh.model.occ
        if name == "cube":
            occ.addBox(0, 0, 0, 10, 10, 10)
        else:
            occ.cut([(3, occ.addCylinder(0, 0, 0, 0, 0, 20, 10))], [(3, occ.addCylinder(0, 0, 0, 0, 0, 20, 9.7))])
        occ.synchronize()
        gmsh.write(str(tmp_path / f"{name}.step"))
        gmsh.finalize()
    cube = mesh_step(tmp_path / "cube.step", size_mm=2.5)
    verdict.near("small/g05_cube_ok", "volume of the mesh, mm3", cube.volume_mm3, 1000, rel=1e-3)
    try:
        ring = mesh_step(tmp_path / "ring.step", size_mm=12)
    except ToolError as refused:
        pytest.fail(f"the ring can be meshed by following its curve: {refused}")
    case = "small/g03_order2_coarse_thin_ring"
    verdict.equal(case, "elements inside out", len(ring.quality.negative_ids), 0)
    verdict.near(case, "volume of the mesh, mm3", ring.volume_mm3, ring.cad_volume_mm3, rel=5e-3)

"""Static analyses against closed-form answers; every expected value is written as its formula."""

import itertools
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metaforge.adapters.calculix as calculix_package
from metaforge.tools.generate import manifest_bytes

pytestmark = pytest.mark.program("ccx")
STEEL = {"youngs_modulus_mpa": 210000.0, "poissons_ratio": 0.3, "density_kg_m3": 7850.0, "expansion_per_k": 1.2e-5}
E_MPA, NU = 210000.0, 0.3


@pytest.fixture
def beam(calculix: Any, step_box: Callable[..., Path]) -> str:
    """A bar of 200 x 10 x 20 mm along x."""
    pytest.importorskip("gmsh")
    shutil.copy(step_box("beam", (0, 0, 0, 200, 10, 20)), calculix.workspace / "beam.step")
    return "beam.step"


async def test_a_cantilever_bends_as_timoshenko_says(calculix: Any, beam: str) -> None:
    length, width, height, force = 200.0, 10.0, 20.0, 1000.0
    inertia = width * height**3 / 12
    shear = E_MPA / (2 * (1 + NU))
    tip = force * length**3 / (3 * E_MPA * inertia) + force * length / (5 / 6 * shear * width * height)
    answer = await calculix.call(
        "run_fea", step_file=beam, analysis_type="static_stress", material=STEEL, element_size_mm=6,
        supports=[{"face": "-x"}], loads=[{"face": "+x", "force_n": [0, 0, -force]}],
    )  # fmt: skip
    data = answer["data"]
    results = calculix.results(data)
    moved, stress = results.last("DISP"), results.last("STRESS")
    places = dict(zip(results.node_ids.tolist(), results.coordinates_mm, strict=True))
    at_tip = [
        u[2] for node, u in zip(moved.node_ids.tolist(), moved.values, strict=True) if places[node][0] > length - 1e-3
    ]
    assert np.mean(at_tip) == pytest.approx(-tip, rel=0.01)
    top = [n for n in places if abs(places[n][2] - height) < 1e-6 and abs(places[n][0] - length / 2) < 4]
    node = min(top, key=lambda n: abs(places[n][0] - length / 2))
    bending = force * (length - places[node][0]) * (height / 2) / inertia
    row = int(np.flatnonzero(stress.node_ids == node)[0])
    assert stress.values[row, 0] == pytest.approx(bending, rel=0.01)
    assert data["reactions_n"] == pytest.approx([0, 0, force], abs=0.01)
    assert data["supports"][0]["reaction_n"] == pytest.approx([0, 0, force], abs=0.01)
    assert data["balance_error_ratio"] < 0.01
    assert data["loads"][0]["total_n"] == pytest.approx([0, 0, -force])
    assert data["loads"][0]["area_mm2"] == pytest.approx(width * height)
    assert set(data["mesh"]["element_types"]) == {"C3D10"}


async def test_the_peak_at_a_clamped_end_is_called_possibly_singular(calculix: Any, beam: str) -> None:
    answer = await calculix.call(
        "run_fea", step_file=beam, analysis_type="static_stress", material="steel-316", element_size_mm=8,
        supports=[{"face": "left"}], loads=[{"face": "right", "force_n": [0, 0, -1000]}],
    )  # fmt: skip
    peak = answer["data"]["peak"]
    assert peak["possibly_singular"]
    assert "support" in peak["reason"]
    assert f"{peak['zone_mm']:.3g} mm" in peak["reason"]
    assert peak["at_mm"][0] < peak["zone_mm"] < peak["outside_at_mm"][0]
    assert peak["outside_mpa"] < peak["von_mises_mpa"]
    assert answer["data"]["factor_of_safety"] == pytest.approx(205 / peak["von_mises_mpa"], rel=0.01)
    assert "possibly singular" in answer["summary"]


async def test_document_names_for_node_sets_work_on_a_mesh_file(calculix: Any, block: Callable[..., str]) -> None:
    length, area, force = 100.0, 10.0 * 10.0, 1000.0
    mesh = calculix.write("mesh/bar.inp", block((10, 2, 2), (length, 10, 10)))
    answer = await calculix.call(
        "run_fea", mesh_file=mesh, load_case="tension", analysis_type="static_stress",
        material={"youngs_modulus_mpa": E_MPA, "poissons_ratio": 0.0},
        fixed_node_set="X0", load_node_set="x1", load_force_n=[force, 0, 0],
    )  # fmt: skip
    data = answer["data"]
    assert data["max_displacement_mm"] == pytest.approx(force * length / (E_MPA * area), rel=1e-4)
    assert set(data["max_von_mises_mpa"]) == {"BODY", "NEAR", "FAR"}
    assert data["max_von_mises_mpa"]["BODY"] == pytest.approx(force / area, rel=1e-3)
    assert not data["peak"]["possibly_singular"]
    assert data["frd_file"] == "fea/bar-tension.frd"
    assert {file["role"] for file in answer["files"]} == {"results", "deck"}


async def test_two_materials_stretch_as_springs_in_series(calculix: Any, block: Callable[..., str]) -> None:
    length, area, force, soft = 100.0, 100.0, 1000.0, 70000.0
    mesh = calculix.write("bar.inp", block((10, 2, 2), (length, 10, 10)))
    data = await calculix.data(
        "run_fea", mesh_file=mesh, analysis_type="static_stress",
        materials={
            "NEAR": {"youngs_modulus_mpa": E_MPA, "poissons_ratio": 0.0},
            "far": {"youngs_modulus_mpa": soft, "poissons_ratio": 0.0},
        },
        supports=[{"node_set": "X0"}], loads=[{"node_set": "X1", "force_n": [force, 0, 0]}],
    )  # fmt: skip
    assert data["max_displacement_mm"] == pytest.approx(force * length / 2 / area * (1 / E_MPA + 1 / soft), rel=1e-3)
    assert {"NEAR", "far"} <= set(data["max_von_mises_mpa"])


async def test_a_hanging_bar_carries_its_own_weight(calculix: Any, block: Callable[..., str]) -> None:
    length, density, gravity = 200.0, 7850.0, 9.81
    mesh = calculix.write("bar.inp", block((2, 2, 20), (10, 10, length)))
    data = await calculix.data(
        "run_fea", mesh_file=mesh, analysis_type="static_stress", material={**STEEL, "poissons_ratio": 0.0},
        supports=[{"node_set": "Z1"}], loads=[{"acceleration_m_s2": [0, 0, -gravity]}],
    )  # fmt: skip
    weight = density * 1e-9 * 10 * 10 * length * gravity
    specific = density * 1e-12 * gravity * 1000
    assert data["reactions_n"] == pytest.approx([0, 0, weight], rel=1e-4)
    assert data["max_displacement_mm"] == pytest.approx(specific * length**2 / (2 * E_MPA), rel=1e-3)
    assert data["peak"]["von_mises_mpa"] == pytest.approx(specific * length, rel=0.01)


async def test_pressure_presses_on_the_face(calculix: Any, beam: str) -> None:
    pressure = 3.0
    data = await calculix.data(
        "run_fea", step_file=beam, analysis_type="static_stress", material={**STEEL, "poissons_ratio": 0.0},
        element_size_mm=10, supports=[{"face": "-x"}], loads=[{"face": "+x", "pressure_mpa": pressure}],
    )  # fmt: skip
    assert data["loads"][0]["total_n"] == pytest.approx([-pressure * 10 * 20, 0, 0], rel=1e-6)
    assert data["peak"]["von_mises_mpa"] == pytest.approx(pressure, rel=1e-3)
    assert data["max_displacement_mm"] == pytest.approx(pressure * 200 / E_MPA, rel=1e-3)


async def test_a_prescribed_displacement_strains_the_bar(calculix: Any, block: Callable[..., str]) -> None:
    length, pulled = 100.0, 0.05
    mesh = calculix.write("bar.inp", block((10, 2, 2), (length, 10, 10)))
    data = await calculix.data(
        "run_fea", mesh_file=mesh, analysis_type="static_stress", material={**STEEL, "poissons_ratio": 0.0},
        supports=[{"node_set": "X0"}, {"node_set": "X1", "displacement_mm": {"x": pulled}}],
    )  # fmt: skip
    assert data["peak"]["von_mises_mpa"] == pytest.approx(E_MPA * pulled / length, rel=1e-3)
    assert data["supports"][1]["reaction_n"][0] == pytest.approx(E_MPA * pulled / length * 100, rel=1e-3)


async def test_a_bar_heated_between_walls_is_compressed(calculix: Any, block: Callable[..., str]) -> None:
    mesh = calculix.write("bar.inp", block((10, 2, 2), (100, 10, 10)))
    data = await calculix.data(
        "run_fea", mesh_file=mesh, analysis_type="static_stress", material=STEEL,
        supports=[
            {"node_set": "X0", "directions": ["x"]}, {"node_set": "X1", "directions": ["x"]},
            {"node_set": "Y0", "directions": ["y"]}, {"node_set": "Z0", "directions": ["z"]},
        ],
        loads=[{"temperature_c": 70, "reference_temperature_c": 20}],
    )  # fmt: skip
    assert data["peak"]["von_mises_mpa"] == pytest.approx(E_MPA * 1.2e-5 * 50, rel=1e-3)


async def test_a_sharp_inner_corner_is_called_possibly_singular(calculix: Any, step_box: Callable[..., Path]) -> None:
    shutil.copy(step_box("ell", (0, 0, 0, 60, 20, 8), (0, 0, 0, 8, 20, 50)), calculix.workspace / "ell.step")
    answer = await calculix.call(
        "run_fea", step_file="ell.step", analysis_type="static_stress", material="6061-T6", element_size_mm=5,
        supports=[{"face": "bottom"}], loads=[{"face": "top", "force_n": [100, 0, 0]}], mesh_convergence=True,
    )  # fmt: skip
    peak, convergence = answer["data"]["peak"], answer["data"]["convergence"]
    assert "re-entrant corner" in peak["reason"]
    assert np.hypot(peak["at_mm"][0] - 8, peak["at_mm"][2] - 8) <= peak["zone_mm"]
    assert convergence["coarse_size_mm"] == pytest.approx(7.5)
    assert convergence["verdict"].startswith(("converged", "not converged"))
    assert abs(convergence["displacement_change_ratio"]) < 0.1


async def test_the_same_call_twice_writes_the_same_bytes(calculix: Any, block: Callable[..., str]) -> None:
    mesh = calculix.write("bar.inp", block((4, 1, 1), (40, 10, 10)))
    arguments = dict(
        mesh_file=mesh, analysis_type="static_stress", material=STEEL, fixed_node_set="X0", load_node_set="X1",
        load_force_n=[100, 0, 0],
    )  # fmt: skip
    first = await calculix.data("run_fea", **arguments)
    files = [calculix.output / first[name] for name in ("frd_file", "deck_file")]
    before = [file.read_bytes() for file in files]
    await calculix.data("run_fea", **arguments)
    assert [file.read_bytes() for file in files] == before
    assert b"1UDATE" not in before[0]


async def test_another_job_does_not_meet_the_files_of_the_first(
    calculix: Any, block: Callable[..., str], refused: Any
) -> None:
    calculix.output = calculix.workspace
    arguments = dict(
        mesh_file=calculix.write("fea/bar-case-1.inp", block((2, 1, 1), (20, 10, 10))), analysis_type="static_stress",
        material=STEEL, fixed_node_set="X0", load_node_set="X1",
    )  # fmt: skip
    first = await calculix.data("run_fea", **arguments, load_force_n=[10, 0, 0], output_path="fea/bar-case-1.frd")
    assert first["deck_file"] == "fea/bar-case-1-solved.inp"
    with pytest.raises(refused, match="nothing was solved"):
        await calculix.data("run_fea", **arguments, load_force_n=[20, 0, 0], output_path="fea/bar-case-1.frd")
    again = await calculix.data(
        "run_fea", **arguments, load_force_n=[20, 0, 0], output_path="fea/bar-case-1.frd", overwrite=True
    )
    assert again["frd_file"] == first["frd_file"]
    plain = await calculix.data("run_fea", **arguments, load_force_n=[10, 0, 0])
    same = await calculix.data("run_fea", **arguments, load_force_n=[10, 0, 0])
    other = await calculix.data("run_fea", **arguments, load_force_n=[30, 0, 0])
    assert plain["frd_file"] == same["frd_file"] == "fea/bar-case-1-case-1.frd"
    assert other["frd_file"].startswith("fea/bar-case-1-case-1-")


async def test_a_picture_of_the_stress_reaches_the_answer(calculix: Any, block: Callable[..., str]) -> None:
    pytest.importorskip("vtkmodules")
    mesh = calculix.write("bar.inp", block((6, 2, 2), (60, 10, 10)))
    answer = await calculix.call(
        "run_fea", mesh_file=mesh, analysis_type="static_stress", material=STEEL, fixed_node_set="X0",
        load_node_set="X1", load_force_n=[0, 0, -100], picture=True,
    )  # fmt: skip
    png = (calculix.output / answer["data"]["picture_file"]).read_bytes()
    assert png.startswith(b"\x89PNG")
    assert len(png) > 10_000
    assert "MPa" in answer["pictures"][0]["caption"]


async def test_a_picture_that_cannot_be_drawn_does_not_lose_the_results(
    calculix: Any, block: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vtkmodules.vtkRenderingCore", None)
    mesh = calculix.write("bar.inp", block((2, 1, 1), (20, 10, 10)))
    answer = await calculix.call(
        "run_fea", mesh_file=mesh, analysis_type="static_stress", material=STEEL, fixed_node_set="X0",
        load_node_set="X1", load_force_n=[0, 0, -100], picture=True,
    )  # fmt: skip
    assert answer["data"]["max_displacement_mm"] > 0
    assert "picture_file" not in answer["data"]
    assert any(warning.startswith("No picture") for warning in answer["warnings"])


async def test_a_part_that_yields_is_warned_of(calculix: Any, block: Callable[..., str]) -> None:
    mesh = calculix.write("bar.inp", block((4, 1, 1), (40, 10, 10)))
    answer = await calculix.call(
        "run_fea", mesh_file=mesh, analysis_type="static_stress", material="steel-s235", fixed_node_set="X0",
        load_node_set="X1", load_force_n=[47000, 0, 0], element_size_mm=3, mesh_convergence=True,
    )  # fmt: skip
    told = " | ".join(answer["warnings"])
    assert "yields" in told
    assert "element_size_mm 3 is not used" in told
    assert "mesh_convergence needs a STEP file" in told
    assert answer["data"]["factor_of_safety"] <= 0.5


async def test_progress_tells_what_is_being_done(calculix: Any, step_box: Callable[..., Path]) -> None:
    told: list[dict[str, Any]] = []
    calculix.server._emit = told.append
    shutil.copy(step_box("cube", (0, 0, 0, 10, 10, 10)), calculix.workspace / "cube.step")
    await calculix.data(
        "run_fea", step_file="cube.step", analysis_type="static_stress", material="steel-316",
        supports=[{"face": "bottom"}], loads=[{"face": "top", "force_n": [0, 0, -10]}], mesh_convergence=True,
    )  # fmt: skip
    fractions = [each["params"]["progress"] for each in told]
    assert all(before < after for before, after in itertools.pairwise(fractions))
    assert any("meshing" in each["params"]["message"] for each in told)
    assert any("CalculiX" in each["params"]["message"] for each in told)


async def test_without_the_mesher_a_step_file_is_told_what_to_install(
    calculix: Any, monkeypatch: pytest.MonkeyPatch, refused: Any
) -> None:
    monkeypatch.setitem(sys.modules, "metaforge.engineering.meshing", None)
    calculix.write("part.step", "ISO-10303-21;\n")
    with pytest.raises(refused, match="mesher") as caught:
        await calculix.data("run_fea", step_file="part.step", analysis_type="modal", material="steel-316")
    assert "pip install 'metaforge[cadquery]'" in caught.value.data["fix"]
    assert caught.value.data["failure_mode"] == "environment"


def test_importing_the_adapter_loads_nothing_heavy() -> None:
    code = (
        "import sys, metaforge.adapters.calculix.server as s; s.CalculixServer().manifests(); "
        "print(sorted({'numpy', 'gmsh', 'vtkmodules', 'cadquery', 'OCP'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_manifest_in_the_repository_is_what_the_code_says() -> None:
    target = "metaforge.adapters.calculix.server:CalculixServer"
    stored = Path(calculix_package.__file__).with_name("manifest.json").read_bytes()
    assert manifest_bytes(target) == stored


async def test_a_mesh_file_brings_its_own_material(calculix: Any, block: Callable[..., str]) -> None:
    material = f"*MATERIAL, NAME=OWN\n*ELASTIC\n{E_MPA / 3}, 0.\n*SOLID SECTION, ELSET=BODY, MATERIAL=OWN\n"
    mesh = calculix.write("bar.inp", block((4, 2, 2), (40, 10, 10)) + material)
    arguments = dict(
        mesh_file=mesh, analysis_type="static_stress", fixed_node_set="X0", load_node_set="X1",
        load_force_n=[1000, 0, 0],
    )  # fmt: skip
    own = await calculix.data("run_fea", **arguments)
    assert own["max_displacement_mm"] == pytest.approx(1000 * 40 / (E_MPA / 3 * 100), rel=1e-4)
    assert own["materials"]["BODY"]["name"] == "OWN"
    given = await calculix.data("run_fea", **arguments, material={**STEEL, "poissons_ratio": 0.0}, load_case="given")
    assert given["max_displacement_mm"] == pytest.approx(1000 * 40 / (E_MPA * 100), rel=1e-4)


async def test_skins_that_a_mesher_left_in_the_file_are_left_out(calculix: Any, block: Callable[..., str]) -> None:
    skin = "*ELEMENT, TYPE=S4, ELSET=SKIN\n901, 1, 2, 3, 4\n"
    mesh = calculix.write("bar.inp", block((4, 1, 1), (40, 10, 10), "C3D8") + skin)
    answer = await calculix.call(
        "run_fea", mesh_file=mesh, analysis_type="static_stress", material=STEEL, fixed_node_set="X0",
        load_node_set="X1", load_force_n=[1000, 0, 0],
    )  # fmt: skip
    assert answer["data"]["mesh_elements"] == 4
    assert any("1 S4" in warning for warning in answer["warnings"])


async def test_a_named_surface_of_a_mesh_file_carries_pressure(calculix: Any, block: Callable[..., str]) -> None:
    mesh = block((4, 1, 1), (40, 10, 10), "C3D8") + "*SURFACE, NAME=END\n4, S4\n"
    data = await calculix.data(
        "run_fea", mesh_file=calculix.write("bar.inp", mesh), analysis_type="static_stress", material=STEEL,
        supports=[{"node_set": "X0"}], loads=[{"face": "end", "pressure_mpa": 5}],
    )  # fmt: skip
    assert data["loads"][0]["total_n"] == pytest.approx([-500, 0, 0])
    assert data["reactions_n"] == pytest.approx([500, 0, 0], rel=1e-4)


@pytest.mark.parametrize(
    ("kind", "cells", "solved"),
    [("C3D20R", 1, False), ("C3D8R", 1, False), ("C3D20", 1, True), ("C3D20R", 2, True), ("C3D8I", 1, True)],
)
async def test_bricks_that_cannot_stop_zero_energy_modes_are_refused(
    calculix: Any, block: Callable[..., str], refused: Any, kind: str, cells: int, solved: bool
) -> None:
    length, side, force = 100.0, 10.0, 100.0
    mesh = calculix.write("bar.inp", block((20, cells, cells), (length, side, side), kind))
    arguments = dict(
        mesh_file=mesh, analysis_type="static_stress", material={"youngs_modulus_mpa": 70000, "poissons_ratio": 0.3},
        fixed_node_set="X0", load_node_set="X1", load_force_n=[0, 0, -force],
    )  # fmt: skip
    if not solved:
        with pytest.raises(refused, match="alone in their cross-section"):
            await calculix.data("run_fea", **arguments)
        return
    data = await calculix.data("run_fea", **arguments)
    assert data["max_displacement_mm"] == pytest.approx(force * length**3 / (3 * 70000 * side**4 / 12), rel=0.01)


async def test_a_plate_one_reduced_brick_thick_is_solved(calculix: Any, block: Callable[..., str]) -> None:
    answer = await calculix.call(
        "run_fea", mesh_file=calculix.write("plate.inp", block((6, 6, 1), (60, 60, 5), "C3D20R")),
        analysis_type="static_stress", material={**STEEL, "poissons_ratio": 0.0}, fixed_node_set="X0",
        load_node_set="X1", load_force_n=[1000, 0, 0],
    )  # fmt: skip
    assert answer["data"]["max_displacement_mm"] == pytest.approx(1000 * 60 / (E_MPA * 300), rel=1e-3)
    assert not answer.get("warnings")

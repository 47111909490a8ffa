"""`freecad.generate_mesh` as its callers see it, and its files in CalculiX."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("gmsh")

from metaforge.adapters.calculix.server import CalculixServer
from metaforge.adapters.freecad.server import FreecadServer
from metaforge.tools.server import OUTPUT, WORKSPACE, McpToolServer

pytestmark = pytest.mark.program("gmsh")

Reply = dict[str, Any]


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with `block.step`, 50 x 30 x 10 mm with a corner at the origin; outputs land in it too."""
    import gmsh

    monkeypatch.setenv(WORKSPACE, str(tmp_path))
    monkeypatch.setenv(OUTPUT, str(tmp_path))
    gmsh.initialize(readConfigFiles=False, interruptible=False)
    gmsh.option.setNumber("General.Terminal", 0)
    gmsh.model.occ.addBox(0, 0, 0, 50, 30, 10)
    gmsh.model.occ.synchronize()
    gmsh.write(str(tmp_path / "block.step"))
    gmsh.finalize()
    return tmp_path


async def call(server: McpToolServer, tool: str, **arguments: Any) -> Reply:
    params = {"tool_id": f"{server.adapter_id}.{tool}", "arguments": arguments, "timeout_seconds": 300}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tool/call", "params": params}
    reply: Reply = json.loads(await server.handle_request(json.dumps(request)))
    return reply


async def mesh(**arguments: Any) -> Reply:
    reply = await call(FreecadServer(), "generate_mesh", **arguments)
    assert "result" in reply, reply
    result: Reply = reply["result"]
    return result


async def fault_of(**arguments: Any) -> Reply:
    reply = await call(FreecadServer(), "generate_mesh", **arguments)
    assert "error" in reply, reply
    fault: Reply = reply["error"]
    return fault


async def test_the_answer_says_what_is_in_the_file(workspace: Path) -> None:
    result = await mesh(input_file="block.step", element_size_mm=5)
    data = result["data"]
    assert data["mesh_file"] == "block.inp"
    assert data["mesh_bbox_mm"] == [0, 0, 0, 50, 30, 10]
    assert (data["coordinate_frame"], data["placement_baked"]) == ("twin", False)
    assert data["volume_mm3"] == pytest.approx(15000)
    assert data["element_types"] == {"C3D10": data["num_elements"]}
    assert (data["element_size_mm"], data["element_size_from"]) == (5, "given")
    assert data["surface_set_count"] == len(data["surface_sets"]) == 12
    top = data["surface_sets"]["top"]
    assert top == {
        "bbox_mm": [0, 0, 10, 50, 30, 10],
        "centroid_mm": [25, 15, 10],
        "area_mm2": 1500,
        "normal": [0, 0, 1],
        "kind": "plane",
    }
    assert data["quality_metrics"]["min_scaled_jacobian_ratio"] > 0.1
    assert abs(data["quality_metrics"]["volume_error_ratio"]) < 1e-9
    text = (workspace / "block.inp").read_text()
    assert text.count("\n*SURFACE, NAME=") == text.count("\n*NSET, NSET=N_") == 12
    assert result["files"] == [{"path": "block.inp", "media_type": "text/plain", "role": "mesh"}]
    assert result["programs"].keys() == {"gmsh"}


async def test_the_unsuffixed_size_means_millimetres_and_two_sizes_are_refused(workspace: Path) -> None:
    result = await mesh(input_file="block.step", element_size=6)
    assert result["data"]["element_size_mm"] == 6
    fault = await fault_of(input_file="block.step", element_size=6, element_size_mm=5)
    assert "element_size_mm 5 and element_size 6 differ" in fault["message"]


async def test_another_mesher_is_not_pretended(workspace: Path) -> None:
    result = await mesh(input_file="block.step", element_size_mm=8, algorithm="netgen")
    assert result["data"]["mesher"].startswith("gmsh ")
    assert any("netgen is not installed: gmsh meshed the part" in warning for warning in result["warnings"])


@pytest.mark.parametrize("suffix", ["unv", "stl"])
async def test_the_format_follows_the_file_name(workspace: Path, suffix: str) -> None:
    result = await mesh(input_file="block.step", element_size_mm=8, output_path=f"out/part.{suffix}")
    assert result["data"]["mesh_file"] == f"out/part.{suffix}"
    assert (workspace / "out" / f"part.{suffix}").stat().st_size > 1000


async def test_a_file_name_of_another_format_is_refused(workspace: Path) -> None:
    fault = await fault_of(input_file="block.step", output_path="part.unv", output_format="inp")
    assert "must end in .inp" in fault["message"]
    fault = await fault_of(input_file="block.step", output_path="part.msh")
    assert ".inp, .unv, .stl" in fault["message"]


async def test_the_same_call_writes_the_same_bytes(workspace: Path) -> None:
    await mesh(input_file="block.step", element_size_mm=6)
    first = (workspace / "block.inp").read_bytes()
    await mesh(input_file="block.step", element_size_mm=6)
    assert (workspace / "block.inp").read_bytes() == first


async def test_too_many_elements_are_refused_with_a_size_in_the_fix(workspace: Path) -> None:
    fault = await fault_of(input_file="block.step", element_size_mm=0.1)
    assert fault["data"]["kind"] == "too_many_elements"
    assert "element_size_mm" in fault["data"]["fix"]
    assert not (workspace / "block.inp").exists()


async def test_wrong_arguments_are_all_named_at_once(workspace: Path) -> None:
    fault = await fault_of(input_file="block.step", element_size_mm=-1, order=3, algorithm="magic")
    assert set(fault["data"]["fields"]) == {"element_size_mm", "order", "algorithm"}


@pytest.mark.program("ccx")
async def test_calculix_pulls_the_part_by_its_surface_sets(workspace: Path) -> None:
    made = await mesh(input_file="block.step", element_size_mm=5)
    reply = await call(
        CalculixServer(),
        "run_fea",
        analysis_type="static_stress",
        mesh_file=made["data"]["mesh_file"],
        material={"youngs_modulus_mpa": 210000, "poissons_ratio": 0.0, "density_kg_m3": 7850},
        supports=[{"face": "left"}],
        loads=[{"face": "right", "force_n": [3000, 0, 0]}],
    )
    data = reply["result"]["data"]
    # 3 kN over 30 x 10 mm2; without lateral contraction the fixed end changes nothing: 10 MPa, F L / (E A).
    assert max(data["max_von_mises_mpa"].values()) == pytest.approx(10, rel=1e-3)
    assert data["max_displacement_mm"] == pytest.approx(3000 * 50 / (210000 * 300), rel=1e-3)
    assert data["reactions_n"] == pytest.approx([-3000, 0, 0], abs=0.1)


@pytest.mark.program("ccx")
async def test_calculix_takes_the_node_sets_of_the_file(workspace: Path) -> None:
    made = await mesh(input_file="block.step", element_size_mm=6)
    reply = await call(
        CalculixServer(),
        "run_fea",
        analysis_type="static_stress",
        mesh_file=made["data"]["mesh_file"],
        material="steel-316",
        fixed_node_set="N_left",
        load_node_set="N_right",
        load_force_n=[1000, 0, 0],
    )
    assert reply["result"]["data"]["reactions_n"] == pytest.approx([-1000, 0, 0], abs=0.1)


async def test_a_picture_of_the_mesh_comes_on_request(workspace: Path) -> None:
    pytest.importorskip("vtkmodules")
    result = await mesh(input_file="block.step", element_size_mm=5, output_path="m/part.inp", picture=True)
    (picture,) = result["pictures"]
    assert picture["path"] == "m/part.png"
    assert "C3D10" in picture["caption"]
    png = (workspace / "m" / "part.png").read_bytes()
    assert png.startswith(b"\x89PNG")
    assert int.from_bytes(png[16:20], "big") == 768


def test_importing_the_server_loads_no_mesher_and_no_numpy() -> None:
    code = (
        "import sys, metaforge.adapters.freecad.server;"
        "print([m for m in ('numpy', 'gmsh', 'cadquery', 'vtkmodules') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.strip() == "[]"


def test_only_gmsh_is_needed_for_meshing() -> None:
    manifest = next(each for each in FreecadServer().manifests() if each.tool_id == "freecad.generate_mesh")
    assert [need.name for need in manifest.needs] == ["gmsh"]
    assert manifest.effect == "produce"

"""Exported files read back with other eyes: counts, volumes, colours."""

import json
import re
import struct
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.program("cadquery")

SRGB = (0.5, 0.2, 0.9)


@pytest.fixture
def coloured(bench: Any) -> Any:
    """Two parts, one of them coloured."""
    bench.call(
        "execute_script", output_path="pair.step",
        script=(
            "result = cq.Assembly(name='pair')\n"
            f"result.add(cq.Workplane().box(10, 10, 10), name='cube', color=cq.Color{SRGB})\n"
            "result.add(cq.Workplane().cylinder(20, 4), name='pin', loc=cq.Location((20, 0, 0)))\n"
        ),
    )  # fmt: skip
    return bench


def glb_json(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    assert data[:4] == b"glTF"
    (length,) = struct.unpack("<I", data[12:16])
    return json.loads(data[20 : 20 + length])


def linear(channel: float) -> float:
    return ((channel + 0.055) / 1.055) ** 2.4


def stl_volume(path: Path) -> float:
    data = path.read_bytes()
    (count,) = struct.unpack("<I", data[80:84])
    record = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
    corners = np.frombuffer(data[84:], record, count)["corners"].astype(float)
    return float(np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])).sum() / 6)


def test_step_keeps_the_users_colour_as_srgb(coloured: Any) -> None:
    coloured.call("export_geometry", input_file="pair.step", output_format="step", output_path="copy.step")
    text = (coloured.workspace / "copy.step").read_text()
    found = [tuple(map(float, each.split(","))) for each in re.findall(r"COLOUR_RGB\('[^']*',([^)]*)\)", text)]
    assert found == [pytest.approx(SRGB, abs=1e-6)]


def test_glb_holds_linear_colours_names_and_metres(coloured: Any) -> None:
    coloured.call("export_geometry", input_file="pair.step", output_format="glb")
    content = glb_json(coloured.workspace / "pair.glb")
    factors = [m["pbrMetallicRoughness"]["baseColorFactor"][:3] for m in content["materials"]]
    assert pytest.approx([linear(channel) for channel in SRGB], abs=1e-4) in factors
    assert {"cube", "pin"} <= {node.get("name") for node in content["nodes"]}
    largest = max(max(a["max"]) for a in content["accessors"] if a["type"] == "VEC3" and "max" in a)
    assert 0 < largest < 0.1


def test_stl_is_closed_and_as_fine_as_asked(bench: Any) -> None:
    bench.shape("sphere", "ball.step", radius=10)
    exact = 4 / 3 * np.pi * 1000
    errors = []
    for tolerance in (0.5, 0.01):
        made = bench.data(
            "export_geometry", input_file="ball.step", output_format="stl", output_path=f"ball{tolerance}.stl",
            tolerance_mm=tolerance, angular_tolerance_deg=30,
        )  # fmt: skip
        errors.append(abs(stl_volume(bench.workspace / made["output_file"]) / exact - 1))
    assert errors[1] < errors[0] / 10
    assert errors[1] < 2e-3


def test_obj_counts_its_corners_and_names_its_colours(coloured: Any) -> None:
    made = coloured.call("export_geometry", input_file="pair.step", output_format="obj")
    lines = (coloured.workspace / "pair.obj").read_text().splitlines()
    points = [line for line in lines if line.startswith("v ")]
    faces = [[int(n) for n in line.split()[1:]] for line in lines if line.startswith("f ")]
    assert len(faces) == made["data"]["triangles_count"]
    assert max(max(face) for face in faces) == len(points)
    assert [line for line in lines if line.startswith("o ")] == ["o cube", "o pin"]
    assert "pair.mtl" in made["output_files"]
    assert "Kd 0.5 0.2 0.9" in (coloured.workspace / "pair.mtl").read_text()


def test_amf_and_svg_are_well_formed(bench: Any) -> None:
    bench.shape("box", "b.step", width=5, length=5, height=5)
    made = bench.data("export_geometry", input_file="b.step", output_format="amf")
    triangles = ElementTree.parse(bench.workspace / "b.amf").getroot().findall(".//triangle")
    assert len(triangles) == made["triangles_count"] == 12
    bench.call("export_geometry", input_file="b.step", output_format="svg")
    assert ElementTree.parse(bench.workspace / "b.svg").getroot().tag.endswith("svg")


@pytest.mark.parametrize("output_format", ["step", "stl", "obj", "brep", "amf", "svg", "glb"])
def test_the_same_export_twice_is_the_same_bytes(coloured: Any, output_format: str) -> None:
    first = coloured.data(
        "export_geometry", input_file="pair.step", output_format=output_format, output_path=f"x.{output_format}"
    )
    written = (coloured.workspace / f"x.{output_format}").read_bytes()
    assert first["file_size_bytes"] == len(written) > 0
    coloured.call(
        "export_geometry", input_file="pair.step", output_format=output_format, output_path=f"x.{output_format}"
    )
    assert (coloured.workspace / f"x.{output_format}").read_bytes() == written


def test_an_ending_that_does_not_fit_the_format_is_refused(bench: Any) -> None:
    bench.shape("box", "b.step", width=5, length=5, height=5)
    error = bench.refused("export_geometry", input_file="b.step", output_format="stl", output_path="b.glb")
    assert ".stl" in error["message"]


def test_a_tolerance_too_fine_for_a_curved_part_of_kilometres_is_refused_with_the_smallest(bench: Any) -> None:
    bench.call("execute_script", script="result = cq.Workplane().cylinder(1e6, 1e6)", output_path="round.step")
    error = bench.refused("export_geometry", input_file="round.step", output_format="stl")
    smallest_mm = 1.5
    assert f"the smallest is {smallest_mm} mm" in error["message"]
    made = bench.data(
        "export_geometry", input_file="round.step", output_format="stl", tolerance_mm=60 * smallest_mm
    )  # fmt: skip
    assert made["triangles_count"] > 50
    assert stl_volume(bench.workspace / "round.stl") == pytest.approx(3.14159e18, rel=1e-2)


def test_flat_faces_are_exact_at_any_size(bench: Any) -> None:
    bench.call("execute_script", script="result = cq.Workplane().box(1e6, 1e6, 1e6)", output_path="flat.step")
    made = bench.data("export_geometry", input_file="flat.step", output_format="stl")
    assert made["triangles_count"] == 12

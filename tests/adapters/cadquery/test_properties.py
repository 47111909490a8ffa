"""Measured properties against closed forms; files that are not what they seem."""

import math
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.program("cadquery")


def write_step(path: Path, unit: str, size: float) -> None:
    """Write a cube of `size` mm whose file says its numbers in another unit."""
    import cadquery as cq

    cq.exporters.export(cq.Workplane().box(size, size, size), str(path), unit="MM", outputUnit=unit)


def test_a_box_has_its_textbook_inertia(bench: Any) -> None:
    bench.shape("box", "b.step", width=50, length=30, height=10)
    found = bench.data("get_properties", input_file="b.step", density_kg_m3=2000)["properties"]
    mass = 15000 * 2000e-9
    assert found["mass_kg"] == pytest.approx(mass)
    assert found["center_of_mass_mm"] == pytest.approx([0, 0, 5])
    diagonal = [found["inertia_kg_mm2"][n][n] for n in range(3)]
    assert diagonal == pytest.approx([mass / 12 * (900 + 100), mass / 12 * (2500 + 100), mass / 12 * (2500 + 900)])
    assert found["inertia_mm5"][0][1] == 0
    assert found["is_valid"]
    assert found["source_unit"] == "millimetre"


def test_faces_say_where_a_load_can_go(bench: Any) -> None:
    bench.shape("cylinder", "c.step", radius=5, height=20)
    faces = bench.data("get_properties", input_file="c.step", properties=["faces"])["properties"]["faces"]
    by_side = {face.get("side", face["type"]): face for face in faces}
    assert by_side["top (+z)"]["normal"] == pytest.approx([0, 0, 1])
    assert by_side["top (+z)"]["centroid_mm"] == pytest.approx([0, 0, 20])
    assert by_side["bottom (-z)"]["normal"] == pytest.approx([0, 0, -1])
    assert by_side["cylinder"]["radius_mm"] == pytest.approx(5)
    assert by_side["cylinder"]["area_mm2"] == pytest.approx(2 * math.pi * 5 * 20)


def test_only_the_properties_asked_for_come_back(bench: Any) -> None:
    bench.shape("sphere", "s.step", radius=1)
    found = bench.data("get_properties", input_file="s.step", properties=["volume", "area"])["properties"]
    assert set(found) == {"volume_mm3", "surface_area_mm2"}


def test_mass_without_a_density_is_refused(bench: Any) -> None:
    bench.shape("sphere", "s.step", radius=1)
    assert "density_kg_m3" in bench.refused("get_properties", input_file="s.step", properties=["mass"])["message"]


@pytest.mark.parametrize(
    ("unit", "name"), [("INCH", "inch"), ("M", "metre"), ("CM", "centimetre"), ("MM", "millimetre")]
)
def test_every_declared_unit_is_told_and_converted(bench: Any, unit: str, name: str) -> None:
    write_step(bench.workspace / "cube.step", unit, 25.4)
    found = bench.data("get_properties", input_file="cube.step")["properties"]
    assert found["source_unit"] == name
    assert found["bounding_box_mm"]["size_mm"] == pytest.approx([25.4] * 3, abs=1e-4)
    assert found["volume_mm3"] == pytest.approx(25.4**3, rel=1e-6)


def test_a_metre_header_over_millimetre_numbers_is_doubted(bench: Any) -> None:
    path = bench.workspace / "cube.step"
    write_step(path, "MM", 76.2)
    path.write_text(path.read_text().replace("SI_UNIT(.MILLI.,.METRE.)", "SI_UNIT($,.METRE.)"))
    answer = bench.call("get_properties", input_file="cube.step")
    assert answer["data"]["properties"]["bounding_box_mm"]["size_mm"] == pytest.approx([76200] * 3, rel=1e-6)
    assert any("76.2 m long" in warning and "METRE" in warning for warning in answer["warnings"])


def test_shells_have_no_volume(bench: Any) -> None:
    import cadquery as cq

    shell = cq.Workplane().box(10, 10, 10).shells().val()
    cq.exporters.export(cq.Workplane(shell), str(bench.workspace / "shell.step"))
    answer = bench.call("get_properties", input_file="shell.step")
    assert "volume_mm3" not in answer["data"]["properties"]
    assert answer["data"]["properties"]["solids_count"] == 0
    assert answer["data"]["properties"]["surface_area_mm2"] == pytest.approx(600)
    assert "no solid" in answer["warnings"][0]


@pytest.mark.parametrize(
    ("content", "kind", "said"),
    [
        (b"solid mesh\nendsolid\n", "not_step", "not a STEP file (starts with 'solid', looks like STL)"),
        (b"", "not_step", "is empty (0 bytes)"),
        (b"glTF\x02\x00\x00\x00", "not_step", "looks like GLB"),
        ("ISO-10303-21;".encode("utf-16"), "not_step", "UTF-16"),
    ],
)
def test_what_is_no_step_file_is_named(bench: Any, content: bytes, kind: str, said: str) -> None:
    (bench.workspace / "part.step").write_bytes(content)
    error = bench.refused("get_properties", input_file="part.step")
    assert error["data"]["kind"] == kind
    assert said in error["message"]


def test_a_truncated_file_is_refused_before_the_kernel_reads_half_of_it(bench: Any) -> None:
    bench.shape("box", "whole.step", width=5, length=5, height=5)
    data = (bench.workspace / "whole.step").read_bytes()
    (bench.workspace / "half.step").write_bytes(data[: len(data) // 2])
    error = bench.refused("get_properties", input_file="half.step")
    assert error["data"]["kind"] == "step_truncated"
    assert f"ends after {len(data) // 2} bytes" in error["message"]


def test_a_byte_order_mark_is_read_over(bench: Any) -> None:
    bench.shape("box", "plain.step", width=5, length=5, height=5)
    plain = (bench.workspace / "plain.step").read_bytes().replace(b"\n", b"\r\n")
    (bench.workspace / "marked.step").write_bytes(b"\xef\xbb\xbf" + plain)
    assert bench.data("get_properties", input_file="marked.step")["properties"]["volume_mm3"] == pytest.approx(125)


def test_a_file_without_geometry_says_so(bench: Any) -> None:
    (bench.workspace / "none.step").write_text(
        "ISO-10303-21;\nHEADER;\nFILE_DESCRIPTION((''),'2;1');\nFILE_NAME('','',(''),(''),'','','');\n"
        "FILE_SCHEMA(('AUTOMOTIVE_DESIGN'));\nENDSEC;\nDATA;\n"
        "#1=APPLICATION_CONTEXT('mechanical design');\nENDSEC;\nEND-ISO-10303-21;\n"
    )
    error = bench.refused("get_properties", input_file="none.step")
    assert error["data"]["kind"] == "no_geometry"


def test_brep_is_read_too(bench: Any) -> None:
    bench.shape("cylinder", "c.step", radius=5, height=20)
    bench.call("export_geometry", input_file="c.step", output_format="brep")
    found = bench.data("get_properties", input_file="c.brep")["properties"]
    assert found["volume_mm3"] == pytest.approx(math.pi * 500)


def test_an_invalid_solid_is_measured_with_a_warning(bench: Any) -> None:
    import cadquery as cq

    # The kernel returns this broken solid without a word.
    cq.exporters.export(cq.Workplane().box(10, 10, 10).edges().fillet(6), str(bench.workspace / "bad.brep"))
    answer = bench.call("get_properties", input_file="bad.brep", properties=["validity"])
    assert answer["data"]["properties"]["is_valid"] is False
    assert any("is not valid" in warning for warning in answer["warnings"])
    assert "NOT valid" in answer["summary"]


def test_an_invalid_operand_is_refused(bench: Any) -> None:
    import cadquery as cq

    cq.exporters.export(cq.Workplane().box(10, 10, 10).edges().fillet(6), str(bench.workspace / "bad.brep"))
    bench.shape("box", "good.step", width=5, length=5, height=5)
    error = bench.refused("boolean_operation", input_file_a="bad.brep", input_file_b="good.step", operation="union")
    assert error["data"]["kind"] == "invalid_solid"


def test_an_unknown_material_is_refused_with_near_names(bench: Any) -> None:
    bench.shape("sphere", "s.step", radius=1)
    error = bench.refused("get_properties", input_file="s.step", material="steel-361")
    assert "steel-316" in error["message"]


def test_names_from_a_file_are_shown_plain_and_short(bench: Any) -> None:
    name = "bolt\u202egnp.exe" + "x" * 5000
    bench.call("execute_script", script=f"result = {{{name!r}: cq.Workplane().box(1, 1, 1)}}", output_path="n.step")
    (part,) = bench.data("get_properties", input_file="n.step", properties=["parts"])["properties"]["parts"]
    assert part["name"].startswith("boltgnp.exe")
    assert len(part["name"]) == 120


def test_a_picture_of_a_file_that_is_only_read_is_named_by_its_content(bench: Any) -> None:
    bench.shape("sphere", "s.step", radius=1)
    answer = bench.call("get_properties", input_file="s.step", picture=True)
    (picture,) = answer["pictures"]
    assert picture["path"].startswith("pictures/s-")
    assert (bench.workspace / picture["path"]).is_file()

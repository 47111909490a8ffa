"""STEP in and out: in the twin's frame, with colours, the same bytes for the same model, measured from the file."""

import base64
import re
from math import pi
from pathlib import Path
from typing import Any

import pytest

from metaforge.formats.step_colours import read_colours
from metaforge.formats.step_placement import has_placement

pytestmark = pytest.mark.program("freecadcmd")

BIRCH = [0.87, 0.76, 0.57]


def written(bench: Any, told: dict[str, Any]) -> str:
    return Path(bench.workspace / told["cad_file"]).read_text()


def box(bench: Any, name: str, **more: Any) -> None:
    bench.data("create_primitive", kind="box", name=name, parameters={"length": 10, "width": 20, "height": 30}, **more)


def test_the_stored_file_is_where_the_session_shows_the_part_and_knows_no_transform(bench: Any) -> None:
    box(bench, "Box")
    bench.data("transform_object", obj_id="Box", position=[5, 0, 7], rotation={"axis": [1, 0, 0], "angle_deg": 90})
    live = bench.data("measure", obj_id="Box")
    told = bench.data("export_model", obj_id="Box")
    assert told["placement_baked"] is True
    assert told["coordinate_frame"] == "twin"
    stored = told["stored_properties"]
    for side in ("min_mm", "max_mm"):
        assert stored["bounding_box_mm"][side] == pytest.approx(live["bounding_box_mm"][side], abs=1e-6)
    assert stored["center_of_mass_mm"] == pytest.approx(live["center_of_mass_mm"], abs=1e-6)
    assert stored["volume_mm3"] == pytest.approx(6000, rel=1e-9)
    text = written(bench, told)
    assert not has_placement(text)
    # Read without transforms, the corner points themselves are where the part is.
    points = [[float(x) for x in p.split(",")] for p in re.findall(r"CARTESIAN_POINT\('',\(([^)]*)\)\)", text)]
    assert min(p[1] for p in points if len(p) == 3) == pytest.approx(-30, abs=1e-6)


def test_a_part_sketched_on_a_turned_plane_is_stored_as_it_is_measured(bench: Any) -> None:
    body = bench.data("create_body", name="Upright")["obj_id"]
    sketch = bench.sketch(body, {"type": "rectangle", "corner_mm": [0, 0], "width_mm": 30, "height_mm": 8}, plane="YZ")
    bench.data("pad_sketch", body_id=body, sketch_id=sketch, length_mm=5)
    told = bench.data("export_model", obj_id=body)
    assert told["stored_properties"]["bounding_box_mm"]["size_mm"] == [5, 30, 8]
    assert not has_placement(written(bench, told))


def test_the_same_part_twice_is_the_same_file(bench: Any) -> None:
    box(bench, "Box")
    bench.data("create_assembly", name="Asm")
    bench.data("add_part_to_assembly", assembly_id="Asm", part_id="Box")
    box(bench, "Other")
    bench.data("add_part_to_assembly", assembly_id="Asm", part_id="Other", position=[50, 0, 0])
    first = bench.data("export_model", obj_id="Asm", output_path="a/part.step")
    second = bench.data("export_model", obj_id="Asm", output_path="b/part.step")
    assert written(bench, first) == written(bench, second)
    assert "1970-01-01T00:00:00" in written(bench, first)


@pytest.mark.parametrize(
    ("arguments", "colour"),
    [
        ({"material": "18 mm birch plywood"}, BIRCH),
        ({"material": "Birch Plywood, 18 mm"}, BIRCH),
        ({"color": [0.87, 0.2, 0.1]}, [0.87, 0.2, 0.1]),
        ({"color": [255, 128, 0]}, [1.0, 128 / 255, 0.0]),
        ({"color": [0.1, 0.2, 0.3], "material": "steel"}, [0.1, 0.2, 0.3]),
        ({"material": "unobtainium"}, None),
        ({}, None),
    ],
)
def test_a_material_or_colour_is_in_the_file_value_by_value(bench: Any, arguments: Any, colour: Any) -> None:
    box(bench, "Leg")
    answer = bench.call("export_model", obj_id="Leg", **arguments)
    told = read_colours(written(bench, answer["data"]))
    if colour is None:
        assert told == {}
        assert "color" not in answer["data"]["parts"][0]
        assert bool(answer.get("warnings")) is ("material" in arguments)
    else:
        assert told["Leg"] == pytest.approx(colour, abs=1e-8)
        assert answer["data"]["parts"][0]["color"] == pytest.approx(colour, abs=1e-6)
    assert answer["data"]["volume_mm3"] == pytest.approx(6000), "a colour changes no geometry"


def test_a_birch_plywood_plywood_is_found_before_plywood() -> None:
    from metaforge.engineering.appearance import colour_of

    assert colour_of("BIRCH plywood") != colour_of("plywood")
    assert colour_of("plywoods") is None, "whole words alone"
    assert colour_of("stainless steel 316") == colour_of("316L")


def test_each_part_of_an_assembly_has_its_own_colour(bench: Any) -> None:
    bench.data("create_assembly", name="Table")
    for name in ("Top", "Leg"):
        box(bench, name)
        bench.data(
            "add_part_to_assembly", assembly_id="Table", part_id=name, position=[0 if name == "Top" else 40, 0, 0]
        )
    told = bench.data(
        "export_model", obj_id="Table", part_materials={"Top": "birch plywood"}, color=[0.2, 0.2, 0.2], picture=False
    )
    colours = read_colours(written(bench, told))
    assert colours["Top"] == pytest.approx(BIRCH)
    assert colours["Leg"] == pytest.approx([0.2, 0.2, 0.2])
    fault = bench.refused("export_model", obj_id="Table", part_materials={"Lid": "oak"}, output_path="out/x.step")
    assert "Leg, Top" in fault["message"]


def test_an_imported_colour_is_kept_and_goes_last(bench: Any) -> None:
    box(bench, "Part")
    first = bench.data("export_model", obj_id="Part", color=[0.87, 0.2, 0.1], output_path="in/part.step")
    told = bench.data("import_step", file_path="in/part.step", name="Copy")
    assert told["parts"][0]["color"] == [0.87, 0.2, 0.1]
    assert told["volume_mm3"] == pytest.approx(6000)
    again = bench.data("export_model", obj_id="Copy")
    assert read_colours(written(bench, again))["Copy"] == pytest.approx([0.87, 0.2, 0.1])
    other = bench.data("export_model", obj_id="Copy", material="oak", output_path="out/oak.step")
    assert read_colours(written(bench, other))["Copy"] != pytest.approx([0.87, 0.2, 0.1])
    assert first["size_bytes"] > 0


def test_an_assembly_comes_in_with_its_parts_places_labels_and_colours(bench: Any) -> None:
    bench.data("create_assembly", name="Pair")
    for name in ("Left", "Right"):
        box(bench, name)
        bench.data(
            "add_part_to_assembly", assembly_id="Pair", part_id=name, position=[0 if name == "Left" else 50, 0, 0]
        )
    bench.data("export_model", obj_id="Pair", part_materials={"Left": "copper", "Right": "brass"}, output_path="p.step")
    told = bench.data("import_step", file_path="p.step", name="Again")
    assert told["part_count"] == 2
    assert told["bounding_box_mm"]["max_mm"] == [60, 20, 30]
    by_product = {each["product"]: each for each in told["parts"]}
    assert by_product["Left"]["color"] == [0.78, 0.47, 0.33]
    assert by_product["Right"]["color"] == [0.8, 0.67, 0.32]
    assert by_product["Left"]["label"] != "Left", "the session has a Left already, and labels are unique"
    again = bench.data("export_model", obj_id=told["obj_id"], output_path="q.step")
    assert read_colours(written(bench, again)) == {part["label"]: tuple(part["color"]) for part in told["parts"]}


def test_the_file_itself_is_told_only_when_asked(bench: Any) -> None:
    box(bench, "Box")
    told = bench.data("export_model", obj_id="Box")
    assert "step_base64" not in told
    told = bench.data("export_model", obj_id="Box", include_base64=True)
    assert base64.b64decode(told["step_base64"]).decode() == written(bench, told)


def test_labels_beyond_ascii_come_back(bench: Any) -> None:
    box(bench, "Träger 'ß' №1")
    told = bench.data("export_model", obj_id="Träger 'ß' №1", color=[1, 0, 0], output_path="t.step")
    assert written(bench, told).isascii()
    assert bench.data("import_step", file_path="t.step")["parts"][0]["product"] == "Träger 'ß' №1"


def test_bad_files_are_refused_and_the_session_lives(bench: Any) -> None:
    Path(bench.workspace / "no.step").write_text("solid cube\nendsolid\n")
    fault = bench.refused("import_step", file_path="no.step")
    assert fault["data"]["kind"] == "not_step"
    assert bench.refused("import_step", file_path="absent.step")["data"]["kind"] == "file_missing"
    assert bench.data("describe_session")["object_count"] == 0


@pytest.mark.program("cadquery")
def test_the_colour_chain_keeps_its_values_from_material_to_glb(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """sRGB in the STEP file, linear in the GLB, and sRGB again on a screen."""
    import asyncio
    import json
    import struct

    from metaforge.adapters.cadquery.server import CadQueryServer

    box(bench, "Leg")
    told = bench.data("export_model", obj_id="Leg", material="18 mm birch plywood", output_path="leg.step")
    assert read_colours(written(bench, told))["Leg"] == tuple(BIRCH)
    arguments = {"input_file": "leg.step", "output_format": "glb", "output_path": "leg.glb"}
    params = {"tool_id": "cadquery.export_geometry", "arguments": arguments, "output_dir": str(bench.workspace)}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tool/call", "params": params}
    answer = json.loads(asyncio.run(CadQueryServer().handle_request(json.dumps(message))))
    assert "result" in answer, answer
    data = Path(bench.workspace / "leg.glb").read_bytes()
    document = json.loads(data[20 : 20 + struct.unpack("<I", data[12:16])[0]])
    factor = document["materials"][0]["pbrMetallicRoughness"]["baseColorFactor"][:3]
    linear = [((c + 0.055) / 1.055) ** 2.4 for c in BIRCH]
    assert factor == pytest.approx(linear, abs=1e-4)
    assert factor[0] == pytest.approx(0.73, abs=0.005), "0.87 is stored as about 0.73: no darkening"
    shown = [1.055 * c ** (1 / 2.4) - 0.055 for c in factor]
    assert shown == pytest.approx(BIRCH, abs=1e-4)


def test_files_alone_are_made_measured_combined_and_converted(files: Any) -> None:
    made = files.data(
        "create_parametric", shape_type="plate", output_path="plate.step", material="steel-316",
        parameters={"width": 50, "length": 30, "thickness": 4, "hole_diameter": 6, "hole_margin": 6},
    )  # fmt: skip
    volume = 4 * (1500 - 4 * 9 * pi)
    assert made["volume_mm3"] == pytest.approx(volume, rel=1e-8)
    assert made["mass_kg"] == pytest.approx(volume * 8000e-9, rel=1e-6)
    told = files.data("get_properties", input_file="plate.step", properties=["volume", "bounding_box"])
    assert set(told["properties"]) == {"volume_mm3", "bounding_box_mm"}
    assert told["properties"]["bounding_box_mm"]["min_mm"] == [-25, -15, 0]
    files.data(
        "create_parametric", shape_type="cylinder", output_path="pin.step", parameters={"radius": 5, "height": 9}
    )
    both = files.data(
        "boolean_operation", input_file_a="plate.step", input_file_b="pin.step", operation="union", output_path="u.step"
    )
    assert both["result_volume_mm3"] == pytest.approx(volume + 5 * 25 * pi, rel=1e-8)
    described = files.data("describe_step_file", input_file="plate.step")
    assert described["component_count"] == 1
    assert described["components"][0]["color"] is not None, "steel is grey"
    for form in ("stl", "obj", "brep"):
        file = files.data("export_geometry", input_file="plate.step", output_format=form)
        assert Path(files.workspace / file["output_file"]).stat().st_size == file["file_size_bytes"] > 100
    assert files.data("get_properties", input_file="plate.brep")["properties"]["volume_mm3"] == pytest.approx(volume)


@pytest.mark.parametrize(
    ("shape", "parameters", "volume"),
    [
        ("bracket", {"width": 50, "length": 30, "height": 40, "thickness": 6}, 30 * (50 * 6 + 34 * 6)),
        ("bracket", {"width": 50, "length": 30, "height": 40, "thickness": 6, "fillet_radius": 5},
         30 * (50 * 6 + 34 * 6 + 25 * (1 - pi / 4))),
        ("enclosure", {"width": 50, "length": 40, "height": 20, "wall_thickness": 2}, 40000 - 46 * 36 * 18),
        ("cylinder", {"diameter": 10, "height": 8, "bore_diameter": 4}, 8 * pi * (25 - 4)),
    ],
)  # fmt: skip
def test_parametric_parts_have_their_volume(files: Any, shape: str, parameters: Any, volume: float) -> None:
    told = files.data("create_parametric", shape_type=shape, parameters=parameters, output_path="part.step")
    assert told["volume_mm3"] == pytest.approx(volume, rel=1e-7)
    fault = files.refused("create_parametric", shape_type=shape, parameters={}, output_path="x.step")
    assert all("is required" in text for text in fault["data"]["fields"].values())

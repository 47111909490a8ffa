"""A session is one live document: edits stay, failures leave nothing, measures are global, scripts are contained."""

from math import pi
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.program("freecadcmd")


def test_what_one_call_makes_the_next_one_finds_and_a_closed_session_is_gone(files: Any) -> None:
    first = files.data("open_session", name="First")["session_id"]
    second = files.data("open_session", name="Second")["session_id"]
    box = {"length": 1, "width": 2, "height": 3}
    files.data("create_primitive", session_id=first, kind="box", name="Only", parameters=box)
    assert files.data("describe_session", session_id=first)["object_count"] == 1
    assert files.data("describe_session", session_id=second)["object_count"] == 0
    files.data("close_session", session_id=first)
    fault = files.refused("describe_session", session_id=first)
    assert fault["data"]["kind"] == "session_lost"
    assert "it was closed" in fault["message"]
    assert files.data("describe_session", session_id=second)["object_count"] == 0
    files.data("close_session", session_id=second)


def test_an_idle_session_ends_and_is_listed_as_lost(files: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    session = files.data("open_session", name="Idle")["session_id"]
    monkeypatch.setattr(files.server.workbench, "idle_seconds", 0.0)
    fault = files.refused("describe_session", session_id=session)
    assert fault["data"]["kind"] == "session_lost"
    assert "idle for more than 0 s" in fault["message"]


def test_a_crash_loses_its_own_session_alone(files: Any) -> None:
    doomed = files.data("open_session", name="Doomed")["session_id"]
    other = files.data("open_session", name="Other")["session_id"]
    fault = files.refused("execute_code", session_id=doomed, code="import os, signal; os.kill(os.getpid(), 11)")
    assert fault["data"]["kind"] == "tool_crashed"
    assert "SIGSEGV" in fault["message"]
    assert files.refused("describe_session", session_id=doomed)["data"]["kind"] == "session_lost"
    assert files.data("describe_session", session_id=other)["object_count"] == 0
    files.data("close_session", session_id=other)


def test_a_transform_is_verified_and_told_as_position_axis_and_angle(bench: Any) -> None:
    bench.data("create_primitive", kind="box", name="Box", parameters={"length": 10, "width": 20, "height": 30})
    told = bench.data(
        "transform_object", obj_id="Box", position=[1, 2, 3], rotation={"axis": [0, 0, 1], "angle_deg": 90}
    )
    assert told["placement"] == {"position_mm": [1, 2, 3], "axis": [0, 0, 1], "angle_deg": 90}
    assert told["transformed"] is True
    assert told["bounding_box_mm"]["min_mm"] == pytest.approx([-19, 2, 3], abs=1e-6)
    assert told["bounding_box_mm"]["max_mm"] == pytest.approx([1, 12, 33], abs=1e-6)
    assert told["volume_mm3"] == pytest.approx(6000, rel=1e-9)
    moved = bench.data("transform_object", obj_id="Box", position=[0, 0, 0])
    assert moved["placement"]["angle_deg"] == 90, "what is not given stays"


def test_a_placement_that_does_not_stick_is_refused(bench: Any) -> None:
    body = bench.block()
    fault = bench.refused("transform_object", obj_id="Pad", position=[5, 0, 0])
    assert fault["data"]["kind"] == "feature_in_body"
    assert f"transform {body}" in fault["data"]["fix"]
    fault = bench.refused("transform_object", obj_id="Sketch", position=[5, 0, 0])
    assert fault["data"]["kind"] == "placement_not_kept"
    assert bench.data("measure", obj_id=body)["bounding_box_mm"]["min_mm"] == [0, 0, 0]


def test_moving_an_assembly_shows_when_its_part_is_measured_and_the_reverse(bench: Any) -> None:
    bench.data("create_assembly", name="Asm")
    for name in ("A", "B"):
        bench.data("create_primitive", kind="box", name=name, parameters={"length": 10, "width": 10, "height": 10})
        bench.data("add_part_to_assembly", assembly_id="Asm", part_id=name, position=[0 if name == "A" else 20, 0, 0])
    moved = bench.data("transform_object", obj_id="Asm", position=[0, 0, 100])
    assert moved["bounding_box_mm"] == {"min_mm": [0, 0, 100], "max_mm": [30, 10, 110], "size_mm": [30, 10, 10]}
    part = bench.data("measure", obj_id="B")
    assert part["bounding_box_mm"]["min_mm"] == [20, 0, 100]
    assert part["center_of_mass_mm"] == [25, 5, 105]
    bench.data("transform_object", obj_id="B", position=[50, 0, 0])
    whole = bench.data("measure", obj_id="Asm")
    assert whole["bounding_box_mm"]["max_mm"] == [60, 10, 110]
    assert whole["center_of_mass_mm"] == pytest.approx([30, 5, 105])
    assert [each["obj_id"] for each in whole["parts"]] == ["A", "B"]
    faces = bench.data("list_named_faces", obj_id="A")["faces"]
    top = next(each for each in faces if each.get("side") == "top")
    assert top["centroid_mm"] == [5, 5, 110]


def test_an_assembly_counts_no_part_twice_and_says_which_object_to_add(bench: Any) -> None:
    bench.data("create_primitive", kind="box", name="A", parameters={"length": 10, "width": 10, "height": 10})
    bench.data("create_primitive", kind="sphere", name="B", parameters={"radius": 3})
    bench.data("boolean", obj_a="A", obj_b="B", operation="subtract", name="Cut")
    bench.data("create_assembly", name="Asm")
    fault = bench.refused("add_part_to_assembly", assembly_id="Asm", part_id="A")
    assert "add Cut" in fault["data"]["fix"]
    told = bench.data("add_part_to_assembly", assembly_id="Asm", part_id="Cut")
    assert told["part_count"] == 1
    assert told["volume_mm3"] == pytest.approx(1000 - 36 * pi / 8, rel=1e-7)


def test_joints_are_kept_listed_and_checked_against_their_parts(bench: Any) -> None:
    bench.data("create_assembly", name="Asm")
    for name in ("Arm", "Post"):
        bench.data("create_primitive", kind="cylinder", name=name, parameters={"radius": 2, "height": 30})
        bench.data("add_part_to_assembly", assembly_id="Asm", part_id=name)
    told = bench.call(
        "add_assembly_joint", assembly_id="Asm", base_id="Post", follower_id="Arm", type="revolute", axis=[0, 1, 0],
        anchor=[0, 0, 40],
    )  # fmt: skip
    assert any("10 mm away from Post" in each for each in told["warnings"])
    joints = bench.data("list_joints")["joints"]
    assert joints == [told["data"]["joint"]]
    assert joints[0]["axis"] == [0, 1, 0]
    fault = bench.refused("add_assembly_joint", assembly_id="Asm", base_id="Post", follower_id="Leg", type="fixed")
    assert fault["data"]["kind"] == "no_such_object"


def test_a_script_gives_plain_data_back(bench: Any) -> None:
    bench.data("create_primitive", kind="box", name="Box", parameters={"length": 10, "width": 20, "height": 30})
    code = """
box = doc.getObject("Box")
print("hello")
result = {"v": App.Vector(1, 2, 3), "p": box.Placement, "b": box.Shape.BoundBox, "o": box, "q": box.Length,
          "other": object, "list": (1, None, True), "nan": float("nan")}
"""
    told = bench.data("execute_code", code=code)
    assert told["printed"] == "hello\n"
    result = told["result"]
    assert result["v"] == [1, 2, 3]
    assert result["p"] == {"position_mm": [0, 0, 0], "axis": [0, 0, 1], "angle_deg": 0}
    assert result["b"] == {"min_mm": [0, 0, 0], "max_mm": [10, 20, 30]}
    assert result["o"] == {"obj_id": "Box", "label": "Box", "kind": "Part::Box"}
    assert result["q"] == 10
    assert result["other"] == "<class 'object'>"
    assert result["list"] == [1, None, True]
    assert result["nan"] == "nan"


def test_a_long_result_is_cut_and_says_so(bench: Any) -> None:
    told = bench.data("execute_code", code="result = list(range(20000))")
    assert told["result_truncated"] is True
    assert len(told["result"]) == 20000


def test_an_object_in_result_is_told_with_its_id(bench: Any) -> None:
    told = bench.data("execute_code", code="result = doc.addObject('Part::Sphere', 'Ball')")
    assert told["obj_id"] == "Ball"
    assert told["volume_mm3"] == pytest.approx(4 / 3 * pi * 125, rel=1e-7)
    assert told["added_obj_ids"] == ["Ball"]


def test_an_assigned_shape_survives_recomputes_and_moves(bench: Any) -> None:
    bench.data("create_primitive", kind="box", name="Box", parameters={"length": 10, "width": 10, "height": 10})
    told = bench.data("execute_code", code="doc.getObject('Box').Shape = Part.makeSphere(3)\ndoc.recompute()")
    assert told["pinned_obj_ids"] == ["Box"]
    moved = bench.data("transform_object", obj_id="Box", position=[100, 0, 0])
    assert moved["volume_mm3"] == pytest.approx(36 * pi, rel=1e-8)
    assert moved["bounding_box_mm"]["min_mm"] == pytest.approx([97, -3, -3])
    bench.data("create_primitive", kind="sphere", name="Other", parameters={"radius": 1})
    assert bench.data("measure", obj_id="Box")["volume_mm3"] == pytest.approx(36 * pi, rel=1e-8)
    assert bench.data("describe_session")["objects"][0]["pinned"] is True


def test_a_failing_script_leaves_the_document_as_it_was_and_names_its_line(bench: Any) -> None:
    bench.data("create_primitive", kind="box", name="Box", parameters={"length": 10, "width": 10, "height": 10})
    lines = ["doc.getObject('Box').Length = 99", "doc.addObject('Part::Sphere', 'Ball')", "doc.recompute()"]
    code = "\n".join([*lines, "raise ValueError('no')"])
    fault = bench.refused("execute_code", code=code)
    assert "in line 4: ValueError: no" in fault["message"]
    told = bench.data("describe_session")
    assert told["object_count"] == 1
    assert told["objects"][0]["volume_mm3"] == pytest.approx(1000)


def test_an_endless_script_is_stopped_and_the_session_lives(bench: Any) -> None:
    bench.data("create_primitive", kind="sphere", name="Ball", parameters={"radius": 1})
    fault = bench.refused("execute_code", code="while True:\n    pass", timeout_seconds=6.0)
    assert fault["data"]["kind"] == "script_too_long"
    assert bench.data("measure", obj_id="Ball")["is_valid"]


def test_a_script_cannot_close_the_document_behind_the_session(bench: Any) -> None:
    fault = bench.refused("execute_code", code="App.closeDocument(doc.Name)")
    assert fault["data"]["kind"] in ("document_closed", "script_failed", "freecad_error")


def test_what_is_printed_by_freecad_never_reaches_the_answers(bench: Any) -> None:
    told = bench.data(
        "execute_code", code="import os\nos.write(1, b'junk on stdout')\nApp.Console.PrintMessage('x')\nresult=1"
    )
    assert told["result"] == 1


def test_a_step_is_drawn_when_asked(bench: Any) -> None:
    pytest.importorskip("vtkmodules")
    told = bench.call(
        "create_primitive", kind="box", name="Box", parameters={"length": 1, "width": 1, "height": 1}, picture=True
    )
    assert told["pictures"][0]["caption"].startswith("Box: 1 mm3")
    png = Path(bench.workspace / told["pictures"][0]["path"]).read_bytes()
    assert png.startswith(b"\x89PNG")
    assert len(png) > 5000


def test_describing_a_model_names_edges_that_a_fillet_takes(bench: Any) -> None:
    bench.data("create_primitive", kind="box", name="Box", parameters={"length": 10, "width": 20, "height": 30})
    told = bench.data("describe_model", obj_id="Box")
    upright = [each for each in told["edges"] if abs(each["direction"][2]) == 1]
    assert len(upright) == 4
    assert {each["length_mm"] for each in upright} == {30}
    one = next(each["name"] for each in upright if each["middle_mm"] == [0, 0, 15])
    filleted = bench.data("fillet", obj_id="Box", radius_mm=2, edges=[one])
    assert filleted["volume_change_mm3"] == pytest.approx(-(4 - pi) * 30, rel=1e-6)
    fault = bench.refused("fillet", obj_id="Box", radius_mm=2, edges=["Edge99"])
    assert "Edge1 to Edge12" in fault["message"]

"""Scripts: what they leave, what they print, and how their mistakes are told."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.program("cadquery")


def test_a_part_is_measured_and_written(bench: Any) -> None:
    made = bench.data(
        "execute_script", script="import cadquery as cq\nresult = cq.Workplane().box(2, 3, 4)", output_path="p.step"
    )
    assert made["volume_mm3"] == pytest.approx(24)
    assert made["surface_area_mm2"] == pytest.approx(52)
    assert made["bounding_box_mm"]["size_mm"] == pytest.approx([2, 3, 4])
    assert made["script_text"].startswith("import cadquery")
    assert (bench.workspace / "p.step").is_file()


def test_without_a_path_the_name_comes_from_the_script(bench: Any) -> None:
    first = bench.data("execute_script", script="result = cq.Workplane().box(2, 3, 4)")["cad_file"]
    second = bench.data("execute_script", script="result = cq.Workplane().box(2, 3, 5)")["cad_file"]
    again = bench.data("execute_script", script="result = cq.Workplane().box(2, 3, 4)")["cad_file"]
    assert first == again != second


@pytest.mark.parametrize(
    "script",
    [
        "show_object(cq.Workplane().box(1, 1, 1))",
        "result = cq.Solid.makeBox(1, 1, 1)",
        "result = [cq.Workplane().box(1, 1, 1)]",
        "result = {'cube': cq.Workplane().box(1, 1, 1)}",
        "result = cq.Assembly().add(cq.Workplane().box(1, 1, 1), name='cube')",
        "if __name__ == '__main__':\n    result = cq.Workplane().box(1, 1, 1)",
    ],
)
def test_every_usual_way_of_leaving_a_part_works(bench: Any, script: str) -> None:
    assert bench.data("execute_script", script=script)["volume_mm3"] == pytest.approx(1)


def test_an_assembly_keeps_names_places_and_colours(bench: Any) -> None:
    made = bench.data(
        "execute_script", output_path="a.step",
        script=(
            "result = cq.Assembly(name='top')\n"
            "result.add(cq.Workplane().box(10, 10, 10), name='base', color=cq.Color('red'))\n"
            "result.add(cq.Workplane().box(2, 2, 2), name='pin', loc=cq.Location((0, 0, 6)))\n"
        ),
    )  # fmt: skip
    assert [part["name"] for part in made["parts"]] == ["base", "pin"]
    assert made["parts"][0]["colour_srgb"] == [1, 0, 0]
    assert made["bounding_box_mm"]["max_mm"] == pytest.approx([5, 5, 7])
    read = bench.data("get_properties", input_file="a.step")["properties"]
    assert [part["name"] for part in read["parts"]] == ["base", "pin"]
    assert read["colours_srgb"] == [[1, 0, 0]]


def test_printed_text_comes_back_apart_whichever_way_it_was_printed(bench: Any) -> None:
    made = bench.data(
        "execute_script",
        script="print('from print')\nimport os\nos.write(1, b'raw text\\n')\nresult = cq.Workplane().box(1, 1, 1)",
    )
    assert made["stdout"] == "from print\nraw text\n"


def test_endless_printing_is_cut_with_the_number_left_out(bench: Any) -> None:
    made = bench.data("execute_script", script="print('x' * 100_000)\nresult = cq.Workplane().box(1, 1, 1)")
    assert len(made["stdout"]) < 5000
    assert "96001 bytes left out" in made["stdout"]


def test_deltas_tell_what_changed_against_the_file_that_is_there(bench: Any) -> None:
    bench.shape("box", "b.step", width=50, length=30, height=10)
    made = bench.call("execute_script", script="result = cq.Workplane().box(50, 30, 12)", output_path="b.step")
    assert made["data"]["deltas"] == {
        "compared_to": "b.step", "volume_mm3": 3000, "volume_percent": pytest.approx(20),
        "surface_area_mm2": pytest.approx(320), "size_mm": [0, 0, 2], "solids_count": 0,
    }  # fmt: skip
    assert "volume +3000 mm3 (+20 %)" in made["summary"]


def test_deltas_against_a_named_file(bench: Any) -> None:
    bench.shape("box", "old.step", width=1, length=1, height=1)
    made = bench.data(
        "execute_script", script="result = cq.Workplane().box(1, 1, 3)", output_path="new.step", compare_to="old.step"
    )
    assert made["deltas"]["compared_to"] == "old.step"
    assert made["deltas"]["size_mm"] == [0, 0, 2]


def test_a_script_reads_the_workspace_by_relative_path(bench: Any) -> None:
    bench.shape("box", "in.step", width=2, length=2, height=2)
    made = bench.data("execute_script", script="result = cq.importers.importStep('in.step').faces('>Z').hole(1)")
    assert made["volume_mm3"] == pytest.approx(8 - 2 * 0.7853981633974483)


def test_a_fillet_too_large_gives_the_largest_radius_that_works(bench: Any) -> None:
    # The kernel returns a broken solid here without saying so.
    error = bench.refused(
        "execute_script", script="stock = cq.Workplane().box(10, 10, 10)\nresult = stock.edges().fillet(6)"
    )
    assert error["data"]["kind"] == "fillet_too_large"
    assert error["data"]["limit_mm"] == pytest.approx(4.99, abs=0.005)
    assert error["data"]["where"].startswith("line 2: result = stock.edges().fillet(6)")
    limit = error["data"]["limit_mm"]
    made = bench.data("execute_script", script=f"result = cq.Workplane().box(10, 10, 10).edges().fillet({limit})")
    assert 500 < made["volume_mm3"] < 530


def test_a_fillet_that_the_kernel_refuses_is_told_the_same_way(bench: Any) -> None:
    error = bench.refused("execute_script", script="result = cq.Workplane().box(30, 20, 8).edges().fillet(4)")
    assert "fillet: radius 4 mm exceeds the limit on 12 edges (shortest 8 mm)" in error["message"]
    assert "largest radius that works is 3.99 mm" in error["message"]
    assert "BRep_API" not in error["message"]


def test_a_chamfer_too_large_is_told_with_its_length(bench: Any) -> None:
    error = bench.refused("execute_script", script="result = cq.Workplane().box(10, 10, 10).edges('|Z').chamfer(5.5)")
    assert error["data"]["kind"] == "chamfer_too_large"
    assert 4.9 < error["data"]["limit_mm"] < 5


def test_blends_behave_as_ever_after_a_script(bench: Any) -> None:
    import cadquery as cq

    bench.refused("execute_script", script="result = cq.Workplane().box(30, 20, 8).edges().fillet(4)")
    assert cq.occ_impl.shapes.Mixin3D.fillet.__module__ == "cadquery.occ_impl.shapes"
    assert cq.Workplane._selectObjects.__module__ == "cadquery.cq"


def test_a_selector_that_matches_nothing_is_told_with_what_is_there(bench: Any) -> None:
    error = bench.refused("execute_script", script="result = cq.Workplane().box(9, 9, 9).edges('%CIRCLE').fillet(1)")
    assert error["data"]["kind"] == "empty_selection"
    assert "selector '%CIRCLE' matched 0 of 12 edges; present: 12 LINE" in error["message"]


def test_a_cut_that_removes_all_is_told_with_its_line(bench: Any) -> None:
    script = "stock = cq.Workplane().box(9, 9, 9)\nresult = stock.cut(cq.Workplane().box(20, 20, 20))"
    error = bench.refused("execute_script", script=script)
    assert error["message"].startswith("result is empty: the cut removed all material")
    assert error["data"]["where"].startswith("line 2: ")


def test_parts_that_do_not_touch_are_a_warning_with_the_gap(bench: Any) -> None:
    script = "a = cq.Workplane().box(10, 10, 10)\nresult = a.union(a.translate((10.01, 0, 0)))"
    assert bench.call("execute_script", script=script)["warnings"] == [
        "script: solids_count=2, expected 1; gap 0.01 mm"
    ]


@pytest.mark.parametrize(
    ("script", "kind", "where", "said"),
    [
        ("x = 1\nresult = x / 0", "script_error", "line 2: result = x / 0", "ZeroDivisionError"),
        ("x = (\n", "script_syntax", "line 1", "does not compile"),
        ("part = cq.Workplane().box(1, 1, 1)", "no_result", "script", "It defines part (Workplane)"),
        ("result = 5", "no_result", "result", "'result' is int"),
        ("result = cq.Workplane().rect(2, 2)", "empty_result", "script", "no geometry"),
        ("result = cq.Workplane().box(2, 2, 2).faces('>Z')", "no_solid", "script", "no solid (0 shells, 1 faces)"),
        ("import nosuchmodule", "script_error", "line 1", "ModuleNotFoundError"),
        ("open('nothing.txt')", "script_error", "line 1", "FileNotFoundError"),
        ("raise SystemExit(3)", "script_error", "line 1", "exit()"),
        ("result = cq.Solid.makeSphere(-1)", "kernel_refused", "line 1", "The kernel refused the operation"),
        ("raise RuntimeError('no kernel')", "script_error", "line 1", "RuntimeError: no kernel"),
        ("raise MemoryError", "memory_limit", "line 1", "more memory"),
    ],
)
def test_a_mistake_is_told_with_its_line(bench: Any, script: str, kind: str, where: str, said: str) -> None:
    error = bench.refused("execute_script", script=script)
    assert error["code"] == -32001
    assert error["data"]["kind"] == kind
    assert error["data"]["where"].startswith(where)
    assert said in error["message"]


def test_what_was_printed_before_a_mistake_is_kept(bench: Any) -> None:
    error = bench.refused("execute_script", script="print('so far')\n1 / 0")
    assert "so far" in error["message"]


@pytest.mark.parametrize("argument", ["timeout_seconds", "timeout"])
def test_an_endless_loop_ends_at_the_time_given_with_its_line(bench: Any, argument: str) -> None:
    script = "while True:\n    try:\n        pass\n    except Exception:\n        pass"
    error = bench.refused("execute_script", script=script, **{argument: 0.2})
    assert error["code"] == -32006
    assert "longer than 0.2 s" in error["message"]
    assert error["data"]["where"].startswith("line ")
    assert bench.data("execute_script", script="result = cq.Workplane().box(1, 1, 1)")["solids_count"] == 1


def run_worker(workspace: Path, request: dict[str, Any], *before: str) -> list[dict[str, Any]]:
    """Return the answers of a worker of its own to one request."""
    worker = subprocess.run(
        [*before, sys.executable, "-m", "metaforge.tools.run", "metaforge.adapters.cadquery.server:CadQueryServer"],
        input=json.dumps(request) + "\n", capture_output=True, text=True, timeout=120, check=True,
        env={**os.environ, "METAFORGE_WORKER_WORKSPACE": str(workspace), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    ready, *answers = (json.loads(line) for line in worker.stdout.splitlines())
    assert ready["method"] == "worker/ready"
    return answers


def test_a_worker_answers_in_whole_lines_however_a_script_prints(tmp_path: Path) -> None:
    script = "import os\nprint('{\"jsonrpc\": \"2.0\"}')\nos.write(1, b'raw')\nresult = cq.Workplane().box(1, 1, 1)"
    request = {
        "jsonrpc": "2.0", "id": "a", "method": "tool/call",
        "params": {"tool_id": "cadquery.execute_script", "arguments": {"script": script}},
    }  # fmt: skip
    (answer,) = run_worker(tmp_path, request)
    assert answer["id"] == "a"
    assert answer["result"]["data"]["stdout"] == '{"jsonrpc": "2.0"}\nraw'


@pytest.mark.program("prlimit")
def test_a_script_that_wants_more_memory_than_it_may_have_is_told_so(tmp_path: Path) -> None:
    script = "blob = bytearray(64 * 1024**3)\nresult = cq.Workplane().box(1, 1, 1)"
    request = {
        "jsonrpc": "2.0", "id": 1, "method": "tool/call",
        "params": {"tool_id": "cadquery.execute_script", "arguments": {"script": script}},
    }  # fmt: skip
    answers = run_worker(tmp_path, request, "prlimit", f"--as={4 * 1024**3}")
    assert answers[0]["error"]["data"]["kind"] == "memory_limit"
    assert answers[0]["error"]["data"]["where"].startswith("line 1: blob")

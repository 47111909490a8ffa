"""Real models with volumes known in closed form, through the same door as every caller."""

import asyncio
import json
import math
import shutil

import pytest
from metaforge_openscad.server import OpenscadServer

pytestmark = pytest.mark.skipif(not shutil.which("openscad"), reason="openscad is not installed")

PLATE = """width = 40;
hole = 5;
difference() {
    cube([width, 30, 10]);
    translate([10, 10, -1]) cylinder(d = hole, h = 12, $fn = 64);
}
"""
HOLE_MM3 = 64 / 2 * 2.5**2 * math.sin(2 * math.pi / 64) * 10
"""A cylinder of 64 sides is a prism: OpenSCAD has no round bodies."""


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    (tmp_path / "workspace").mkdir()
    monkeypatch.chdir(tmp_path / "workspace")
    return tmp_path / "workspace"


def call(workspace, **arguments):
    arguments.setdefault("output_path", "out/part.stl")
    params = {"tool_id": "openscad.render", "arguments": arguments, "output_dir": str(workspace.parent / "output")}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tool/call", "params": params}
    return json.loads(asyncio.run(OpenscadServer().handle_request(json.dumps(request))))


def refused(workspace, **arguments):
    answer = call(workspace, **arguments)
    assert "error" in answer, answer
    return answer["error"]["data"] | {"message": answer["error"]["message"]}


@pytest.mark.parametrize("suffix", ["stl", "off"])
def test_volume_and_box_of_the_written_file_equal_the_closed_form(workspace, suffix):
    answer = call(workspace, source=PLATE, parameters={"width": 50}, output_path=f"out/part.{suffix}")["result"]
    assert answer["data"]["volume_mm3"] == pytest.approx(50 * 30 * 10 - HOLE_MM3, rel=1e-5)
    assert answer["data"]["bounding_box"]["size_mm"] == [50, 30, 10]
    assert (workspace.parent / "output" / f"out/part.{suffix}").stat().st_size > 1000


def test_a_file_reads_its_neighbours(workspace):
    (workspace / "lib").mkdir()
    (workspace / "lib" / "peg.scad").write_text("height = 3;\nmodule peg() { cube([2, 2, height]); }\n")
    (workspace / "lib" / "part.scad").write_text("include <peg.scad>\npeg();\ntranslate([5, 0, 0]) peg();\n")
    data = call(workspace, file_path="lib/part.scad", parameters={"height": 7})["result"]["data"]
    assert data["volume_mm3"] == pytest.approx(2 * 2 * 2 * 7)


def test_a_text_names_files_from_the_root_of_the_workspace(workspace):
    call(workspace, source="cube(2);", output_path="lib/cube.stl")
    shutil.copytree(workspace.parent / "output" / "lib", workspace / "lib")
    data = call(workspace, source='n = "cube";\nimport(str("lib/", n, ".stl"));')["result"]["data"]
    assert data["volume_mm3"] == pytest.approx(8)


@pytest.mark.parametrize(
    ("source", "kind", "where"),
    [
        ("cube(2);\ncube([1, 2, 3);\n", "syntax_error", "line 2: cube([1, 2, 3);"),
        ("cube(2);\nsqube(3);\n", "unknown_name", "line 2: sqube(3);"),
        ("cube(2);\ncube(lenght);\n", "unknown_name", "line 2: cube(lenght);"),
        ("w = 1;\nassert(w > 2, \"too thin\");\n", "assertion_failed", "line 2: assert(w > 2, \"too thin\");"),
        ("function f(x) = f(x + 1);\ncube(f(1));\n", "endless_recursion", "line 1: function f(x) = f(x + 1);"),
        ("square(3);\n", "flat_model", ""),
        ("difference() { cube(1); cube(2); }\n", "empty_model", ""),
        ("cube(1); translate([1, 1, 0]) cube(1);\n", "not_manifold", ""),
    ],
)  # fmt: skip
def test_a_wrong_model_is_refused_with_its_line(workspace, source, kind, where):
    told = refused(workspace, source=source)
    assert told["kind"] == kind
    assert told.get("where", "") == where
    assert told["fix"]


def test_warnings_are_answered_where_they_are_allowed(workspace):
    answer = call(workspace, source="cube(2);\nsqube(3);\n", allow_warnings=True)["result"]
    assert answer["data"]["volume_mm3"] == pytest.approx(8)
    assert answer["warnings"] == ["Ignoring unknown module 'sqube' (line 2: sqube(3);)"]


@pytest.mark.parametrize(
    "source",
    [
        "use <../secret.scad>\ncube(1);",
        "/* include <x> */ include </etc/passwd>\ncube(1);",
        "use <inside.scad>\ncube(1);",
        "include <link.scad>\ncube(1);",
        'import("../secret.stl");',
        'n = "/etc/"; import(str(n, "secret.stl"));',
        'linear_extrude(1) text("a", valign = "x(file = "); import("../secret.stl");',
        'surface(file = "../secret.dat");',
        'x = dxf_dim(file = "../secret.dxf"); cube(x);',
    ],
)
def test_what_lies_outside_the_workspace_is_refused(workspace, source):
    for suffix in ("scad", "stl", "dat", "dxf"):
        (workspace.parent / f"secret.{suffix}").write_text("cube(9);\n")
    (workspace / "inside.scad").write_text("use <../secret.scad>\n")
    (workspace / "link.scad").symlink_to("../secret.scad")
    assert refused(workspace, source=source)["kind"] in (
        "outside_workspace", "reads_file", "file_missing",
    )  # fmt: skip


def test_a_parameter_is_a_value_and_never_code(workspace):
    text = '";import("/etc/secret.stl");a="'
    answer = call(
        workspace, source='label = "Hi";\nlinear_extrude(2) text(label);\necho(label);', parameters={"label": text}
    )
    assert answer["result"]["data"]["echo"] == [f'"{text}"']


def test_a_parameter_that_the_model_does_not_have_is_named(workspace):
    told = refused(workspace, source=PLATE, parameters={"widht": 50})
    assert (told["kind"], told["fix"]) == ("unknown_parameter", "did you mean width? it assigns: hole, width")


def test_a_model_that_takes_too_long_is_stopped(workspace):
    slow = "function f(n) = n < 2 ? n : f(n - 1) + f(n - 2);\ncube(f(45));"
    told = refused(workspace, source=slow, timeout_seconds=3)
    assert told["kind"] == "tool_timeout"
    assert "within the 3 s" in told["message"]

"""The manifest that the server reads instead of this adapter."""

import subprocess
import sys
from pathlib import Path

import orjson

from metaforge.adapters import cadquery
from metaforge.tools.generate import manifest_bytes
from metaforge.tools.manifest import AdapterManifest

STORED = Path(cadquery.__file__).with_name("manifest.json")
TARGET = "metaforge.adapters.cadquery.server:CadQueryServer"


def test_the_stored_manifest_is_what_the_code_says() -> None:
    assert STORED.read_bytes() == manifest_bytes(TARGET)


def test_all_seven_tools_are_there_and_only_the_script_runs_a_callers_code() -> None:
    manifest = AdapterManifest.from_json(orjson.loads(STORED.read_bytes()))
    assert {tool.id.removeprefix("cadquery.") for tool in manifest.tools} == {
        "create_parametric", "boolean_operation", "get_properties", "export_geometry", "execute_script",
        "create_assembly", "generate_enclosure",
    }  # fmt: skip
    assert [tool.id for tool in manifest.tools if tool.runs_caller_code] == ["cadquery.execute_script"]


def test_importing_the_server_loads_no_kernel() -> None:
    heavy = "{'cadquery', 'OCP', 'numpy', 'vtkmodules', 'gmsh'} & set(sys.modules)"
    code = f"import sys, metaforge.adapters.cadquery.server; sys.exit(str({heavy}) if {heavy} else 0)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_shape_tells_its_own_parameters() -> None:
    manifest = AdapterManifest.from_json(orjson.loads(STORED.read_bytes()))
    schema = next(tool for tool in manifest.tools if tool.id.endswith("create_parametric")).input_schema
    branches = {branch["description"]: branch for branch in schema["properties"]["parameters"]["anyOf"]}
    for shape in schema["properties"]["shape_type"]["enum"]:
        assert branches[shape]["required"]
    assert "anyOf" not in schema
    assert schema["type"] == "object"

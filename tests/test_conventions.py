"""Rules about every tool, checked on every tool that ships."""

import re
from pathlib import Path
from typing import Any

import orjson
import pytest

import metaforge
from metaforge.adapters import CATALOG, OPTIONAL
from metaforge.registry.lint import fault_of
from metaforge.registry.names import fold
from metaforge.tools.effect import Effect
from metaforge.tools.generate import manifest_bytes
from metaforge.tools.manifest import AdapterManifest, Tool

ROOT = Path(metaforge.__file__).parent / "adapters"
LONGEST_ID = 31
"""A plugin's prefix takes 33 of the 64 characters that clients allow."""

UNITS = (
    "_mm", "_mm2", "_mm3", "_mm4", "_n", "_nm", "_nmm", "_mpa", "_kg", "_kg_m3", "_hz", "_v", "_a", "_ohm", "_deg",
    "_c", "_k", "_w", "_w_mk", "_w_m2k", "_w_mm2", "_j_kgk", "_per_k", "_seconds", "_s", "_ms", "_mb", "_bytes",
    "_usd", "_ratio", "_count", "_factor", "_mm_s2", "_m_s2", "_w_m2", "_kg_mm2", "_db", "_percent",
)  # fmt: skip
DOCUMENTED = {
    # Names the documents give to plain counts and indices, which have no unit.
    "volume", "seq", "num_modes", "num_nodes", "num_elements", "mesh_elements", "mesh_nodes", "element_count",
    "node_count", "part_count", "count", "mode", "order", "solids", "faces", "edges", "id", "index", "pid", "line",
    "interval", "timeout", "x", "y", "z", "normal", "max_aspect_ratio", "worst_aspect_ratio", "poissons_ratio",
    "buckling_factors", "factor_of_safety",
    "factor_of_safety_outside_zone",
    # A requirement's limit has its unit beside it; k is a coverage factor.
    "limit", "k",
    # A circuit's results are volts, amperes or ohms: the unit stands beside each.
    "final", "final_imag", "min", "max", "value", "at", "mean", "rms", "peak_to_peak", "waveform_data",
    "measurements",
    "mag_db_final", "mag_db_min", "mag_db_max", "phase_deg_final",
    # Directions and colours have no unit; of a map of dimensions each key has it.
    "axis", "color", "parameters", "params",
    # SPICE's own names of what an analysis sweeps: seconds, hertz, or whatever the source gives.
    "start", "stop", "step", "max_step", "fstart", "fstop", "points", "max_points", "quality_factor",
}  # fmt: skip


def manifests() -> dict[str, AdapterManifest]:
    return {
        adapter_id: AdapterManifest.from_json(orjson.loads((ROOT / adapter_id / "manifest.json").read_bytes()))
        for adapter_id in CATALOG
    }


def product_tools() -> dict[str, Tool]:
    return {
        tool.id: tool
        for adapter_id, manifest in manifests().items()
        if adapter_id not in OPTIONAL
        for tool in manifest.tools
    }


TOOLS = product_tools()
every_tool = pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)


@pytest.mark.parametrize("adapter_id", CATALOG)
def test_the_stored_manifest_is_what_the_code_says(adapter_id: str) -> None:
    stored = (ROOT / adapter_id / "manifest.json").read_bytes()
    assert stored == manifest_bytes(CATALOG[adapter_id]), f"{adapter_id}: run `make manifests`"


@every_tool
def test_the_id_is_adapter_dot_verb_and_short_enough(tool: Tool) -> None:
    assert re.fullmatch(r"[a-z]+\.[a-z]+(_[a-z0-9]+)*", tool.id)
    assert len(tool.id) <= LONGEST_ID


def test_ids_stay_apart_when_clients_replace_dots() -> None:
    assert len({fold(tool_id) for tool_id in TOOLS}) == len(TOOLS)


@every_tool
def test_a_client_can_list_it(tool: Tool) -> None:
    assert fault_of(tool) == ""


@every_tool
def test_it_takes_no_argument_it_does_not_know(tool: Tool) -> None:
    assert tool.input_schema.get("additionalProperties") is False


@every_tool
def test_all_four_hints_are_decided(tool: Tool) -> None:
    hints = tool.annotations
    assert {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} <= set(hints)
    assert hints["readOnlyHint"] is (tool.effect is Effect.READ)
    assert hints["destructiveHint"] is (tool.effect is Effect.DESTROY)


@every_tool
def test_a_deferring_client_can_find_it(tool: Tool) -> None:
    assert tool.search_hint


@every_tool
def test_every_argument_is_described(tool: Tool) -> None:
    bare = [name for name, about in tool.input_schema.get("properties", {}).items() if not _description(tool, about)]
    assert bare == []
    assert tool.description


def _description(tool: Tool, about: dict[str, Any]) -> str:
    name = about.get("$ref", "").rpartition("/")[2]
    return about.get("description") or tool.input_schema.get("$defs", {}).get(name, {}).get("description", "")


def _numbers(node: Any, name: str = "") -> list[str]:
    if isinstance(node, list):
        return [each for item in node for each in _numbers(item, name)]
    if not isinstance(node, dict):
        return []
    found = [name] if node.get("type") == "number" and name else []
    for key, value in node.items():
        if key in ("properties", "$defs") and isinstance(value, dict):
            found += [each for sub, schema in value.items() for each in _numbers(schema, sub)]
        elif key in ("items", "prefixItems", "anyOf", "oneOf", "allOf", "additionalProperties"):
            found += _numbers(value, name)
    return found


@every_tool
def test_every_number_says_its_unit(tool: Tool) -> None:
    named = {*_numbers(tool.input_schema), *_numbers(tool.output_schema)}
    bare = sorted(name for name in named if not name.lower().endswith(UNITS) and name not in DOCUMENTED)
    assert bare == []


@every_tool
def test_what_runs_a_callers_code_is_never_repeated(tool: Tool) -> None:
    assert not (tool.runs_caller_code and tool.retries)

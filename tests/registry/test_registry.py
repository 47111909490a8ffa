"""Tools answer to the names people write; what cannot run is named with the command that mends it."""

import pytest

from metaforge.core.errors import Quarantined, ToolUnavailable, UnknownTool
from metaforge.registry.names import NameIndex
from metaforge.registry.probe import Probe
from metaforge.registry.registry import ToolRegistry
from metaforge.tools.manifest import AdapterManifest, Need, Tool
from metaforge.tools.source import AdapterHealth, AdapterState, Trouble

OBJECT = {"type": "object", "properties": {}}


def a_tool(tool_id: str, **changes: object) -> Tool:
    fields = {
        "id": tool_id, "adapter_id": tool_id.partition(".")[0], "name": tool_id, "description": "does it",
        "capability": "x", "input_schema": OBJECT, "output_schema": OBJECT,
    }  # fmt: skip
    return Tool(**(fields | changes))  # type: ignore[arg-type]


class Source:
    def __init__(self, adapter_id: str, *tools: Tool) -> None:
        self.manifest = AdapterManifest(adapter_id, "1.0", "", False, tools)

    async def call(self, tool: Tool, arguments: dict, invocation: object) -> object:
        raise AssertionError("not called here")

    async def health(self, timeout_seconds: float) -> AdapterHealth:
        return AdapterHealth(self.manifest.adapter_id, "1.0", len(self.manifest.tools), True, AdapterState.IDLE)

    def prestart(self) -> None: ...

    async def close(self) -> None: ...


def a_registry(*sources: Source, phase: int = 2) -> ToolRegistry:
    registry = ToolRegistry(Probe("/nowhere"), phase=phase)
    for source in sources:
        registry.add_source(source)
    return registry


TWIN = Source("twin", a_tool("twin.get_node"), a_tool("twin.item_history"))


@pytest.mark.parametrize("name", ["twin.get_node", "twin_get_node", "twin/get_node", "Twin.Get-Node"])
def test_separator_variants_resolve(name: str) -> None:
    assert a_registry(TWIN).find(name).id == "twin.get_node"


def test_a_near_miss_names_the_closest_tool_in_message_and_data() -> None:
    with pytest.raises(UnknownTool) as caught:
        a_registry(TWIN).find("twin.get_nodes")
    assert caught.value.message == "Tool not found: twin.get_nodes. Did you mean: twin.get_node"
    assert caught.value.data == {"tool_id": "twin.get_nodes", "did_you_mean": ["twin.get_node"], "tool_count": 2}


def test_an_ambiguous_alias_is_refused_not_guessed() -> None:
    index = NameIndex(["a.b_c", "a_b.c"])
    assert index.matches("a_b_c") == ["a.b_c", "a_b.c"]


def test_the_right_verb_under_the_wrong_adapter_is_found() -> None:
    assert NameIndex(["cadquery.create_parametric"]).closest("cad.create_parametric") == ["cadquery.create_parametric"]


def test_two_ids_that_fold_alike_cannot_both_be_registered() -> None:
    registry = a_registry(TWIN, Source("other", a_tool("twin_get.node")))
    assert registry.tool_count == 2
    assert "collides with twin.get_node" in registry.unavailable()[0].reason


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "string"}, "must be"),
        ({}, "must be"),
        ({"type": "object", "properties": 5}, 'is not of type "object"'),
        ({"type": "object", "properties": {"a": {"pattern": "("}}}, "regex"),
        ({"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}}, "does not exist"),
        ({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}}, "within the schema"),
        ({"type": "object", "$schema": "http://127.0.0.1:9/x"}, "no dialect"),
        ({"type": "object", "anyOf": [{}]}, "uses anyOf"),
    ],
)
def test_one_bad_schema_is_quarantined_and_named_and_the_others_stay(schema: dict, reason: str) -> None:
    registry = a_registry(Source("x", a_tool("x.bad", input_schema=schema), a_tool("x.good")))
    assert [tool.id for tool in registry.listed()] == ["x.good"]
    entry = registry.unavailable()[0]
    assert entry.tools == ("x.bad",)
    assert reason in entry.reason
    with pytest.raises(Quarantined, match=reason):
        registry.find("x.bad")


def test_what_changes_nothing_for_callers_is_mended_and_told() -> None:
    untyped = a_tool("x.untyped", input_schema={"properties": {"a": {"type": "string"}}})
    undescribed = a_tool("x.undescribed", output_schema={"type": "string"})
    registry = a_registry(Source("x", untyped, undescribed, a_tool("x.good")))
    listed = {tool.id: tool for tool in registry.listed()}
    assert listed["x.untyped"].input_schema["type"] == "object"
    assert listed["x.undescribed"].output_schema == {}
    assert registry.unavailable() == []
    assert set(registry.mended) == {"x.untyped", "x.undescribed"}
    assert "no type" in registry.mended["x.untyped"][0]
    assert "'string'" in registry.mended["x.undescribed"][0]


def test_a_tool_of_an_adapter_that_is_not_there_is_unavailable_and_not_unknown() -> None:
    registry = a_registry(TWIN)
    registry.drop_adapter("solver", "nothing listens at http://solver:8080", "start it")
    for name in ("solver.run", "solver_run"):
        with pytest.raises(ToolUnavailable, match=r"solver is not available: nothing listens.*To mend it: start it"):
            registry.find(name)
    with pytest.raises(UnknownTool):
        registry.find("solvers.run")


class Failing(Source):
    def trouble(self) -> Trouble:
        return Trouble("it was started and crashed 8 times in a row: exit status 3", 2.0)


def test_an_adapter_in_trouble_stays_listed_and_says_when_it_is_tried_again() -> None:
    registry = a_registry(Failing("x", a_tool("x.run")))
    assert [tool.id for tool in registry.listed()] == ["x.run"]
    (entry,) = registry.unavailable()
    assert entry.wire() == {
        "adapterId": "x", "reason": "it was started and crashed 8 times in a row: exit status 3",
        "tools": ["x.run"], "retryAfterSeconds": 2.0,
    }  # fmt: skip


def test_an_entry_that_is_no_tool_is_named() -> None:
    manifest = AdapterManifest.from_json(
        {"adapter_id": "x", "version": "1", "tools": [{"tool_id": "x.half", "adapter_id": "x"}, "text", None, 5]}
    )
    assert manifest.tools == ()
    assert [name for name, _ in manifest.broken] == ["x.half", "?", "?", "?"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"tool_id": {"": 2}}, {"adapter_id": 5}, {"name": None}, {"description": ["d"]}, {"capability": {}},
        {"search_hint": 1}, {"session": ["use"]}, {"aliases": {"radius": 5}},
        {"needs": [{"kind": "program", "name": 5}]},
    ],
    ids=lambda wrong: next(iter(wrong)),
)  # fmt: skip
def test_an_entry_with_something_else_in_place_of_a_text_is_named(wrong: dict[str, object]) -> None:
    entry = {"tool_id": "x.run", "adapter_id": "x", "name": "n", "description": "d", "input_schema": {}, **wrong}
    manifest = AdapterManifest.from_json({"adapter_id": "x", "version": "1", "tools": [entry]})
    assert manifest.tools == ()
    ((_, reason),) = manifest.broken
    assert "it must be a text" in reason


def test_a_tool_id_longer_than_clients_can_take_is_named() -> None:
    registry = a_registry(Source("x", a_tool("x." + "a" * 47)))
    assert "49 characters, at most 48" in registry.unavailable()[0].reason


def test_a_tool_without_its_program_is_unlisted_named_and_still_registered() -> None:
    need = Need("program", "ccx", apt="calculix-ccx")
    registry = a_registry(Source("calculix", a_tool("calculix.run_fea", needs=(need,)), a_tool("calculix.look")))
    assert [tool.id for tool in registry.listed()] == ["calculix.look"]
    assert registry.tool_count == 2
    assert registry.unavailable()[0].wire() == {
        "adapterId": "calculix",
        "reason": "program ccx is not installed",
        "install": "apt-get install -y calculix-ccx",
        "tools": ["calculix.run_fea"],
    }


def test_installing_the_program_needs_no_restart(tmp_path) -> None:
    need = Need("program", "ccx", apt="calculix-ccx")
    probe = Probe(str(tmp_path))
    assert probe.missing([need]) == [need]
    (tmp_path / "ccx").write_text("#!/bin/sh\necho 'This is Version 2.20'\n")
    (tmp_path / "ccx").chmod(0o755)
    assert probe.missing([need]) == []
    assert probe.measure(need).version == "2.20"


def test_a_program_that_does_not_run_is_a_problem(tmp_path) -> None:
    (tmp_path / "ccx").write_text("#!/nowhere/sh\n")
    (tmp_path / "ccx").chmod(0o755)
    finding = Probe(str(tmp_path)).measure(Need("program", "ccx"))
    assert not finding.found
    assert "does not run" in finding.problem


def test_a_later_phase_is_not_listed() -> None:
    registry = a_registry(Source("x", a_tool("x.now"), a_tool("x.later", phase=3)))
    assert [tool.id for tool in registry.listed()] == ["x.now"]


async def test_the_documented_queries_answer() -> None:
    registry = a_registry(TWIN)
    manifest = await registry.get_tool("twin.get_node")
    assert manifest is not None
    assert manifest.effect == "destroy"
    assert await registry.get_tool("twin.nothing") is None
    assert len(await registry.list_tools(adapter_id="twin")) == 2
    assert await registry.list_tools(capability="none") == []
    assert (await registry.health_check("twin")).status == "healthy"
    assert set(await registry.health_check_all()) == {"twin"}
    assert await registry.get_healthy_adapter("twin.get_node") == "twin"

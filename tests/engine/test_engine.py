"""The engine: deadlines, retries, cancelling, and tools that run inside the server."""

import asyncio
from dataclasses import dataclass, replace

import pytest

from metaforge.core.errors import (
    Cancelled,
    InvalidArguments,
    ToolCrashed,
    ToolError,
    ToolTimedOut,
    ToolUnavailable,
    UnknownTool,
)
from metaforge.engine.engine import ExecutionEngine
from metaforge.engine.faults import DeadlinePassed, WorkerCrashed
from metaforge.engine.local import LocalSource
from metaforge.protocol.messages import ToolManifest
from metaforge.tools.context import Answer, Caller, Invocation, Outcome
from metaforge.tools.effect import Effect
from metaforge.tools.generate import manifest_of
from metaforge.tools.manifest import AdapterManifest, Need, Tool
from metaforge.tools.server import McpToolServer
from metaforge.tools.tool import tool


class Registry:
    def __init__(self, source=None, missing=None) -> None:
        self._source, self._missing = source, missing

    def find(self, name):
        for each in self._source.manifest.tools:
            if each.id == name:
                return each
        raise UnknownTool(f"Tool not found: {name}", tool_id=name)

    def source(self, adapter_id):
        return self._source

    def sources(self):
        return iter([self._source])

    def unavailable_reason(self, tool_id):
        return self._missing


class FakeSource:
    def __init__(self, *ends) -> None:
        self.ends = list(ends)
        self.invocations = []

    async def call(self, tool, arguments, invocation):
        self.invocations.append(invocation)
        end = self.ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return end


def described(**more) -> Tool:
    return Tool("t.run", "t", "Run", "Run it.", "test", {"type": "object"}, {}, **more)


def invocation(seconds: float = 30.0, **more) -> Invocation:
    return Invocation("call-1", Caller(), seconds, **more)


DONE = Outcome({"x": 1}, "done")


@pytest.mark.parametrize(
    ("asked", "own", "given"), [(10, 60, 10), (600, 60, 60), (0, 60, 60), (9999, 9999, 3600), (5, 0.5, 0.5)]
)
async def test_the_deadline_is_the_smallest_of_asked_the_tools_own_and_an_hour(asked, own, given):
    source = FakeSource(DONE)
    await ExecutionEngine(Registry(source)).run(described(timeout_seconds=own), {}, invocation(asked))
    assert source.invocations[0].timeout_seconds == given


@pytest.mark.parametrize("lost", [WorkerCrashed("exit status 3"), DeadlinePassed("within 1 s")])
async def test_an_idempotent_call_without_an_answer_is_tried_again(lost):
    source = FakeSource(lost, lost, DONE)
    assert await ExecutionEngine(Registry(source)).run(described(idempotent=True, retries=2), {}, invocation()) is DONE
    assert len(source.invocations) == 3


async def test_the_last_failure_is_told_when_retries_run_out():
    source = FakeSource(WorkerCrashed("one"), WorkerCrashed("two"), DONE)
    with pytest.raises(ToolCrashed, match="two"):
        await ExecutionEngine(Registry(source)).run(described(idempotent=True, retries=1), {}, invocation())


@pytest.mark.parametrize(
    "answered", [ToolError("refused"), ToolCrashed("ccx died"), ToolTimedOut("ccx hung"), InvalidArguments("no")]
)
async def test_an_answer_is_final(answered):
    source = FakeSource(answered, DONE)
    with pytest.raises(type(answered)):
        await ExecutionEngine(Registry(source)).run(described(idempotent=True, retries=3), {}, invocation())
    assert len(source.invocations) == 1


async def test_a_call_that_is_not_idempotent_is_executed_at_most_once():
    source = FakeSource(WorkerCrashed("exit status 3"), DONE)
    with pytest.raises(ToolCrashed):
        await ExecutionEngine(Registry(source)).run(described(retries=3), {}, invocation())
    assert len(source.invocations) == 1


async def test_retries_with_a_real_process(any_house):
    engine = ExecutionEngine(Registry(any_house.source))
    for name, attempts, shape in (
        ("crash_retried", 3, ToolCrashed),
        ("refuse_retried", 1, ToolError),
        ("crash", 1, ToolCrashed),
    ):
        any_house.told.clear()
        with pytest.raises(shape):
            await engine.run(engine._registry.find(f"misbehaving.{name}"), {}, invocation(progress=any_house.note))
        assert len(any_house.told) == attempts


async def test_a_tool_whose_needs_are_missing_is_unavailable_with_the_command_that_mends_it():
    source = FakeSource()
    engine = ExecutionEngine(Registry(source, ("program ccx is not installed", "apt-get install -y calculix-ccx")))
    with pytest.raises(ToolUnavailable, match="apt-get install -y calculix-ccx") as caught:
        await engine.run(described(needs=(Need("program", "ccx", apt="calculix-ccx"),)), {}, invocation())
    assert caught.value.data["install"] == "apt-get install -y calculix-ccx"
    assert source.invocations == []


async def test_cancel_ends_a_running_call(any_house):
    engine = ExecutionEngine(Registry(any_house.source))
    running = asyncio.create_task(
        engine.run(engine._registry.find("misbehaving.loop"), {}, invocation(progress=any_house.note))
    )
    await any_house.begun.wait()
    assert engine.running == ["call-1"]
    assert await engine.cancel("call-1")
    with pytest.raises(Cancelled):
        await running
    assert not await engine.cancel("call-1")
    assert any_house.strangers() == []


async def test_invoke_answers_as_the_documents_say(any_house):
    engine = ExecutionEngine(Registry(any_house.source))
    result = await engine.invoke("misbehaving.produce", {"files": {"a.txt": "one"}}, timeout_seconds=30)
    assert (result.tool_id, result.status, result.output_files) == ("misbehaving.produce", "success", ["a.txt"])
    assert result.data["text"] == "written"
    assert result.duration_ms > 0
    with pytest.raises(UnknownTool):
        await engine.invoke("misbehaving.nothing", {})


# -- tools inside the server ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sum:
    total_count: int


class InsideServer(McpToolServer):
    in_process = True

    def __init__(self, bonus: int = 0) -> None:
        super().__init__("inside", "1.0.0")
        self._bonus = bonus
        manifest = ToolManifest(
            tool_id="inside.by_hand", adapter_id="inside", name="By hand", description="Add one.", capability="test",
            input_schema={"type": "object"}, effect="read",
        )  # fmt: skip
        self.register_tool(manifest, lambda arguments: {"total_count": arguments["a"] + 1})

    @tool(effect=Effect.READ, capability="test", title="Add")
    async def add(self, ctx: Invocation, a: int, b: int = 1) -> Answer[Sum]:
        """Add two numbers.

        Args:
            a: one.
            b: the other.
        """
        ctx.progress(0.5, "adding")
        return Answer(Sum(a + b + self._bonus), f"{a + b}", ("a warning",), "inside.add", programs={"calc": "1"})

    @tool(effect=Effect.READ, capability="test", title="Wait")
    async def wait(self, ctx: Invocation) -> Sum:
        """Wait for ever."""
        await asyncio.Event().wait()
        return Sum(0)


@pytest.fixture
def inside() -> LocalSource:
    raw = manifest_of("misbehaving:MisbehavingServer") | {"target": f"{__name__}:InsideServer", "in_process": True}
    server = InsideServer()
    raw["tools"] = [each.model_dump(mode="json") for each in server.manifests()]
    return LocalSource(AdapterManifest.from_json(raw), make=lambda: InsideServer(bonus=10))


def named(source: LocalSource, name: str) -> Tool:
    return next(each for each in source.manifest.tools if each.id == f"inside.{name}")


async def test_a_tool_inside_the_server_gets_the_invocation_and_typed_arguments(inside):
    told = []
    outcome = await inside.call(named(inside, "add"), {"a": 2}, invocation(progress=lambda f, m: told.append(m)))
    assert outcome.data == {"total_count": 13}
    assert (outcome.summary, outcome.warnings, outcome.next_step) == ("3", ("a warning",), "inside.add")
    assert outcome.programs[0].name == "calc"
    assert told == ["adding"]


async def test_a_registered_handler_serves_inside_the_server_too(inside):
    outcome = await inside.call(named(inside, "by_hand"), {"a": 2}, invocation())
    assert outcome.data == {"total_count": 3}
    assert outcome.summary


async def test_wrong_arguments_name_every_field(inside):
    with pytest.raises(InvalidArguments) as caught:
        await inside.call(named(inside, "add"), {"a": "x", "c": 1}, invocation())
    assert set(caught.value.data["fields"]) == {"a", "c"}


async def test_a_tool_inside_the_server_has_a_deadline(inside):
    with pytest.raises(ToolTimedOut):
        await inside.call(named(inside, "wait"), {}, invocation(0.01))


async def test_a_tool_that_its_adapter_does_not_serve_is_told(inside):
    with pytest.raises(UnknownTool):
        await inside.call(replace(named(inside, "add"), id="inside.gone"), {}, invocation())

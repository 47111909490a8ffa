"""The stages in their order: unknown tools are not judged, bad calls are not asked about, refused writes do not run."""

import asyncio

import pytest

from metaforge.approvals.policy import Policy
from metaforge.calls.approve import Approve
from metaforge.calls.arguments import ArgumentJudge
from metaforge.calls.call import Call, replace
from metaforge.calls.ending import ending_of
from metaforge.calls.paths import PathJudge
from metaforge.calls.pipeline import compose
from metaforge.calls.resolve import Resolve
from metaforge.calls.validate import Validate
from metaforge.core.errors import (
    InvalidArguments,
    NotApproved,
    ToolCrashed,
    ToolError,
    ToolTimedOut,
    ToolUnavailable,
    UnknownTool,
)
from metaforge.registry.probe import Probe
from metaforge.registry.registry import ToolRegistry
from metaforge.tools.context import Caller, Outcome, Trust
from metaforge.tools.effect import Effect
from metaforge.tools.manifest import AdapterManifest, Need, Tool
from metaforge.tools.source import AdapterHealth, AdapterState

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "output_path": {"type": "string", "format": "output-path"},
        "overwrite": {"type": "boolean"},
        "width_mm": {"type": "number", "exclusiveMinimum": 0},
    },
}


class Source:
    manifest = AdapterManifest(
        "x", "1", "", True,
        (
            Tool("x.read", "x", "Read", "", "", SCHEMA, {}, effect=Effect.READ),
            Tool("x.make", "x", "Make", "", "", SCHEMA, {}, effect=Effect.PRODUCE),
            Tool("x.write", "x", "Write", "", "", SCHEMA, {}, effect=Effect.WRITE),
            Tool("x.unclassified", "x", "?", "", "", SCHEMA, {}),
            Tool("x.absent", "x", "?", "", "", SCHEMA, {}, needs=(Need("program", "nosuch", apt="nosuch-pkg"),)),
        ),
    )  # fmt: skip

    async def health(self, timeout_seconds: float) -> AdapterHealth:
        return AdapterHealth("x", "1", 5, True, AdapterState.READY)


@pytest.fixture
def ran() -> list[Call]:
    return []


@pytest.fixture
def run(tmp_path, ran):
    registry = ToolRegistry(Probe("/nowhere"))
    registry.add_source(Source())

    async def execute(call: Call) -> Outcome:
        ran.append(call)
        return Outcome({}, "done")

    stages = [Resolve(registry), Validate(ArgumentJudge(), PathJudge(tmp_path.resolve())), Approve(Policy())]
    proceed = compose(stages, execute)

    async def start(tool_id: str, trust: Trust = Trust.LOCAL, **arguments: object) -> Outcome:
        return await proceed(Call("c1", tool_id, arguments, Caller(trust=trust)))

    return start


async def test_the_first_stage_of_the_list_is_the_outermost() -> None:
    order = []

    def stage(name: str):
        async def through(call, proceed):
            order.append(f"{name} in")
            outcome = await proceed(call)
            order.append(f"{name} out")
            return outcome

        return through

    async def tool(call: Call) -> Outcome:
        order.append("tool")
        return Outcome({}, "")

    await compose([stage("a"), stage("b")], tool)(Call("c", "t", {}, Caller()))
    assert order == ["a in", "b in", "tool", "b out", "a out"]


async def test_an_alias_runs_the_tool_it_means(run, ran) -> None:
    await run("x/read")
    assert ran[0].resolved().id == "x.read"


async def test_an_unknown_tool_never_runs(run, ran) -> None:
    with pytest.raises(UnknownTool, match=r"Did you mean: x\.read"):
        await run("x.reed")
    assert ran == []


async def test_a_tool_whose_program_is_missing_says_how_to_get_it(run, ran) -> None:
    with pytest.raises(ToolUnavailable, match="apt-get install -y nosuch-pkg") as caught:
        await run("x.absent")
    assert caught.value.data["install"] == "apt-get install -y nosuch-pkg"
    assert ran == []


async def test_a_call_that_cannot_run_is_refused_before_anyone_is_asked(run) -> None:
    with pytest.raises(InvalidArguments, match="width_mm"):
        await run("x.write", Trust.UNTRUSTED, width_mm=-5)


@pytest.mark.parametrize("tool_id", ["x.write", "x.unclassified"])
@pytest.mark.parametrize("trust", [Trust.UNTRUSTED, Trust.REMOTE])
async def test_a_remote_write_is_refused_where_nobody_can_be_asked(run, ran, tool_id, trust) -> None:
    with pytest.raises(NotApproved) as caught:
        await run(tool_id, trust)
    assert caught.value.data["code"] == "approval_required"
    assert caught.value.data["outcome"] == "not_configured"
    assert ran == []


@pytest.mark.parametrize("tool_id", ["x.read", "x.make"])
async def test_reads_and_new_artefacts_are_not_held(run, ran, tool_id) -> None:
    await run(tool_id, Trust.UNTRUSTED, output_path="new.step")
    assert len(ran) == 1


async def test_overwriting_makes_a_remote_call_a_destroying_one(run, ran) -> None:
    with pytest.raises(NotApproved, match="replace or remove existing content"):
        await run("x.make", Trust.UNTRUSTED, output_path="new.step", overwrite=True)
    await run("x.make", Trust.LOCAL, output_path="new.step", overwrite=True)
    assert ran[0].effect is Effect.DESTROY


def test_replace_leaves_the_original_alone() -> None:
    call = Call("c", "t", {"a": 1}, Caller())
    assert replace(call, tool_id="u").tool_id == "u"
    assert call.tool_id == "t"


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (asyncio.CancelledError(), "cancelled"),
        (UnknownTool("x"), "unknown_tool"),
        (ToolUnavailable("x"), "unavailable"),
        (InvalidArguments("x"), "invalid"),
        (NotApproved("x"), "refused"),
        (ToolTimedOut("x"), "timeout"),
        (ToolCrashed("x"), "failed"),
        (ToolError("x"), "refused"),
        (RuntimeError("x"), "failed"),
    ],
)
def test_every_way_a_call_can_end_has_a_word(fault: BaseException, status: str) -> None:
    assert ending_of(fault).status == status

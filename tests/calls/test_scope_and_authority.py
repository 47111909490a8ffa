"""The project comes from arguments or from what the client opened; the run and the approver never from arguments."""

from typing import Any

import pytest

from metaforge.calls.authorise import APPROVER_NAMES, Authorise
from metaforge.calls.call import Call
from metaforge.calls.scope import Scope
from metaforge.core.errors import ToolError
from metaforge.tools.context import Caller, Outcome, Trust
from metaforge.tools.effect import Effect, HoldRule
from metaforge.tools.manifest import Tool
from metaforge.twin.scopes import ClientScopes

ANNA = Caller("anna", Trust.LOCAL, session_id="c1")


def tool(hold: HoldRule = HoldRule.BY_EFFECT, effect: Effect = Effect.WRITE) -> Tool:
    return Tool("x.y", "x", "", "", "", {}, {}, effect=effect, hold=hold)


async def through(stage: Any, arguments: dict[str, Any], caller: Caller = ANNA, about: Tool | None = None) -> Call:
    passed: list[Call] = []

    async def proceed(call: Call) -> Outcome:
        passed.append(call)
        return Outcome({}, "")

    which = about or tool()
    await stage(Call("c1", which.id, arguments, caller, tool=which, effect=which.effect), proceed)
    return passed[0]


async def test_a_named_project_goes_before_the_opened_one() -> None:
    scopes = ClientScopes()
    scopes.bind_project(ANNA, "opened")
    assert (await through(Scope(scopes), {})).project_id == "opened"
    named = await through(Scope(scopes), {"project_id": "named"})
    assert (named.project_id, named.notes["project_id"]) == ("named", "named")
    assert (await through(Scope(scopes), {"project_id": 7})).project_id == "opened", "bad arguments are judged later"


async def test_a_run_comes_from_the_binding_alone() -> None:
    scopes = ClientScopes()
    assert (await through(Scope(scopes), {"run_id": "forged"})).run_id == ""
    scopes.bind_run(ANNA, "r1", "p1")
    assert (await through(Scope(scopes), {"run_id": "forged"})).run_id == "r1"


@pytest.mark.parametrize("name", APPROVER_NAMES)
async def test_only_decisions_of_a_person_refuse_a_named_approver(name: str) -> None:
    with pytest.raises(ToolError) as refusal:
        await through(Authorise(), {name: "boss"}, about=tool(HoldRule.ALWAYS))
    assert refusal.value.kind == "approver_not_caller_supplied"
    assert (await through(Authorise(), {name: "boss"})).arguments == {name: "boss"}

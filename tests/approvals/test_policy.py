"""What waits for a person: the decision order, effect by effect and caller by caller."""

import itertools

import pytest

from metaforge.approvals.policy import Policy
from metaforge.settings import BadSetting, Settings
from metaforge.tools.context import Trust
from metaforge.tools.effect import Effect, HoldRule
from metaforge.tools.manifest import Tool

READ, PRODUCE, WRITE, DESTROY = Effect.READ, Effect.PRODUCE, Effect.WRITE, Effect.DESTROY
REMOTE = (Trust.REMOTE, Trust.UNTRUSTED)


def tool(effect: Effect, hold: HoldRule = HoldRule.BY_EFFECT) -> Tool:
    return Tool("x.y", "x", "", "", "", {}, {}, effect=effect, hold=hold)


def held(policy: Policy, hold: HoldRule = HoldRule.BY_EFFECT) -> set[tuple[Effect, Trust]]:
    return {
        (effect, trust)
        for effect, trust in itertools.product(Effect, Trust)
        if policy.holds(tool(effect, hold), effect, trust)
    }


def of(**variables: str) -> Policy:
    return Policy.of(Settings.load({f"METAFORGE_{name.upper()}": value for name, value in variables.items()}))


def test_by_default_writes_of_remote_callers_wait() -> None:
    assert held(of()) == set(itertools.product((WRITE, DESTROY), REMOTE))


def test_new_files_wait_too_where_the_setting_adds_them() -> None:
    assert held(of(approval_hold="produce,write,destroy")) == set(itertools.product((PRODUCE, WRITE, DESTROY), REMOTE))


def test_local_writes_wait_where_they_are_not_exempt_and_those_of_an_admitted_run_never() -> None:
    assert held(of(exempt_local_writes="false")) == set(itertools.product((WRITE, DESTROY), (*REMOTE, Trust.LOCAL)))


def test_bookkeeping_never_waits() -> None:
    assert held(of(exempt_local_writes="false"), HoldRule.NEVER) == set()


def test_a_persons_decision_always_waits() -> None:
    assert held(of(), HoldRule.ALWAYS) == set(itertools.product(Effect, Trust))


def test_overwriting_makes_a_new_file_a_replacement() -> None:
    assert not Policy().holds(tool(PRODUCE), PRODUCE, Trust.UNTRUSTED)
    assert Policy().holds(tool(PRODUCE), DESTROY, Trust.UNTRUSTED)


@pytest.mark.parametrize(
    ("name", "value"),
    [("APPROVAL_HOLD", "write,delete"), ("EXEMPT_LOCAL_WRITES", "maybe"), ("APPROVAL_ROUTE", "dashbord")],
)
def test_what_would_hold_less_than_was_meant_stops_the_server(name: str, value: str) -> None:
    with pytest.raises(BadSetting, match=f"METAFORGE_{name}='{value}' is refused"):
        Settings.load({f"METAFORGE_{name}": value})


@pytest.mark.parametrize(
    ("effect", "hold", "reason"),
    [
        (WRITE, HoldRule.BY_EFFECT, "it would add to the design record"),
        (DESTROY, HoldRule.BY_EFFECT, "it would replace or remove existing content"),
        (PRODUCE, HoldRule.BY_EFFECT, "it would add files to the workspace"),
        (DESTROY, HoldRule.ALWAYS, "it is a decision that only a person may take"),
    ],
)
def test_a_person_is_told_why(effect: Effect, hold: HoldRule, reason: str) -> None:
    assert Policy().reason(tool(effect, hold), effect) == reason

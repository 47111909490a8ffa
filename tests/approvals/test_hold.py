"""The hold of a call, driven by hand: no clock, no ledger, no client."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaforge.approvals.hold import (
    Answered,
    Ask,
    AskFailed,
    Close,
    Decide,
    Gone,
    Hold,
    Learned,
    Phase,
    Report,
    ShowOnDashboard,
    Ticked,
    Withdraw,
)
from metaforge.approvals.model import State


def begun(*, inline=True, dashboard=False, window=100.0, rescue=20.0, report=None, now=0.0, began_at=None):
    return Hold.begin(
        now, window_seconds=window, inline=inline, dashboard=dashboard, rescue_seconds=rescue, report_seconds=report,
        began_at=began_at,
    )  # fmt: skip


def after(hold, *steps):
    """Return the hold and the effects of the last of several (event, now)."""
    effects = []
    for event, now in steps:
        hold, effects = hold.handle(event, now)
    return hold, effects


def test_a_client_that_can_be_asked_is_asked_and_the_dashboard_is_not() -> None:
    hold, effects = begun()
    assert (hold.phase, effects) == (Phase.INLINE, [Ask()])


def test_a_client_that_cannot_be_asked_leaves_the_dashboard() -> None:
    hold, effects = begun(inline=False)
    assert (hold.phase, effects, hold.next_wake) == (Phase.DASHBOARD, [], 100.0)


def test_progress_starts_at_once_and_rises_to_the_end() -> None:
    hold, effects = begun(inline=False, window=25.0, report=10.0)
    assert effects == [Report(0.0, 25.0)]
    told = []
    while hold.phase is Phase.DASHBOARD:
        now = hold.next_wake
        hold, effects = hold.handle(Ticked(), now)
        told += [effect for effect in effects if isinstance(effect, Report)]
    assert told == [Report(10.0, 25.0), Report(20.0, 25.0)]
    assert effects == [Close(State.TIMED_OUT, "approval window ended")]


@pytest.mark.parametrize(
    ("answer", "effect"),
    [
        (Answered("accept", True, "fine"), Decide("approve", "fine")),
        (Answered("accept", False, "no"), Decide("reject", "no")),
        (Answered("accept", None), Decide("reject", "")),
        (Answered("decline", note="never"), Decide("reject", "never")),
        (Answered("cancel"), Close(State.TIMED_OUT, "the question was dismissed in the client")),
        (Answered("shrug"), Close(State.TIMED_OUT, "the question was dismissed in the client")),
    ],
)
@pytest.mark.parametrize("dashboard", [False, True])
def test_what_an_answer_means(answer, effect, dashboard) -> None:
    hold, effects = after(begun(dashboard=dashboard)[0], (answer, 5.0))
    assert (hold.phase, effects, hold.next_wake) == (Phase.SETTLING, [effect], inf)


@pytest.mark.parametrize(("event", "now"), [(Answered("cancel"), 0.29), (AskFailed(), 7.0)])
def test_a_question_nobody_can_have_seen_opens_on_the_dashboard(event, now) -> None:
    hold, effects = after(begun()[0], (event, now))
    assert (hold.phase, effects, hold.is_asked) == (Phase.DASHBOARD, [ShowOnDashboard()], False)
    assert hold.next_wake == 100.0


def test_a_question_on_both_that_fails_stays_on_the_dashboard() -> None:
    hold, effects = after(begun(dashboard=True)[0], (AskFailed(), 1.0))
    assert (hold.phase, effects) == (Phase.DASHBOARD, [])


def test_an_unanswered_question_opens_on_the_dashboard_too_once() -> None:
    hold, effects = begun()
    assert hold.next_wake == 20.0
    hold, effects = hold.handle(Ticked(), 20.0)
    assert (hold.phase, effects, hold.is_asked) == (Phase.BOTH, [ShowOnDashboard()], True)
    hold, effects = hold.handle(Ticked(), 21.0)
    assert effects == []
    assert hold.next_wake == 100.0


def test_the_first_answer_wins_and_the_question_is_withdrawn() -> None:
    hold, effects = after(begun()[0], (Ticked(), 20.0), (Learned(State.APPROVED), 30.0))
    assert (hold.phase, effects) == (Phase.ENDED, [Withdraw("answered elsewhere")])
    assert hold.handle(Answered("accept", True), 31.0) == (hold, [])


def test_a_question_that_was_answered_is_not_withdrawn() -> None:
    hold, effects = after(begun()[0], (Answered("accept", True), 3.0), (Learned(State.APPROVED), 3.1))
    assert (hold.phase, effects) == (Phase.ENDED, [])


def test_the_window_ends_with_the_question_down_before_the_entry_ends() -> None:
    hold, effects = after(begun(rescue=inf)[0], (Ticked(), 100.0))
    assert effects == [Withdraw("approval window ended"), Close(State.TIMED_OUT, "approval window ended")]
    assert hold.handle(Answered("accept", True), 100.0) == (hold, [])


def test_a_decision_that_came_at_the_instant_of_the_end_counts() -> None:
    hold, effects = after(begun(inline=False)[0], (Ticked(), 100.0), (Learned(State.APPROVED), 100.0))
    assert (hold.phase, effects) == (Phase.ENDED, [])


def test_an_answer_that_the_ledger_finds_too_late_ends_the_entry() -> None:
    hold, effects = after(begun()[0], (Answered("accept", True), 99.9), (Learned(State.AWAITING), 100.0))
    assert effects == [Close(State.TIMED_OUT, "approval window ended")]
    assert hold.phase is Phase.SETTLING


def test_a_wake_that_tells_nothing_new_changes_nothing() -> None:
    hold, _ = begun()
    assert hold.handle(Learned(State.AWAITING), 3.0) == (hold, [])


@pytest.mark.parametrize("phase", ["inline", "both", "dashboard"])
def test_a_client_that_goes_takes_its_entry_along(phase) -> None:
    hold, _ = begun(inline=phase != "dashboard", dashboard=phase == "both")
    hold, effects = hold.handle(Gone("the client left"), 4.0)
    closing = Close(State.CANCELED, "the client left")
    assert effects == ([closing] if phase == "dashboard" else [Withdraw("the client left"), closing])


def test_a_call_that_comes_back_is_not_asked_again_and_keeps_its_window() -> None:
    hold, effects = begun(now=50.0, began_at=0.0, report=10.0)
    assert effects == [Report(50.0, 100.0)]
    assert (hold.ends_at, hold.rescue_at) == (100.0, 20.0)


EVENTS = st.one_of(
    st.builds(Answered, st.sampled_from(["accept", "decline", "cancel", "?"]), st.sampled_from([True, False, None])),
    st.just(AskFailed()),
    st.just(Ticked()),
    st.builds(Learned, st.sampled_from(list(State))),
    st.just(Gone("left")),
)


@given(st.booleans(), st.booleans(), st.lists(st.tuples(EVENTS, st.floats(0, 30)), max_size=30))
def test_whatever_happens_only_a_yes_is_sent_as_one_and_nothing_follows_the_end(inline, dashboard, steps) -> None:
    hold, _ = begun(inline=inline, dashboard=dashboard, report=10.0)
    now, answered = 0.0, False
    for event, later in steps:
        now += later
        before = hold
        hold, effects = hold.handle(event, now)
        if before.has_ended:
            assert (hold, effects) == (before, [])
        for effect in effects:
            if isinstance(effect, Decide) and effect.verdict == "approve":
                assert isinstance(event, Answered)
                assert (event.action, event.approve) == ("accept", True)
                assert not answered, "an answer is sent once"
                answered = True
            if isinstance(effect, Withdraw):
                assert before.is_asked
        assert not (hold.has_ended and hold.is_asked)
        if hold.has_ended:
            assert isinstance(event, Learned) or before.has_ended

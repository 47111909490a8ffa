"""What a client has opened is its own, and its work session rolls over after half an hour of silence."""

from metaforge.tools.context import Caller
from metaforge.twin.scopes import IDLE_SECONDS, MAX_CLIENTS_COUNT, ClientScopes

ANNA, BEN, NOBODY = Caller("anna", session_id="c1"), Caller("ben", session_id="c2"), Caller("x", client_name="curl")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_project_is_bound_to_one_connection() -> None:
    scopes = ClientScopes()
    assert scopes.bind_project(ANNA, "p1")
    assert (scopes.project_of(ANNA), scopes.project_of(BEN)) == ("p1", "")
    scopes.forget_project("p1")
    assert scopes.project_of(ANNA) == ""


def test_a_caller_without_a_connection_cannot_be_bound() -> None:
    scopes = ClientScopes()
    assert not scopes.bind_project(NOBODY, "p1")
    assert not scopes.bind_run(NOBODY, "r1", "p1")
    assert (scopes.project_of(NOBODY), scopes.run_of(NOBODY)) == ("", "")


def test_a_run_brings_its_project() -> None:
    scopes = ClientScopes()
    assert scopes.bind_run(ANNA, "r1", "p1")
    assert (scopes.run_of(ANNA), scopes.project_of(ANNA)) == ("r1", "p1")
    scopes.bind_run(ANNA, "", "")
    assert (scopes.run_of(ANNA), scopes.project_of(ANNA)) == ("", "p1")


def test_calls_of_one_client_share_a_session_until_it_falls_silent() -> None:
    clock = Clock()
    scopes = ClientScopes(clock)
    first = scopes.session_for(ANNA, scopes.current_session(ANNA))
    clock.now = IDLE_SECONDS
    assert scopes.session_for(ANNA, scopes.current_session(ANNA)) == first
    assert scopes.session_for(BEN, None) != first
    clock.now = 2 * IDLE_SECONDS + 1
    assert scopes.current_session(ANNA) is None
    assert scopes.session_for(ANNA, None).session_id != first.session_id


def test_a_started_session_takes_over_and_does_not_roll() -> None:
    clock = Clock()
    scopes = ClientScopes(clock)
    before = scopes.session_for(ANNA, None)
    scopes.open_session(ANNA, "s-own")
    assert scopes.session_for(ANNA, before).session_id == "s-own", "the call that started it is its first event"
    clock.now = 10 * IDLE_SECONDS
    during = scopes.current_session(ANNA)
    assert during is not None
    assert during.session_id == "s-own"
    scopes.end_session("s-own")
    assert scopes.session_for(ANNA, during).session_id == "s-own", "the call that ended it is its last event"
    assert scopes.session_for(ANNA, scopes.current_session(ANNA)).implicit


def test_the_longest_unused_client_is_forgotten_first() -> None:
    scopes = ClientScopes()
    scopes.bind_project(ANNA, "p1")
    for number in range(MAX_CLIENTS_COUNT):
        scopes.bind_project(Caller("x", session_id=f"s{number}"), "p2")
        if number == 5:
            scopes.bind_project(ANNA, "p1")
    assert scopes.project_of(ANNA) == "p1"
    assert scopes.project_of(Caller("x", session_id="s0")) == ""

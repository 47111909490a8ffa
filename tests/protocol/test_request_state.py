"""`requestState`: once, for the same call, for a while."""

import base64

import pytest

from metaforge.protocol.request_state import BadRequestState, RequestStates, bind

CALL = bind("tools/call", "tiny.ask", {"a": 1}, "local")


@pytest.fixture
def states():
    return RequestStates(b"k" * 32, ttl_seconds=10)


def test_a_state_brings_its_payload_back_once(states):
    state = states.issue(CALL, {"key": "q", "answers": {"p": 1}}, now=0)

    assert states.redeem(state, CALL, now=5) == {"key": "q", "answers": {"p": 1}}
    with pytest.raises(BadRequestState):
        states.redeem(state, CALL, now=5)


@pytest.mark.parametrize(
    "other",
    [
        bind("tools/call", "tiny.ask", {"a": 2}, "local"),
        bind("tools/call", "tiny.other", {"a": 1}, "local"),
        bind("tools/call", "tiny.ask", {"a": 1}, "somebody"),
        bind("resources/read", "tiny.ask", {"a": 1}, "local"),
    ],
)
def test_a_state_is_bound_to_its_call_and_a_wrong_use_does_not_spend_it(states, other):
    state = states.issue(CALL, {}, now=0)

    with pytest.raises(BadRequestState):
        states.redeem(state, other, now=1)
    assert states.redeem(state, CALL, now=1) == {}


def test_the_order_of_arguments_does_not_matter():
    assert bind("m", "t", {"a": 1, "b": 2}, "x") == bind("m", "t", {"b": 2, "a": 1}, "x")


def test_an_old_state_is_refused(states):
    state = states.issue(CALL, {}, now=0)
    with pytest.raises(BadRequestState):
        states.redeem(state, CALL, now=10)


def test_a_state_of_another_process_is_refused(states):
    state = RequestStates(b"other" * 8).issue(CALL, {}, now=0)
    with pytest.raises(BadRequestState):
        states.redeem(state, CALL, now=0)


def test_no_byte_of_a_state_can_be_changed(states):
    raw = base64.urlsafe_b64decode(states.issue(CALL, {"key": "q"}, now=0))
    for position in range(len(raw)):
        forged = raw[:position] + bytes([raw[position] ^ 1]) + raw[position + 1 :]
        with pytest.raises(BadRequestState):
            states.redeem(base64.urlsafe_b64encode(forged).decode(), CALL, now=0)


@pytest.mark.parametrize("junk", [None, 5, "", "é", "====", "abc", "AAAA", {}, "A" * 1000])
def test_junk_is_refused_with_the_same_words(states, junk):
    with pytest.raises(BadRequestState, match="send the call again without it"):
        states.redeem(junk, CALL, now=0)


def test_states_that_nobody_brings_back_do_not_pile_up(states):
    for _ in range(5000):
        states.issue(CALL, {}, now=0)
    assert len(states._outstanding) <= 4096
    states.issue(CALL, {}, now=11)
    assert len(states._outstanding) == 1


def test_any_process_with_the_key_takes_back_a_shared_state_until_its_time(states):
    state = states.issue_shared(CALL, {"carried": {"approval": "run_1"}}, until=100.0)
    other = RequestStates(b"k" * 32)

    first, again = other.redeem(state, CALL, 0, time_of_day=99.0), states.redeem(state, CALL, 0, time_of_day=99.0)
    assert first["carried"] == {"approval": "run_1"}
    assert first["nonce"] == again["nonce"], "who acts on it tells by the nonce that it was used"
    with pytest.raises(BadRequestState):
        other.redeem(state, CALL, 0, time_of_day=100.0)
    with pytest.raises(BadRequestState):
        other.redeem(state, bind("tools/call", "tiny.ask", {"a": 2}, "local"), 0, time_of_day=99.0)
    with pytest.raises(BadRequestState):
        RequestStates(b"other" * 8).redeem(state, CALL, 0, time_of_day=99.0)

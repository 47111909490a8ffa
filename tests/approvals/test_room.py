"""Nobody fills the server with questions, and everything that was taken is given back."""

import pytest

from metaforge.approvals import room
from metaforge.approvals.room import Room
from metaforge.core.errors import ToolError
from metaforge.tools.context import Caller, Trust

ANN = Caller("ann", Trust.REMOTE, "claude-code", "2", "session-1")
BOB = Caller("bob", Trust.REMOTE, "codex", "1", "session-2")


def test_one_client_takes_half_of_the_room_and_leaves_the_rest_to_others() -> None:
    place = Room()
    taken = [place.take(ANN, {"name": "x"}) for _ in range(500)]
    with pytest.raises(ToolError, match=r"500 of this client's calls .* wait for approval already") as refused:
        place.take(ANN, {"name": "x"})
    assert (refused.value.kind, refused.value.retryable) == ("too_many_waiting", True)
    others = [place.take(BOB, {"name": "x"}) for _ in range(500)]
    with pytest.raises(ToolError, match="1000 of all clients' calls"):
        place.take(Caller("eve"), {"name": "x"})
    for each in (*taken, *others):
        each.leave()
        each.leave()
    assert place.take(ANN, {"name": "x"})


def test_large_arguments_take_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MAX_BYTES", 10_000)
    place = Room()
    first = place.take(ANN, {"content": "x" * 9000})
    with pytest.raises(ToolError, match="this client's"):
        place.take(ANN, {"content": "x" * 900})
    with pytest.raises(ToolError, match="all clients'"):
        place.take(BOB, {"content": "x" * 2000})
    first.leave()
    assert place.take(ANN, {"content": "x" * 20_000}), "whoever holds nothing may hold one call of any size"


def test_nothing_is_kept_of_clients_that_hold_nothing() -> None:
    place = Room()
    for number in range(100):
        place.take(Caller(f"user:{number}"), {}).leave()
    assert not place._counts
    assert not place._bytes


def test_arguments_nested_beyond_what_can_be_written_take_a_place_too() -> None:
    nested: dict[str, object] = {}
    for _ in range(400):
        nested = {"in": nested}
    Room().take(ANN, nested).leave()

"""How much may wait for people at once, so that nobody fills the server with questions. No I/O."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import orjson

from metaforge.core.errors import FailureMode, ToolError
from metaforge.tools.context import Caller

MAX_COUNT = 1000
MAX_BYTES = 128 << 20
"""Arguments of all calls that wait, as JSON; in memory they take about twice that."""
OWN_SHARE = 0.5
"""How much of either one client may take."""

_Key = tuple[str, str, str]


class Place:
    """What one call takes; given back once, whoever does it and how often."""

    def __init__(self, room: "Room", key: _Key, size_bytes: int) -> None:
        self._room = room
        self._key = key
        self._size_bytes = size_bytes
        self.is_kept = False
        """Whether somebody else gives it back, later than the call that took it."""

    def leave(self, *_: Any) -> None:
        """Give it back."""
        if self._size_bytes >= 0:
            self._room.give_back(self._key, self._size_bytes)
            self._size_bytes = -1


class Room:
    """The calls that wait in this process."""

    def __init__(self) -> None:
        self._counts: Counter[_Key] = Counter()
        self._bytes: Counter[_Key] = Counter()

    def take(self, caller: Caller, arguments: Mapping[str, Any], *, is_back: bool = False) -> Place:
        """Take room for a call that is going to wait.

        Args:
            caller: whose call.
            arguments: its arguments.
            is_back: whether it waited before and brings its answer, so that it must be let in.

        Raises:
            ToolError: `too_many_waiting`; nothing was asked or written down.
        """
        key = (caller.actor_id, caller.session_id, caller.client_name)
        size_bytes = _size_bytes(arguments)
        for whose, counts, sizes, share in (
            ("this client's", self._counts[key], self._bytes[key], OWN_SHARE),
            ("all clients'", self._counts.total(), self._bytes.total(), 1.0),
        ):
            if is_back:
                break
            if counts + 1 > MAX_COUNT * share or (counts and sizes + size_bytes > MAX_BYTES * share):
                self._forget(key)
                raise ToolError(
                    f"The call was not run: {counts} of {whose} calls with {sizes >> 20} MB of arguments wait for "
                    f"approval already, and no more than {MAX_COUNT * share:.0f} or {int(MAX_BYTES * share) >> 20} MB "
                    "may",
                    kind="too_many_waiting", retryable=True, failure_mode=FailureMode.LIMIT,
                    fix="Wait until a person has decided some of them, or cancel some",
                )  # fmt: skip
        self._counts[key] += 1
        self._bytes[key] += size_bytes
        return Place(self, key, size_bytes)

    def give_back(self, key: _Key, size_bytes: int) -> None:
        """Give back what a call took; see `Place.leave`."""
        self._counts[key] -= 1
        self._bytes[key] -= size_bytes
        self._forget(key)

    def _forget(self, key: _Key) -> None:
        """Keep nothing of clients that hold nothing."""
        if not self._counts[key]:
            del self._counts[key], self._bytes[key]


def _size_bytes(arguments: Mapping[str, Any]) -> int:
    try:
        return len(orjson.dumps(arguments))
    except orjson.JSONEncodeError:  # nested so deeply that it is refused by and by
        return 0

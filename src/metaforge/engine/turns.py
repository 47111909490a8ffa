"""Who waits for a worker: callers take turns, each one's calls keep their order, and no line grows for ever."""

import asyncio
from collections import deque
from typing import Generic, TypeVar

from metaforge.core.errors import Busy
from metaforge.tools.context import Caller

T = TypeVar("T")

_LONGEST_SECONDS = 600


def turn_of(caller: Caller) -> str:
    """Return whose turn a call takes: its person's where that one is known, else its session's."""
    return caller.actor_id if caller.verified or not caller.session_id else caller.session_id


class Turns(Generic[T]):
    """Futures of waiting calls, handed out one caller after another.

    Args:
        adapter_id: whose calls they are, for the refusal.
        longest: how many calls may wait at once.
        longest_of_one: how many of them may be one caller's.
    """

    def __init__(self, adapter_id: str, *, longest: int = 512, longest_of_one: int = 128) -> None:
        self._adapter_id = adapter_id
        self._longest = longest
        self._longest_of_one = longest_of_one
        self._lines: dict[str, deque[asyncio.Future[T]]] = {}
        """The callers in the order of their next turns; a caller with nothing waiting is not among them."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, future: "asyncio.Future[T]", caller: str, retry_after_seconds: float) -> None:
        """Let a call wait.

        Raises:
            Busy: too many wait already; `retry_after_seconds` is told.
        """
        line = self._lines.get(caller)
        mine = len(line) if line else 0
        if self._count >= self._longest or mine >= self._longest_of_one:
            raise self._refusal(mine, retry_after_seconds)
        if line is None:
            self._lines[caller] = line = deque()
        line.append(future)
        self._count += 1

    def _refusal(self, mine: int, seconds: float) -> Busy:
        seconds = min(max(1, round(seconds)), _LONGEST_SECONDS)
        whose = f"{mine} of your calls" if mine >= self._longest_of_one else f"{self._count} calls"
        return Busy(
            f"{self._adapter_id} is busy: {whose} wait for it already. Nothing was begun; "
            f"call again in {seconds} s, with fewer calls at once",
            reason="busy", retry_after_seconds=seconds, waiting_count=self._count, install="",
        )  # fmt: skip

    def next(self) -> "asyncio.Future[T] | None":
        """Take the next call that still waits; its caller goes to the end."""
        while self._lines:
            caller, line = next(iter(self._lines.items()))
            del self._lines[caller]
            while line:
                future = line.popleft()
                self._count -= 1
                if not future.done():
                    if line:
                        self._lines[caller] = line
                    return future
        return None

    def forget_done(self) -> None:
        """Drop the calls that gave up at the head of their caller's line."""
        for caller in list(self._lines):
            line = self._lines[caller]
            while line and line[0].done():
                line.popleft()
                self._count -= 1
            if not line:
                del self._lines[caller]

    def remove(self, future: "asyncio.Future[T]") -> None:
        """Drop one call, where it is still in line."""
        for caller, line in self._lines.items():
            if future in line:
                line.remove(future)
                self._count -= 1
                if not line:
                    del self._lines[caller]
                return

    def awaited_count(self) -> int:
        """Return how many of them somebody still waits for."""
        return sum(not future.done() for line in self._lines.values() for future in line)

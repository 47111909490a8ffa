"""Stop starting what cannot start: open after failures in a row, one probe after a pause, closed by a success."""

import time
from collections.abc import Callable


class Breaker:
    """Counts failed starts in a row.

    Args:
        threshold: how many open it.
        pause_seconds: how long it stays open before one start is tried.
    """

    def __init__(
        self, *, threshold: int = 3, pause_seconds: float = 30.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._threshold = threshold
        self._pause_seconds = pause_seconds
        self._clock = clock
        self._opened_at: float | None = None
        self._probing = False
        self.failures = 0
        self.reason = ""

    @property
    def state(self) -> str:
        """`closed`, `open`, or `half-open` when one start may be tried."""
        if self._opened_at is None:
            return "closed"
        paused = self._clock() - self._opened_at < self._pause_seconds
        return "open" if paused or self._probing else "half-open"

    @property
    def seconds_left(self) -> float:
        """How long until one start may be tried."""
        if self._opened_at is None:
            return 0.0
        return max(0.0, self._pause_seconds - (self._clock() - self._opened_at))

    def admit(self) -> bool:
        """Return whether a start may be tried now; when half-open, only the first who asks may."""
        state = self.state
        if state == "half-open":
            self._probing = True
        return state != "open"

    def succeed(self) -> None:
        self.failures, self._opened_at, self._probing, self.reason = 0, None, False, ""

    def fail(self, reason: str) -> None:
        self.failures += 1
        self.reason = reason
        self._probing = False
        if self.failures >= self._threshold:
            self._opened_at = self._clock()

    def release(self) -> None:
        """Give an admitted start back that was given up before it could tell anything."""
        self._probing = False

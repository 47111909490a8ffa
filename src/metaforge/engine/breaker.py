"""Stop trying what keeps failing: open after failures in a row, one probe after a pause, closed by a success.

Each probe that fails doubles the pause, so that something broken for hours is not started twice a minute.
"""

import time
from collections.abc import Callable


class Breaker:
    """Counts failures in a row.

    Args:
        threshold: how many open it.
        pause_seconds: how long it first stays open before one try is admitted.
        longest_pause_seconds: what the pause grows to, doubling with every probe that fails.
    """

    def __init__(
        self,
        *,
        threshold: int = 3,
        pause_seconds: float = 30.0,
        longest_pause_seconds: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._threshold = threshold
        self._first_pause_seconds = self._pause_seconds = pause_seconds
        self._longest_pause_seconds = max(pause_seconds, longest_pause_seconds)
        self._clock = clock
        self._opened_at: float | None = None
        self._probing = False
        self.failures = 0
        self.reason = ""

    @property
    def state(self) -> str:
        """`closed`, `open`, or `half-open` when one try may be made."""
        if self._opened_at is None:
            return "closed"
        paused = self._clock() - self._opened_at < self._pause_seconds
        return "open" if paused or self._probing else "half-open"

    @property
    def is_closed(self) -> bool:
        return self._opened_at is None

    @property
    def seconds_left(self) -> float:
        """How long until one try may be made."""
        if self._opened_at is None:
            return 0.0
        return max(0.0, self._pause_seconds - (self._clock() - self._opened_at))

    def admit(self) -> bool:
        """Return whether a try may be made now; when half-open, only the first who asks may."""
        state = self.state
        if state == "half-open":
            self._probing = True
        return state != "open"

    def succeed(self) -> None:
        self.failures, self._opened_at, self._probing, self.reason = 0, None, False, ""
        self._pause_seconds = self._first_pause_seconds

    def fail(self, reason: str) -> None:
        self.failures += 1
        self.reason = reason
        self._probing = False
        if self.failures >= self._threshold:
            if self._opened_at is not None:
                self._pause_seconds = min(2 * self._pause_seconds, self._longest_pause_seconds)
            self._opened_at = self._clock()

    def release(self) -> None:
        """Give an admitted try back that was given up before it could tell anything."""
        self._probing = False

    def told(self) -> dict[str, object]:
        """Return what health says of it."""
        told: dict[str, object] = {
            "state": self.state, "failures_in_a_row_count": self.failures, "reason": self.reason,
        }  # fmt: skip
        if not self.is_closed:
            told["retry_after_seconds"] = round(self.seconds_left, 1)
        return told

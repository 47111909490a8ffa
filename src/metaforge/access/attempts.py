"""Failed credentials, counted by address, so that nobody can guess a key at leisure."""

import hashlib
from collections import OrderedDict

LIMIT_COUNT = 10
WINDOW_SECONDS = 60.0
MAX_ADDRESSES_COUNT = 4096


class Attempts:
    """Counts the different wrong secrets an address showed of late.

    The same wrong secret again is a client that was set up wrongly, not a guess, and counts once: it locks out nobody
    who shares its address.

    Args:
        limit_count: wrong secrets within the window before the address has to wait.
        window_seconds: how long each of them counts.
    """

    def __init__(self, limit_count: int = LIMIT_COUNT, window_seconds: float = WINDOW_SECONDS) -> None:
        self._limit_count = limit_count
        self._window_seconds = window_seconds
        self._wrong: OrderedDict[str, dict[bytes, float]] = OrderedDict()
        self._latest_at = float("-inf")

    def __len__(self) -> int:
        return len(self._wrong)

    def note(self, address: str, secret: str, now: float) -> None:
        """Count a wrong secret.

        Args:
            now: seconds on a monotonic clock.
        """
        self._latest_at = now
        wrong = self._wrong.setdefault(address, {})
        self._wrong.move_to_end(address)
        digest = hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()
        wrong.pop(digest, None)
        wrong[digest] = now
        if len(wrong) > self._limit_count:
            del wrong[next(iter(wrong))]
        if len(self._wrong) > MAX_ADDRESSES_COUNT:
            self._wrong.popitem(last=False)

    def wait_seconds(self, address: str, now: float) -> float:
        """Return how long the address must wait before it is listened to again; 0 when it need not."""
        if now - self._latest_at >= self._window_seconds:
            self._wrong.clear()
        wrong = self._wrong.get(address)
        if wrong is None:
            return 0.0
        while wrong:  # in the order of their times
            oldest = next(iter(wrong.values()))
            if now - oldest < self._window_seconds:
                break
            del wrong[next(iter(wrong))]
        if not wrong:
            del self._wrong[address]
            return 0.0
        return self._window_seconds - (now - oldest) if len(wrong) >= self._limit_count else 0.0

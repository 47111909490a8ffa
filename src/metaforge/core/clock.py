"""The two clocks: one for people, one for measuring."""

import time
from datetime import UTC, datetime


def utc_now() -> str:
    """Return the time now as ISO 8601 with milliseconds in UTC, for records."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def elapsed_ms(since: float) -> float:
    """Return milliseconds since a `time.perf_counter()` reading, to a microsecond."""
    return round((time.perf_counter() - since) * 1000, 3)

"""The two clocks: one for people, one for measuring."""

import time
from datetime import UTC, datetime

_stamp = (-1, "")
"""A second and how it is written: one tuple, so that threads see both or neither."""


def utc_now() -> str:
    """Return the time now as ISO 8601 with milliseconds in UTC, for records."""
    global _stamp
    second, millisecond = divmod(time.time_ns() // 1_000_000, 1000)
    stamped, prefix = _stamp
    if second != stamped:
        prefix = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S.")
        _stamp = (second, prefix)
    return f"{prefix}{millisecond:03d}Z"


def elapsed_ms(since: float) -> float:
    """Return milliseconds since a `time.perf_counter()` reading, to a microsecond."""
    return round((time.perf_counter() - since) * 1000, 3)

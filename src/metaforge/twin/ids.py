"""Ids of nodes, items, links: a letter, the time, and chance.

They grow with time, so that an index is written at its end, and strictly within a process, so that order of ids is
order of writing. Their small letters keep them apart from item keys.
"""

import os
import threading
import time

_lock = threading.Lock()
_last_us = 0


def new_id(letter: str) -> str:
    """Return a letter and 20 hex digits: 13 of microseconds since 1970, 7 random."""
    global _last_us
    with _lock:
        _last_us = max(time.time_ns() // 1000, _last_us + 1)
        now_us = _last_us
    return f"{letter}{now_us:013x}{os.urandom(4).hex()[:7]}"

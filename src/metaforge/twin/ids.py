"""Ids of nodes, items, links: a letter, the time, and chance.

They grow with time, so that an index is written at its end. Their small letters keep them apart from item keys.
"""

import os
import time


def new_id(letter: str) -> str:
    """Return a letter and 20 hex digits: 12 of milliseconds since 1970, 8 random."""
    return f"{letter}{time.time_ns() // 1_000_000:012x}{os.urandom(4).hex()}"

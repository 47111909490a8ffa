"""Keep telling how far long work is while a call into a library blocks the thread."""

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[float, str], None]

HEARTBEAT_SECONDS = 5.0


def no_progress(fraction: float, message: str) -> None:
    """Report nothing."""


@contextmanager
def heartbeat(progress: Progress, start: float, end: float, message: str) -> Iterator[None]:
    """Report every few seconds with a share that nears `end` and never reaches it."""
    progress(start, message)
    done = threading.Event()
    began = time.monotonic()

    def beat() -> None:
        while not done.wait(HEARTBEAT_SECONDS):
            elapsed = time.monotonic() - began
            progress(end - (end - start) * math.exp(-elapsed / 60), f"{message}, {elapsed:.0f} s")

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()

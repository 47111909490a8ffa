"""What a box's processes are and use, as Linux tells it; psutil elsewhere."""

import os
import sys
from contextlib import suppress
from pathlib import Path

from metaforge.tools.guard import descendants

_MIB = 1 << 20


def tree(pid: int) -> list[int]:
    """Return `pid` and every process below it."""
    if sys.platform == "linux":
        return [pid, *descendants(pid)]
    import psutil

    try:
        return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    except psutil.NoSuchProcess:
        return [pid]


def rss_mb(pids: list[int]) -> float:
    """Return the resident memory of processes in MiB; shared pages count in each."""
    if sys.platform != "linux":
        import psutil

        total = 0
        for pid in pids:
            with suppress(psutil.NoSuchProcess):
                total += psutil.Process(pid).memory_info().rss
        return round(total / _MIB, 1)
    page = os.sysconf("SC_PAGE_SIZE")
    pages = 0
    for pid in pids:
        with suppress(OSError, ValueError, IndexError):
            pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return round(pages * page / _MIB, 1)


def uses_more_than(pids: list[int], limit_mb: float) -> bool:
    """Return whether processes together use more memory than a limit in MiB.

    Resident memory counts what forked processes share once for each, so only a sum above the limit is looked at
    closely: proportional memory counts it once, and takes a hundred times longer to read.
    """
    return rss_mb(pids) > limit_mb and _proportional_mb(pids) > limit_mb


def _proportional_mb(pids: list[int]) -> float:
    kilobytes = 0
    for pid in pids:
        try:
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    kilobytes += int(line.split()[1])
        except OSError:
            kilobytes += int(rss_mb([pid]) * 1024)
    return kilobytes / 1024


def free_memory_mb() -> float:
    """Return the memory in MiB that can be used without swapping."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    import psutil

    return float(psutil.virtual_memory().available / _MIB)


def is_alive(pid: int) -> bool:
    """Return whether a process of this id exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

"""What a process that works on others' texts or files does to itself first: no files, no network, bounded memory."""

import os
import resource
from contextlib import suppress

_MIB = 1 << 20


def confine(memory_mb: int) -> None:
    """Give up opening anything, for good, and bound this process's memory.

    A process that may have no descriptors can open no file, connect nowhere and start no program that it could talk
    to; the pipe it has stays open. Everything it needs must be imported by now.

    Args:
        memory_mb: how much more than now it may allocate, in MiB.
    """
    in_use = _address_bytes()
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_AS: in_use + memory_mb * _MIB,
        resource.RLIMIT_NOFILE: 0,
    }
    for which, value in wanted.items():
        with suppress(ValueError, OSError):
            resource.setrlimit(which, (value, value))


def _address_bytes() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as told:
            return int(told.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 512 * _MIB

"""Total memory and processes of a box by control group, where this process may make one."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path

from metaforge.engine.processes import is_alive

_ROOT = Path("/sys/fs/cgroup")
_MIB = 1 << 20
_NAME = re.compile(r"metaforge-(\d+)-\d+")
_serial = count()


@dataclass(frozen=True)
class Hierarchy:
    """Where groups can be made."""

    version: int
    memory: Path
    pids: Path

    @property
    def bases(self) -> tuple[Path, ...]:
        return (self.memory,) if self.version == 2 else (self.memory, self.pids)


class Group:
    """The control group of one box."""

    def __init__(self, hierarchy: Hierarchy) -> None:
        self._version = hierarchy.version
        name = f"metaforge-{os.getpid()}-{next(_serial)}"
        self._folders = [base / name for base in hierarchy.bases]
        for folder in self._folders:
            folder.mkdir()
        self._memory, self._pids = self._folders[0], self._folders[-1]

    @property
    def entrances(self) -> list[str]:
        """The files into which a process writes its id to enter."""
        return [str(folder / "cgroup.procs") for folder in self._folders]

    def limit(self, *, memory_mb: int, processes: int) -> None:
        """Set both limits.

        Raises:
            OSError: the kernel refuses them.
        """
        self.limit_memory(memory_mb)
        (self._pids / "pids.max").write_text(str(processes))

    def limit_memory(self, memory_mb: int) -> None:
        name = "memory.max" if self._version == 2 else "memory.limit_in_bytes"
        (self._memory / name).write_text(str(memory_mb * _MIB))
        if self._version == 2:
            with suppress(OSError):
                (self._memory / "memory.swap.max").write_text("0")
            with suppress(OSError):
                (self._memory / "memory.oom.group").write_text("1")

    def memory_kills(self) -> int:
        """Return how many processes were killed for passing the memory limit."""
        name = "memory.events" if self._version == 2 else "memory.oom_control"
        with suppress(OSError):
            for line in (self._memory / name).read_text().splitlines():
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
        return 0

    def remove(self) -> None:
        """Remove the group; its processes are gone."""
        for folder in self._folders:
            with suppress(OSError):
                folder.rmdir()


@cache
def hierarchy() -> Hierarchy | None:
    """Return where this process may make groups that limit memory and processes, or None. Tried, not guessed."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    for candidate in _candidates(lines):
        _sweep(candidate)
        if _works(candidate):
            return candidate
    return None


def _candidates(lines: list[str]) -> Iterator[Hierarchy]:
    mine = {name: path for _, names, path in (line.split(":", 2) for line in lines) for name in names.split(",")}
    if "memory" in mine and "pids" in mine:
        yield Hierarchy(1, _ROOT / "memory" / mine["memory"][1:], _ROOT / "pids" / mine["pids"][1:])
    elif "" in mine:
        # A group that holds processes cannot limit its children: look upward for one that already does.
        own = _ROOT / mine[""][1:]
        for folder in (own, *own.parents):
            if folder == _ROOT.parent:
                return
            with suppress(OSError):
                if {"memory", "pids"} <= set((folder / "cgroup.subtree_control").read_text().split()):
                    yield Hierarchy(2, folder, folder)


def _works(candidate: Hierarchy) -> bool:
    if not all(os.access(base / "cgroup.procs", os.W_OK) for base in candidate.bases):
        return False
    try:
        group = Group(candidate)
    except OSError:
        return False
    try:
        group.limit(memory_mb=64, processes=8)
    except OSError:
        return False
    finally:
        group.remove()
    return True


def _sweep(candidate: Hierarchy) -> None:
    """Remove the groups of servers that were killed."""
    for base in candidate.bases:
        with suppress(OSError):
            for folder in base.iterdir():
                found = _NAME.fullmatch(folder.name)
                if found and not is_alive(int(found[1])):
                    with suppress(OSError):
                        folder.rmdir()

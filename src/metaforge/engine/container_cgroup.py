"""The control group that an engine made for a container, where this process may set its limits for each call."""

import os
from contextlib import suppress
from pathlib import Path

from metaforge.engine.cgroups import Group, Hierarchy

_ROOT = Path("/sys/fs/cgroup")
_MIB = 1 << 20


class JoinedGroup(Group):
    """A group of another maker's, who removes it."""

    def __init__(self, version: int, memory: Path, pids: Path) -> None:
        self._version = version
        self._memory, self._pids = memory, pids
        self._folders = []

    def limit_memory(self, memory_mb: int) -> None:
        # The kernel is to kill the process that takes most, not all of them: the first one tells why.
        if self._version == 1:
            super().limit_memory(memory_mb)
        else:
            (self._memory / "memory.max").write_text(str(memory_mb * _MIB))


def joined(pid: int, memory_mb: int) -> JoinedGroup | None:
    """Return the group of a container's first process when it is its own and may be changed.

    Args:
        pid: the process.
        memory_mb: the limit that its group must have: another one is somebody else's group.
    """
    with suppress(OSError, ValueError):
        found = _hierarchy(Path(f"/proc/{pid}/cgroup").read_text())
        name = "memory.max" if found.version == 2 else "memory.limit_in_bytes"
        limit = found.memory / name
        if os.access(limit, os.W_OK) and int(limit.read_text()) == memory_mb * _MIB:
            return JoinedGroup(found.version, found.memory, found.pids)
    return None


def _hierarchy(text: str) -> Hierarchy:
    own = {
        name: path for _, names, path in (line.split(":", 2) for line in text.splitlines()) for name in names.split(",")
    }
    if "memory" in own:
        return Hierarchy(1, _ROOT / "memory" / own["memory"][1:], _ROOT / "pids" / own.get("pids", "/")[1:])
    return Hierarchy(2, _ROOT / own.get("", "/")[1:], _ROOT / own.get("", "/")[1:])

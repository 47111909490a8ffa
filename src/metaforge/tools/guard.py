"""What a worker does to itself before it loads an adapter: limits, and a guard where no sandbox holds its children."""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_MIB = 1 << 20
OUT_OF_MEMORY = 247
"""A guard's exit status when its worker was killed for memory: only a container's guard outlives it to tell."""
_KILL_COUNTS = (Path("/sys/fs/cgroup/memory.events"), Path("/sys/fs/cgroup/memory/memory.oom_control"))
"""Where a container's own control group, cgroup v2 and v1, counts what the kernel killed for memory."""
_GRACE_SECONDS = 5
"""A process that ignores the CPU-time signal is killed this much later."""


def apply_limits(limits: Mapping[str, int]) -> None:
    """Bound this process and its children.

    Args:
        limits: any of `address_mb`, `file_mb`, `processes`, `open_files`, `nice`. One that the system refuses is left.
    """
    import resource

    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    wanted = {
        resource.RLIMIT_AS: limits.get("address_mb", 0) * _MIB,
        resource.RLIMIT_FSIZE: limits.get("file_mb", 0) * _MIB,
        resource.RLIMIT_NPROC: limits.get("processes", 0),
        resource.RLIMIT_NOFILE: limits.get("open_files", 0),
    }
    for which, value in wanted.items():
        hard = resource.getrlimit(which)[1]
        if value and (hard == resource.RLIM_INFINITY or value <= hard):
            with suppress(ValueError, OSError):
                resource.setrlimit(which, (value, value))
    if limits.get("nice"):
        with suppress(OSError):
            os.nice(limits["nice"])


def limit_cpu(seconds: int, *, sealed: bool) -> None:
    """Let this process use `seconds` more of CPU time, a second more at the most; `sealed` forbids raising it again."""
    import resource

    used = time.process_time()
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if not sealed and seconds <= soft - used <= seconds + 1:
        return
    soft = int(used) + 1 + seconds
    if sealed:
        hard = soft + _GRACE_SECONDS
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def fork_under_guard(parent: int) -> None:
    """Return in a child process; stay behind in the caller to end everything the child leaves, and then exit.

    Where no PID namespace holds a worker's children, one that calls setsid and forks twice escapes its process
    group. The guard adopts such orphans (it is their subreaper), ends them all when the worker ends, when it is told
    to (SIGTERM) or when the server dies, and exits with the worker's status, 128 + n for signal n.

    Args:
        parent: the server's process id, to notice that it died before the guard could ask to be told.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    told = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, told)
    worker = os.fork()
    if worker == 0:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, told)
        return
    _guard(worker, told)


def _guard(worker: int, told: set[signal.Signals]) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    status: int | None = None
    while status is None and signal.sigwait(told) == signal.SIGCHLD:
        status = _reap(worker)
    while _end_descendants():
        signal.sigtimedwait({signal.SIGCHLD}, 0.005)
        found = _reap(worker)
        status = found if status is None else status
    if status is None:
        os._exit(128 + signal.SIGTERM)
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGKILL and os.getpid() == 1 and _memory_kills():
        os._exit(OUT_OF_MEMORY)
    os._exit(code if code >= 0 else 128 - code)


def _memory_kills() -> int:
    for path in _KILL_COUNTS:
        with suppress(OSError, ValueError):
            for line in path.read_text().splitlines():
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
    return 0


def _reap(worker: int) -> int | None:
    """Collect every child that ended; return the worker's status when it is among them."""
    status = None
    with suppress(ChildProcessError):
        while True:
            pid, found = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return status
            if pid == worker:
                status = found
    return status


def _end_descendants() -> bool:
    """Kill every descendant; return whether there was any."""
    # Stopped first: what cannot run cannot fork while the others are being killed.
    alive = list(descendants(os.getpid()))
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in alive:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
    return bool(alive)


def descendants(pid: int) -> Iterator[int]:
    """Yield the processes below `pid`, as Linux tells them."""
    pending = [pid]
    while pending:
        parent = pending.pop()
        try:
            threads = list(Path(f"/proc/{parent}/task").iterdir())
        except OSError:
            continue
        for thread in threads:
            with suppress(OSError):
                children = [int(child) for child in (thread / "children").read_text().split()]
                yield from children
                pending.extend(children)

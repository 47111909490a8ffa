"""Processes as the kernel sees them: CPU time and memory of whole trees, and what is left of them afterwards."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Return user and system time of a process, its living descendants, and the children they have reaped."""
    return sum(_own_cpu_seconds(each) for each in tree(pid))


def _own_cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    # utime, stime, cutime, cstime: fields 14 to 17 of proc(5), counted after the name.
    return sum(map(int, fields[11:15])) / _TICKS_PER_SECOND


def tree(pid: int) -> list[int]:
    """Return the pids of a process and its living descendants."""
    try:
        root = psutil.Process(pid)
        return [pid, *(child.pid for child in root.children(recursive=True))]
    except psutil.NoSuchProcess:
        return []


@dataclass(frozen=True)
class Memory:
    """Resident and proportional set of one process, in MB of 10^6 bytes."""

    rss_mb: float
    pss_mb: float


def memory(pid: int) -> Memory:
    """Return what one process occupies; shared pages count fully in `rss_mb` and by share in `pss_mb`."""
    kib = {"Rss": 0, "Pss": 0}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name in kib:
            kib[name] = int(rest.split()[0])
    return Memory(rss_mb=kib["Rss"] * 1024 / 1e6, pss_mb=kib["Pss"] * 1024 / 1e6)


@dataclass(frozen=True)
class Witness:
    """Remembers processes so that one can ask later which of them still live."""

    processes: tuple[psutil.Process, ...]

    @classmethod
    def of(cls, pid: int) -> "Witness":
        return cls(tuple(psutil.Process(each) for each in tree(pid)))

    def survivors(self) -> list[str]:
        """Return name and pid of each that still runs. A pid used again by another process does not count."""
        alive: list[str] = []
        for process in self.processes:
            try:
                if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                    alive.append(f"{process.name()}:{process.pid}")
            except psutil.NoSuchProcess:
                continue
        return alive


def free_port() -> int:
    """Return a TCP port on loopback that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for_port(port: int, process: subprocess.Popen[bytes], timeout_seconds: float = 30.0) -> None:
    """Return as soon as something accepts connections on the port.

    Raises:
        RuntimeError: the process ended first, or time ran out.
    """
    deadline = time.monotonic() + timeout_seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args!r} ended with {process.returncode} before it listened")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=0.2).close()
        except OSError:
            time.sleep(0.002)
        else:
            return
    raise RuntimeError(f"nothing listens on port {port} after {timeout_seconds} s")


def end(process: subprocess.Popen[bytes], timeout_seconds: float = 5.0) -> None:
    """End a process that was started here, politely first."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            stream.close()


@contextmanager
def on_cores_of_their_own(*pids: int) -> Iterator[None]:
    """Keep this process on one core and the others on another, where there are two."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if len(cores) < 2:
        yield
        return
    os.sched_setaffinity(0, cores[:1])
    for pid in pids:
        os.sched_setaffinity(pid, cores[1:2])
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)

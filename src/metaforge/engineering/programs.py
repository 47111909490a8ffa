"""Run an external program: its own process group, a deadline, bounded output, progress while it works.

The program dies with this process, whatever kills it. An exit code is reported and never believed: whoever calls
decides on what the program left behind.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from metaforge.core.errors import FailureMode, ToolError, ToolTimedOut
from metaforge.settings import Settings

HEARTBEAT_SECONDS = 5.0
MAX_OUTPUT_BYTES = 1_000_000
_PR_SET_PDEATHSIG = 1

Watch = Callable[[str], str | None]
"""Told every line the program prints; returns what it is doing now, or None when the line does not say."""

Heartbeat = Callable[[float, str], None]
"""Told seconds so far and what the program is doing, at least every HEARTBEAT_SECONDS."""


class ProgramMissing(ToolError):
    """The program is not on PATH."""

    default_kind = "program_missing"


@dataclass(frozen=True)
class ProgramResult:
    """What a program left behind.

    Attributes:
        command: as it was run.
        exit_code: None when a signal ended it.
        signal: number of the signal that ended it, or 0.
        output: stdout and stderr together; the middle is left out when it is long.
        duration_seconds: wall time.
    """

    command: tuple[str, ...]
    exit_code: int | None
    signal: int
    output: str
    duration_seconds: float


class RunsPrograms(Protocol):
    """Runs a program; tests answer from a recording instead."""

    def __call__(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        timeout_seconds: float,
        environment: Mapping[str, str] | None = None,
        watch: Watch | None = None,
        heartbeat: Heartbeat | None = None,
    ) -> ProgramResult: ...


def find_program(name: str, install: str) -> str:
    """Return where a program is.

    Args:
        name: executable to look for on PATH.
        install: the command that installs it.

    Raises:
        ProgramMissing: it is not there.
    """
    found = shutil.which(name, path=Settings.from_environment().environment.get("PATH"))
    if found is None:
        raise ProgramMissing(
            f"{name} is not installed", fix=f"install it: {install}", failure_mode=FailureMode.ENVIRONMENT
        )
    return found


def run_program(
    command: Sequence[str],
    *,
    cwd: Path,
    timeout_seconds: float,
    environment: Mapping[str, str] | None = None,
    watch: Watch | None = None,
    heartbeat: Heartbeat | None = None,
) -> ProgramResult:
    """Run a program to its end.

    Args:
        command: program and arguments; no shell is involved.
        cwd: its working directory.
        timeout_seconds: after this its whole process group is killed.
        environment: variables added to this process's own.
        watch: sees every line as it is printed.
        heartbeat: called at least every 5 s while it runs.

    Raises:
        ProgramMissing: there is no such program.
        ToolTimedOut: it ran into the deadline; it is gone when this is raised.
    """
    variables = {**Settings.from_environment().environment, **(environment or {})}
    started = time.monotonic()
    try:
        process = subprocess.Popen(
            list(command),
            cwd=cwd,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=0,
            preexec_fn=_die_with_parent,
        )
    except FileNotFoundError:
        raise ProgramMissing(f"{command[0]} is not installed", failure_mode=FailureMode.ENVIRONMENT) from None
    output = _Output(process, watch)
    output.start()
    try:
        _wait(process, output, started, timeout_seconds, heartbeat)
    finally:
        _kill_group(process)
        output.join(timeout=2.0)
    code = process.returncode
    return ProgramResult(
        tuple(command), code if code >= 0 else None, -code if code < 0 else 0, output.text(), time.monotonic() - started
    )


def _wait(
    process: subprocess.Popen[bytes],
    output: "_Output",
    started: float,
    timeout_seconds: float,
    heartbeat: Heartbeat | None,
) -> None:
    deadline = started + timeout_seconds
    while True:
        left = deadline - time.monotonic()
        try:
            process.wait(timeout=max(0.0, min(HEARTBEAT_SECONDS, left)))
            return
        except subprocess.TimeoutExpired:
            if time.monotonic() >= deadline:
                raise ToolTimedOut(
                    f"{Path(str(process.args[0])).name} was stopped after {timeout_seconds:.0f} s"  # type: ignore[index]
                    + (f", while: {output.doing}" if output.doing else ""),
                    fix="make the model smaller (a larger element size), or allow more time",
                    failure_mode=FailureMode.LIMIT,
                ) from None
            if heartbeat is not None:
                heartbeat(time.monotonic() - started, output.doing)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


_LIBC = ctypes.CDLL(None, use_errno=True)


def _die_with_parent() -> None:
    """Ask the kernel to kill the program when this process ends; Linux only, harmless elsewhere."""
    prctl = getattr(_LIBC, "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class _Output(threading.Thread):
    """Reads a program's output: the first and the last half of a megabyte, whatever it prints."""

    def __init__(self, process: subprocess.Popen[bytes], watch: Watch | None) -> None:
        super().__init__(daemon=True)
        assert process.stdout is not None
        self.stream = process.stdout
        self.watch = watch
        self.doing = ""
        self.head: list[bytes] = []
        self.tail: list[bytes] = []
        self.head_bytes = self.tail_bytes = self.dropped_bytes = 0

    def run(self) -> None:
        with self.stream:
            while line := self.stream.readline(65536):
                self._keep(line)
                if self.watch is not None:
                    self.doing = self.watch(line.decode("utf-8", "replace").strip()) or self.doing

    def _keep(self, line: bytes) -> None:
        if self.head_bytes < MAX_OUTPUT_BYTES // 2:
            self.head.append(line)
            self.head_bytes += len(line)
            return
        self.tail.append(line)
        self.tail_bytes += len(line)
        if self.tail_bytes > MAX_OUTPUT_BYTES:
            while self.tail_bytes > MAX_OUTPUT_BYTES // 2:
                gone = len(self.tail.pop(0))
                self.tail_bytes -= gone
                self.dropped_bytes += gone

    def text(self) -> str:
        """Return what was kept."""
        gap = [f"\n... {self.dropped_bytes:,} bytes left out ...\n".encode()] if self.dropped_bytes else []
        return b"".join([*self.head, *gap, *self.tail]).decode("utf-8", "replace")

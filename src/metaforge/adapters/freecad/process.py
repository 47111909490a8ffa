"""FreeCAD's own process: started ahead, asked one thing at a time, ended for certain."""

import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
import weakref
from pathlib import Path
from typing import Any

from metaforge.core.errors import FailureMode, ToolCrashed, ToolError, ToolTimedOut

SYSTEM_PYTHON = "/usr/bin/python3"
INSTALL = "apt-get install -y --no-install-recommends freecad"
_MAIN = Path(__file__).parent / "worker" / "__main__.py"
_START_SECONDS = 60.0
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


def freecad_python() -> str:
    """Return the Python which FreeCAD's modules are built for; they load in no other.

    It is the one beside `freecadcmd`, as distributions, conda and unpacked AppImages have it; the system's where there
    is none.
    """
    program = shutil.which("freecadcmd")
    if program is not None:
        for name in ("python3", "python"):
            beside = Path(program).with_name(name)
            if os.access(beside, os.X_OK):
                return str(beside)
    return SYSTEM_PYTHON


class FreecadProcess:
    """One FreeCAD with one document. Loading goes on in the background; the first request waits for it."""

    def __init__(self) -> None:
        home = tempfile.mkdtemp(prefix="freecad-")
        # A person's own FreeCAD keeps its settings, and a box has no password file to find a home in.
        python = freecad_python()
        environment = {
            "PATH": os.defpath, "LANG": "C.UTF-8", "HOME": home, "TMPDIR": home, "OMP_NUM_THREADS": "1",
            "FREECAD_USER_HOME": home, "FREECAD_USER_DATA": home, "FREECAD_USER_TEMP": home,
        }  # fmt: skip
        try:
            self._popen = subprocess.Popen(
                [python, "-I", "-B", str(_MAIN)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None, bufsize=0, env=environment, cwd=home,
                preexec_fn=_die_with_parent,
            )  # fmt: skip
        except OSError as fault:
            shutil.rmtree(home, ignore_errors=True)
            raise ToolError(
                f"FreeCAD's Python {python} cannot be started: {fault.strerror}", kind="program_missing",
                fix=f"install it: {INSTALL}", failure_mode=FailureMode.ENVIRONMENT,
            ) from None  # fmt: skip
        self._python = python
        self._finish = weakref.finalize(self, _finish, self._popen, home)
        self._pending = b""
        self._number = 0
        self.version = ""

    @property
    def alive(self) -> bool:
        return self._popen.poll() is None

    def wait_until_ready(self, seconds: float = _START_SECONDS) -> None:
        """Wait until FreeCAD is loaded.

        Raises:
            ToolError: it does not load here.
        """
        if self.version:
            return
        try:
            self.version = str(json.loads(self._line(seconds))["ready"])
        except _Ended:
            raise ToolError(
                f"FreeCAD does not load in {self._python}", kind="program_missing", fix=f"install it: {INSTALL}",
                failure_mode=FailureMode.ENVIRONMENT,
            ) from None  # fmt: skip
        except TimeoutError:
            self.end()
            raise ToolTimedOut(f"FreeCAD did not load within {seconds:g} s", retryable=True) from None

    def ask(self, name: str, given: dict[str, Any], seconds: float = 120.0) -> dict[str, Any]:
        """Ask the document one thing.

        Args:
            name: what to do.
            given: its arguments, in mm and degrees.
            seconds: after this the process is ended.

        Raises:
            ToolError: FreeCAD refused; the document is as it was.
            ToolCrashed: the process ended, and the document with it.
            ToolTimedOut: it did not answer in time and was ended.
        """
        self.wait_until_ready()
        self._number += 1
        request = json.dumps({"id": self._number, "do": name, "with": given}).encode() + b"\n"
        assert self._popen.stdin is not None
        try:
            self._popen.stdin.write(request)
            reply = json.loads(self._line(seconds))
        except (_Ended, BrokenPipeError):
            raise self._crashed(name) from None
        except TimeoutError:
            self.end()
            raise ToolTimedOut(
                f"FreeCAD was ended after {seconds:.0f} s in {name}; its document is lost",
                fix="open a new session; do less in one step", failure_mode=FailureMode.LIMIT,
            ) from None  # fmt: skip
        if "refused" in reply:
            raise _refusal(reply["refused"])
        told: dict[str, Any] = reply["told"]
        return told

    def _crashed(self, name: str) -> ToolCrashed:
        status = self._popen.wait()
        how = signal.Signals(-status).name if status < 0 else f"exit code {status}"
        return ToolCrashed(
            f"FreeCAD crashed in {name} ({how}); its document is lost",
            fix="open a new session and take a smaller step, or other dimensions", failure_mode=FailureMode.DESIGN,
        )  # fmt: skip

    def _line(self, seconds: float) -> bytes:
        assert self._popen.stdout is not None
        descriptor = self._popen.stdout.fileno()
        end = time.monotonic() + seconds
        chunks = [self._pending]
        while b"\n" not in chunks[-1]:
            left = end - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                raise TimeoutError
            more = os.read(descriptor, 1 << 20)
            if not more:
                raise _Ended
            chunks.append(more)
        line, _, self._pending = b"".join(chunks).partition(b"\n")
        return line

    def end(self) -> None:
        """End the process now."""
        self._finish()


def _finish(popen: "subprocess.Popen[bytes]", home: str) -> None:
    popen.kill()
    popen.wait()
    for pipe in (popen.stdin, popen.stdout):
        if pipe is not None:
            pipe.close()
    shutil.rmtree(home, ignore_errors=True)


class _Ended(Exception):
    """The process closed its pipe."""


def _refusal(told: dict[str, Any]) -> ToolError:
    return ToolError(
        told["message"], kind=told["kind"], fix=told.get("fix", ""), where=told.get("where", ""),
        failure_mode=FailureMode(told.get("mode", "input")),
    )  # fmt: skip


def _die_with_parent() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

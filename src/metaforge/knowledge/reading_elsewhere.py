"""Have a document read by a process of its own, and see that process gone."""

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO

import orjson

from metaforge.core.errors import FailureMode, OverLimit, ToolError, ToolTimedOut
from metaforge.knowledge.limits import CPU_SECONDS, MAX_ANSWER_BYTES, MEMORY_MB, WALL_SECONDS
from metaforge.knowledge.parsing import Parsed, missing
from metaforge.knowledge.passages import Passage

_MODULE = "metaforge.knowledge.reading_process"


class _Late(Exception):
    """The process has not answered in time."""


class _TooMuch(Exception):
    """The process has written more than any document gives."""


def read_elsewhere(file: BinaryIO, kind: str, name: str, progress: Callable[[int, int], None]) -> Parsed:
    """Return what a document says.

    Args:
        file: an open file of the system, at its beginning.
        kind: as `recognise` named it.
        name: what to call it in messages.
        progress: is told pages done and all pages.

    Raises:
        ToolError: it cannot be read.
        OverLimit: it takes too much time or memory.
    """
    request = json.dumps({"kind": kind, "name": name, "memory_mb": MEMORY_MB, "cpu_seconds": CPU_SECONDS})
    process = subprocess.Popen(
        [sys.executable, "-P", "-s", "-m", _MODULE, request],
        stdin=file, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/", start_new_session=True, bufsize=0,
        env={"PATH": os.defpath, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", "MALLOC_ARENA_MAX": "2"},
    )  # fmt: skip
    answer = _Answer(name, kind, progress)
    try:
        assert process.stdout is not None
        for line in _lines(process.stdout.fileno(), time.monotonic() + WALL_SECONDS):
            answer.take(orjson.loads(line))
    except _Late:
        answer.is_late = True
    except _TooMuch:
        answer.ended_for = f"it wrote more than {MAX_ANSWER_BYTES >> 20} MiB"
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        if process.stdout is not None:
            process.stdout.close()
        status = process.wait()
    return answer.result(status)


def _lines(descriptor: int, until: float) -> Iterator[bytes]:
    """Yield whole lines until the other side closes.

    Raises:
        _Late: time is up.
        _TooMuch: it has written more than the limit.
    """
    pending = bytearray()
    total = 0
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while True:
            if not selector.select(max(until - time.monotonic(), 0)):
                raise _Late
            part = os.read(descriptor, 1 << 18)
            if not part:
                return
            total += len(part)
            if total > MAX_ANSWER_BYTES:
                raise _TooMuch
            pending += part
            *whole, rest = pending.split(b"\n")
            pending = bytearray(rest)
            yield from map(bytes, whole)


class _Answer:
    """Gathers what the process says."""

    def __init__(self, name: str, kind: str, progress: Callable[[int, int], None]) -> None:
        self._name = name
        self._kind = kind
        self._progress = progress
        self._parsed = Parsed()
        self._refused: dict[str, Any] | None = None
        self._pages = (0, 0)
        self._is_whole = False
        self.is_late = False
        self.ended_for = ""

    def take(self, message: dict[str, Any]) -> None:
        match message:
            case {"done": int(done), "total": int(total)}:
                self._pages = (done, total)
                self._progress(done, total)
            case {"passages": list(listed)}:
                self._parsed.passages += [Passage(*each) for each in listed]
            case {"refused": dict(refused)}:
                self._refused = refused
            case {"notes": list(notes), "pages_count": pages_count}:
                self._parsed.notes, self._parsed.pages_count = notes, pages_count
                self._is_whole = True

    def result(self, status: int) -> Parsed:
        """Return what was read.

        Args:
            status: how the process ended.

        Raises:
            ToolError: it was refused, or the process ended before it was done.
        """
        if self._refused is not None:
            raise self._rebuilt(self._refused)
        if self._is_whole:
            return self._parsed
        if self.is_late or status == -signal.SIGXCPU:
            raise self._too_slow()
        raise self._crashed(self.ended_for or _how(status))

    def _rebuilt(self, refused: dict[str, Any]) -> ToolError:
        if refused["kind"] == "reader_missing" and "module" in refused:
            return missing(self._kind, self._name, refused["module"])
        if refused["kind"] == "document_memory":
            return OverLimit(
                f"Reading {self._name} takes more than {MEMORY_MB:,} MiB of memory{self._so_far()}",
                kind="document_memory", where=self._name, failure_mode=FailureMode.LIMIT,
                fix="split it into smaller files; a file that was sent to you may be meant to do harm",
            )  # fmt: skip
        if refused["kind"] == "reader_fault":
            return self._crashed(refused["message"])
        error = OverLimit if refused["over_limit"] else ToolError
        return error(
            refused["message"], kind=refused["kind"], where=refused["where"], fix=refused["fix"],
            failure_mode=FailureMode(refused["failure_mode"]),
        )  # fmt: skip

    def _too_slow(self) -> ToolError:
        return ToolTimedOut(
            f"Reading {self._name} takes more than {CPU_SECONDS:g} s of computing{self._so_far()}",
            kind="document_too_slow", where=self._name, failure_mode=FailureMode.LIMIT,
            fix="split it into smaller files, or print it to PDF again without its drawings",
        )  # fmt: skip

    def _crashed(self, how: str) -> ToolError:
        return ToolError(
            f"{self._name} cannot be read as {self._kind}: what reads it gave up ({how}){self._so_far()}",
            kind="document_damaged", where=self._name,
            fix="open it in a program of its own and save it again, or give its text",
        )  # fmt: skip

    def _so_far(self) -> str:
        done, total = self._pages
        return f"; {done:,} of {total:,} pages were done" if total else ""


def _how(status: int) -> str:
    if status < 0:
        with suppress(ValueError):
            return signal.Signals(-status).name
    return f"exit status {status}"

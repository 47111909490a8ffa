"""The process that runs the calls of an adapter over HTTP: forked from the one that listens, ended with its call."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from metaforge.tools.server import McpToolServer

SIGNALLED = 128
_MAX_LINE_BYTES = 1 << 30


class Child:
    """The process that runs the calls."""

    def __init__(self, server: "McpToolServer") -> None:
        self._server = server
        self._pid = 0
        self._requests: int | None = None
        self._reader: asyncio.StreamReader | None = None
        self._transport: asyncio.BaseTransport | None = None

    async def ask(self, line: bytes, on_notification: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        """Send one request and return its answer; EOFError when the process ends first."""
        if self._reader is None:
            await self._start()
        assert self._reader is not None
        assert self._requests is not None
        await asyncio.to_thread(_write_all, self._requests, line + b"\n")
        while raw := await self._reader.readline():
            message: dict[str, Any] = orjson.loads(raw)
            if "method" not in message:
                return message
            if message["method"] == "tool/result":
                on_notification(message)
        raise EOFError

    async def _start(self) -> None:
        request_end, self._requests = os.pipe()
        answers, answer_end = os.pipe()
        parent = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            _serve_forked(self._server, request_end, answer_end, parent)
        os.close(request_end)
        os.close(answer_end)
        reader = asyncio.StreamReader(limit=_MAX_LINE_BYTES)
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(answers, "rb", buffering=0)
        )
        self._reader = reader

    def end(self) -> int | None:
        """End the process and all it started; return its exit status, 128 + n for signal n."""
        if self._reader is None:
            return None
        for send_signal in (os.killpg, os.kill):
            with suppress(ProcessLookupError):
                send_signal(self._pid, signal.SIGKILL)
        _, status = os.waitpid(self._pid, 0)
        if self._requests is not None:
            os.close(self._requests)
        if self._transport is not None:
            self._transport.close()
        self._reader = self._requests = self._transport = None
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else SIGNALLED - code


def _write_all(descriptor: int, data: bytes) -> None:
    pending = memoryview(data)
    with suppress(BrokenPipeError):
        while pending:
            pending = pending[os.write(descriptor, pending) :]


def _serve_forked(server: "McpToolServer", requests: int, answers: int, parent: int) -> None:
    """Never returns: what follows the fork in the parent must not run here."""
    status = 1
    try:
        os.setpgid(0, 0)
        _die_with(parent)
        low, high = sorted((requests, answers))
        for first, last in ((3, low), (low + 1, high), (high + 1, os.sysconf("SC_OPEN_MAX"))):
            os.closerange(first, last)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        server.serve(os.fdopen(requests, "rb"), os.fdopen(answers, "wb", buffering=0))
        status = 0
    finally:
        os._exit(status)


def _die_with(parent: int) -> None:
    import ctypes
    import sys

    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

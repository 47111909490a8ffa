"""Lines of bytes over standard input and output: no limit but ours, no wait for a slow reader."""

import asyncio
import os
import re
import stat
import threading
from collections.abc import Callable

BACKLOG_PAUSE_BYTES = 4 << 20
"""Unread output beyond which no further request is read."""
_CHUNK_BYTES = 1 << 16
_ID_FIRST = re.compile(
    rb'\s*\{(?:\s*"jsonrpc"\s*:\s*"2\.0"\s*,|\s*"method"\s*:\s*"[^"\\]*"\s*,)*\s*"id"\s*:\s*(-?\d+|"[^"\\]*")\s*[,}]'
)
"""The id of a request whose parameters come after it: only there is it sure to be the request's own."""


class LineReader(asyncio.Protocol):
    """Cuts what arrives into lines; a line longer than the limit is dropped and reported once.

    Args:
        limit_bytes: the longest line.
        on_line: gets every line without its line break; blank ones are skipped.
        on_too_long: gets the id of the dropped request as JSON, or None where its beginning does not tell.
        on_end: called once, when nothing more will come.
    """

    def __init__(
        self,
        limit_bytes: int,
        on_line: Callable[[bytes], None],
        on_too_long: Callable[[bytes | None], None],
        on_end: Callable[[], None],
    ) -> None:
        self._limit_bytes = limit_bytes
        self._on_line = on_line
        self._on_too_long = on_too_long
        self._on_end = on_end
        self._parts: list[bytes] = []
        self._size_bytes = 0
        self._is_skipping = False
        self._has_ended = False
        self.transport: asyncio.ReadTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.ReadTransport) or hasattr(transport, "pause_reading")
        self.transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._take(data[start:end] if start or end + 1 < len(data) else data[:-1])
            self._finish()
            start = end + 1
        if start < len(data):
            self._take(data[start:] if start else data)

    def eof_received(self) -> None:
        self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()

    def _take(self, part: bytes) -> None:
        if self._is_skipping:
            return
        self._size_bytes += len(part)
        self._parts.append(part)
        if self._size_bytes > self._limit_bytes:
            head = b"".join(self._parts)[:_CHUNK_BYTES]
            self._parts.clear()
            self._is_skipping = True
            found = _ID_FIRST.match(head)
            self._on_too_long(found.group(1) if found else None)

    def _finish(self) -> None:
        line = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        self._size_bytes = 0
        if self._is_skipping:
            self._is_skipping = False
        elif line and not line.isspace():
            self._on_line(line)

    def _end(self) -> None:
        if not self._has_ended:
            self._has_ended = True
            if self._parts:
                self._finish()
            self._on_end()


async def read_lines(descriptor: int, reader: LineReader) -> None:
    """Feed a reader from a descriptor: by the event loop where it can watch it, else by a thread."""
    loop = asyncio.get_running_loop()
    try:
        mode = os.fstat(descriptor).st_mode
        if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
            raise ValueError("neither pipe nor socket")
        pipe = os.fdopen(descriptor, "rb", buffering=0, closefd=False)
        await loop.connect_read_pipe(lambda: reader, pipe)
    except (ValueError, OSError, NotImplementedError):
        threading.Thread(target=_pump, args=(descriptor, reader, loop), daemon=True).start()


def _pump(descriptor: int, reader: LineReader, loop: asyncio.AbstractEventLoop) -> None:
    """Read a file or terminal, which an event loop cannot watch."""
    try:
        while data := os.read(descriptor, _CHUNK_BYTES):
            loop.call_soon_threadsafe(reader.data_received, data)
        loop.call_soon_threadsafe(reader.eof_received)
    except (OSError, RuntimeError):  # closed under us, or the loop has ended
        return


class LineWriter:
    """Writes lines at once; what a slow reader does not take waits in memory, in order.

    Args:
        on_backlog: told True when too much waits, False when it has gone.
        on_broken: called once, when nobody reads any more.
    """

    def __init__(self, descriptor: int, on_backlog: Callable[[bool], None], on_broken: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._on_backlog = on_backlog
        self._on_broken = on_broken
        self._backlog = bytearray()
        self._is_paused = False
        self.is_open = True
        mode = os.fstat(descriptor).st_mode
        self._can_wait = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
        if self._can_wait:
            os.set_blocking(descriptor, False)

    def write(self, line: bytes) -> bool:
        """Write a line, its line break added; False when nobody reads any more."""
        if not self.is_open:
            return False
        data = line + b"\n"
        if self._backlog:
            self._backlog += data
        else:
            written = self._write(data)
            if written < len(data) and self.is_open:
                self._backlog += data[written:]
                asyncio.get_running_loop().add_writer(self._descriptor, self._flush)
        if len(self._backlog) > BACKLOG_PAUSE_BYTES and not self._is_paused:
            self._is_paused = True
            self._on_backlog(True)
        return self.is_open

    def _flush(self) -> None:
        del self._backlog[: self._write(self._backlog)]
        if not self._backlog or not self.is_open:
            asyncio.get_running_loop().remove_writer(self._descriptor)
            if self._is_paused:
                self._is_paused = False
                self._on_backlog(False)

    def _write(self, data: bytes | bytearray) -> int:
        written = 0
        try:
            while written < len(data):
                written += os.write(self._descriptor, memoryview(data)[written:] if written else data)
                if self._can_wait and written < len(data):
                    break
        except BlockingIOError:
            pass
        except OSError:
            self.is_open = False
            self._backlog.clear()
            self._on_broken()
        return written

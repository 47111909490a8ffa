"""Bytes from a worker to messages: lines of any length up to a cap, whatever else lands on the stream."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import orjson

_START = b'{"jsonrpc"'
_KEPT_CHARACTERS = 200
_SPILLED_PER_LIMIT = 8
"""How many times the longest line an answer may be to be kept in a file."""


class MessageReader:
    """Cuts a byte stream into JSON-RPC messages.

    Args:
        limit_bytes: the longest line that is kept; the rest of a longer one is dropped as it comes.
        on_message: called with each message.
        on_junk: called with the first text that is no message, once.
        on_overflow: called when a line passes the limit: with the file that holds all of it, at its end, where it
            is an answer and a file may be kept; else at once, with None.
        spill: the file in which an answer over the limit is kept.
    """

    def __init__(
        self,
        limit_bytes: int,
        on_message: Callable[[dict[str, Any]], None],
        on_junk: Callable[[str], None],
        on_overflow: Callable[[Path | None], None],
        spill: Callable[[], Path] | None = None,
    ) -> None:
        self._limit = limit_bytes
        self._on_message = on_message
        self._on_junk = on_junk
        self._on_overflow = on_overflow
        self._parts: list[bytes] = []
        self._size = 0
        self._dropping = False
        self._junk_seen = False
        self._spill = spill
        self._spilling: tuple[Path, BinaryIO] | None = None

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._add(chunk[start:end])
            self._finish()
            start = end + 1
        if start < len(chunk):
            self._add(chunk[start:] if start else chunk)

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._spilling is not None:
            self._spill_more(part)
        elif not self._dropping:
            self._parts.append(part)
            if self._size > self._limit:
                self._overflow()

    def _overflow(self) -> None:
        parts, self._parts, self._dropping = self._parts, [], True
        if self._spill is not None and b"".join(parts[:2]).startswith(_START):
            with suppress(OSError):
                path = self._spill()
                self._spilling = path, path.open("wb")
                for part in parts:
                    self._spill_more(part)
                return
        self._on_overflow(None)

    def _spill_more(self, part: bytes) -> None:
        if self._spilling is None:
            return
        try:
            if self._size > self._limit * _SPILLED_PER_LIMIT:
                raise OSError
            self._spilling[1].write(part)
        except OSError:
            # No room, or no end: what is kept would be half an answer.
            self._spilling[1].close()
            self._spilling = None
            self._on_overflow(None)

    def _finish(self) -> None:
        parts, self._parts, self._size = self._parts, [], 0
        if self._dropping:
            self._dropping = False
            if self._spilling is not None:
                (path, stream), self._spilling = self._spilling, None
                stream.close()
                self._on_overflow(path)
            return
        line = parts[0] if len(parts) == 1 else b"".join(parts)
        message = _message(line)
        if message is None:
            # A library that wrote half a line leaves its text in front of ours.
            at = line.rfind(_START)
            message = _message(line[at:]) if at > 0 else None
            self._note(line[:at] if message is not None else line)
        if message is not None:
            self._on_message(message)

    def close(self) -> None:
        """Let go of an answer whose end will not come."""
        if self._spilling is not None:
            self._spilling[1].close()
            self._spilling = None

    def _note(self, text: bytes) -> None:
        if text.strip() and not self._junk_seen:
            self._junk_seen = True
            self._on_junk(repr(text[:_KEPT_CHARACTERS].decode("utf-8", "replace"))[1:-1])


def _message(line: bytes) -> dict[str, Any] | None:
    try:
        message = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return message if isinstance(message, dict) and message.get("jsonrpc") == "2.0" else None

"""Bytes from a worker to messages: lines of any length up to a cap, whatever else lands on the stream."""

from collections.abc import Callable
from typing import Any

import orjson

_START = b'{"jsonrpc"'
_KEPT_CHARACTERS = 200


class MessageReader:
    """Cuts a byte stream into JSON-RPC messages.

    Args:
        limit_bytes: the longest line that is kept; the rest of a longer one is dropped as it comes.
        on_message: called with each message.
        on_junk: called with the first text that is no message, once.
        on_overflow: called when a line passes the limit, at once and not at its end.
    """

    def __init__(
        self,
        limit_bytes: int,
        on_message: Callable[[dict[str, Any]], None],
        on_junk: Callable[[str], None],
        on_overflow: Callable[[], None],
    ) -> None:
        self._limit = limit_bytes
        self._on_message = on_message
        self._on_junk = on_junk
        self._on_overflow = on_overflow
        self._parts: list[bytes] = []
        self._size = 0
        self._dropping = False
        self._junk_seen = False

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
        if self._dropping:
            return
        self._size += len(part)
        if self._size > self._limit:
            self._parts.clear()
            self._dropping = True
            self._on_overflow()
            return
        self._parts.append(part)

    def _finish(self) -> None:
        parts, self._parts, self._size = self._parts, [], 0
        if self._dropping:
            self._dropping = False
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

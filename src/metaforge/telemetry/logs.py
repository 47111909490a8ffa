"""Log lines: one JSON object a line on stderr, which never holds up the server.

A client that does not read our stderr lets the pipe fill up; a line that would have to wait is dropped and counted,
and the next one that fits says how many are missing.
"""

import logging
import os
import select
import sys
from datetime import UTC, datetime
from typing import Any

import orjson

from metaforge.telemetry.redaction import redact, redact_text

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
MAX_LINE_BYTES = 4096
"""What a pipe that says it is writable takes without blocking (PIPE_BUF)."""

_LOGGER = logging.getLogger("metaforge")
_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_APPEND_NEWLINE


def configure(level: str = "warning") -> None:
    """Send log lines of this level and above to stderr, those of libraries included.

    Args:
        level: debug, info, warning or error; anything else counts as warning.
    """
    root = logging.getLogger()
    for old in [each for each in root.handlers if isinstance(each, StderrLines)]:
        root.removeHandler(old)
    root.addHandler(StderrLines())
    chosen = LEVELS.get(level.lower(), logging.WARNING)
    _LOGGER.setLevel(chosen)
    root.setLevel(max(chosen, logging.INFO))


def event(name: str, level: str = "info", **fields: Any) -> None:
    """Log one event; nearly free when the level is off.

    Args:
        name: what happened, in snake_case: `tool_call_failed`.
        level: debug, info, warning or error.
        fields: JSON-like values; those named like a secret are redacted.
    """
    number = LEVELS[level]
    if _LOGGER.isEnabledFor(number):
        _LOGGER.log(number, name, extra={"event_fields": fields})


class StderrLines(logging.Handler):
    """Writes records as JSON lines to a descriptor without ever waiting for its reader."""

    def __init__(self, descriptor: int = 2) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._dropped_count = 0
        self._poll = None
        if sys.platform != "win32":
            self._poll = select.poll()
            self._poll.register(descriptor, select.POLLOUT)

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record, or count it as dropped."""
        if not self._writable():
            self._dropped_count += 1
            return
        if self._dropped_count:
            missing, self._dropped_count = self._dropped_count, 0
            self._write(_line({"level": "warning", "event": "log_lines_dropped", "count": missing}))
            if not self._writable():
                self._dropped_count = 1
                return
        self._write(_render(record))

    def _writable(self) -> bool:
        if self._poll is None:
            return True
        return any(state & select.POLLOUT for _, state in self._poll.poll(0))

    def _write(self, line: bytes) -> None:
        try:
            os.write(self._descriptor, line)
        except OSError:  # nobody listens any more
            self._dropped_count += 1


def _render(record: logging.LogRecord) -> bytes:
    body: dict[str, Any] = {
        "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": record.levelname.lower(),
    }
    fields = getattr(record, "event_fields", None)
    if fields is not None:
        return _line({**body, "event": record.msg, **redact(fields)})
    body |= {"event": "log", "logger": record.name, "message": redact_text(record.getMessage())}
    if record.exc_info:
        body["exception"] = redact_text(logging.Formatter().formatException(record.exc_info))
    return _line(body)


def _line(body: dict[str, Any]) -> bytes:
    line = orjson.dumps(body, default=str, option=_OPTIONS)
    full_bytes = len(line)
    for longest in (1200, 300, 60):
        if len(line) <= MAX_LINE_BYTES:
            return line
        cut = {key: _shorten(value, longest) for key, value in body.items()}
        line = orjson.dumps({**cut, "cut_from_bytes": full_bytes}, default=str, option=_OPTIONS)
    if len(line) <= MAX_LINE_BYTES:
        return line
    essence = {key: _shorten(body.get(key), 60) for key in ("ts", "level", "event")}
    return orjson.dumps({**essence, "cut_from_bytes": full_bytes}, default=str, option=_OPTIONS)


def _shorten(value: Any, longest: int) -> Any:
    """Keep the beginning and the end: the end of a traceback says what went wrong."""
    if isinstance(value, int | float | bool | None):
        return value
    text = str(value)
    if len(text) <= longest:
        return text
    return f"{text[: longest // 3]} ... {text[-longest // 3 :]}"

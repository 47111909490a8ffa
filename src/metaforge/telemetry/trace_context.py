"""W3C trace context: read `traceparent` and bare trace ids, write `traceparent`."""

import re

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_TRACE_ID = re.compile(r"[0-9a-f]{32}")
_NO_TRACE = "0" * 32
_NO_SPAN = "0" * 16


def parse(text: str) -> tuple[str, str, bool] | None:
    """Read a `traceparent` header, or a trace id alone.

    Args:
        text: `00-<32 hex>-<16 hex>-<2 hex>`, or 32 hex digits, or a UUID.

    Returns:
        Trace id, parent span id (empty where only a trace id was given) and whether the caller records; None where
        the text is neither, which is no error: it is an id of the caller's own and only echoed.
    """
    text = text.strip().lower()
    if match := _TRACEPARENT.fullmatch(text):
        version, trace_id, span_id, flags, more = match.groups()
        if version == "ff" or (version == "00" and more) or trace_id == _NO_TRACE or span_id == _NO_SPAN:
            return None
        return trace_id, span_id, bool(int(flags, 16) & 1)
    bare = text.replace("-", "") if len(text) == 36 else text
    if _TRACE_ID.fullmatch(bare) and bare != _NO_TRACE:
        return bare, "", True
    return None


def trace_id_of(text: str) -> str:
    """Return the trace id to answer a caller with: the W3C one, or the caller's own text unchanged."""
    parsed = parse(text) if text else None
    return parsed[0] if parsed else text


def render(trace_id: str, span_id: str, *, recorded: bool) -> str:
    """Return a `traceparent` header, version 00."""
    return f"00-{trace_id}-{span_id}-{'01' if recorded else '00'}"

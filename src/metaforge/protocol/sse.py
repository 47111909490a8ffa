"""Server-sent events: how a message, and a sign of life, look on an event stream."""

KEEP_ALIVE = b": keep-alive\n\n"
"""A comment: every reader skips it, and proxies see that the stream lives."""


def frame(message: bytes) -> bytes:
    """Return one JSON message as an event; JSON as it is encoded here holds no line break."""
    return b"event: message\ndata: " + message + b"\n\n"

"""How a query process and the server talk: JSON behind its length, one request and one answer at a time."""

import os
import struct
from collections.abc import Callable, Mapping
from typing import Any

import orjson

HEADER = struct.Struct("<I")
MAX_FRAME_BYTES = 1 << 30

Handler = Callable[[dict[str, Any]], dict[str, Any]]


class Refused(Exception):
    """A request that is answered with a reason. The server makes a ToolError of it.

    Args:
        kind: a short stable name.
        message: what happened, to what.
        fix: what to do.
    """

    def __init__(self, kind: str, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.fix = fix


def pack(message: Mapping[str, Any]) -> bytes:
    """Return a message as it goes over the pipe. Values JSON does not know are written as texts."""
    body = orjson.dumps(message, default=str, option=orjson.OPT_NON_STR_KEYS)
    return HEADER.pack(len(body)) + body


def claim_output() -> int:
    """Keep standard output for answers alone: what libraries print goes to standard error from now on."""
    writing = os.dup(1)
    os.dup2(2, 1)
    return writing


def serve(handlers: Mapping[str, Handler], writing: int, reading: int = 0) -> None:
    """Say that this process is ready, and answer requests until the other side closes the pipe.

    Args:
        handlers: what to do for each value of a request's `do`.
        writing: the descriptor that `claim_output` returned.
        reading: the descriptor of requests.
    """
    _write(writing, pack({"ready": True}))
    while (header := _read(reading, HEADER.size)) is not None:
        body = _read(reading, HEADER.unpack(header)[0])
        if body is None:
            return
        _write(writing, pack(_answer(handlers, orjson.loads(body))))


def _answer(handlers: Mapping[str, Handler], request: dict[str, Any]) -> dict[str, Any]:
    try:
        return handlers[request["do"]](request)
    except Refused as refusal:
        return {"refused": {"kind": refusal.kind, "message": refusal.message, "fix": refusal.fix}}
    except MemoryError:
        return {"refused": {"kind": "query_memory", "message": "out of memory", "fix": ""}}
    except Exception as fault:  # noqa: BLE001 - the process's boundary: the server decides what becomes of it
        return {"fault": f"{type(fault).__name__}: {fault}"}


def _read(descriptor: int, size: int) -> bytes | None:
    parts: list[bytes] = []
    while size:
        part = os.read(descriptor, min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]

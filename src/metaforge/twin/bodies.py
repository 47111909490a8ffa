"""A node's content: JSON as it is stored, checked so that nothing of it is changed or lost on the way."""

import math
from collections.abc import Mapping
from typing import Any

import orjson

from metaforge.core.errors import ToolError

INLINE_BYTES = 128 * 1024
"""A longer body is kept as a content of its own and named by its digest."""
MAX_DEPTH = 100


def dump(body: Mapping[str, Any], where: str) -> bytes:
    """Return a body as JSON.

    Args:
        body: JSON values only.
        where: what it belongs to, for the error.

    Raises:
        ToolError: it holds something JSON cannot keep: NaN, an infinity, U+0000, half a surrogate pair, a key that is
            no text, an integer over 64 bits, another type, more than 100 levels.
    """
    _check(body, "", where, 0)
    try:
        return orjson.dumps(body)
    except TypeError as fault:
        raise _refused(where, "", str(fault)) from None


def check_text(text: str, where: str) -> str:
    """Return a text that every database can keep.

    Raises:
        ToolError: it holds U+0000 or half a surrogate pair.
    """
    if "\x00" in text:
        raise _refused(where, "", "it contains the character U+0000")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _refused(where, "", "it contains half a surrogate pair") from None
    return text


def load(text: str | bytes) -> dict[str, Any]:
    """Read a stored body."""
    body: dict[str, Any] = orjson.loads(text)
    return body


def _check(value: Any, path: str, where: str, depth: int) -> None:
    if isinstance(value, str):
        if "\x00" in value:
            raise _refused(where, path, "it contains the character U+0000")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise _refused(where, path, f"{value} is no number that JSON can keep")
    elif isinstance(value, Mapping):
        _check_depth(where, path, depth)
        for name, each in value.items():
            if not isinstance(name, str):
                raise _refused(where, path, f"the key {name!r} is no text")
            _check(name, f"{path}/{name}", where, depth)
            _check(each, f"{path}/{name}", where, depth + 1)
    elif isinstance(value, list | tuple):
        _check_depth(where, path, depth)
        for number, each in enumerate(value):
            _check(each, f"{path}/{number}", where, depth + 1)


def _check_depth(where: str, path: str, depth: int) -> None:
    if depth >= MAX_DEPTH:
        raise _refused(where, path[:80], f"it is nested more than {MAX_DEPTH} levels deep")


def _refused(where: str, path: str, why: str) -> ToolError:
    return ToolError(f"{where} cannot be recorded: {why}", kind="not_recordable", where=path)

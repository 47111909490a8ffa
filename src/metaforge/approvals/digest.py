"""What binds an approval to one exact call: a digest over its canonical JSON. No I/O."""

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import orjson
import rfc8785

from metaforge.core.errors import InvalidArguments

_MOST_EXACT = 1 << 53


def canonical(value: Any) -> bytes:
    """Return a value's one canonical form (RFC 8785), the same whoever wrote it and however it was spelled.

    Args:
        value: what JSON can hold.

    Raises:
        InvalidArguments: it holds what JSON cannot carry exactly: whole numbers beyond 2^53, infinities, lone
            surrogates, or deeper nesting than can be followed.
    """
    try:
        if _is_plain(value):
            with suppress(orjson.JSONEncodeError):
                return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError, RecursionError) as fault:
        told = "it is nested too deeply" if isinstance(fault, RecursionError) else str(fault)
        raise InvalidArguments(
            f"These arguments cannot be approved, as they have no one canonical form: {told}. Whole numbers go up to "
            "9007199254740991 (2^53 - 1), longer ones as texts; no NaN, no infinity, valid Unicode only",
            code="no_canonical_form",
        ) from None


def _is_plain(value: Any) -> bool:
    """Return whether a fast writer of JSON writes a value just as the standard says.

    It does unless there are numbers that JavaScript writes otherwise, or names that it sorts otherwise. A library for
    the standard takes seconds over arguments of many megabytes, in which nobody else would be served.
    """
    pending = [value]
    while pending:
        each = pending.pop()
        kind = type(each)
        if kind is str or kind is bool or each is None:
            continue
        if kind is int:
            if not -_MOST_EXACT < each < _MOST_EXACT:
                return False
        elif kind is float:
            if not 1e-4 <= abs(each) < 1e15 or each.is_integer():
                return False
        elif kind is list:
            pending += each
        elif kind is dict:
            if not all(type(name) is str and name.isascii() for name in each):
                return False
            pending += each.values()
        else:
            return False
    return True


def call_digest(
    tool_id: str, arguments: Mapping[str, Any], project_id: str, actor_id: str, adapter_version: str
) -> str:
    """Return what an approval allows, as 64 hex digits: this tool with these arguments, for this project and caller.

    Raises:
        InvalidArguments: the arguments have no canonical form.
    """
    call = {
        "tool_id": tool_id,
        "arguments": dict(arguments),
        "project_id": project_id,
        "actor_id": actor_id,
        "adapter_version": adapter_version,
    }
    return hashlib.sha256(canonical(call)).hexdigest()

"""A call's arguments as people see them: without secrets and of a length that can be read; and back again, where a
person changed them. No I/O.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import orjson

from metaforge.core.errors import InvalidArguments
from metaforge.telemetry.redaction import REDACTED, redact

LONGEST_CHARS = (64 * 1024, 8 * 1024, 1024)
"""The longest value that is shown whole: the first that makes all of them fit, or the last."""
LONGEST_IN_ALL_CHARS = 256 * 1024
_KEPT_CHARS = 800
_CUT = re.compile(r"\[(?:\d+ characters in all|\d+ items, \d+ bytes), SHA-256 [0-9a-f]{64}\]")
"""What stands for the rest of a value that is too long to be shown."""


def shown_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with every secret replaced by `[redacted]`, and what is too long by its size and digest.

    What was shown already stays as it is.
    """
    plain: dict[str, Any] = redact(dict(arguments))
    shown, length = _all_cut(plain, LONGEST_CHARS[0])
    for longest in LONGEST_CHARS[1:]:
        if length <= LONGEST_IN_ALL_CHARS:
            break
        shown, length = _all_cut(plain, longest)
    return shown


def whole_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments without secrets, however long they are."""
    plain: dict[str, Any] = redact(dict(arguments))
    return plain


def _all_cut(arguments: Mapping[str, Any], longest: int) -> tuple[dict[str, Any], int]:
    """Return arguments with each value cut, and the characters that are left."""
    found = {name: _cut(value, longest) for name, value in arguments.items()}
    length = sum(len(name) + each for name, (_, each) in found.items())
    return {name: value for name, (value, _) in found.items()}, length


def _cut(value: Any, longest: int) -> tuple[Any, int]:
    """Return a value of at most so many characters, and how many it has."""
    if isinstance(value, str):
        if len(value) <= longest:
            return value, len(value) + 2
        digest = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
        text = f"{value[:_KEPT_CHARS]} ... [{len(value)} characters in all, SHA-256 {digest}]"
        return text, len(text) + 2
    if isinstance(value, dict):
        kept, length = dict[str, Any](), 0
        for name, each in value.items():
            kept[name], size = _cut(each, longest)
            length += len(name) + size + 6
            if length > longest:
                break  # however long the rest is
        else:
            return kept, length
    elif isinstance(value, list):
        items, length = list[Any](), 0
        for each in value:
            item, size = _cut(each, longest)
            items.append(item)
            length += size + 2
            if length > longest:
                break
        else:
            return items, length
    else:
        return value, 8
    written = orjson.dumps(value, option=orjson.OPT_SORT_KEYS, default=str)
    text = f"[{len(value)} items, {len(written)} bytes, SHA-256 {hashlib.sha256(written).hexdigest()}]"
    return text, len(text)


def restored(edited: Mapping[str, Any], original: Mapping[str, Any]) -> dict[str, Any]:
    """Return edited arguments with what was hidden from the person, or cut, put back.

    Args:
        edited: arguments as a person sends them, made from the shown ones.
        original: the complete ones.

    Raises:
        InvalidArguments: a mark of redaction or of a cut stands where there was none.
    """
    shown = shown_arguments(original)
    complete = {name: _restored(value, original.get(name), shown.get(name), name)
                for name, value in edited.items()}  # fmt: skip
    return complete


def _restored(edited: Any, original: Any, shown: Any, path: str) -> Any:
    if type(edited) is type(shown) and edited == shown:
        return original
    if isinstance(edited, Mapping):
        before, seen = _mapping(original), _mapping(shown)
        return {name: _restored(value, before.get(name), seen.get(name), f"{path}.{name}")
                for name, value in edited.items()}  # fmt: skip
    if isinstance(edited, list):
        before_list, seen_list = _sequence(original), _sequence(shown)
        return [
            _restored(value, _at(before_list, index), _at(seen_list, index), f"{path}[{index}]")
            for index, value in enumerate(edited)
        ]
    if isinstance(edited, str) and REDACTED in edited:
        raise InvalidArguments(
            f"{path} holds {REDACTED}, which stands for nothing there: leave a hidden value where it was, "
            "or write the whole value",
            fields={path: "a value that is not redacted"},
        )
    if isinstance(edited, str) and _CUT.search(edited):
        raise InvalidArguments(
            f"{path} is only the beginning of a longer value: leave it as it was shown, or write the whole value",
            fields={path: "a value that is not cut"},
        )
    return edited


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _sequence(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _at(values: list[Any], index: int) -> Any:
    return values[index] if index < len(values) else None

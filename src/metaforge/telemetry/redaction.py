"""Keep secrets out of logs and records: by the name of a field, and where a value is one by its form."""

import re
from collections.abc import Mapping
from typing import Any

REDACTED = "[redacted]"

_SECRET_NAME = re.compile(
    r"passw(or)?d|passphrase|secret|credential|authorization|cookie|bearer"
    r"|(api|client|service|private|access|signing|encryption|ssh|auth|licen[cs]e)key|^pwd$"
)
_TOKEN_NAME = re.compile(r"token$")
_NOT_SECRET = frozenset({"progresstoken"})
_SECRET_FORM = re.compile(r"(?P<url>\w://[^/\s:@]*:)[^/\s@]+(?=@)|(?P<scheme>\b[Bb]earer\s+)[\w.~+/=-]{8,}")
_MAX_DEPTH = 64


def is_secret(name: str) -> bool:
    """Return whether a field of this name holds a secret, whatever its spelling (`api_key`, `X-API-Key`, `apiKey`)."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    if plain in _NOT_SECRET:
        return False
    return _SECRET_NAME.search(plain) is not None or _TOKEN_NAME.search(plain) is not None


def redact(value: Any, *, _depth: int = 0) -> Any:
    """Return a copy of JSON-like data with every secret replaced by `[redacted]`."""
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, Mapping):
        if _depth >= _MAX_DEPTH:
            return f"[nested deeper than {_MAX_DEPTH} levels]"
        return {
            key: REDACTED if each not in (None, "") and is_secret(str(key)) else redact(each, _depth=_depth + 1)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        if _depth >= _MAX_DEPTH:
            return f"[nested deeper than {_MAX_DEPTH} levels]"
        return [redact(each, _depth=_depth + 1) for each in value]
    return value


def redact_text(text: str) -> str:
    """Return text without passwords in URLs and bearer tokens."""
    if "://" not in text and "earer" not in text:
        return text
    return _SECRET_FORM.sub(lambda match: (match["url"] or match["scheme"]) + REDACTED, text)

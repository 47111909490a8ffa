"""Keep secrets out of logs and records: by the name of a field, and where a value is one by its form."""

import re
from functools import lru_cache
from typing import Any

REDACTED = "[redacted]"

_SECRET_NAME = re.compile(
    r"passw(or)?d|passphrase|secret|credential|authorization|cookie|bearer"
    r"|(api|client|service|private|access|signing|encryption|ssh|auth|licen[cs]e)key|^pwd$"
)
_TOKEN_NAME = re.compile(r"token$")
_NOT_SECRET = frozenset({"progresstoken"})
_SECRET_FORM = re.compile(r"(?P<url>\w://[^/\s:@]*:)[^/\s@]+(?=@)|(?P<scheme>\b[Bb]earer\s+)[\w.~+/=-]{8,}")
_EMPTY = (None, "")
_MAX_DEPTH = 64
_TOO_DEEP = f"[nested deeper than {_MAX_DEPTH} levels]"
_CACHED_NAME_CHARS = 64


def is_secret(name: str) -> bool:
    """Return whether a field of this name holds a secret, whatever its spelling (`api_key`, `X-API-Key`, `apiKey`)."""
    return _judged(name) if len(name) <= _CACHED_NAME_CHARS else _judge(name)


def _judge(name: str) -> bool:
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    if plain in _NOT_SECRET:
        return False
    return _SECRET_NAME.search(plain) is not None or _TOKEN_NAME.search(plain) is not None


_judged = lru_cache(maxsize=4096)(_judge)


def redact(value: Any) -> Any:
    """Return a copy of JSON-like data with every secret replaced by `[redacted]`."""
    return _redact(value, 0)


def _redact(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind is str:
        return redact_text(value) if "://" in value or "earer" in value else value
    if kind is int or kind is float or value is None:
        return value
    if isinstance(value, dict):
        if depth >= _MAX_DEPTH:
            return _TOO_DEEP
        clean = {}
        for name, each in value.items():
            if is_secret(name if type(name) is str else str(name)) and each not in _EMPTY:
                clean[name] = REDACTED
            elif type(each) is str and "://" not in each and "earer" not in each:
                clean[name] = each
            else:
                clean[name] = _redact(each, depth + 1)
        return clean
    if isinstance(value, list | tuple):
        return [_redact(each, depth + 1) for each in value] if depth < _MAX_DEPTH else _TOO_DEEP
    return value


def redact_text(text: str) -> str:
    """Return text without passwords in URLs and bearer tokens."""
    return _SECRET_FORM.sub(lambda match: (match["url"] or match["scheme"]) + REDACTED, text)

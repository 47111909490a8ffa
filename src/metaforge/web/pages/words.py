"""How values read on a page: times, durations, JSON, statuses. Plain functions, used as template filters."""

import json
import re
import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

SHORT_CHARS = 160
_UNSEEN = re.compile(
    r"[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    r"\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Characters that are not seen, or turn the order in which others are read."""
_JOINERS = "\u200c\u200d"
"""Unseen too, and needed in the names of many people and in emoji."""


def pretty(value: Any) -> str:
    """Return JSON for people, exact: what would not be seen is written as its escape."""
    return _UNSEEN.sub(_escape, json.dumps(value, indent=2, ensure_ascii=False))


def inline(value: Any, limit: int = SHORT_CHARS) -> str:
    """Return a value in one line, cut where it is long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return seen(text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)")


def short(text: Any, limit: int = SHORT_CHARS) -> str:
    """Return a text in one line, cut where it is long: for lists that lead to the whole."""
    line = " ".join(str(text)[: limit * 4].split())
    return seen(line if len(line) <= limit else line[:limit].rstrip() + "…")


def seen(text: Any) -> str:
    """Return a text in which nothing is invisible or turns the direction of what surrounds it."""
    return _UNSEEN.sub(lambda match: match[0] if match[0] in _JOINERS else f"[U+{ord(match[0]):04X}]", str(text))


def spoken(name: Any) -> str:
    """Return a status or kind as words."""
    return str(name).replace("_", " ")


def moment(text: str) -> str:
    """Return an ISO 8601 time in UTC as a person reads it."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return text
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def ago(text: str, now: datetime | None = None) -> str:
    """Return how long ago a time was: `12 s ago`, `3 min ago`, `2 h ago`, `5 days ago`, else the date."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return text
    passed = ((now or datetime.now(UTC)) - (at if at.tzinfo else at.replace(tzinfo=UTC))).total_seconds()
    if passed < 1:
        return "now"
    for limit, unit_seconds, unit in ((60, 1, "s"), (3600, 60, "min"), (86400, 3600, "h")):
        if passed < limit:
            return f"{passed // unit_seconds:.0f} {unit} ago"
    days = int(passed // 86400)
    return f"{days} day{'s' if days > 1 else ''} ago" if days < 30 else at.date().isoformat()


def duration(seconds: float) -> str:
    """Return a duration: `0.4 s`, `12 s`, `1 min 40 s`, `2 h 5 min`, `3 days`."""
    if seconds < 10:
        return f"{max(seconds, 0):.1f} s"
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min" if whole < 172_800 else f"{whole // 86_400} days"


def milliseconds(value: float) -> str:
    """Return a duration that was measured in milliseconds."""
    return f"{value:.1f} ms" if value < 100 else f"{value:.0f} ms" if value < 1000 else duration(value / 1000)


def size(size_bytes: float) -> str:
    """Return a size in bytes with a unit: `812 B`, `15 kB`, `2.4 MB`."""
    if size_bytes < 1000:
        return f"{size_bytes:.0f} B"
    return f"{size_bytes / 1000:.0f} kB" if size_bytes < 1_000_000 else f"{size_bytes / 1_000_000:.1f} MB"


def rows(value: Mapping[str, Any]) -> list[tuple[str, str, bool]]:
    """Return what an object holds as lines of a table: name, text, and whether it needs room of its own."""
    told = []
    for name, each in value.items():
        text = _plain(each)
        long = len(text) > SHORT_CHARS or "\n" in text
        if long and not isinstance(each, str):
            text = pretty(each)
        told.append((str(name), seen_block(text), long))
    return told


def _plain(value: Any) -> str:
    """Return a value in one line, numbers to seven digits."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.7g}"
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return ", ".join(_plain(each) for each in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{spoken(name)} {_plain(each)}" for name, each in value.items())
    return json.dumps(value, ensure_ascii=False)


def seen_block(text: str) -> str:
    """Return a text of several lines in which nothing else is invisible."""
    return "\n".join(seen(line) for line in text.replace("\r\n", "\n").split("\n"))


def _escape(match: re.Match[str]) -> str:
    escaped = json.dumps(match[0])[1:-1]
    return escaped if escaped.startswith("\\") else f"\\u{ord(match[0]):04x}"


def initials(name: str) -> str:
    """Return up to two letters that stand for somebody."""
    parts = [part for part in re.split(r"[^\w]+", name) if part]
    letters = "".join(part[0] for part in parts[:2]) or "?"
    return unicodedata.normalize("NFC", letters).upper()


FILTERS = {
    each.__name__: each
    for each in (
        pretty, inline, short, seen, spoken, moment, ago, duration, milliseconds, size, rows, seen_block, initials,
    )
}  # fmt: skip

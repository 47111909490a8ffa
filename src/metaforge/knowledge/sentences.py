"""Where sentences end."""

import re
from collections.abc import Iterator

_OPENING, _CLOSING = "\"'(\\[\u201c\u2018", "\"')\\]\u201d\u2019"
_FULL_WIDTH = "\u3002\uff01\uff1f"
_END = re.compile(rf"[.!?\u2026]+[{_CLOSING}]*\s+(?=[{_OPENING}]*[^\W_a-z])|[{_FULL_WIDTH}]+\s*|\n\s*\n\s*")
_LAST_WORD = re.compile(r"(?:^|[\s(\[\"'\u201c])(\S+)$")
_NEVER = frozenset(
    {"e.g.", "i.e.", "cf.", "vs.", "dr.", "mr.", "mrs.", "ms.", "prof.", "resp.", "incl.", "excl.", "ca."}
)
_BEFORE_NUMBER = frozenset(
    {
        "fig.", "figs.", "no.", "nos.", "eq.", "eqs.", "sec.", "sect.", "ref.", "refs.", "tab.", "pp.", "p.", "vol.",
        "ch.", "max.", "min.", "typ.", "nom.", "approx.", "rev.", "ver.", "art.", "par.", "dia.", "pos.", "qty.", "pt.",
    }
)  # fmt: skip
_INITIAL = re.compile(r"(?:[A-Z]\.)+|\d{1,3}(?:\.\d{1,3}){0,4}\.")


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield the sentences of a text with where each begins; abbreviations and decimals do not end one."""
    begin = 0
    for found in _END.finditer(text):
        if _is_inside(text, begin, found):
            continue
        yield from _stripped(text, begin, found.end())
        begin = found.end()
    yield from _stripped(text, begin, len(text))


def _stripped(text: str, begin: int, end: int) -> Iterator[tuple[int, str]]:
    while begin < end and text[begin].isspace():
        begin += 1
    if sentence := text[begin:end].rstrip():
        yield begin, sentence


def _is_inside(text: str, begin: int, found: re.Match[str]) -> bool:
    """Whether a full stop belongs to an abbreviation, an initial or an item's number."""
    if not found[0].startswith("."):
        return False
    # A word before it longer than this is no abbreviation.
    before = _LAST_WORD.search(text[max(begin, found.start() - 24) : found.start() + 1])
    if before is None:
        return False
    word = before[1]
    following = text[found.end() : found.end() + 1]
    if word.lower() in _NEVER:
        return True
    if word.lower() in _BEFORE_NUMBER:
        return following.isdigit()
    # "1. Loosen the screw": the number belongs to what follows it. "1.2 V. The" has a unit before its stop.
    return bool(_INITIAL.fullmatch(word)) and (word[0].isalpha() or found.start() - len(word) <= begin)

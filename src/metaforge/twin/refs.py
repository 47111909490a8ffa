"""Item keys and references: `CAD-BRACKET`, `CAD-BRACKET@2`, and how a name becomes a key."""

import hashlib
import re
import unicodedata
from dataclasses import dataclass

from metaforge.core.errors import ToolError

KEY = re.compile(r"[A-Z0-9][A-Z0-9_.-]{0,79}")
_REVISION = re.compile(r"[1-9][0-9]{0,8}")
SLUG_CHARS = 48
MATCH_CHARS = 120
_NOT_ALPHANUMERIC = re.compile(r"[^A-Z0-9]+")
_MINUS = re.compile(r"(?<!\w)[-\u2212](?=[.,]?\d)")


@dataclass(frozen=True)
class ItemRef:
    """An item, or one of its revisions."""

    key: str
    revision: int | None = None

    def __str__(self) -> str:
        return self.key if self.revision is None else f"{self.key}@{self.revision}"


def parse_ref(text: str) -> ItemRef:
    """Read `KEY` or `KEY@n`.

    Raises:
        ToolError: it is neither.
    """
    key, at, number = text.strip().partition("@")
    if not KEY.fullmatch(key) or (at and not _REVISION.fullmatch(number)):
        raise ToolError(
            f"{text[:120]!r} is no item reference: write KEY or KEY@n, for instance CAD-BRACKET@2 "
            "(capital letters, digits, '_', '.', '-', at most 80 of them; n from 1)",
            kind="bad_item_ref",
        )
    return ItemRef(key, int(number) if at else None)


def is_ref(text: str) -> bool:
    """Whether a text has the form of `KEY` or `KEY@n`; node ids never have."""
    key, at, number = text.partition("@")
    return bool(KEY.fullmatch(key)) and (not at or bool(_REVISION.fullmatch(number)))


def derive_key(prefix: str, name: str) -> str:
    """Return the key an item of this name would like to have: PREFIX-SLUG, the slug at most 48 characters.

    Letters lose their accents; a name without any letter or digit of ASCII gets 8 digits of its SHA-256.
    """
    plain = unicodedata.normalize("NFKD", name).upper()
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    slug = _NOT_ALPHANUMERIC.sub("-", plain).strip("-")[:SLUG_CHARS].rstrip("-")
    return f"{prefix}-{slug or hashlib.sha256(name.encode()).hexdigest()[:8].upper()}"


def match_key(name: str) -> str:
    """Return what two names must have in common to be one item: the same words, whatever case and punctuation.

    Symbols count, and a minus before a number: "+5 V rail" and "-5 V rail" are two things.
    """
    folded = _MINUS.sub("\u00b1-", unicodedata.normalize("NFKC", name).casefold())
    kept = "".join(each if unicodedata.category(each)[0] in "LMNS" else " " for each in folded)
    words = "-".join(kept.split()) or "=" + name.strip()
    return words if len(words) <= MATCH_CHARS else "#" + hashlib.sha256(words.encode()).hexdigest()


def names_key(prefix: str, name: str, key: str) -> bool:
    """Whether a name says exactly this key, nothing of it lost to the key's alphabet or length."""
    return derive_key(prefix, name) == key and match_key(name) == key.removeprefix(prefix + "-").casefold()


def numbered_key(base: str, taken: set[str]) -> str:
    """Return `base`, or the first of `base-2`, `base-3` ... that is not taken."""
    key, number = base, 2
    while key in taken:
        key, number = f"{base}-{number}", number + 1
    return key

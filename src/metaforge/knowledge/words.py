"""Words as they are looked up: in code, so that both databases and every process find the same.

A part number is kept whole beside its parts, a number and its unit are one word however they are written, and other
words are reduced to their stems.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from metaforge.knowledge.passages import Passage

LONGEST = 64
"""Letters of a word; longer ones are no words."""
LEAST_IDENTIFIER = 3
LEAST_PREFIX = 5
"""An identifier of this length also finds those that begin with it: LM317 finds LM317T."""

_TOKEN = re.compile(r"[^\W_]+(?:(?:[.\-_/+#]|(?<=\d),(?=\d))[^\W_]+)*[%+]?")
_PARTS = re.compile(r"[.\-_/+#%]+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_MEASURED = re.compile(r"(\d+(?:[.,]\d+)*)([^\W\d_]+|%)")
_UNITS = frozenset(
    re.findall(
        r"\S+",
        """
        v mv kv uv μv a ma ka ua μa na w mw kw uw μw mm cm m um μm nm km in ft mil kg g mg lb oz n kn mn pa kpa mpa gpa
        bar psi hz khz mhz ghz s ms us μs ns ps h min ω kω mω ohm kohm mohm f pf nf uf μf mf mh uh μh nh c k deg °c rpm
        j kj db dbm ah mah wh kwh bit kbit mbit gbit kb mb gb ppm % t r l ml lm cd lx
        """,
    )
)
_BODIES = {
    "ansi", "asme", "astm", "bs", "cispr", "din", "ecss", "en", "etsi", "iec", "ieee", "ipc", "iso", "jedec", "jesd",
    "jis", "nfpa", "ul", "vda", "vde", "vdi",
}  # fmt: skip
"""Who issues standards: with the number that follows, it is the standard's name."""
_STOP = frozenset(
    re.findall(
        r"\S+",
        """
        a about above after all also am an and any are as at be because been before being below between both but by can
        could did do does doing down during each few for from further get had has have having he her here him his how i
        if in into is it its just me more most my no nor not of off on once only or other our out over own same she
        should so some such than that the their them then there these they this those through to too under until up us
        very was we were what when where which while who whom whose why will with would you your
        """,
    )
)


def tokens_of(text: str) -> Iterator[str]:
    """Yield the words of a text in small letters, compounds whole."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    for found in _TOKEN.finditer(plain.lower()):
        word = found[0]
        if len(word) <= LONGEST:
            yield word


def terms_of(text: str) -> list[str]:
    """Return what a text is looked up by, in its order, common words left out."""
    terms: list[str] = []
    before = ""
    for token in tokens_of(text):
        terms += _terms_of_token(token)
        if _names_standard(before, token):
            terms.append(before + token)
        if token in _UNITS and _NUMBER.fullmatch(before):
            terms.append(_plain(before) + token)
        before = token
    return terms


def indexed_text(passage: Passage) -> str:
    """Return all that a passage is found by."""
    return "\n".join(part for part in (passage.heading, passage.context, passage.text) if part)


@dataclass(frozen=True)
class Question:
    """A query, taken apart."""

    text: str

    @cached_property
    def terms(self) -> tuple[str, ...]:
        """Its words as passages are looked up by, each once."""
        return tuple(dict.fromkeys(terms_of(self.text)))

    @cached_property
    def identifiers(self) -> tuple[str, ...]:
        """The part numbers and the like in it, as they are looked up."""
        found: list[str] = []
        before = ""
        for token in tokens_of(self.text):
            if is_identifier(token):
                found.append(squeezed(token))
            elif _names_standard(before, token):
                found.append(before + token)
            before = token
        return tuple(dict.fromkeys(found))


def is_identifier(token: str) -> bool:
    """Whether a word names one thing: letters and digits together, or digits in groups; no number with a unit."""
    plain = squeezed(token)
    if len(plain) < LEAST_IDENTIFIER or not any(letter.isdigit() for letter in plain):
        return False
    measured = _MEASURED.fullmatch(token)
    if measured and measured[2] in _UNITS:
        return False
    return not _NUMBER.fullmatch(token)


def _names_standard(body: str, number: str) -> bool:
    return body in _BODIES and number.isdigit()


def squeezed(token: str) -> str:
    """Return an identifier as it is looked up: AISI-304 and aisi304 are the same."""
    return _PARTS.sub("", token)


def share_found(question: Question, terms: Collection[str], weights: dict[str, float]) -> float:
    """Return how much of a question's words a passage holds, 0 to 1; rare words count for more.

    Args:
        terms: the passage's.
        weights: of each of the question's words.
    """
    whole = sum(weights[term] for term in question.terms)
    if not whole:
        return 0.0
    return sum(weights[each] for each in question.terms if each in terms) / whole


def share_identified(question: Question, terms: Collection[str]) -> float:
    """Return how many of a question's identifiers a passage names, 0 to 1; one that only begins so counts less."""
    if not question.identifiers:
        return 0.0
    return sum(_named(each, terms) for each in question.identifiers) / len(question.identifiers)


def _named(identifier: str, terms: Collection[str]) -> float:
    if identifier in terms:
        return 1.0
    if len(identifier) >= LEAST_PREFIX and any(term.startswith(identifier) for term in terms):
        return 0.75
    return 0.0


@lru_cache(maxsize=1 << 16)
def _terms_of_token(token: str) -> tuple[str, ...]:
    if token.isalpha():
        return () if token in _STOP else (stem(token),)
    if _NUMBER.fullmatch(token):
        return (_plain(token),)
    if measured := _MEASURED.fullmatch(token):
        return (_plain(measured[1]), _plain(measured[1]) + measured[2])
    parts = [part for part in _PARTS.split(token) if part]
    whole = [squeezed(token)] if any(letter.isdigit() for letter in token) else []
    if whole and len(parts) == 1:
        return tuple(whole)
    told = (part if not part.isalpha() else stem(part) for part in parts if part not in _STOP)
    return (*whole, *told)


def _plain(number: str) -> str:
    return number.replace(",", ".") if number.count(",") == 1 and "." not in number else number.replace(",", "")


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """Return an English word without its ending."""
    return str(_stemmer().stemWord(word))


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    import snowballstemmer

    return snowballstemmer.stemmer("english")

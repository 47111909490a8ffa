"""Make lines of a PDF page's words, and find out which of them are headings or stand on every page."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

_CELL_GAP = 1.2
"""A gap this wide, in heights of letters, stands between cells and not between words."""
_MARGIN_RATIO = 0.1
_HEADING_WORDS = 16
_BOLD_HEADING_WORDS = 12
_LARGER_RATIO = 1.12
_BOLD = re.compile(r"bold|black|heavy|semibold|demi", re.IGNORECASE)
_NUMBERED = re.compile(r"(\d{1,2}(?:\.\d{1,3}){0,4})\.?\s+\S")
_CUT = re.compile(r"(\w+)([-\u00ad])$")
_LEADERS = re.compile(r"(?:\.\s?){5,}\s*\S{1,8}$")
_UNKNOWN_LETTER = re.compile(r"\(cid:\d+\)")
_PAGE_NUMBER = re.compile(r"(?:page|seite)?\s*#(?:\s*(?:of|/|von)\s*#)?", re.IGNORECASE)


@dataclass(frozen=True)
class Line:
    """A line of text, pt from the page's top left corner.

    Attributes:
        cells: its text; several where gaps are as wide as between the columns of a table.
        spans: left and right end of each cell.
        size: height of its letters.
    """

    cells: tuple[str, ...]
    spans: tuple[tuple[float, float], ...]
    top: float
    bottom: float
    size: float
    is_bold: bool
    page: int
    is_margin: bool = False

    @property
    def text(self) -> str:
        return " ".join(self.cells)


def lines_of(words: Iterable[dict[str, Any]], page: int, height: float) -> Iterator[Line]:
    """Yield the lines of words that come in reading order; those of a table of contents say nothing of their own."""
    gathered: list[dict[str, Any]] = []
    runs: list[list[dict[str, Any]]] = []
    for word in words:
        if not gathered or not _goes_on(gathered[-1], word):
            gathered = []
            runs.append(gathered)
        gathered.append(word)
    for line in (_line(run, page, height) for run in runs):
        if line.text and not _LEADERS.search(line.text):
            yield line


def _goes_on(last: dict[str, Any], word: dict[str, Any]) -> bool:
    """Whether a word stands right of another in its line, or below or above it as an index does."""
    low = min(last["bottom"] - last["top"], word["bottom"] - word["top"])
    shared = min(last["bottom"], word["bottom"]) - max(last["top"], word["top"])
    return bool(shared > low * 0.3 and word["x0"] > last["x1"] - 1)


def _line(words: list[dict[str, Any]], page: int, height: float) -> Line:
    letters = [char for word in words for char in word["chars"]]
    size = max(char["size"] for char in letters)
    bold = sum(bool(_BOLD.search(char["fontname"])) for char in letters)
    cells: list[list[dict[str, Any]]] = [[words[0]]]
    for last, word in pairwise(words):
        if word["x0"] - last["x1"] > _CELL_GAP * size:
            cells.append([])
        cells[-1].append(word)
    top, bottom = min(word["top"] for word in words), max(word["bottom"] for word in words)
    return Line(
        tuple(_UNKNOWN_LETTER.sub("", " ".join(word["text"] for word in cell)).strip() for cell in cells),
        tuple((cell[0]["x0"], cell[-1]["x1"]) for cell in cells),
        top, bottom, size, bold > len(letters) * 0.7, page,
        bottom < height * _MARGIN_RATIO or top > height * (1 - _MARGIN_RATIO),
    )  # fmt: skip


class Margins:
    """Knows what stands in the margin of page after page: it is kept once."""

    def __init__(self, lines: Iterable[Line], pages_count: int) -> None:
        pages: dict[str, set[int]] = {}
        for line in lines:
            if line.is_margin:
                pages.setdefault(_shape(line), set()).add(line.page)
        # Left and right pages have headers of their own.
        often = max(3, pages_count * 0.4)
        self._first = {shape: min(found) for shape, found in pages.items() if len(found) >= often}

    def hides(self, line: Line) -> bool:
        """Whether a line says again what an earlier page said."""
        if not line.is_margin:
            return False
        shape = _shape(line)
        return bool(_PAGE_NUMBER.fullmatch(shape)) or line.page > self._first.get(shape, line.page)


def _shape(line: Line) -> str:
    return re.sub(r"\d+", "#", line.text).strip()


class Headings:
    """Tells headings by what they look like beside the text of the whole document."""

    def __init__(self, lines: Sequence[Line]) -> None:
        sizes: Counter[float] = Counter()
        bold = total = 0
        for line in lines:
            sizes[_rounded(line.size)] += len(line.text)
            total += len(line.text)
            bold += len(line.text) if line.is_bold else 0
        self._body = sizes.most_common(1)[0][0] if sizes else 0.0
        self._bold_tells = bold < total * 0.3
        looks = {self._look(line) for line in lines if self._is_heading(line)}
        self._rank = {look: rank for rank, look in enumerate(sorted(looks, reverse=True), 1)}
        numbered = [self._rank[self._look(line)] - depth for line in lines if (depth := self._depth(line))]
        first = next((line for line in lines if self._is_heading(line)), None)
        # A title without a number is above the numbered headings, even where it looks like one.
        title = self._rank[self._look(first)] if first and not self._depth(first) else 0
        self._base = max(min(numbered, default=0), min(title, 1), 0)

    def level(self, line: Line) -> int:
        """Return a heading's level; 0 for a line that is none."""
        if not self._is_heading(line):
            return 0
        return self._base + depth if (depth := self._depth(line)) else self._rank[self._look(line)]

    def _depth(self, line: Line) -> int:
        found = _NUMBERED.match(line.text) if self._is_heading(line) else None
        return found[1].count(".") + 1 if found else 0

    def is_numbered(self, line: Line) -> bool:
        return self._depth(line) > 0

    def _look(self, line: Line) -> tuple[float, bool]:
        return _rounded(line.size), line.is_bold

    def _is_heading(self, line: Line) -> bool:
        text = line.text
        words = len(text.split())
        # A number and its title may stand apart; more cells are a row.
        if len(line.cells) > 2 or sum(letter.isalpha() for letter in text) < 3:
            return False
        if _rounded(line.size) >= self._body * _LARGER_RATIO:
            return words <= _HEADING_WORDS
        is_title = words <= _BOLD_HEADING_WORDS and not text.endswith((".", ",", ";", ":"))
        return line.is_bold and self._bold_tells and is_title and line.size >= self._body - 0.6


def _rounded(size: float) -> float:
    return round(size * 2) / 2


def joined(lines: Sequence[Line], known: frozenset[str]) -> str:
    """Return the text of a paragraph's lines, words that were cut at a line's end put together.

    A hyphen stays where the document has both halves as words, and never the whole: "low-" and "power".

    Args:
        lines: of one paragraph.
        known: every word of the document.
    """
    parts: list[str] = []
    for line in lines:
        text = line.text
        if parts and (cut := _CUT.search(parts[-1])) and (rest := re.match(r"[a-z]+", text)):
            first, second = cut[1].lower(), rest[0]
            is_compound = first + second not in known and {first, second} <= known and cut[2] == "-"
            parts[-1] = (parts[-1] if is_compound else parts[-1][:-1]) + text
            continue
        parts.append(text)
    return "\n".join(parts).replace("\u00ad", "")


def words_of(lines: Iterable[Line]) -> frozenset[str]:
    """Return every word of a document that does not stand cut at a line's end."""
    return frozenset(word for line in lines for word in re.findall(r"\w+", _CUT.sub("", line.text.lower())))

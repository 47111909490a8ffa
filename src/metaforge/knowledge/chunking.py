"""Cut a document into passages by its own structure.

A passage never crosses a heading, a row of a table is one passage with the table's header beside it, and prose is
cut between sentences at about 90 words: the embedder reads no more of it at once. What a cut would tear apart, the
sentence before or the words that introduce a list, is kept as context: indexed, and not quoted twice.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from metaforge.knowledge.blocks import Block, Fact, Heading, Paragraph, Row
from metaforge.knowledge.passages import Passage, join_row
from metaforge.knowledge.sentences import sentences

WORDS = 90
"""A passage is at most this long, unless a little more saves a scrap of one."""
_SCRAP_WORDS = 15
_CONTEXT_WORDS = 30
_ROW_WORDS = 180
_LETTERS_A_WORD = 8
"""Texts without blanks, and those all of part numbers, are counted by their letters."""
_LONG_WORD = re.compile(r"\S{401,}")
_CLAUSE = re.compile(r"(?<=[;:,])\s+|(?<=[\u3001\uff1b\uff0c])")


def count_words(text: str) -> int:
    """Return how long a text is, for an embedder: its words, or more where they are long."""
    return max(len(text.split()), -(-len(text) // _LETTERS_A_WORD))


def chunk(blocks: Iterable[Block]) -> Iterator[Passage]:
    """Yield a document's passages in its order."""
    section = _Section()
    for block in blocks:
        match block:
            case Heading():
                yield from section.enter(block)
            case Paragraph():
                yield from section.add(block)
            case Row():
                yield from section.add_row(block)
            case Fact():
                yield from section.flush()
                section.is_empty = False
                yield Passage(block.text, section.path(), None, block.line, "metadata", block.context)
    yield from section.close()


@dataclass(frozen=True)
class _Piece:
    """What is not cut: a sentence, or a line of code."""

    text: str
    line: int | None
    page: int | None
    words: int


@dataclass
class _Section:
    """The headings above, and what has been gathered for the next passage."""

    headings: list[Heading] = field(default_factory=list)
    is_empty: bool = False
    texts: list[str] = field(default_factory=list)
    words: int = 0
    first: _Piece | None = None
    context: str = ""

    def path(self, *more: str) -> str:
        return " > ".join([*(each.text for each in self.headings), *(each for each in more if each)])

    def enter(self, heading: Heading) -> Iterator[Passage]:
        yield from self.flush()
        if not " ".join(heading.text.split()):
            return
        above = self.headings[-1].level if self.headings else 0
        if heading.level <= above:
            yield from self._lonely()
        self.headings = [each for each in self.headings if each.level < heading.level]
        text = " ".join(shorten(heading.text).split())
        self.headings.append(Heading(text, heading.level, heading.line, heading.page))
        self.is_empty = True

    def close(self) -> Iterator[Passage]:
        yield from self.flush()
        yield from self._lonely()

    def _lonely(self) -> Iterator[Passage]:
        """A heading with nothing below it is itself what the document says."""
        if self.is_empty and self.headings:
            *above, last = self.headings
            self.is_empty = False
            yield Passage(last.text, " > ".join(each.text for each in above), last.page, last.line)

    def add(self, paragraph: Paragraph) -> Iterator[Passage]:
        pieces = list(_lines(paragraph) if paragraph.is_verbatim else _sentences(paragraph))
        total = sum(piece.words for piece in pieces)
        if not pieces:
            return
        self.is_empty = False
        room = WORDS + _SCRAP_WORDS if total <= _SCRAP_WORDS else WORDS
        if self.words and self.words + total > room:
            yield from self.flush()
        between = "\n" if paragraph.is_verbatim else " "
        parts = list(_shared_out(pieces))
        for part, following in zip(parts, [*parts[1:], []], strict=True):
            self._gather(part, between, paragraph.lead)
            if following:
                said = part[-1].text
                yield from self.flush()
                self.context = said if not paragraph.is_verbatim and part[-1].words <= _CONTEXT_WORDS else ""

    def _gather(self, part: list[_Piece], between: str, lead: str) -> None:
        if self.first is None:
            self.first = part[0]
            self.context = self.context or (lead if count_words(lead) <= _CONTEXT_WORDS else "")
        self.texts.append(between.join(piece.text for piece in part))
        self.words += sum(piece.words for piece in part)

    def flush(self) -> Iterator[Passage]:
        if self.first is not None:
            text = "\n".join(self.texts)
            yield Passage(text, self.path(), self.first.page, self.first.line, "prose", self.context)
        self.texts, self.words, self.first, self.context = [], 0, None, ""

    def add_row(self, row: Row) -> Iterator[Passage]:
        yield from self.flush()
        self.is_empty = False
        for cells, header in _narrow(row):
            text = join_row(cells)
            if text.strip(" |"):
                context = join_row(header) if any(header) else ""
                yield Passage(shorten(text), self.path(row.caption), row.page, row.line, "table_row", shorten(context))


def shorten(text: str) -> str:
    """Leave out the middle of what is no word: pictures written as letters, keys, addresses without end."""
    return _LONG_WORD.sub(lambda found: f"{found[0][:200]}…{found[0][-20:]}", text)


def _lines(paragraph: Paragraph) -> Iterator[_Piece]:
    for number, raw in enumerate(paragraph.text.split("\n")):
        line = paragraph.line + number if paragraph.line is not None else None
        for text in _cut(shorten(raw.rstrip())):
            if text.strip():
                yield _Piece(text, line, paragraph.page, count_words(text))


def _sentences(paragraph: Paragraph) -> Iterator[_Piece]:
    newlines, counted = 0, 0
    for begin, raw in sentences(paragraph.text):
        newlines += paragraph.text.count("\n", counted, begin)
        counted = begin
        line = paragraph.line + newlines if paragraph.line is not None else None
        for text in _cut(" ".join(shorten(raw).split())):
            yield _Piece(text, line, paragraph.page, count_words(text))


def _cut(text: str) -> Iterator[str]:
    """Cut a sentence that is over the limit by itself: after a comma where there is one, else between words."""
    if count_words(text) <= WORDS:
        yield text
        return
    gathered: list[str] = []
    size = 0
    for clause in (part for part in _CLAUSE.split(text) if part):
        for words in _runs(clause):
            words_count = count_words(words)
            if gathered and size + words_count > WORDS:
                yield " ".join(gathered)
                gathered, size = [], 0
            gathered.append(words)
            size += words_count
    if gathered:
        yield " ".join(gathered)


def _runs(clause: str) -> Iterator[str]:
    """Yield a clause, or runs of its words and letters that are within the limit."""
    if count_words(clause) <= WORDS:
        yield clause
        return
    letters = WORDS * _LETTERS_A_WORD
    run: list[str] = []
    size = 0
    for word in clause.split():
        for part in (word[at : at + letters] for at in range(0, len(word), letters)):
            if run and (len(run) >= WORDS or size + len(part) + 1 > letters):
                yield " ".join(run)
                run, size = [], 0
            run.append(part)
            size += len(part) + 1
    yield " ".join(run)


def _shared_out(pieces: list[_Piece]) -> Iterator[list[_Piece]]:
    """Yield parts of about the same length, each within the limit: 100 words are 50 and 50, not 90 and 10."""
    left = sum(piece.words for piece in pieces)
    part: list[_Piece] = []
    size = 0
    aim = left / max(1, -(-left // WORDS))
    for piece in pieces:
        if part and (size + piece.words > WORDS or size + piece.words / 2 > aim):
            yield part
            left -= size
            aim = left / max(1, -(-left // WORDS))
            part, size = [], 0
        part.append(piece)
        size += piece.words
    if part:
        yield part


def _narrow(row: Row) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield a row; one too wide to be read at once as several, each with the cell that names it."""
    if count_words(join_row(row.cells)) <= _ROW_WORDS or len(row.cells) < 3:
        yield from _low(row)
        return
    begin = 1
    while begin < len(row.cells):
        end, size = begin, 0
        while end < len(row.cells) and (end == begin or size + count_words(row.cells[end]) <= WORDS):
            size += count_words(row.cells[end])
            end += 1
        header = row.header[:1] + row.header[begin:end]
        yield from _low(Row(row.cells[:1] + row.cells[begin:end], header))
        begin = end


def _low(row: Row) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield a row; the sentences of a cell that holds a whole text go to several, each in that cell's place."""
    longest = max(range(len(row.cells)), key=lambda at: len(row.cells[at]), default=0)
    if not row.cells or count_words(join_row(row.cells)) <= _ROW_WORDS:
        yield row.cells, row.header
        return
    for part in _shared_out(list(_sentences(Paragraph(row.cells[longest])))):
        text = " ".join(piece.text for piece in part)
        rest = (each if count_words(each) <= _CONTEXT_WORDS else "" for each in row.cells)
        yield tuple(text if at == longest else each for at, each in enumerate(rest)), row.header

"""Read PDF: headings by their look, paragraphs in reading order, and rows of tables, with their pages."""

import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from metaforge.core.counts import counted
from metaforge.core.errors import FailureMode, OverLimit
from metaforge.knowledge.blocks import Block, Heading, Paragraph, Row
from metaforge.knowledge.limits import MAX_PAGES
from metaforge.knowledge.readers.pdf_lines import Headings, Line, Margins, joined, lines_of, words_of
from metaforge.knowledge.readers.pdf_tables import Table, aligned_table, ruled_tables
from metaforge.knowledge.refusals import damaged, empty, encrypted, truncated

Told = Callable[[int, int], None]
"""Told how many pages are read, and how many there are."""

_WORDS: dict[str, Any] = {"use_text_flow": True, "return_chars": True, "x_tolerance_ratio": 0.15, "y_tolerance": 8}
"""In the order in which they are drawn; a gap of 0.15 of a letter's height parts words, an index below does not."""
_END_BYTES = 8192
_ITEM = re.compile(r"(?:[\u2022\u25aa\u25cf\u25cb\u25a0\u25e6\uf0b7*\u2013-]|\(?[0-9a-z]{1,2}[.)])\s+")
_CAPTION = re.compile(r"(?:table|tab\.|tabelle)\s*[A-Z]?[\d.-]+", re.IGNORECASE)
_PASSWORD = 4
"""PDFium's code for a password that is missing."""


@dataclass
class Read:
    """What was read of a document.

    Attributes:
        blocks: in reading order.
        notes: what a person should know about what was not read.
        pages_count: of the document.
    """

    blocks: list[Block] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    pages_count: int | None = None


def read_pdf(data: bytes, name: str, told: Told) -> Read:
    """Return a document's blocks.

    Raises:
        ToolError: cut short, damaged, with a password, or without any text.
        OverLimit: it has too many pages (`document_too_many_pages`).
    """
    pages_count = _count_pages(data, name)
    pages = list(_pages(data, pages_count, told))
    lines = [each for page in pages for each in page if isinstance(each, Line)]
    silent = sum(1 for page in pages if not page)
    if silent == pages_count:
        pictures = counted(pages_count, "page is a picture", "pages are pictures")
        raise empty(name, pictures, "run text recognition on it first: ocrmypdf in.pdf out.pdf")
    told_pages = f"{silent:,} of {counted(pages_count, 'page')} without text: pictures of text are not read"
    notes = [told_pages] if silent else []
    return Read(list(_Document(lines, pages_count).blocks(pages)), notes, pages_count)


def _count_pages(data: bytes, name: str) -> int:
    import pypdfium2

    if b"%%EOF" not in data[-_END_BYTES:]:
        raise truncated(name, f"its end mark (%%EOF) is missing after {len(data):,} bytes")
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as fault:
        if getattr(fault, "err_code", None) == _PASSWORD or "password" in str(fault).lower():
            raise encrypted(name, "a PDF") from None
        raise damaged(name, "PDF", str(fault)) from None
    pages_count = len(document)
    document.close()
    if pages_count > MAX_PAGES:
        raise OverLimit(
            f"{name} has {pages_count:,} pages; the limit is {MAX_PAGES:,}",
            kind="document_too_many_pages", where=name, failure_mode=FailureMode.LIMIT,
            fix=f"split it into {-(-pages_count // MAX_PAGES)} files: qpdf --split-pages={MAX_PAGES} in.pdf out.pdf",
        )  # fmt: skip
    if not pages_count:
        raise damaged(name, "PDF", "it has no pages")
    return pages_count


def _pages(data: bytes, pages_count: int, told: Told) -> Iterator[list[Line | Table]]:
    """Yield lines and tables page by page, in the order in which the document draws them."""
    import pdfplumber

    with pdfplumber.open(io.BytesIO(data)) as document:
        for number, page in enumerate(document.pages, 1):
            yield list(_content(page, number))
            page.close()
            # The library would keep all that was drawn on every page.
            page.page_obj = None
            told(number, pages_count)


def _content(page: Any, number: int) -> Iterator[Line | Table]:
    tables = ruled_tables(page, number)
    shown: list[Table] = []
    waiting: list[dict[str, Any]] = []
    for word in page.extract_words(**_WORDS):
        if not word["upright"]:
            continue
        if not any(each.holds(word) for each in tables):
            waiting.append(word)
        elif found := [each for each in tables if each.holds(word) and each not in shown]:
            # A table stands where its first word is drawn.
            yield from _without_rulings(list(lines_of(waiting, number, page.height)))
            yield from found
            shown, waiting = shown + found, []
    yield from _without_rulings(list(lines_of(waiting, number, page.height)))


def _without_rulings(lines: Sequence[Line]) -> Iterator[Line | Table]:
    at = 0
    while at < len(lines):
        found = aligned_table(lines, at)
        if found is None:
            yield lines[at]
            at += 1
            continue
        table, at = found
        yield table


class _Document:
    """Makes blocks of pages, knowing what the whole document looks like."""

    def __init__(self, lines: Sequence[Line], pages_count: int) -> None:
        self._margins = Margins(lines, pages_count)
        self._headings = Headings(lines)
        self._known = words_of(lines)
        self._open: list[Line] = []
        """Lines of the paragraph that goes on."""
        self._title: list[Line] = []
        """Lines of the heading that goes on."""
        self._lead = ""
        self._said = ""
        self._table: Table | None = None
        """The last one, when nothing has followed it."""

    def blocks(self, pages: Sequence[Sequence[Line | Table]]) -> Iterator[Block]:
        for page in pages:
            for each in page:
                if isinstance(each, Table):
                    yield from self._rows(each)
                elif not self._margins.hides(each):
                    yield from self._line(each)
        yield from self._close()

    def _line(self, line: Line) -> Iterator[Block]:
        if level := self._headings.level(line):
            if self._title and not self._continues_title(line, level):
                yield from self._close()
            yield from self._end_paragraph()
            self._title.append(line)
            return
        yield from self._end_title()
        if self._open and not _goes_on(self._open[-1], line):
            yield from self._end_paragraph()
        self._table = None
        self._open.append(line)

    def _continues_title(self, line: Line, level: int) -> bool:
        last = self._title[-1]
        if self._headings.is_numbered(line):
            return False
        near = line.page == last.page and 0 < line.top - last.top < 1.8 * last.size
        return near and level >= self._headings.level(last) and abs(line.size - last.size) < 0.5

    def _close(self) -> Iterator[Block]:
        yield from self._end_title()
        yield from self._end_paragraph()

    def _end_title(self) -> Iterator[Block]:
        if self._title:
            first = self._title[0]
            text = " ".join(joined(self._title, self._known).split())
            yield Heading(text, self._headings.level(first), page=first.page)
            self._title, self._table, self._said = [], None, ""

    def _end_paragraph(self) -> Iterator[Block]:
        if not self._open:
            return
        text = joined(self._open, self._known)
        is_item = bool(_ITEM.match(text))
        if not is_item:
            self._lead = text if text.endswith(":") else ""
        yield Paragraph(text, page=self._open[0].page, lead=self._lead if is_item else "")
        self._open, self._said = [], text

    def _rows(self, table: Table) -> Iterator[Block]:
        yield from self._close()
        said = " ".join(self._said.split())
        caption = said if _CAPTION.match(said) and len(said) < 160 else ""
        last, header, rows = self._table, table.header, table.rows[table.header_rows :]
        if last is not None and not header and len(last.rows[0]) == len(table.rows[0]) and table.page == last.page + 1:
            # It goes on from the page before, where its header stands.
            header = last.header
            table = Table(table.box, (header, *table.rows), 1, table.page)
        for row in rows:
            yield Row(row, header, page=table.page, caption=caption)
        self._table = table


def _goes_on(last: Line, line: Line) -> bool:
    """Whether a line belongs to the paragraph of the one before."""
    if _ITEM.match(line.text) or abs(line.size - last.size) > 1.5:
        return False
    ends = last.text.endswith((".", "!", "?", ":", ";"))
    if line.page != last.page or line.top < last.top:
        # Over the page, or into the next column.
        return not ends and line.text[:1].islower()
    return line.top - last.bottom < 0.55 * last.size

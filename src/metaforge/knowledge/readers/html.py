"""Read HTML: what a reader sees of it, with the lines of the source."""

from collections.abc import Iterator
from typing import Any

from metaforge.knowledge.blocks import Block, Heading, Paragraph, Row
from metaforge.knowledge.refusals import damaged, empty

_UNSEEN = frozenset({"script", "style", "template", "noscript", "head", "svg", "math", "iframe", "object", "select"})
_AROUND = frozenset({"nav", "footer"})
"""Parts of a site, and not of the document."""
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_BLOCKS = frozenset(
    {
        "p", "div", "section", "article", "main", "header", "aside", "blockquote", "ul", "ol", "li", "dl", "dt", "dd",
        "pre", "table", "figure", "figcaption", "form", "fieldset", "details", "summary", "address", "hr", "body",
        "html", "nav", "footer", "center", *_HEADINGS,
    }
)  # fmt: skip
_MAX_SPAN = 64
_NO_MEMORY = 2
"""libxml2's code for it, which arrives as a mistake in the text."""


def read_html(text: str, name: str) -> Iterator[Block]:
    """Yield a page's blocks.

    Raises:
        ToolError: it cannot be parsed (`document_damaged`), or holds nothing (`document_empty`).
    """
    from lxml import etree, html

    try:
        root = html.document_fromstring(text, parser=html.HTMLParser(remove_comments=True, remove_pis=True))
    except (etree.ParserError, etree.XMLSyntaxError, ValueError) as fault:
        if getattr(fault, "code", 0) == _NO_MEMORY:
            raise MemoryError from None
        if not text.strip():
            raise empty(name, "it is empty", "give a file with text") from None
        raise damaged(name, "HTML", str(fault)) from None
    yield from _Page().read(root)


class _Page:
    """Walks the tree without recursion: pages nest as deep as they like."""

    def __init__(self) -> None:
        self._words: list[str] = []
        self._line: int | None = None
        self._marker = ""

    def read(self, root: Any) -> Iterator[Block]:
        stack: list[tuple[Any, bool]] = [(root, False)]
        while stack:
            element, is_leaving = stack.pop()
            tag = element.tag if isinstance(element.tag, str) else ""
            if is_leaving:
                if tag in _BLOCKS:
                    yield from self._flush()
                self._take(element.tail, element)
                continue
            if tag in _UNSEEN or tag in _AROUND or not tag:
                yield from self._flush() if tag in _BLOCKS else ()
                self._take(element.tail, element)
                continue
            if tag in _BLOCKS:
                yield from self._flush()
            found = list(_whole(element, tag))
            if found or tag == "table":
                yield from found
                self._take(element.tail, element)
                continue
            self._marker = "- " if tag == "li" else self._marker
            if tag == "br":
                self._words.append("\n")
            self._take(element.text, element)
            stack.append((element, True))
            stack.extend((child, False) for child in reversed(element))
        yield from self._flush()

    def _take(self, text: str | None, element: Any) -> None:
        if text and text.strip():
            self._line = self._line or element.sourceline
        if text:
            self._words.append(text)

    def _flush(self) -> Iterator[Block]:
        text = " ".join("".join(self._words).split())
        if text:
            # Lines inside a paragraph are not told apart: it begins at this one.
            yield Paragraph(f"{self._marker}{text}", self._line)
            self._marker = ""
        self._words, self._line = [], None


def _whole(element: Any, tag: str) -> Iterator[Block]:
    """Yield what is taken in one piece: headings, code and tables of data."""
    if tag in _HEADINGS:
        yield Heading(_text(element), int(tag[1]), element.sourceline)
    elif tag == "pre":
        yield Paragraph("".join(element.itertext()).strip("\n"), element.sourceline, is_verbatim=True)
    elif tag == "table":
        yield from _table(element)


def _text(element: Any) -> str:
    return " ".join("".join(_seen(element)).split())


def _seen(element: Any) -> Iterator[str]:
    stack: list[tuple[Any, bool]] = [(element, False)]
    while stack:
        node, is_leaving = stack.pop()
        if is_leaving:
            yield (" " if node.tag in _BLOCKS or node.tag == "br" else "") + (node.tail or "")
            continue
        if node is not element:
            stack.append((node, True))
        if isinstance(node.tag, str) and node.tag not in _UNSEEN:
            yield node.text or ""
            stack.extend((child, False) for child in reversed(node))


def _table(table: Any) -> Iterator[Block]:
    caption = next((_text(each) for each in table.iterfind("caption")), "")
    header: tuple[str, ...] = ()
    waiting: dict[int, tuple[int, str]] = {}
    """Column -> rows it still covers, and its text."""
    is_first = True
    for row in table.iterfind(".//tr"):
        cells = [each for each in row if each.tag in ("td", "th")]
        texts = _spread(cells, waiting)
        if not any(texts):
            continue
        is_header = all(each.tag == "th" for each in cells) or row.getparent().tag == "thead"
        if is_header and (is_first or row.getparent().tag == "thead"):
            header = _joined(header, texts)
        else:
            is_first = False
            yield Row(texts, header, row.sourceline, caption=caption)


def _joined(above: tuple[str, ...], below: tuple[str, ...]) -> tuple[str, ...]:
    """Join two rows of a header: "Limits" over "Min" is "Limits Min"."""
    if not above:
        return below
    width = max(len(above), len(below))
    pairs = zip(above + ("",) * (width - len(above)), below + ("",) * (width - len(below)), strict=True)
    return tuple(high if high == low else f"{high} {low}".strip() for high, low in pairs)


def _spread(cells: list[Any], waiting: dict[int, tuple[int, str]]) -> tuple[str, ...]:
    """Return a row's texts by column; a cell over several columns or rows is in each of them."""
    texts: list[str] = []
    for cell in cells:
        _fill(texts, waiting)
        columns, rows = _span(cell, "colspan"), _span(cell, "rowspan")
        text = _text(cell)
        for _ in range(columns):
            if rows > 1:
                waiting[len(texts)] = (rows - 1, text)
            texts.append(text)
    _fill(texts, waiting)
    return tuple(texts)


def _fill(texts: list[str], waiting: dict[int, tuple[int, str]]) -> None:
    while (covered := waiting.pop(len(texts), None)) is not None:
        rows, text = covered
        if rows > 1:
            waiting[len(texts)] = (rows - 1, text)
        texts.append(text)


def _span(cell: Any, name: str) -> int:
    given = cell.get(name) or "1"
    return min(max(int(given), 1), _MAX_SPAN) if given.isascii() and given.isdigit() else 1

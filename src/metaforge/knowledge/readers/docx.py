"""Read DOCX: headings by their style, paragraphs, items of lists and tables, in the document's order.

The archive is looked at before anything of it is unpacked: a few kilobytes can hold gigabytes.
"""

import io
import re
import zipfile
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from metaforge.core.errors import FailureMode, OverLimit
from metaforge.knowledge.blocks import Block, Heading, Paragraph, Row
from metaforge.knowledge.limits import MAX_PART_BYTES, MAX_PARTS, MAX_UNPACKED_BYTES
from metaforge.knowledge.refusals import damaged, encrypted, megabytes, truncated, unsupported

TEXT_PART = "word/document.xml"
_OTHERS = (
    ("xl/workbook", "a spreadsheet (XLSX)", "save the sheet as CSV"),
    ("ppt/presentation", "a presentation (PPTX)", "export it as PDF"),
    (".opf", "an e-book (EPUB)", "convert it to HTML or PDF"),
    ("styles.xml", "an OpenDocument file", "save a text as DOCX or PDF, a sheet as CSV"),
)
_NO_MEMORY = 2
"""libxml2's code for it, which arrives as a mistake in the text."""
_HEADING = re.compile(r"heading ([1-9])")
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_BREAKS = {f"{_W}br": "\n", f"{_W}cr": "\n", f"{_W}tab": "\t", f"{_W}noBreakHyphen": "-"}
_APART = frozenset({f"{_W}txbxContent", "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"})
"""Text boxes stand beside the paragraph that they are fastened to."""


def read_docx(data: bytes, name: str) -> Iterator[Block]:
    """Yield a document's blocks.

    Raises:
        ToolError: cut short, damaged, with a password.
        OverLimit: it unpacks to more than the limit (`document_unpacks_too_large`).
    """
    import docx
    from docx.opc.exceptions import OpcError
    from lxml import etree

    _check(data, name)
    try:
        document = docx.Document(io.BytesIO(data))
        yield from _Body(document).read(document.element.body)
    except (OpcError, etree.XMLSyntaxError, zipfile.BadZipFile, KeyError, ValueError, AttributeError) as fault:
        if getattr(fault, "code", 0) == _NO_MEMORY:
            raise MemoryError from None
        raise damaged(name, "DOCX", str(fault) or type(fault).__name__) from None


def _check(data: bytes, name: str) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = archive.infolist()
    except zipfile.BadZipFile:
        raise truncated(name, f"the directory at the end of its archive is missing after {len(data):,} bytes") from None
    except (ValueError, NotImplementedError, OSError) as fault:
        raise damaged(name, "DOCX", str(fault)) from None
    if any(part.flag_bits & 1 for part in parts):
        raise encrypted(name, "a DOCX")
    _check_is_docx([part.filename for part in parts], name)
    # What a part says of its size bounds what is unpacked of it.
    total = sum(part.file_size for part in parts)
    text = max((part.file_size for part in parts if part.filename.endswith(".xml")), default=0)
    if total > MAX_UNPACKED_BYTES or text > MAX_PART_BYTES or len(parts) > MAX_PARTS:
        raise OverLimit(
            f"{name} has {megabytes(len(data))} and unpacks to {megabytes(total)} in {len(parts):,} parts, the largest "
            f"of text {megabytes(text)}; the limits are {megabytes(MAX_UNPACKED_BYTES)}, {MAX_PARTS:,} parts and "
            f"{megabytes(MAX_PART_BYTES)}",
            kind="document_unpacks_too_large", where=name, failure_mode=FailureMode.LIMIT,
            fix="save it without its pictures or split it; a file that was sent to you may be meant to do harm",
        )  # fmt: skip


def _check_is_docx(names: list[str], name: str) -> None:
    if TEXT_PART in names:
        return
    for mark, what, fix in _OTHERS:
        if any(mark in each for each in names):
            raise unsupported(name, what, fix)
    raise unsupported(name, "a ZIP archive", "unpack it and give the documents in it")


class _Body:
    """Walks the body, controls for content in it included."""

    def __init__(self, document: Any) -> None:
        self._document = document
        self._said = ""
        self._is_listing = False
        self._lead = ""

    def read(self, container: Any) -> Iterator[Block]:
        stack = list(reversed(container))
        while stack:
            element = stack.pop()
            if element.tag == f"{_W}p":
                yield from self._paragraph(element)
            elif element.tag == f"{_W}tbl":
                yield from self._table(element)
            elif element.tag in (f"{_W}sdt", f"{_W}sdtContent", f"{_W}ins", f"{_W}customXml", f"{_W}smartTag"):
                stack.extend(reversed(element))

    def _paragraph(self, element: Any) -> Iterator[Block]:
        boxes = [box for box in element.iter(f"{_W}txbxContent") if not _is_repeated(box, element)]
        text = _text(element).strip()
        if text:
            yield self._named(element, text)
        for box in boxes:
            yield from self.read(box)

    @cached_property
    def _styles(self) -> dict[str | None, Any]:
        """The styles by their ids. Looked up here, because the library writes ids into queries, quotes and all."""
        return {style.get(f"{_W}styleId"): style for style in self._document.part.styles.element.iter(f"{_W}style")}

    def _style(self, element: Any) -> str:
        """Return the English name of a paragraph's style, or of the first heading it is based on."""
        named = element.find(f"{_W}pPr/{_W}pStyle")
        first = ""
        for _ in range(12):
            style = None if named is None else self._styles.get(named.get(f"{_W}val"))
            if style is None:
                break
            title = style.find(f"{_W}name")
            name = "" if title is None else str(title.get(f"{_W}val") or "").lower()
            if name == "title" or _HEADING.fullmatch(name):
                return name
            first = first or name
            named = style.find(f"{_W}basedOn")
        return first

    def _named(self, element: Any, text: str) -> Block:
        style = self._style(element)
        if style == "title":
            return Heading(text, 1)
        if found := _HEADING.fullmatch(style):
            # The title is above the first heading.
            return Heading(text, int(found[1]) + 1)
        is_item = style.startswith("list") or element.find(f"{_W}pPr/{_W}numPr") is not None
        if is_item and not self._is_listing:
            self._lead = self._said if self._said.endswith(":") else ""
        self._is_listing = is_item
        self._said = text
        return Paragraph(f"- {text}", lead=self._lead) if is_item else Paragraph(text)

    def _table(self, element: Any) -> Iterator[Block]:
        caption = self._said if re.match(r"table\b", self._said, re.IGNORECASE) and len(self._said) < 160 else ""
        rows = [_Cells(row) for row in element.iterchildren(f"{_W}tr")]
        width = max((len(row.texts) for row in rows), default=0)
        header: tuple[str, ...] = ()
        above: tuple[str, ...] = ()
        for number, row in enumerate(rows):
            texts = row.filled(above)
            above = texts
            if number == 0 and len(rows) > 1 and width > 1 and (row.is_header or _names_columns(texts)):
                header = texts
            elif any(texts):
                yield Row(texts, header, caption=caption)
        self._said = ""


class _Cells:
    """A row's texts by column: a cell over several columns is in each of them."""

    def __init__(self, row: Any) -> None:
        self.is_header = row.find(f"{_W}trPr/{_W}tblHeader") is not None
        self.texts: list[str] = []
        self._continued: set[int] = set()
        for cell in row.iterchildren(f"{_W}tc"):
            span = cell.find(f"{_W}tcPr/{_W}gridSpan")
            merge = cell.find(f"{_W}tcPr/{_W}vMerge")
            given = span.get(f"{_W}val", "1") if span is not None else "1"
            text = " ".join(" ".join(_text(each) for each in cell.iter(f"{_W}p")).split())
            for _ in range(min(int(given), 64) if given.isdigit() else 1):
                if merge is not None and merge.get(f"{_W}val") != "restart":
                    self._continued.add(len(self.texts))
                self.texts.append(text)

    def filled(self, above: tuple[str, ...]) -> tuple[str, ...]:
        """Return the texts; a cell that continues the one above says what that one says."""
        return tuple(
            above[at] if at in self._continued and at < len(above) and not text else text
            for at, text in enumerate(self.texts)
        )


def _text(element: Any) -> str:
    """Return what a paragraph says now: what was inserted is in it, what was deleted is not."""
    parts: list[str] = []
    stack = list(reversed(element))
    while stack:
        node = stack.pop()
        if node.tag == f"{_W}t":
            parts.append(node.text or "")
        elif node.tag in _BREAKS:
            parts.append(_BREAKS[node.tag])
        elif node.tag not in _APART and isinstance(node.tag, str):
            stack.extend(reversed(node))
    return "".join(parts)


def _is_repeated(box: Any, element: Any) -> bool:
    """Whether a text box is the second form of one, for older programs, or inside another."""
    for above in box.iterancestors():
        if above is element:
            return False
        if above.tag in _APART:
            return True
    return False


def _names_columns(texts: tuple[str, ...]) -> bool:
    return all(texts) and not any(re.fullmatch(r"[-+\u00b1~<>]?\s*\d[\d.,]*\s*\S{0,4}", text) for text in texts)

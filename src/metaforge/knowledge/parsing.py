"""From a file's bytes to passages, in the process that this is called in."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from metaforge.core.errors import FailureMode, OverLimit, ToolError
from metaforge.knowledge.blocks import Block
from metaforge.knowledge.chunking import chunk
from metaforge.knowledge.decoding import decode
from metaforge.knowledge.limits import MAX_PASSAGES
from metaforge.knowledge.passages import Passage
from metaforge.knowledge.refusals import empty

MODULES = {
    "pdf": ("pdfplumber", "pypdfium2"), "docx": ("docx", "lxml.etree"), "html": ("lxml.etree", "lxml.html"),
    "markdown": ("markdown_it",),
}  # fmt: skip
"""What each format's reader loads."""

Told = Callable[[int, int], None]


@dataclass
class Parsed:
    """What a document says.

    Attributes:
        passages: in its order.
        notes: what was not read of it.
        pages_count: where the format has pages.
    """

    passages: list[Passage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    pages_count: int | None = None


def parse(data: bytes, kind: str, name: str, told: Told = lambda done, total: None) -> Parsed:
    """Read a document of a known format.

    Args:
        data: the whole file.
        kind: as `recognise` named it.
        name: what to call it in messages.
        told: is told pages done and all pages, where there are pages.

    Raises:
        ToolError: it cannot be read; the message says why and what to do.
        OverLimit: it gives more than `MAX_PASSAGES` passages.
    """
    notes: list[str] = []
    pages_count: int | None = None
    blocks: Iterable[Block]
    if kind == "pdf":
        from metaforge.knowledge.readers.pdf import read_pdf

        read = read_pdf(data, name, told)
        blocks, notes, pages_count = read.blocks, read.notes, read.pages_count
    else:
        blocks = _blocks(data, kind, name)
    passages = list(_bounded(chunk(blocks), name))
    if not passages:
        raise empty(name, f"nothing is left of its {len(data):,} bytes", "give a file with text in it")
    return Parsed(passages, notes, pages_count)


def _blocks(data: bytes, kind: str, name: str) -> Iterable[Block]:
    match kind:
        case "docx":
            from metaforge.knowledge.readers.docx import read_docx

            return read_docx(data, name)
        case "step":
            from metaforge.knowledge.readers.step import read_step

            return read_step(data, name)
    return blocks_of_text(decode(data, name), kind, name)


def blocks_of_text(text: str, kind: str, name: str) -> Iterable[Block]:
    """Return the blocks of a format that is text."""
    from metaforge.knowledge.readers import csv, kicad, markdown, plain

    match kind:
        case "markdown":
            return markdown.read_markdown(text)
        case "csv":
            return csv.read_csv(text, name)
        case "html":
            from metaforge.knowledge.readers.html import read_html

            return read_html(text, name)
        case "kicad_sch":
            return kicad.read_schematic_facts(text, name)
        case "kicad_pcb":
            return kicad.read_board_facts(text, name)
        case "kicad_project":
            return kicad.read_project_facts(text, name)
    return plain.read_plain(text)


def _bounded(passages: Iterator[Passage], name: str) -> Iterator[Passage]:
    for count, passage in enumerate(passages, 1):
        if count > MAX_PASSAGES:
            raise OverLimit(
                f"{name} gives more than {MAX_PASSAGES:,} passages",
                kind="document_too_many_passages", where=name, failure_mode=FailureMode.LIMIT,
                fix="split it into several files, or leave out tables that nobody will ask about",
            )  # fmt: skip
        yield passage


def missing(kind: str, name: str, module: str) -> ToolError:
    """Say that what reads a format is not installed."""
    return ToolError(
        f"{name} is {kind.upper()}, and {module}, which reads it, is not installed",
        kind="reader_missing", where=name, failure_mode=FailureMode.ENVIRONMENT,
        fix='pip install "metaforge[knowledge]"',
    )  # fmt: skip

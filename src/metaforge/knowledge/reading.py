"""Read a document into passages, whatever it is, within bounds of time and memory.

Anything but a small text is read in a process of its own, which gets the file and nothing else: it can open no other
file, connect nowhere, and ends with the document. A broken or hostile file takes that process with it at the most.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO

from metaforge.core.errors import ToolError
from metaforge.knowledge.limits import MAX_FILE_BYTES, MAX_HERE_BYTES, MAX_TEXT_BYTES
from metaforge.knowledge.parsing import Parsed, parse
from metaforge.knowledge.passages import Passage
from metaforge.knowledge.reading_elsewhere import read_elsewhere
from metaforge.knowledge.recognition import BINARY, HEAD_BYTES, of_media, recognise
from metaforge.knowledge.refusals import empty, too_large

_SIMPLE = frozenset({"markdown", "text", "csv"})
"""Read by Python code alone, in time that grows with the size."""

Progress = Callable[[int, int], None]
"""Told how many pages are read, and how many there are."""


@dataclass(frozen=True)
class Document:
    """What was read of a file.

    Attributes:
        passages: in its order.
        format: `pdf`, `docx`, `html`, `markdown`, `text`, `csv`, `step`, `kicad_sch`, `kicad_pcb`, `kicad_project`.
        notes: what a person should know about what was not read.
        pages_count: where the format has pages.
    """

    passages: list[Passage]
    format: str
    notes: tuple[str, ...] = ()
    pages_count: int | None = None


def read_document(path: Path, name: str, *, progress: Progress | None = None) -> Document:
    """Read a file by what it really is. Blocks for as long as it takes, at most ten minutes.

    Args:
        path: the file, judged before as one that may be read.
        name: what to call it in messages, with its suffix.
        progress: is told pages done and all pages, where the format has pages.

    Raises:
        ToolError: it is not there, no document, damaged, cut short or protected, or holds no text.
        OverLimit: it is too large, has too many pages, or takes too much time or memory.
    """
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            return _read(file, name, progress or (lambda done, total: None))
    except OSError as fault:
        raise ToolError(
            f"{name} cannot be read: {fault.strerror or fault}",
            kind="document_missing", where=name, fix="give the path of a file in the workspace",
        ) from None  # fmt: skip


def read_passages(path: Path, name: str) -> list[Passage]:
    """Return a file's passages; see `read_document`."""
    return read_document(path, name).passages


def passages_of_text(text: str, media: str = "text/markdown", name: str = "the text") -> list[Passage]:
    """Return the passages of a text that is at hand.

    Args:
        text: of at most `MAX_TEXT_BYTES` as UTF-8.
        media: `text/markdown`, `text/plain`, `text/html` or `text/csv`.
        name: what to call it in messages.

    Raises:
        ToolError: it is empty, too large, or not what its media type says.
    """
    import tempfile

    kind, data = of_media(media), text.encode("utf-8", "replace")
    _check_size(len(data), kind, name)
    if _is_simple(kind, len(data)):
        return parse(data, kind, name).passages
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        return read_elsewhere(file, kind, name, lambda done, total: None).passages


def _open_at_once(path: str, flags: int) -> int:
    """Open a file; of a pipe that nobody writes to, do not wait for one."""
    return os.open(path, flags | os.O_NONBLOCK)


def _read(file: BinaryIO, name: str, progress: Progress) -> Document:
    about = os.fstat(file.fileno())
    if not S_ISREG(about.st_mode):
        raise OSError(0, "it is no ordinary file")
    head = file.read(HEAD_BYTES)
    kind = recognise(head, name)
    _check_size(about.st_size, kind, name)
    file.seek(0)
    if _is_simple(kind, about.st_size):
        found: Parsed = parse(file.read(MAX_HERE_BYTES), kind, name)
    else:
        found = read_elsewhere(file, kind, name, progress)
    return Document(found.passages, kind, tuple(found.notes), found.pages_count)


def _is_simple(kind: str, size_bytes: int) -> bool:
    return kind in _SIMPLE and size_bytes <= MAX_HERE_BYTES


def _check_size(size_bytes: int, kind: str, name: str) -> None:
    if not size_bytes:
        raise empty(name, "it has 0 bytes", "give a file with text in it")
    limit = MAX_FILE_BYTES if kind in BINARY else MAX_TEXT_BYTES
    if size_bytes > limit:
        raise too_large(name, size_bytes, limit)

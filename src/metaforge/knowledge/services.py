"""What in-process tools and commands need to use the library beside an event loop."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from metaforge.core.errors import FailureMode, ToolError
from metaforge.core.ids import sha256_bytes, sha256_file
from metaforge.knowledge.library import Library
from metaforge.knowledge.model import Ingested
from metaforge.knowledge.passages import Passage
from metaforge.store.location import StoreUnavailable

T = TypeVar("T")
Report = Callable[[float, str], None]
"""Told the fraction that is done, and of what."""


class Withdrawn(Exception):
    """Whoever asked is gone; nothing was written."""


@dataclass(frozen=True)
class Document:
    """What is to be put in: a text at hand, or a file to be read.

    Attributes:
        name: its `source_path`.
        text: what it says; None where `file` is read.
        file: where to read it.
    """

    name: str
    text: str | None = None
    file: Path | None = None


@dataclass(frozen=True)
class About:
    """What is noted beside a document."""

    project_id: str
    knowledge_type: str
    metadata: dict[str, Any]
    work_product_id: str = ""
    request_id: str = ""
    author: str = ""
    session_id: str = ""


@dataclass(frozen=True)
class Taken:
    """A document that is in, and what a person should know of it."""

    ingested: Ingested
    content_sha256: str
    notes: tuple[str, ...] = ()


class KnowledgeServices:
    """The library, used from an event loop: reading and embedding take seconds, so they run in threads.

    Args:
        library: what documents are put into.
        workspace: files are read below it.
    """

    def __init__(self, library: Library, workspace: Path) -> None:
        self.library = library
        self.workspace = workspace

    async def close(self) -> None:
        """End what runs in the background."""
        await asyncio.to_thread(self.library.close)

    async def take_in(self, documents: Sequence[Document], about: About, report: Report) -> list[Taken]:
        """Put documents in, one after the other; each is whole on disk before the next begins.

        Raises:
            ToolError: one cannot be read; those before it stay.
        """
        loop = asyncio.get_running_loop()
        taken: list[Taken] = []
        for number, document in enumerate(documents):
            begin = number / len(documents)

            def work(gone: threading.Event, each: Document = document, begin: float = begin) -> Taken:
                def tell(fraction: float, doing: str) -> None:
                    loop.call_soon_threadsafe(report, begin + fraction / len(documents), doing)

                return self._take(each, about, tell, gone)

            taken.append(await self.in_thread(work))
        return taken

    def take(self, document: Document, about: About, report: Report) -> Taken:
        """Put one document in; blocks. Raises ToolError and StoreUnavailable."""
        return self._take(document, about, report, threading.Event())

    def _take(self, document: Document, about: About, report: Report, gone: threading.Event) -> Taken:
        report(0.0, f"reading {document.name}")
        passages, sha256, notes = _read(document)

        def embedded(done: int, total: int) -> None:
            if gone.is_set():
                raise Withdrawn
            report(done / max(total, 1), f"{document.name}: {done:,} of {total:,} passages")

        ingested = self.library.ingest(
            project_id=about.project_id, source_path=document.name, passages=passages,
            knowledge_type=about.knowledge_type, content_sha256=sha256, metadata=about.metadata,
            source_work_product_id=about.work_product_id, request_id=about.request_id, author=about.author,
            session_id=about.session_id, progress=embedded,
        )  # fmt: skip
        return Taken(ingested, sha256, notes)

    async def in_thread(self, work: Callable[[threading.Event], T]) -> T:
        """Run blocking work in a thread.

        Args:
            work: is given an event that is set when the caller is gone; a write that has begun is finished.

        Raises:
            ToolError: `store_unavailable`, or what the work raises.
        """
        gone = threading.Event()
        task = asyncio.ensure_future(asyncio.to_thread(work, gone))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            gone.set()
            await asyncio.wait([task])
            raise
        except StoreUnavailable as fault:
            raise ToolError(fault.message, kind="store_unavailable", failure_mode=FailureMode.ENVIRONMENT) from None


def _read(document: Document) -> tuple[list[Passage], str, tuple[str, ...]]:
    from metaforge.knowledge.reading import passages_of_text, read_document

    if document.file is not None:
        found = read_document(document.file, document.name)
        return found.passages, sha256_file(document.file), found.notes
    text = document.text or ""
    return passages_of_text(text, _media(document.name), document.name), sha256_bytes(text.encode()), ()


def _media(name: str) -> str:
    suffix = Path(name).suffix.lower()
    kinds = {".csv": "text/csv", ".html": "text/html", ".htm": "text/html", ".txt": "text/plain"}
    return kinds.get(suffix, "text/markdown")

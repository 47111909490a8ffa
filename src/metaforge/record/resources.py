"""`metaforge://` resources: artefacts by digest, calls by id."""

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from metaforge.core.errors import ResourceNotFound, ResourceUnreadable
from metaforge.record.queries import CallLog
from metaforge.store.blobs import Blobs
from metaforge.store.location import StoreUnavailable
from metaforge.tools.context import Artefact

_REMEMBERED_COUNT = 200
_UNKNOWN_TYPE = "application/octet-stream"
_ANSWER = b'{"jsonrpc"'
"""What an answer begins with that was too large to be sent, and was kept whole."""
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Content:
    media_type: str
    content: bytes


Template = dict[str, Any]
Reader = Callable[[str, str], Content]
"""Takes the whole address and what follows its kind; raises ResourceNotFound or ResourceUnreadable."""
ScopedReader = Callable[[str, str, str], Content]
"""Takes the project that the reader has opened, too."""


class Resources:
    """Lists what this process produced lately; reads whatever the store holds."""

    def __init__(self, blobs: Blobs, calls: CallLog) -> None:
        self._blobs = blobs
        self._calls = calls
        self._recent: OrderedDict[str, Artefact] = OrderedDict()
        self._more: dict[str, tuple[Template, Reader]] = {}
        self._scoped: dict[str, tuple[tuple[Template, ...], ScopedReader]] = {}

    def add(self, kind: str, template: Template, read: Reader) -> None:
        """Serve `metaforge://{kind}/...` too.

        Args:
            kind: the first part of the address.
            template: its `resources/templates/list` entry.
            read: returns the content of a whole address, given what follows the kind; runs in a thread.
        """
        self._more[kind] = (template, read)

    def add_scoped(self, kind: str, templates: tuple[Template, ...], read: ScopedReader) -> None:
        """Serve `metaforge://{kind}/...` of the project that the reader has opened; see `add`."""
        self._scoped[kind] = (templates, read)

    def remember(self, artefacts: Iterable[Artefact]) -> None:
        """Put artefacts at the top of the listing."""
        for artefact in artefacts:
            self._recent[artefact.sha256] = artefact
            self._recent.move_to_end(artefact.sha256)
        while len(self._recent) > _REMEMBERED_COUNT:
            self._recent.popitem(last=False)

    def listed(self) -> list[dict[str, Any]]:
        """Return `resources/list` entries, newest first."""
        return [
            {"uri": a.uri, "name": a.path, "mimeType": a.media_type, "size": a.size_bytes}
            for a in reversed(self._recent.values())
        ]

    def templates(self) -> list[dict[str, Any]]:
        """Return `resources/templates/list` entries."""
        return [
            {
                "uriTemplate": "metaforge://artefacts/{sha256}",
                "name": "artefact",
                "description": "A file that a call produced, by the SHA-256 of its content.",
            },
            {
                "uriTemplate": "metaforge://calls/{call_id}",
                "name": "call",
                "description": "The record of a call: arguments, inputs with digests, artefacts, programs, outcome.",
                "mimeType": "application/json",
            },
            *(template for template, _ in self._more.values()),
            *(template for templates, _ in self._scoped.values() for template in templates),
        ]

    async def read(self, uri: str, project_id: str = "") -> Content:
        """Return a resource's bytes.

        Args:
            uri: its address.
            project_id: the project that the reader has opened.

        Raises:
            ResourceNotFound: nothing has that address.
            ResourceUnreadable: it is there and its content does not match its digest, or the disk refuses.
        """
        kind, _, name = uri.removeprefix("metaforge://").partition("/")
        if uri.startswith("metaforge://") and kind == "artefacts" and _SHA256.fullmatch(name):
            return await asyncio.to_thread(self._artefact, uri, name)
        if uri.startswith("metaforge://") and kind == "calls" and name:
            return await asyncio.to_thread(self._call, uri, name)
        if uri.startswith("metaforge://") and kind in self._more and name:
            return await asyncio.to_thread(self._more[kind][1], uri, name)
        if uri.startswith("metaforge://") and kind in self._scoped and name:
            return await asyncio.to_thread(self._scoped[kind][1], uri, name, project_id)
        there = ", ".join(each["uriTemplate"] for each in self.templates())
        raise ResourceNotFound(f"No such resource: {uri}. There are {there}", uri=uri)

    def _call(self, uri: str, call_id: str) -> Content:
        try:
            return Content("application/json", self._calls.get_call(call_id).line())
        except KeyError:
            raise ResourceNotFound(f"No such resource: {uri} (no call has that id)", uri=uri) from None
        except StoreUnavailable as fault:
            raise ResourceUnreadable(f"{uri} cannot be read: {fault.message}", uri=uri) from None

    def _artefact(self, uri: str, sha256: str) -> Content:
        try:
            content = self._blobs.read(sha256)
        except KeyError:
            raise ResourceNotFound(f"No such resource: {uri} (no artefact has that SHA-256)", uri=uri) from None
        except (OSError, StoreUnavailable) as fault:
            raise ResourceUnreadable(f"{uri} cannot be read: {fault}", uri=uri) from None
        media_type = self._media_type(sha256)
        if media_type == _UNKNOWN_TYPE and content.startswith(_ANSWER):
            media_type = "application/json"
        return Content(media_type, content)

    def _media_type(self, sha256: str) -> str:
        if sha256 in self._recent:
            return self._recent[sha256].media_type or _UNKNOWN_TYPE
        try:
            uses = self._calls.uses_of(sha256, limit=1)
        except StoreUnavailable:
            return _UNKNOWN_TYPE
        return (uses[0].file.media_type if uses else "") or _UNKNOWN_TYPE

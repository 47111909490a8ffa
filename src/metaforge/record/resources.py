"""`metaforge://` resources: artefacts by digest, calls by id."""

import asyncio
import re
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from metaforge.core.errors import ResourceNotFound, ResourceUnreadable
from metaforge.store.blobs import BlobStore
from metaforge.tools.context import Artefact

_REMEMBERED_COUNT = 200
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Content:
    media_type: str
    content: bytes


class Reader(Protocol):
    """What the record can look up: `record.queries.Queries`."""

    def call_json(self, call_id: str) -> bytes | None: ...

    def artefact(self, sha256: str) -> Artefact | None: ...


class Resources:
    """Lists what this process produced lately; reads whatever the store holds."""

    def __init__(self, blobs: BlobStore, reader: Reader) -> None:
        self._blobs = blobs
        self._reader = reader
        self._recent: OrderedDict[str, Artefact] = OrderedDict()

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

    @staticmethod
    def templates() -> list[dict[str, Any]]:
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
        ]

    async def read(self, uri: str) -> Content:
        """Return a resource's bytes.

        Raises:
            ResourceNotFound: nothing has that address.
            ResourceUnreadable: it is there and its content does not match its digest, or the disk refuses.
        """
        kind, _, name = uri.removeprefix("metaforge://").partition("/")
        if uri.startswith("metaforge://") and kind == "artefacts" and _SHA256.fullmatch(name):
            return await asyncio.to_thread(self._artefact, uri, name)
        if uri.startswith("metaforge://") and kind == "calls" and name:
            found = await asyncio.to_thread(self._reader.call_json, name)
            if found is not None:
                return Content("application/json", found)
        raise ResourceNotFound(
            f"No such resource: {uri}. There are metaforge://artefacts/{{sha256}} and metaforge://calls/{{call_id}}",
            uri=uri,
        )

    def _artefact(self, uri: str, sha256: str) -> Content:
        try:
            content = self._blobs.read(sha256)
        except KeyError:
            raise ResourceNotFound(f"No such resource: {uri} (no artefact has that SHA-256)", uri=uri) from None
        except (OSError, ValueError) as fault:
            raise ResourceUnreadable(f"{uri} cannot be read: {fault}", uri=uri) from None
        known = self._recent.get(sha256) or self._reader.artefact(sha256)
        return Content(known.media_type if known and known.media_type else "application/octet-stream", content)

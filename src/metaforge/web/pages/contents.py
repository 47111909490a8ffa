"""Contents by digest: pictures, 3-D models, files to keep, and the pages' own scripts and styles."""

import re

from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response

from metaforge.core.errors import MetaForgeError, ResourceNotFound
from metaforge.web.pages import policy
from metaforge.web.pages.models import Models, NotShown
from metaforge.web.services import Services

_SHA256 = re.compile(r"[0-9a-f]{64}")
_PICTURES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"))
_STATIC = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".txt": "text/plain"}


class Contents:
    """The addresses below `/pictures`, `/models`, `/files` and `/static`."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._models = Models(services)

    async def picture(self, request: Request) -> Response:
        """Send a picture: what its bytes say is one, nothing else, as anything else could be a page with scripts."""
        content = await self._content(request)
        for mark, media_type in _PICTURES:
            if content.startswith(mark):
                return Response(content, media_type=media_type, headers=policy.file_headers())
        raise ResourceNotFound("This content is no picture")

    async def model(self, request: Request) -> Response:
        """Send a shape as glTF, converted where it is a STEP or BREP file."""
        sha256 = _digest(request)
        try:
            content = await self._models.glb(sha256)
        except (NotShown, MetaForgeError) as fault:
            told = fault.message if isinstance(fault, MetaForgeError) else str(fault)
            return PlainTextResponse(told, 422, policy.file_headers(cached_seconds=0))
        return Response(content, media_type="model/gltf-binary", headers=policy.file_headers())

    async def file(self, request: Request) -> Response:
        """Send any content to be kept, never to be shown."""
        sha256 = _digest(request)
        found = await self._services.resources.read(f"metaforge://artefacts/{sha256}")
        name = re.sub(r"[^\w.-]", "_", request.query_params.get("name", "").rpartition("/")[2])[:120] or sha256[:16]
        more = {"content-disposition": f'attachment; filename="{name.encode("ascii", "replace").decode()}"'}
        return Response(found.content, media_type="application/octet-stream", headers={**policy.file_headers(), **more})

    async def static(self, request: Request) -> Response:
        """Send one of the pages' own files."""
        try:
            path = (policy.STATIC / request.path_params["path"]).resolve()
            is_there = path.is_relative_to(policy.STATIC) and path.is_file()
        except (OSError, ValueError):  # a name that no file can have
            is_there = False
        media_type = _STATIC.get(path.suffix) if is_there else None
        if media_type is None:
            return PlainTextResponse("There is no such file", 404, policy.static_headers())
        return FileResponse(path, media_type=media_type, headers=dict(policy.static_headers()))

    async def _content(self, request: Request) -> bytes:
        found = await self._services.resources.read(f"metaforge://artefacts/{_digest(request)}")
        return found.content


def _digest(request: Request) -> str:
    sha256: str = request.path_params["sha256"]
    if not _SHA256.fullmatch(sha256):
        raise ResourceNotFound(f"{sha256[:80]!r} is no SHA-256")
    return sha256

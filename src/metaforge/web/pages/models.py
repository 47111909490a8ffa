"""Shapes as glTF for the 3-D view: converted once by the CAD kernel in its own box, then kept by their digest."""

import asyncio
import re
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path

from metaforge.core.errors import OverLimit, ToolError, ToolTimedOut, ToolUnavailable, UnknownTool
from metaforge.core.ids import new_call_id
from metaforge.tools.context import Caller, Invocation, Trust
from metaforge.web.services import Services

TOOL_ID = "cadquery.export_geometry"
TIMEOUT_SECONDS = 120.0
MAX_BYTES = 64 << 20
"""Of a shape to be converted for a look; larger ones are downloaded."""
_FOLDER = ".metaforge"
_CALLER = Caller(actor_id="dashboard", trust=Trust.LOCAL, client_name="dashboard")
_REMEMBERED_COUNT = 256
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MARKS = ((b"ISO-10303-21;", "step"), (b"DBRep_DrawableShape", "brep"), (b"CASCADE Topology", "brep"))


class NotShown(Exception):
    """A content that cannot be seen in three dimensions; the message says why and what to do."""


class Models:
    """Makes glTF of shapes, one at a time: a kernel that is asked for many views must not slow the work of agents."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._cache = services.settings.home_path / "cache" / "models"
        self._faults: OrderedDict[str, str] = OrderedDict()
        self._making: dict[str, asyncio.Task[bytes]] = {}
        self._one = asyncio.Semaphore(1)

    async def glb(self, sha256: str) -> bytes:
        """Return a shape as binary glTF, in metres, y up, with its colours.

        Args:
            sha256: digest of a kept STEP, BREP or GLB file.

        Raises:
            NotShown: it is no shape, or cannot be converted here.
            KeyError: there is no such content.
        """
        if sha256 in self._faults:
            raise NotShown(self._faults[sha256])
        task = self._making.get(sha256)
        if task is None:
            # One conversion for all who look at the same shape; it is finished even if they leave.
            task = self._making[sha256] = asyncio.create_task(self._found(sha256))
            task.add_done_callback(lambda done: self._making.pop(sha256, None))
        return await asyncio.shield(task)

    async def _found(self, sha256: str) -> bytes:
        kept = await asyncio.to_thread(self._kept, sha256)
        if kept is not None:
            return kept
        content = await self._read(sha256)
        if content.startswith(b"glTF"):
            return content
        format = _format_of(content)
        async with self._one:
            try:
                made = await self._converted(content, format)
            except NotShown as fault:
                self._faults[sha256] = str(fault)
                if len(self._faults) > _REMEMBERED_COUNT:
                    self._faults.popitem(last=False)
                raise
        await asyncio.to_thread(self._keep, sha256, made)
        return await self._read(made)

    async def _read(self, sha256: str) -> bytes:
        return (await self._services.resources.read(f"metaforge://artefacts/{sha256}")).content

    async def _converted(self, content: bytes, format: str) -> str:
        """Convert, and return the digest of what the engine kept."""
        engine, catalogue = self._services.engine, self._services.catalogue
        if engine is None or catalogue is None:
            raise NotShown("This server converts no shapes")
        name = new_call_id()
        # What a tool writes may not be hidden; what it reads may.
        source, target = f"{_FOLDER}/{name}.{format}", f"out/view-{name}.glb"
        workspace = self._services.twin.workspace
        await asyncio.to_thread(_write, workspace / source, content)
        try:
            outcome = await engine.run(
                catalogue.find(TOOL_ID),
                {"input_file": source, "output_format": "glb", "output_path": target},
                Invocation(new_call_id(), _CALLER, TIMEOUT_SECONDS),
            )
        except UnknownTool:
            raise NotShown("The cadquery adapter is not loaded: METAFORGE_ADAPTERS leaves it out") from None
        except (ToolUnavailable, ToolTimedOut, OverLimit) as fault:
            raise _later(fault) from None
        except ToolError as fault:
            raise NotShown(
                f"The CAD kernel cannot show this shape: {fault.message.replace(source, 'the file')}"
            ) from None
        finally:
            await asyncio.to_thread(_remove, workspace / source, workspace / target)
        return next(file.sha256 for file in outcome.files if file.path == target)

    def _kept(self, sha256: str) -> bytes | None:
        try:
            made = (self._cache / f"{sha256}.txt").read_text().strip()
            return self._services.twin.blobs.read(made) if _SHA256.fullmatch(made) else None
        except (OSError, KeyError, UnicodeDecodeError):
            return None

    def _keep(self, sha256: str, made: str) -> None:
        self._cache.mkdir(parents=True, exist_ok=True)
        place = self._cache / f"{sha256}.txt"
        temporary = place.with_suffix(f".{new_call_id()}")
        temporary.write_text(made)
        temporary.replace(place)


def _later(fault: ToolUnavailable | ToolTimedOut | OverLimit) -> ToolError:
    """Return a fault that is not remembered: the next look may find more memory, time or programs."""
    return ToolError(f"The shape cannot be shown now: {fault.message}", kind="not_shown", retryable=True)


def _format_of(content: bytes) -> str:
    if len(content) > MAX_BYTES:
        raise NotShown(f"The shape has {len(content) >> 20} MB, at most {MAX_BYTES >> 20} are converted: download it")
    start = content[:200].lstrip(b"\xef\xbb\xbf \t\r\n")
    for mark, format in _MARKS:
        if start.startswith(mark):
            return format
    raise NotShown("Only STEP, BREP and GLB files are shown in three dimensions: download it")


def _write(target: Path, content: bytes) -> None:
    # Readable for the box's own user; the folder is never listed among the workspace's files.
    target.parent.mkdir(exist_ok=True, mode=0o755)
    target.write_bytes(content)
    target.chmod(0o644)


def _remove(*paths: Path) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
        with suppress(OSError):
            path.parent.rmdir()

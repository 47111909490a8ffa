"""Measure geometry with a real kernel, in its own box, from exactly the bytes that will be kept."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

from metaforge.core.errors import (
    InvalidArguments,
    OverLimit,
    ToolCrashed,
    ToolError,
    ToolTimedOut,
    ToolUnavailable,
    UnknownTool,
)
from metaforge.core.ids import new_call_id
from metaforge.tools.context import Invocation, Outcome
from metaforge.tools.manifest import Tool
from metaforge.twin.geometry import MEASURABLE, Measured

TOOL_ID = "cadquery.get_properties"
_FOLDER = ".metaforge"


class Engine(Protocol):
    """What runs tools: `engine.engine.ExecutionEngine`."""

    async def run(self, tool: Tool, arguments: dict[str, Any], invocation: Invocation) -> Outcome: ...


class Catalogue(Protocol):
    """What knows tools: `registry.registry.ToolRegistry`."""

    def find(self, name: str) -> Tool: ...


class Measurer:
    """Runs cadquery.get_properties on a copy that lies in the workspace only while it is measured."""

    arguments: ClassVar[Mapping[str, Any]] = {}
    """What the tool is given beside the file and its material."""

    def __init__(self, engine: Engine, catalogue: Catalogue, workspace: Path) -> None:
        self._engine = engine
        self._catalogue = catalogue
        self._workspace = workspace

    async def measure(
        self, content: bytes, format: str, material: Mapping[str, Any], invocation: Invocation
    ) -> Measured:
        """Measure a file.

        Args:
            content: its bytes.
            format: step, brep; others are not measured.
            material: `material` or `density_kg_m3`, for the mass.
            invocation: of the call that commits it; its deadline bounds the measuring.

        Raises:
            ToolError: `unreadable_geometry`: the kernel cannot read it, or dies of it.
            InvalidArguments: the material is unknown.
        """
        if format not in MEASURABLE:
            return Measured(problem=f"{format} files are not measured")
        try:
            tool = self._catalogue.find(TOOL_ID)
        except UnknownTool:
            return Measured(problem="the cadquery adapter is not loaded, so nothing was measured")
        path = f"{_FOLDER}/{new_call_id()}.{format}"
        target = self._workspace / path
        await asyncio.to_thread(_write, target, content)
        try:
            outcome = await self._engine.run(
                tool,
                {"input_file": path, **material, **self.arguments},
                replace(invocation, call_id=new_call_id(), overwrite=False),
            )
        except (ToolUnavailable, ToolTimedOut, OverLimit) as fault:
            return Measured(problem=fault.message)
        except InvalidArguments as fault:
            raise InvalidArguments(f"The geometry was not committed: {fault.message}", **fault.data) from None
        except ToolCrashed as fault:
            raise _unreadable("the CAD kernel died reading it", fault, path) from None
        except ToolError as fault:
            raise _unreadable(fault.message, fault, path) from None
        finally:
            await asyncio.to_thread(_remove, target)
        properties = dict(outcome.data.get("properties") or {})
        warnings = tuple(text.replace(path, "The geometry") for text in outcome.warnings if "are listed" not in text)
        programs = {each.name: each.version for each in outcome.programs}
        drawn = tuple(file.sha256 for file in outcome.files if file.role == "picture")
        return Measured(properties, warnings, programs, pictures=drawn)


def _unreadable(why: str, fault: ToolError, path: str) -> ToolError:
    """Say what the kernel said, without the name of the copy, which nobody knows."""
    where = "" if fault.where == path else fault.where.replace(path, "the file")
    return ToolError(
        f"The geometry was not committed: {why.replace(path, 'the file')}", kind="unreadable_geometry", where=where,
        fix=fault.fix or "Export it again from the program that made it, and look at it there first",
    )  # fmt: skip


def _write(target: Path, content: bytes) -> None:
    # Readable for the box's own user; the folder is never listed among the workspace's files.
    target.parent.mkdir(exist_ok=True, mode=0o755)
    target.write_bytes(content)
    target.chmod(0o644)


def _remove(target: Path) -> None:
    target.unlink(missing_ok=True)
    with suppress(OSError):
        target.parent.rmdir()

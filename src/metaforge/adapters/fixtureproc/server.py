"""Fixture tools in a process of their own: an echo to measure the boundary by, and the ways a tool can misbehave."""

import os
import time
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from metaforge.tools.context import Answer, OutputFile, ToolContext
from metaforge.tools.effect import Effect
from metaforge.tools.paths import OutputPath
from metaforge.tools.server import McpToolServer
from metaforge.tools.tool import tool

_STEP_SECONDS = 0.05

Seconds = Annotated[float, Field(ge=0, le=600)]
Bytes = Annotated[int, Field(ge=0, le=64_000_000)]


@dataclass(frozen=True)
class Echoed:
    """What was sent, and which process answered."""

    text: str
    pid: int


@dataclass(frozen=True)
class Slept:
    """How long the tool really slept."""

    slept_seconds: float
    pid: int


@dataclass(frozen=True)
class Grown:
    """A text of the size that was asked for."""

    text: str
    size_bytes: int


@dataclass(frozen=True)
class Written:
    """A file that was written."""

    file: str
    size_bytes: int


class FixtureProcServer(McpToolServer):
    """Serves test tools from a worker; never loaded unless METAFORGE_FIXTURES asks for it."""

    def __init__(self) -> None:
        super().__init__("fixtureproc", "1.0.0")

    @tool(effect=Effect.READ, capability="benchmark", title="Echo from a process", timeout_seconds=10, is_quick=True)
    def echo(self, ctx: ToolContext, text: str) -> Answer[Echoed]:
        """Return the text that was sent, from the adapter's own process.

        Args:
            text: what to return.
        """
        return Answer(Echoed(text=text, pid=os.getpid()), summary=text)

    @tool(effect=Effect.READ, capability="benchmark", title="Sleep", timeout_seconds=600)
    def sleep(self, ctx: ToolContext, seconds: Seconds) -> Answer[Slept]:
        """Sleep, reporting progress on the way.

        Args:
            seconds: how long, in seconds.
        """
        started = time.monotonic()
        while (elapsed := time.monotonic() - started) < seconds:
            ctx.progress(elapsed / seconds, f"{elapsed:.1f} of {seconds:g} s")
            time.sleep(min(_STEP_SECONDS, seconds - elapsed))
        slept_seconds = round(time.monotonic() - started, 3)
        return Answer(Slept(slept_seconds=slept_seconds, pid=os.getpid()), summary=f"Slept {slept_seconds:g} s.")

    @tool(effect=Effect.READ, capability="benchmark", title="Print", timeout_seconds=10)
    def print(self, ctx: ToolContext, text: str) -> Answer[Echoed]:
        """Write to standard output, where only the protocol belongs, then answer.

        Args:
            text: what to write there.
        """
        os.write(1, text.encode() + b"\n")
        return Answer(Echoed(text=text, pid=os.getpid()), summary="Written to standard output.")

    @tool(effect=Effect.READ, capability="benchmark", title="Grow", timeout_seconds=60)
    def grow(self, ctx: ToolContext, size_bytes: Bytes) -> Answer[Grown]:
        """Return a text of a given size.

        Args:
            size_bytes: how many bytes.
        """
        return Answer(Grown(text="x" * size_bytes, size_bytes=size_bytes), summary=f"{size_bytes} bytes.")

    @tool(effect=Effect.PRODUCE, capability="benchmark", title="Write a file", timeout_seconds=10)
    def write(self, ctx: ToolContext, text: str, output_path: OutputPath) -> Answer[Written]:
        """Write a text file into the workspace.

        Args:
            text: what to write.
            output_path: where, relative to the workspace.
        """
        ctx.output_file(output_path).write_text(text)
        size_bytes = len(text.encode())
        return Answer(
            Written(file=output_path, size_bytes=size_bytes),
            summary=f"Wrote {size_bytes} bytes to {output_path}.",
            files=(OutputFile(output_path, "text/plain", "text"),),
        )

    @tool(effect=Effect.READ, capability="benchmark", title="Crash", timeout_seconds=10)
    def crash(self, ctx: ToolContext, status: Annotated[int, Field(ge=0, le=255)] = 3) -> Answer[Echoed]:
        """End the process in the middle of the call.

        Args:
            status: the exit status to end with.
        """
        os._exit(status)

    @tool(effect=Effect.READ, capability="benchmark", title="Segmentation fault", timeout_seconds=10)
    def segfault(self, ctx: ToolContext) -> Answer[Echoed]:
        """Read address zero, as a CAD kernel does on a bad day."""
        import ctypes

        ctypes.string_at(0)
        raise AssertionError("reading address zero did not end the process")

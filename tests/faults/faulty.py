"""An adapter that fails in every way that users of such servers have reported."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, ClassVar

from pydantic import Field

from metaforge.tools.context import Answer, ToolContext
from metaforge.tools.effect import Effect
from metaforge.tools.server import McpToolServer
from metaforge.tools.tool import tool

READ: dict[str, Any] = {"effect": Effect.READ, "capability": "faults", "title": "Fault"}
ENDLESS = 1 << 40


@dataclass(frozen=True)
class Said:
    """What a tool has to say."""

    text: str = ""
    pid: int = 0


def said(text: str = "") -> Answer[Said]:
    return Answer(Said(text, os.getpid()), summary="said")


class FaultyServer(McpToolServer):
    name: ClassVar[str] = "faulty"

    def __init__(self) -> None:
        super().__init__(self.name, "1.0.0")

    @tool(**READ)
    def echo(self, ctx: ToolContext, text: str) -> Answer[Said]:
        """Return the text.

        Args:
            text: what to return.
        """
        return said(text)

    @tool(**READ, timeout_seconds=60)
    def slow(self, ctx: ToolContext, seconds: float, mark: str = "") -> Answer[Said]:
        """Take a while, leaving a line in a file of the workspace's neighbour when it begins and when it ends.

        Args:
            seconds: how long.
            mark: the file, where the box lets it be written.
        """
        _note(mark, f"begun {os.getpid()} {ctx.call_id}")
        ctx.progress(0.1, "begun")
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(0.05, left))
        _note(mark, f"ended {os.getpid()} {ctx.call_id}")
        return said("slept")

    @tool(**READ, idempotent=False, retries=0)
    def exit(self, ctx: ToolContext, status: int, mark: str = "", after: float = 0.0) -> Answer[Said]:
        """End the process.

        Args:
            status: with which exit status.
            mark: a file that gets one line for each time this runs.
            after: seconds to wait before.
        """
        _note(mark, "executed")
        time.sleep(after)
        os._exit(status)

    @tool(**READ, timeout_seconds=60)
    def line(self, ctx: ToolContext, size_bytes: Annotated[int, Field(ge=0)]) -> Answer[Said]:
        """Answer with a text of this many bytes; of 2^40, with a line that never ends.

        Args:
            size_bytes: how many.
        """
        if size_bytes < ENDLESS:
            return said("x" * size_bytes)
        while True:
            os.write(self._writer.fileno(), b"x" * 65536)

    @tool(**READ)
    def junk(self, ctx: ToolContext, text: str) -> Answer[Said]:
        """Write what is no message where only messages belong, then answer.

        Args:
            text: what to answer.
        """
        half = b'{"jsonrpc": "2.0", "id": 1, "resu\n'
        for raw in (b"\xef\xbb\xbf", b"\n", half, b"\x1b[31mwarning\x1b[0m\n", b"half "):
            os.write(self._writer.fileno(), raw)
        return said(text)

    @tool(effect=Effect.PRODUCE, capability="faults", title="Build", timeout_seconds=5)
    def build(self, ctx: ToolContext, seconds: float) -> Answer[Said]:
        """Build something, within five seconds.

        Args:
            seconds: how long it takes.
        """
        ctx.progress(0.5, "building")
        time.sleep(seconds)
        return said("built")

    def serve(self, reader: BinaryIO, writer: BinaryIO) -> None:
        self._writer = writer
        super().serve(reader, writer)


class NoisyServer(FaultyServer):
    """Prints a banner before anything else."""

    name = "noisy"

    def serve(self, reader: BinaryIO, writer: BinaryIO) -> None:
        banner = b"Welcome to the CAD kernel 7.9\n\n\x1b[1mlicensed\x1b[0m\n\xef\xbb\xbf\n"
        os.write(writer.fileno(), banner + b'{"half": \n')
        super().serve(reader, writer)


class HangingServer(FaultyServer):
    """Never gets ready."""

    name = "hanging"

    def warm_up(self) -> None:
        time.sleep(3600)


def _note(mark: str, text: str) -> None:
    if mark:
        with Path(mark).open("a") as stream:
            stream.write(text + "\n")

"""`McpToolServer`: what an adapter's process is. Speaks the legacy dialect over stdio or HTTP.

A worker serves one call at a time on its main thread: CAD kernels and solvers are not made for threads, and
cancelling a call means ending the process.
"""

import asyncio
import gc
import inspect
import os
import shutil
import sys
import tempfile
import time
import traceback
import weakref
from collections.abc import Callable, Coroutine, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from metaforge.core.errors import InvalidArguments, MetaForgeError, ToolError, UnknownMethod, UnknownTool
from metaforge.protocol import jsonrpc
from metaforge.protocol.jsonrpc import Message
from metaforge.protocol.messages import ToolManifest
from metaforge.tools.context import ToolContext
from metaforge.tools.descriptors import take_stdin, take_stdout
from metaforge.tools.folder import EmptyFolder
from metaforge.tools.guard import limit_cpu
from metaforge.tools.manifest import Need
from metaforge.tools.replies import answer_json, complete_error, unexpected
from metaforge.tools.tool import MarkedTool

Handler = Callable[..., Any]

_folder = lru_cache(maxsize=8)(Path)
"""Folders are the same from call to call, and making a Path costs as much as validating a small call."""

_NOWHERE = Path("/nonexistent")
"""The scratch folder of a quick tool, which leaves no file."""

WORKSPACE = "METAFORGE_WORKER_WORKSPACE"
OUTPUT = "METAFORGE_WORKER_OUTPUT"


class McpToolServer:
    """Base class of an adapter. Subclass it, mark methods with `@tool`, or call `register_tool`.

    Class attributes:
        needs: programs and modules that every tool of the adapter needs.
        in_process: True for adapters the server itself runs; they start no process.
        http_port: where it listens over HTTP when nobody says otherwise.
    """

    needs: ClassVar[tuple[Need, ...]] = ()
    in_process: ClassVar[bool] = False
    http_port: ClassVar[int] = 8080

    def __init__(self, adapter_id: str, version: str, *, groups: Sequence[object] = ()) -> None:
        """Collect the tools.

        Args:
            adapter_id: the part of every tool's id before its dot.
            version: of the adapter.
            groups: objects whose marked methods are tools of this adapter too, for an adapter of many tools.
        """
        self.adapter_id = adapter_id
        self.version = version
        self._manifests: dict[str, ToolManifest] = {}
        self._handlers: dict[str, Handler] = {}
        self._marked: dict[str, MarkedTool] = {}
        self._started = time.monotonic()
        self._last_invocation = 0.0
        self._scratch: EmptyFolder | None = None
        self._home = ""
        self._emit: Callable[[Message], None] = lambda message: None
        for method in (each for owner in (self, *groups) for each in _marked_methods(owner)):
            marked = MarkedTool(adapter_id, self.needs, method)
            self._marked[marked.id] = marked

    def register_tool(self, manifest: ToolManifest, handler: Handler) -> None:
        """Register a tool by hand. `handler(arguments)` returns a dict or an Answer; it may be async."""
        if manifest.tool_id in self._handlers or manifest.tool_id in self._marked:
            raise ValueError(f"{manifest.tool_id} is already registered")
        self._manifests[manifest.tool_id] = manifest
        self._handlers[manifest.tool_id] = handler

    def manifests(self) -> list[ToolManifest]:
        """Return every tool's manifest, in a fixed order."""
        return [marked.manifest() for marked in self._marked.values()] + list(self._manifests.values())

    def marked(self, tool_id: str) -> MarkedTool | None:
        """Return the method that serves a tool, or None."""
        return self._marked.get(tool_id)

    def handler(self, tool_id: str) -> Handler | None:
        """Return the handler that was registered for a tool, or None."""
        return self._handlers.get(tool_id)

    def warm_up(self) -> None:
        """Import what is slow. Called once in a worker before its first call; the default does nothing."""

    async def handle_request(self, raw_message: str) -> str:
        """Answer one JSON-RPC message; a notification is answered with an empty string."""
        reply = await self._answer(raw_message.encode())
        return jsonrpc.encode(reply).decode() if reply else ""

    async def _answer(self, raw: bytes) -> Message | None:
        request_id: jsonrpc.RequestId | None = None
        try:
            message = jsonrpc.decode(raw)
            request_id = message.get("id")
            if request_id is None:
                return None
            params = message.get("params") or {}
            return jsonrpc.result(request_id, await self._dispatch(request_id, message.get("method"), params))
        except MetaForgeError as fault:
            return jsonrpc.error(request_id, fault.code, fault.message, fault.data or None)
        except MemoryError:
            return unexpected(request_id, "memory_limit", "The tool ran out of the memory it may use")
        except Exception as fault:  # noqa: BLE001 - the process boundary: an adapter's own fault becomes an answer
            traceback.print_exc(file=sys.stderr)
            return unexpected(request_id, "adapter_fault", f"The adapter failed: {type(fault).__name__}: {fault}")

    async def _dispatch(self, request_id: jsonrpc.RequestId, method: str | None, params: Message) -> Message:
        if method == "tool/call":
            return await self._call(request_id, params)
        if method == "tool/list":
            return self._list(params.get("capability"))
        if method == "health/check":
            return self.health()
        raise UnknownMethod(f"Unknown method {method!r}: this adapter answers tool/list, tool/call, health/check")

    def _list(self, capability: str | None) -> Message:
        tools = [m for m in self.manifests() if capability is None or m.capability == capability]
        return {"tools": [m.model_dump(mode="json") for m in tools]}

    def health(self) -> Message:
        """Return the answer to `health/check`."""
        last = self._last_invocation
        return {
            "adapter_id": self.adapter_id,
            "status": "healthy",
            "version": self.version,
            "tools_available": len(self._marked) + len(self._handlers),
            "uptime_seconds": round(time.monotonic() - self._started, 3),
            "last_invocation": datetime.fromtimestamp(last, UTC).isoformat()
            if (last := self._last_invocation)
            else None,
        }

    async def _call(self, request_id: jsonrpc.RequestId, params: Message) -> Message:
        tool_id, arguments = str(params.get("tool_id")), params.get("arguments") or {}
        started = time.perf_counter()
        self._last_invocation = time.time()
        marked = self._marked.get(tool_id)
        try:
            if marked is not None and marked.mark.is_quick:
                answer = await self._run_marked(marked, arguments, self._context(request_id, params, _NOWHERE))
            else:
                answer = await self._run_in_scratch(request_id, tool_id, arguments, params)
        except (InvalidArguments, UnknownTool, ToolError) as fault:
            complete_error(fault, tool_id, _elapsed_ms(started))
            raise
        return {"tool_id": tool_id, "status": "success", "duration_ms": _elapsed_ms(started), **answer}

    async def _run_in_scratch(
        self, request_id: jsonrpc.RequestId, tool_id: str, arguments: dict[str, Any], params: Message
    ) -> Message:
        """Run a tool in an empty folder, within the CPU time that it may use."""
        marked = self._marked.get(tool_id)
        scratch = self._take_scratch()
        ctx = self._context(request_id, params, scratch.path)
        if params.get("max_cpu_seconds"):
            limit_cpu(int(params["max_cpu_seconds"]), sealed=bool(marked and marked.mark.runs_caller_code))
        previous = self._home or os.getcwd()
        os.chdir(scratch.path)
        try:
            if marked is not None:
                return await self._run_marked(marked, arguments, ctx)
            return await self._run_handler(tool_id, arguments)
        finally:
            os.chdir(previous)
            self._put_scratch(scratch)

    def _take_scratch(self) -> EmptyFolder:
        """Return an empty folder. One is kept from call to call: making and removing it costs more than an echo."""
        scratch, self._scratch = self._scratch, None
        if scratch is None:
            scratch = EmptyFolder(Path(tempfile.mkdtemp(prefix="call-")))
            weakref.finalize(self, shutil.rmtree, scratch.path, ignore_errors=True)
        return scratch

    def _put_scratch(self, scratch: EmptyFolder) -> None:
        try:
            if not scratch.is_empty():
                shutil.rmtree(scratch.path, ignore_errors=True)
            elif self._scratch is None:
                self._scratch = scratch
        except OSError:
            # The tool removed it, or made it unreadable: the next call gets another.
            return

    def _context(self, request_id: jsonrpc.RequestId, params: Message, scratch: Path) -> ToolContext:
        workspace = _folder(os.environ.get(WORKSPACE) or os.getcwd())
        output = _folder(params.get("output_dir") or os.environ.get(OUTPUT) or workspace)

        def progress(fraction: float, message: str) -> None:
            params = {"request_id": request_id, "progress": min(max(fraction, 0.0), 1.0), "message": message}
            self._emit(jsonrpc.notification("tool/result", params))

        return ToolContext(
            call_id=str(params.get("call_id") or request_id),
            workspace=workspace,
            output=output,
            scratch=scratch,
            timeout_seconds=float(params.get("timeout_seconds") or 120),
            overwrite=bool(params.get("overwrite")),
            progress=progress,
        )

    async def _run_marked(self, marked: MarkedTool, arguments: dict[str, Any], ctx: ToolContext) -> Message:
        result = marked.method(ctx, **(arguments if marked.fits(arguments) else marked.validate(arguments)))
        return answer_json(await result if marked.is_async else result, marked)

    async def _run_handler(self, tool_id: str, arguments: dict[str, Any]) -> Message:
        handler = self._handlers.get(tool_id)
        if handler is None:
            known = ", ".join([*self._marked, *self._handlers])
            raise UnknownTool(f"Unknown tool {tool_id!r}: this adapter has {known}")
        result = handler(arguments)
        if inspect.isawaitable(result):
            result = await result
        return answer_json(result, None)

    async def start_stdio(self) -> None:
        """Serve newline-delimited JSON-RPC until stdin closes.

        stdin and stdout belong to the protocol: both are moved to private descriptors; whatever a library prints
        goes to stderr instead, and a program started here finds an empty stdin.
        """
        # Served in a thread of its own: the caller's event loop stays free, and tools may start loops of theirs.
        await asyncio.to_thread(self.serve, take_stdin(), take_stdout())

    def serve(self, reader: BinaryIO, writer: BinaryIO) -> None:
        """Answer requests one after another. Blocking on purpose: a worker has one call and one thread."""
        descriptor = writer.fileno()

        def emit(message: Message) -> None:
            pending = memoryview(jsonrpc.encode(message) + b"\n")
            while pending:
                pending = pending[os.write(descriptor, pending) :]

        self._emit = emit
        self._home = os.getcwd()
        # What a kernel brings stays: looking through it for garbage again and again finds nothing.
        gc.disable()
        self.warm_up()
        gc.freeze()
        gc.enable()
        emit(jsonrpc.notification("worker/ready", {"adapter_id": self.adapter_id, "version": self.version}))
        with asyncio.Runner() as runner:
            drive = runner.run if self._may_wait() else _drive
            for line in iter(reader.readline, b""):
                if not line.strip():
                    continue
                reply = drive(self._answer(line))
                if reply is not None:
                    emit(reply)

    def _may_wait(self) -> bool:
        """Whether any tool needs an event loop: entering one for each call would double the cost of a small call."""
        return bool(self._handlers) or any(marked.is_async for marked in self._marked.values())

    async def start_http(self, host: str = "0.0.0.0", port: int | None = None) -> None:
        """Serve `POST /rpc` (and `/mcp`), and `GET /health`, one call at a time; on `http_port` by default.

        Callers must show METAFORGE_WORKER_KEY as a bearer token, where that variable is set.
        """
        from metaforge.tools.http import KEY, serve_http

        await serve_http(self, host, self.http_port if port is None else port, os.environ.get(KEY, ""))


def _marked_methods(owner: object) -> Iterator[Callable[..., Any]]:
    for name, function in inspect.getmembers(type(owner), inspect.isfunction):
        if hasattr(function, "__tool_mark__"):
            yield getattr(owner, name)


def _drive(answer: Coroutine[Any, Any, Message | None]) -> Message | None:
    """Run a coroutine that waits for nothing."""
    try:
        answer.send(None)
    except StopIteration as done:
        reply: Message | None = done.value
        return reply
    answer.close()
    raise RuntimeError("a tool that is no coroutine function waited for an event loop")


def _elapsed_ms(since: float) -> float:
    return round((time.perf_counter() - since) * 1000, 3)

"""A Service small enough to see through, for the tests of both transports; also a server of its own.

`python tests/mcp/tiny.py stdio`, or `... http PORT`, serves it.
"""

import asyncio
import sys
from typing import Any

from metaforge.core.errors import (
    FailureMode,
    InvalidArguments,
    NotApproved,
    ResourceNotFound,
    ToolError,
    ToolTimedOut,
    ToolUnavailable,
    UnknownTool,
)
from metaforge.mcp.service import ClientInfo, ResourceContent
from metaforge.tools.context import Artefact, Caller, ImageContent, Outcome
from metaforge.tools.effect import Effect
from metaforge.tools.manifest import Limits, Tool

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
FORM = {"type": "object", "properties": {"approve": {"type": "boolean"}}, "required": ["approve"]}
STEP = Artefact("out/box.step", "/w/out/box.step", "ab" * 32, 12, "model/step", "geometry")


def _tool(name: str, capability: str = "test", **fields: Any) -> Tool:
    schema = {"type": "object", "properties": {}, "additionalProperties": True}
    given = {"input_schema": schema, "output_schema": {}, "effect": Effect.READ, **fields}
    return Tool(
        id=f"tiny.{name}", adapter_id="tiny", name=name.title(), description=name, capability=capability, **given
    )


class TinyService:
    """Knows a few tools; keeps what was called, by whom, and what was cancelled."""

    version = "9.9"

    def __init__(self) -> None:
        names = ["slow", "progress", "ask", "ask_twice", "ask_and_wait", "sample", "chat"]
        names += ["refuse", "wrong", "crash", "gone", "late", "held", "odd", "inner_cancel", "content", "big"]
        echoed = {"type": "object", "properties": {"echo": {"type": "string"}}, "required": ["echo"]}
        self.tools = [
            _tool("echo", "talk", output_schema=echoed, search_hint="say it again", limits=Limits(64, 1, 1)),
            _tool("part", output_schema={"type": "object", "properties": {}, "additionalProperties": False}),
            *map(_tool, names),
        ]
        self.meta: dict[str, Any] = {}
        self.has_dashboard = False
        self.calls: list[tuple[str, dict[str, Any], str, Caller]] = []
        self.arguments: list[dict[str, Any]] = []
        self.running: dict[str, asyncio.Event] = {}
        self.cancelled: list[str] = []
        self.peers: list[Any] = []
        self.started = asyncio.Event()
        self.ended = asyncio.Event()
        self.ready_count = 0
        self.is_closed = False
        self.seen: list[ClientInfo] = []

    def instructions(self, profile: str = "") -> str:
        return f"Call tiny.echo.{profile and f' Served: {profile}.'}"

    def listed_tools(self, profile: str = "") -> list[Tool]:
        return self.tools[:2] if profile else list(self.tools)

    def list_meta(self, profile: str = "") -> dict[str, Any]:
        return self.meta

    def links(self, call_id: str) -> list[dict[str, str]]:
        return [{"url": f"http://dashboard/calls/{call_id}", "label": "This call"}] if self.has_dashboard else []

    def unknown_tool(self, tool_id: str) -> Exception:
        return UnknownTool(
            f"Tool not found: {tool_id}. Did you mean: tiny.echo",
            tool_id=tool_id, did_you_mean=["tiny.echo"], tool_count=len(self.tools),
        )  # fmt: skip

    async def call_tool(
        self,
        tool_id: str,
        arguments: dict[str, Any],
        *,
        call_id: str,
        caller: Caller,
        timeout_seconds: float | None = None,
        trace_id: str = "",
        progress: Any = None,
        ask: Any = None,
        idempotency_key: str = "",
    ) -> Outcome:
        self.calls.append((tool_id, arguments, call_id, caller))
        self.arguments.append({"timeout_seconds": timeout_seconds, "trace_id": trace_id, "progress": progress})
        self.peers.append(ask)
        act = getattr(self, "_" + tool_id.removeprefix("tiny."), None)
        if act is None:
            raise self.unknown_tool(tool_id)
        return await act(arguments, progress or (lambda fraction, message: None), ask)

    async def _echo(self, arguments: dict[str, Any], progress: Any, ask: Any) -> Outcome:
        return Outcome({"echo": arguments.get("text", "")}, f"said {arguments.get('text', '')}")

    async def _part(self, arguments: dict[str, Any], progress: Any, ask: Any) -> Outcome:
        return Outcome({}, "a box", ("thin wall, 0.4 mm",), "tiny.echo", (STEP,), (ImageContent(PNG, "a box"),))

    async def _content(self, arguments: dict[str, Any], progress: Any, ask: Any) -> Outcome:
        return Outcome({}, "", content=({"type": "text", "text": "as it is"},))

    async def _big(self, arguments: dict[str, Any], progress: Any, ask: Any) -> Outcome:
        return Outcome({"text": "x" * arguments["size_bytes"]}, "big")

    async def _slow(self, arguments: dict[str, Any], progress: Any, ask: Any) -> Outcome:
        name = arguments.get("name", "")
        self.running[name] = asyncio.Event()
        self.started.set()
        try:
            await self.running[name].wait()
        except asyncio.CancelledError:
            self.cancelled.append(name)
            self.ended.set()
            raise
        return Outcome({"name": name}, f"{name} finished")

    async def _progress(self, arguments: dict[str, Any], progress: Any, ask: Any) -> Outcome:
        for fraction in arguments["fractions"]:
            progress(fraction, f"at {fraction}")
            await asyncio.sleep(0)
        return Outcome({}, "done")

    async def _ask(self, arguments: dict[str, Any], progress: Any, ask: Any) -> Outcome:
        reply = await ask.ask("May I?", FORM)
        return Outcome({"reply": reply}, "asked")

    async def _ask_twice(self, arguments: dict[str, Any], progress: Any, ask: Any) -> Outcome:
        first, second = await ask.ask("First?", FORM), await ask.ask("Second?", FORM)
        return Outcome({"replies": [first, second]}, "asked twice")

    async def _ask_and_wait(self, arguments: dict[str, Any], progress: Any, ask: Any) -> Outcome:
        self.started.set()
        reply = await ask.ask("May I?", FORM)
        return Outcome({"reply": reply}, "asked")

    async def _sample(self, arguments: dict[str, Any], progress: Any, ask: Any) -> Outcome:
        told = {"role": "user", "content": {"type": "text", "text": "2+2"}}
        return Outcome({"reply": await ask.sample({"messages": [told], "maxTokens": 10})}, "sampled")

    async def _chat(self, arguments: dict[str, Any], progress: Any, ask: Any) -> Outcome:
        await ask.log("debug", "quiet")
        await ask.log("error", {"loud": True})
        return Outcome({}, "logged")

    async def _refuse(self, arguments: dict[str, Any], progress: Any, ask: Any) -> Outcome:
        raise ToolError(
            "radius 6 mm exceeds the limit, 4.99 mm",
            kind="fillet_too_large", where="edge 3", fix="use at most 4.99 mm", failure_mode=FailureMode.DESIGN,
        )  # fmt: skip

    async def _wrong(self, arguments: dict[str, Any], progress: Any, ask: Any) -> Outcome:
        raise InvalidArguments("width_mm: -5 is less than 0", fields={"width_mm": "a number above 0"})

    async def _crash(self, arguments: dict[str, Any], progress: Any, ask: Any) -> Outcome:
        raise KeyError("oops")

    async def _gone(self, arguments: dict[str, Any], progress: Any, ask: Any) -> Outcome:
        raise ToolUnavailable(
            "ccx is missing", tool_id="tiny.gone", reason="ccx is missing", install="apt-get install ccx"
        )

    async def _late(self, arguments: dict[str, Any], progress: Any, ask: Any) -> Outcome:
        raise ToolTimedOut("took longer than 2 s", fix="make it smaller")

    async def _held(self, arguments: dict[str, Any], progress: Any, ask: Any) -> Outcome:
        raise NotApproved("tiny.held was not run (rejected)", outcome="rejected")

    async def _odd(self, arguments: dict[str, Any], progress: Any, ask: Any) -> Outcome:
        return Outcome({"value": object()}, "not JSON")

    async def _inner_cancel(self, arguments: dict[str, Any], progress: Any, ask: Any) -> Outcome:
        raise asyncio.CancelledError

    async def health(self, client: ClientInfo) -> dict[str, Any]:
        self.seen.append(client)
        return {"service": "metaforge-mcp", "status": "healthy", "client": client.name}

    async def list_resources(self) -> list[dict[str, Any]]:
        return [{"uri": "metaforge://notes/1", "name": "note", "mimeType": "text/plain"}]

    def resource_templates(self) -> list[dict[str, Any]]:
        return [{"uriTemplate": "metaforge://artefacts/{sha256}", "name": "artefact"}]

    async def read_resource(self, uri: str, caller: Caller | None = None) -> list[ResourceContent]:
        if uri == "metaforge://notes/1":
            return [ResourceContent(uri, "text/plain", b"hello"), ResourceContent(uri, "model/step", b"\xff\x00")]
        raise ResourceNotFound(f"There is no {uri}", uri=uri)

    def request_state_key(self) -> bytes:
        return b"k" * 32

    def client_ready(self) -> None:
        self.ready_count += 1

    async def close(self) -> None:
        self.is_closed = True


def main() -> None:
    """Serve a TinyService by the transport that the arguments name."""
    import os

    import uvloop

    from metaforge.mcp.serve import listen, serve_http
    from metaforge.mcp.stdio import StdioServer
    from metaforge.settings import Settings
    from metaforge.telemetry import logs

    logs.configure("warning")
    if sys.argv[1] == "stdio":
        private = os.dup(1)
        os.dup2(2, 1)
        uvloop.run(StdioServer(TinyService(), 0, private, 1 << 20, lambda: None).serve())
    else:
        bound = listen("127.0.0.1", int(sys.argv[2]))
        uvloop.run(serve_http(TinyService(), Settings(), bound, "127.0.0.1", lambda: None))


if __name__ == "__main__":
    main()

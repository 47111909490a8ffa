"""An adapter over HTTP: `POST /rpc` (and `/mcp`) in the legacy dialect, `GET /health`, and the files of its calls.

The process that listens stays light and responsive. Calls run, one at a time, in a child forked from it: a call whose
client goes away or whose deadline passes is ended with its process, and a kernel that crashes takes only that call.
"""

import asyncio
import hmac
import shutil
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from metaforge.core.codes import Code
from metaforge.core.errors import MetaForgeError
from metaforge.core.ids import new_session_id
from metaforge.protocol import jsonrpc
from metaforge.tools.http_child import SIGNALLED, Child

if TYPE_CHECKING:
    from metaforge.tools.server import McpToolServer

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_MAX_BODY_BYTES = 64 << 20
_KEPT_OUTPUTS = 16
_LONGEST_SECONDS = 3600.0
KEY = "METAFORGE_WORKER_KEY"
"""The variable that holds the key which callers must show."""
MOST_WAITING = 64
"""Calls that may wait for the one that runs; more are told to come again."""
_BUSY_SECONDS = 5
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class HttpAdapter:
    """The ASGI application of one adapter.

    Args:
        server: the adapter; its calls run in a child, everything else is answered here.
        key: what callers must show as a bearer token; empty for none. `GET /health` needs none.
    """

    def __init__(self, server: "McpToolServer", key: str = "") -> None:
        self._server = server
        self._key = key.encode()
        self._waiting = 0
        self._child = Child(server)
        self._turn = asyncio.Lock()
        self._outputs: OrderedDict[str, Path] = OrderedDict()

    def close(self) -> None:
        """End the child and remove what no client fetched."""
        self._child.end()
        while self._outputs:
            shutil.rmtree(self._outputs.popitem()[1], ignore_errors=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        method, path = scope["method"], scope["path"]
        if self._key and path != "/health" and not self._is_shown(scope):
            await _reply(send, 401, orjson.dumps({"error": "this adapter wants its key: Authorization: Bearer ..."}))
            return
        if method == "POST" and path in ("/rpc", "/mcp"):
            await self._rpc(scope, receive, send)
        elif method == "GET" and path == "/health":
            await _reply(send, 200, orjson.dumps(self._server.health()))
        elif path.startswith("/output/") and method in ("GET", "DELETE"):
            await self._output(method, path.removeprefix("/output/"), send)
        else:
            await _reply(send, 404, orjson.dumps({"error": f"nothing at {method} {path}: POST /rpc, GET /health"}))

    def _is_shown(self, scope: Scope) -> bool:
        shown = dict(scope["headers"]).get(b"authorization", b"").removeprefix(b"Bearer ").strip()
        return hmac.compare_digest(shown, self._key)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            event = (await receive())["type"].removeprefix("lifespan.")
            if event == "shutdown":
                self.close()
            await send({"type": f"lifespan.{event}.complete"})
            if event == "shutdown":
                return

    async def _rpc(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await _body(receive)
        if body is None:
            limit = f"the request is larger than {_MAX_BODY_BYTES >> 20} MB"
            await _reply(send, 413, jsonrpc.encode(jsonrpc.error(None, Code.INVALID_REQUEST, limit)))
            return
        message = _tool_call(body)
        if message is None:
            answer = await self._server.handle_request(body.decode("utf-8", "replace"))
            await _reply(send, 200 if answer else 204, answer.encode())
            return
        accepted = dict(scope["headers"]).get(b"accept", b"")
        stream = _Stream(send) if b"text/event-stream" in accepted else None
        gone = asyncio.ensure_future(_disconnected(receive))
        calling = asyncio.ensure_future(self._call(message, stream))
        try:
            await asyncio.wait({gone, calling}, return_when=asyncio.FIRST_COMPLETED)
            if not calling.done():
                # Nobody waits for it any more.
                calling.cancel()
                with suppress(asyncio.CancelledError):
                    await calling
                return
            raw = jsonrpc.encode(calling.result())
        finally:
            gone.cancel()
        await (stream.finish(raw) if stream else _reply(send, 200, raw))

    async def _call(self, message: dict[str, Any], stream: "_Stream | None") -> dict[str, Any]:
        request_id, params = message.get("id"), message.setdefault("params", {})
        params.pop("max_cpu_seconds", None)
        # Where files are written is decided here, not by whoever calls.
        params.pop("output_dir", None)
        if self._waiting >= MOST_WAITING:
            return _busy(message, self._waiting)
        self._waiting += 1
        try:
            await self._turn.acquire()
        finally:
            self._waiting -= 1
        token = ""
        try:
            if params.pop("fetch_outputs", False):
                token = self._make_output()
                params["output_dir"] = str(self._outputs[token])
            seconds = min(float(params.get("timeout_seconds") or 120), _LONGEST_SECONDS)
            try:
                async with asyncio.timeout(seconds):
                    answer = await self._child.ask(jsonrpc.encode(message), stream.notify if stream else _ignore)
            except TimeoutError:
                self._child.end()
                answer = _fault(message, Code.TOOL_TIMEOUT, "tool_timeout", f"not finished within {seconds:g} s; ended")
            except EOFError:
                status = self._child.end() or 0
                how = f"signal {status - SIGNALLED}" if status > SIGNALLED else f"exit status {status}"
                answer = _fault(
                    message,
                    Code.TOOL_EXECUTION_ERROR,
                    "tool_crashed",
                    f"The tool's process ended before it answered ({how})",
                )
            except asyncio.CancelledError:
                self._child.end()
                self._drop_output(token)
                raise
        finally:
            self._turn.release()
        answer["id"] = request_id
        if token and (answer.get("result") or {}).get("output_files"):
            answer["result"]["output_url"] = f"/output/{token}"
        else:
            self._drop_output(token)
        return answer

    # -- files ---------------------------------------------------------------------------------------------------

    def _make_output(self) -> str:
        while len(self._outputs) >= _KEPT_OUTPUTS:
            shutil.rmtree(self._outputs.popitem(last=False)[1], ignore_errors=True)
        token = new_session_id()
        self._outputs[token] = Path(tempfile.mkdtemp(prefix="output-"))
        return token

    def _drop_output(self, token: str) -> bool:
        folder = self._outputs.pop(token, None)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        return folder is not None

    async def _output(self, method: str, rest: str, send: Send) -> None:
        token, _, name = rest.partition("/")
        folder = self._outputs.get(token)
        if method == "DELETE":
            await _reply(send, 204 if self._drop_output(token) else 404, b"")
            return
        path = None if folder is None else (folder / name).resolve()
        if folder is None or path is None or not path.is_relative_to(folder.resolve()) or not path.is_file():
            await _reply(send, 404, b"")
            return
        headers = [(b"content-type", b"application/octet-stream"), (b"content-length", b"%d" % path.stat().st_size)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        with path.open("rb") as source:
            while chunk := source.read(1 << 20):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


class _Stream:
    """An event stream that starts with the first notification, so that a quiet call stays plain JSON."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._sender: asyncio.Task[None] | None = None

    def notify(self, message: dict[str, Any]) -> None:
        if self._sender is None:
            self._sender = asyncio.ensure_future(self._run())
        self._queue.put_nowait(_event(jsonrpc.encode(message)))

    async def _run(self) -> None:
        headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        while raw := await self._queue.get():
            await self._send({"type": "http.response.body", "body": raw, "more_body": True})
        await self._send({"type": "http.response.body", "body": b""})

    async def finish(self, raw: bytes) -> None:
        if self._sender is None:
            await _reply(self._send, 200, raw)
            return
        self._queue.put_nowait(_event(raw))
        self._queue.put_nowait(b"")
        await self._sender


def _event(raw: bytes) -> bytes:
    return b"data: " + raw + b"\n\n"


def _ignore(message: dict[str, Any]) -> None:
    """Nobody asked for progress."""


def _tool_call(body: bytes) -> dict[str, Any] | None:
    """Return the message when it is a well-formed tool/call request; everything else is answered without the child."""
    try:
        message = jsonrpc.decode(body)
    except MetaForgeError:
        return None
    return message if message.get("method") == "tool/call" and message.get("id") is not None else None


def _fault(message: dict[str, Any], code: Code, kind: str, text: str) -> dict[str, Any]:
    tool_id = str(message["params"].get("tool_id"))
    data = {
        "error_type": "TOOL_TIMEOUT" if code is Code.TOOL_TIMEOUT else "TOOL_EXECUTION_ERROR",
        "tool_id": tool_id, "details": text, "kind": kind, "failure_mode": "environment",
    }  # fmt: skip
    return jsonrpc.error(message.get("id"), code, f"{tool_id}: {text}", data)


def _busy(message: dict[str, Any], waiting: int) -> dict[str, Any]:
    answer = _fault(message, Code.TOOL_UNAVAILABLE, "busy", f"{waiting} calls wait here already; nothing was begun")
    answer["error"]["data"] |= {"reason": "busy", "retry_after_seconds": _BUSY_SECONDS}
    return answer


async def _body(receive: Receive) -> bytes | None:
    parts: list[bytes] = []
    size = 0
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            return b"".join(parts)
        parts.append(event.get("body", b""))
        size += len(parts[-1])
        if size > _MAX_BODY_BYTES:
            return None
        if not event.get("more_body"):
            return b"".join(parts)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _reply(send: Send, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def serve_http(server: "McpToolServer", host: str, port: int, key: str = "") -> None:
    """Serve one adapter until the process is told to end.

    Args:
        server: the adapter.
        host: the address to listen on.
        port: the port; 0 takes a free one, which the log names.
        key: what callers must show; empty for none.
    """
    import uvicorn

    if not key and host not in _LOOPBACK:
        told = f"{server.adapter_id} listens on {host} without a key: whoever reaches it can run its tools"
        print(f"{told}. {KEY} sets one", file=sys.stderr, flush=True)
    application = HttpAdapter(server, key)
    config = uvicorn.Config(application, host=host, port=port, log_level="warning", access_log=False)
    try:
        await uvicorn.Server(config).serve()
    finally:
        application.close()

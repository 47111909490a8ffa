"""HTTP responses that need no dispatcher: errors, metrics, and refusals of what is no request."""

from collections.abc import Awaitable, Callable
from typing import Any

from metaforge.core.codes import Code
from metaforge.core.errors import MetaForgeError
from metaforge.mcp.streams import Send, respond
from metaforge.protocol import jsonrpc
from metaforge.protocol.failures import failure
from metaforge.protocol.revisions import Dialect
from metaforge.telemetry import metrics

Receive = Callable[[], Awaitable[dict[str, Any]]]
_METHODS = {"/mcp": b"GET, POST, DELETE", "/rpc": b"POST", "/health": b"GET", "/metrics": b"GET"}


async def refuse(send: Send, status: int, reason: str, request_id: Any = None) -> None:
    """Answer with a JSON-RPC error that says the request is not valid here."""
    await respond(send, status, jsonrpc.encode(jsonrpc.error(request_id, Code.INVALID_REQUEST, reason)))


async def fail(send: Send, status: int, fault: MetaForgeError, request_id: Any) -> None:
    """Answer with a fault that is no tool's."""
    await respond(send, status, jsonrpc.encode(failure(fault, request_id, Dialect.STATELESS)))


async def send_metrics(send: Send) -> None:
    """Answer with the metrics in Prometheus' own format."""
    body = metrics.render()
    length = (b"content-length", b"%d" % len(body))
    head = [(b"content-type", metrics.CONTENT_TYPE.encode()), length]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": body})


async def no_such_route(send: Send, path: str, method: str) -> None:
    """Answer 404 or 405, and say what there is."""
    allowed = _METHODS.get(path)
    if allowed is None:
        await refuse(send, 404, f"There is nothing at {path or '/'}: there are {', '.join(_METHODS)}")
    else:
        body = jsonrpc.encode(jsonrpc.error(None, Code.INVALID_REQUEST, f"{method} {path} is not offered"))
        await respond(send, 405, body, [(b"allow", allowed)])


async def refuse_other(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Close web sockets; answer an ASGI server that insists on lifespan events."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1003})
    elif scope["type"] == "lifespan":
        while True:
            event = await receive()
            await send({"type": f"{event['type']}.complete"})
            if event["type"] == "lifespan.shutdown":
                return

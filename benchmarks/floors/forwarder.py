"""A bare HTTP-to-stdio forwarder with one echo child: `forwarder.py PORT`.

Raw ASGI, the standard library's json, ids mapped, sessions checked; nothing is recorded, judged or isolated.
"""

import asyncio
import json
import sys
import uuid
from pathlib import Path
from typing import Any

import uvicorn

CHILD = Path(__file__).with_name("child_echo.py")


class Child:
    """One echo process; requests are told apart by an id of our own."""

    def __init__(self) -> None:
        self.process: asyncio.subprocess.Process | None = None
        self.waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.last_id = 0
        self.reading: asyncio.Task[None] | None = None

    async def start(self) -> None:
        pipe = asyncio.subprocess.PIPE
        self.process = await asyncio.create_subprocess_exec(sys.executable, str(CHILD), stdin=pipe, stdout=pipe)
        self.reading = asyncio.create_task(self.read())

    async def read(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            message = json.loads(line)
            if future := self.waiting.pop(message["id"], None):
                future.set_result(message)

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self.process is not None
        assert self.process.stdin is not None
        self.last_id += 1
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self.waiting[self.last_id] = future
        request = {"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}
        self.process.stdin.write((json.dumps(request) + "\n").encode())
        return await future


child = Child()
sessions: set[str] = set()


async def _send(send: Any, status: int, message: dict[str, Any] | None, *extra: tuple[bytes, bytes]) -> None:
    body = b"" if message is None else json.dumps(message).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *extra]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _lifespan(receive: Any, send: Any) -> None:
    while True:
        kind = (await receive())["type"]
        if kind == "lifespan.startup":
            await child.start()
        await send({"type": f"{kind}.complete"})
        if kind == "lifespan.shutdown":
            return


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        return await _lifespan(receive, send)
    body, more = b"", True
    while more:
        part = await receive()
        body += part.get("body", b"")
        more = part.get("more_body", False)
    message = json.loads(body)
    if message.get("method") == "initialize":
        session = uuid.uuid4().hex
        sessions.add(session)
        result = {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "forwarder", "version": "1"},
        }
        reply = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        return await _send(send, 200, reply, (b"mcp-session-id", session.encode()))
    if dict(scope["headers"]).get(b"mcp-session-id", b"").decode() not in sessions:
        error = {"code": -32001, "message": "Session not found"}
        return await _send(send, 404, {"jsonrpc": "2.0", "id": message.get("id"), "error": error})
    if "id" not in message:
        return await _send(send, 202, None)
    reply = await child.ask(message["method"], message.get("params") or {})
    reply["id"] = message["id"]
    return await _send(send, 200, reply)


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error", access_log=False)

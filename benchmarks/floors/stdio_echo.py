"""A bare asyncio loop over pipes that answers every JSON-RPC line with its own text."""

import asyncio
import sys
from typing import Any

import orjson
import uvloop


def _reply(message: dict[str, Any]) -> bytes:
    words = message.get("params", {}).get("arguments", {}).get("text", "")
    result = {"content": [{"type": "text", "text": words}], "structuredContent": {"text": words}, "isError": False}
    return orjson.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + b"\n"


async def serve() -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    while line := await reader.readline():
        message = orjson.loads(line)
        if "id" in message:
            writer.write(_reply(message))


if __name__ == "__main__":
    uvloop.run(serve())

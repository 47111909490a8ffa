"""A bare Starlette handler that answers every JSON-RPC call with its own text: `http_echo.py PORT`."""

import sys

import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


async def answer(request: Request) -> Response:
    message = orjson.loads(await request.body())
    words = message.get("params", {}).get("arguments", {}).get("text", "")
    result = {"content": [{"type": "text", "text": words}], "structuredContent": {"text": words}, "isError": False}
    body = orjson.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": result})
    return Response(body, media_type="application/json")


app = Starlette(routes=[Route("/mcp", answer, methods=["POST"])])

if __name__ == "__main__":
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        log_level="error",
        access_log=False,
    )

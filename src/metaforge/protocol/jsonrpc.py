"""JSON-RPC 2.0 messages as plain dictionaries and bytes."""

from typing import Any

import orjson

from metaforge.core.codes import Code
from metaforge.core.errors import InvalidRequest, MetaForgeError

Message = dict[str, Any]
RequestId = str | int


class ParseError(MetaForgeError):
    """The bytes are not JSON."""

    code = Code.PARSE_ERROR


class MalformedMessage(InvalidRequest):
    """JSON, but no JSON-RPC message. `request_id` is its id where it has a usable one, so that it can be answered."""

    def __init__(self, message: str, request_id: RequestId | None = None) -> None:
        super().__init__(message)
        self.request_id = request_id


def decode(raw: bytes) -> Message:
    """Return one JSON-RPC message.

    Raises:
        ParseError: not JSON, or not UTF-8.
        MalformedMessage: JSON, but no single JSON-RPC 2.0 message; a batch is refused in every revision.
    """
    try:
        message = orjson.loads(raw)
    except orjson.JSONDecodeError as fault:
        raise ParseError(f"The message is not JSON in UTF-8: {fault}") from None
    if type(message) is not dict:
        what = "A batch (JSON array) is not accepted" if type(message) is list else "A message is a JSON object"
        raise MalformedMessage(f"{what}: send one JSON-RPC message at a time")
    if complaint := _complaint(message):
        request_id = message.get("id")
        raise MalformedMessage(complaint, request_id if _is_id(request_id) else None)
    return message


def _complaint(message: Message) -> str:
    """Say what keeps an object from being a JSON-RPC 2.0 message; empty when nothing does."""
    if message.get("jsonrpc") != "2.0":
        return 'A message is a JSON object with "jsonrpc": "2.0"'
    method = message.get("method")
    if method is None:
        if "result" not in message and "error" not in message:
            return 'A message has a "method", a "result" or an "error"'
    elif type(method) is not str:
        return '"method" must be a string'
    if "id" in message:
        request_id = message["id"]
        if not _is_id(request_id) and not (request_id is None and method is None):
            return '"id" must be a string or an integer'
    params = message.get("params")
    if params is not None and type(params) is not dict:
        return '"params" must be an object'
    return ""


def encode(message: Message) -> bytes:
    """Return a message as compact UTF-8 without a line break."""
    return orjson.dumps(message)


def result(request_id: RequestId, body: dict[str, Any]) -> Message:
    return {"jsonrpc": "2.0", "id": request_id, "result": body}


def error(request_id: RequestId | None, code: int, message: str, data: dict[str, Any] | None = None) -> Message:
    fault: dict[str, Any] = {"code": int(code), "message": message}
    if data:
        fault["data"] = data
    return {"jsonrpc": "2.0", "id": request_id, "error": fault}


def notification(method: str, params: dict[str, Any]) -> Message:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def request(request_id: RequestId, method: str, params: dict[str, Any]) -> Message:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def _is_id(value: object) -> bool:
    return type(value) is str or type(value) is int

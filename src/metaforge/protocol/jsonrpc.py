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


def decode(raw: bytes) -> Message:
    """Return one JSON-RPC message.

    Raises:
        ParseError: not JSON, or not UTF-8.
        InvalidRequest: JSON, but no single JSON-RPC 2.0 message; a batch is refused in every revision.
    """
    try:
        message = orjson.loads(raw)
    except orjson.JSONDecodeError as fault:
        raise ParseError(f"The message is not JSON in UTF-8: {fault}") from None
    if isinstance(message, list):
        raise InvalidRequest("A batch (JSON array) is not accepted: send one message at a time")
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise InvalidRequest('A message is a JSON object with "jsonrpc": "2.0"')
    method, request_id = message.get("method"), message.get("id")
    if method is not None and not isinstance(method, str):
        raise InvalidRequest('"method" must be a string')
    if method is None and "result" not in message and "error" not in message:
        raise InvalidRequest('A message has a "method", a "result" or an "error"')
    if "id" in message and not _is_id(request_id) and not (request_id is None and method is None):
        raise InvalidRequest('"id" must be a string or an integer')
    params = message.get("params")
    if params is not None and not isinstance(params, dict):
        raise InvalidRequest('"params" must be an object')
    return message


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
    return isinstance(value, str | int) and not isinstance(value, bool)

"""The stateless era: every request says who sends it, and the headers of an HTTP request repeat the body."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, NamedTuple

from metaforge.core.codes import Code
from metaforge.core.errors import InvalidParams, MetaForgeError, ProtocolError
from metaforge.protocol.handshake import Hello, capabilities, client_identity, server_info
from metaforge.protocol.revisions import STATELESS, SUPPORTED

PREFIX = "io.modelcontextprotocol/"
VERSION_KEY = PREFIX + "protocolVersion"
CAPABILITIES_KEY = PREFIX + "clientCapabilities"
CLIENT_KEY = PREFIX + "clientInfo"
SERVER_KEY = PREFIX + "serverInfo"
LOG_LEVEL_KEY = PREFIX + "logLevel"

_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Methods whose subject the header `Mcp-Name` repeats, and the parameter that holds it."""
_HTTP_STATUS = {
    Code.PARSE_ERROR: 400,
    Code.INVALID_REQUEST: 400,
    Code.INVALID_PARAMS: 400,
    Code.METHOD_NOT_FOUND: 404,
    Code.HEADER_MISMATCH: 400,
    Code.MISSING_CAPABILITY: 400,
    Code.UNSUPPORTED_VERSION: 400,
}


class HeaderMismatch(ProtocolError):
    """A header does not say what the body says, so a proxy would judge another request than the one that runs."""

    code = Code.HEADER_MISMATCH


class UnsupportedVersion(ProtocolError):
    """`data`: supported, requested."""

    code = Code.UNSUPPORTED_VERSION


class MissingCapability(ProtocolError):
    """The client did not say that it can do what the call needs. `data`: requiredCapabilities."""

    code = Code.MISSING_CAPABILITY


class InputRequired(MetaForgeError):
    """No failure: the call goes on when the client sends it again with the answer to `question`.

    Args:
        key: names the question in `inputRequests` and `inputResponses`.
        question: the request as it would have been sent in the handshake era: method and params.
        answers: what was answered in earlier rounds, by key.
        carried: what comes back, signed, with the answer; whoever asked sees to it that it is used once.
        until: the time of day, in seconds since the epoch, from which on what is carried is refused.
    """

    def __init__(
        self,
        key: str,
        question: dict[str, Any],
        answers: dict[str, Any],
        carried: dict[str, Any] | None = None,
        until: float = 0.0,
    ) -> None:
        super().__init__(f"Waiting for the client's answer to {question.get('method')}")
        self.key = key
        self.question = question
        self.answers = answers
        self.carried = carried
        self.until = until


class RoutingHeaders(NamedTuple):
    """The headers that repeat the body; None where absent, `repeated` names one sent twice."""

    version: str | None
    method: str | None
    name: str | None
    repeated: str = ""


def is_stateless(params: Mapping[str, Any]) -> bool:
    """Whether a request carries the envelope of the stateless era."""
    meta = params.get("_meta")
    return isinstance(meta, dict) and VERSION_KEY in meta


def read_envelope(method: str, params: Mapping[str, Any], headers: RoutingHeaders | None) -> Hello:
    """Read who sends a request, and hold its headers to its body.

    Args:
        headers: None where the transport has none.

    Raises:
        InvalidParams: the envelope is missing or malformed.
        HeaderMismatch: a header is missing, repeated, or says something else than the body.
        UnsupportedVersion: the revision is not spoken here.
    """
    meta = params.get("_meta")
    if not isinstance(meta, Mapping) or VERSION_KEY not in meta:
        raise InvalidParams(f"params._meta must hold {VERSION_KEY} and {CAPABILITIES_KEY}")
    declared = meta.get(CAPABILITIES_KEY)
    if not isinstance(declared, Mapping):
        raise InvalidParams(f"params._meta must hold {CAPABILITIES_KEY}, an object; it may be empty")
    version = meta[VERSION_KEY]
    if headers is not None:
        _compare(headers, version, method, params)
    if not isinstance(version, str):
        raise InvalidParams(f"{VERSION_KEY} must be a string")
    if version != STATELESS:
        raise UnsupportedVersion(
            f"Revision {version!r} is not spoken in this way: use {STATELESS}, or begin with initialize",
            supported=list(SUPPORTED),
            requested=version,
        )
    name, client_version = client_identity(meta.get(CLIENT_KEY))
    return Hello(name, client_version, version, version, declared)


def _compare(headers: RoutingHeaders, version: Any, method: str, params: Mapping[str, Any]) -> None:
    if headers.repeated:
        raise HeaderMismatch(f"The header {headers.repeated} was sent more than once")
    if headers.version is None or headers.version != version:
        raise HeaderMismatch(f"MCP-Protocol-Version is {headers.version!r}; the body says {version!r}")
    if headers.method != method:
        raise HeaderMismatch(f"Mcp-Method is {headers.method!r}; the body says {method!r}")
    key = _NAMED.get(method)
    subject = params.get(key) if key else None
    if subject is not None and decode_header(headers.name) != subject:
        raise HeaderMismatch(f"Mcp-Name is {headers.name!r}; the body says {subject!r}")


def decode_header(value: str | None) -> str | None:
    """Return a header's value, unwrapped where it has the form `=?base64?...?=`; None if malformed."""
    if value is None or not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    payload = value[9:-2]
    try:
        decoded = base64.b64decode(payload, validate=True)
        text = decoded.decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    return text if base64.b64encode(decoded).decode() == payload else None


def discover_result(version: str, instructions: str) -> dict[str, Any]:
    """Return the answer to `server/discover`."""
    body = {"supportedVersions": list(SUPPORTED), "capabilities": capabilities(), "instructions": instructions}
    return complete({**body, **CACHE}, version)


CACHE = {"ttlMs": 0, "cacheScope": "private"}
"""What list results say of caching: adapters come and go, and a listing may depend on who asks."""


def complete(result: dict[str, Any], version: str) -> dict[str, Any]:
    """Add to a result what the stateless era asks of every result; `result` itself is changed."""
    result["resultType"] = "complete"
    meta = result.get("_meta")
    stamp = {SERVER_KEY: server_info(version)}
    result["_meta"] = {**meta, **stamp} if meta else stamp
    return result


def input_required_result(fault: InputRequired, state: str, version: str) -> dict[str, Any]:
    """Return the result that asks the client to send the call again with an answer."""
    return {
        "resultType": "input_required",
        "inputRequests": {fault.key: fault.question},
        "requestState": state,
        "_meta": {SERVER_KEY: server_info(version)},
    }


def http_status(code: int) -> int:
    """Return the HTTP status that goes with an error code."""
    return _HTTP_STATUS.get(code, 200)  # type: ignore[call-overload,no-any-return]

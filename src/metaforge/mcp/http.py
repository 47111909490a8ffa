"""The server over HTTP: one ASGI application without a framework.

`POST /mcp` takes both eras and the legacy dialect, `GET /mcp` opens a session's event stream, `DELETE /mcp` ends it;
`POST /rpc` takes the legacy dialect alone; `GET /health` and `GET /metrics` are for machines that watch.
`?profile=NAME` in the address of a POST is what a session, or a client without one, is served.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs

import orjson

from metaforge.access.identity import Denied, Identity
from metaforge.access.judge import Access
from metaforge.core.errors import MetaForgeError
from metaforge.mcp.clients import Sessions, StatelessClients
from metaforge.mcp.dispatch import Dispatcher
from metaforge.mcp.exchange import Client, Exchange
from metaforge.mcp.replies import Receive, fail, no_such_route, refuse, refuse_other, send_metrics
from metaforge.mcp.running import Requests, when_gone
from metaforge.mcp.service import ClientInfo, Service
from metaforge.mcp.streams import EventStream, Header, Response, Send, respond
from metaforge.protocol import jsonrpc
from metaforge.protocol.handshake import Hello, initialize_result, read_initialize
from metaforge.protocol.jsonrpc import Message
from metaforge.protocol.revisions import HANDSHAKE, LEGACY_METHODS, Dialect
from metaforge.protocol.stateless import RoutingHeaders, http_status, is_stateless, read_envelope
from metaforge.registry.profiles import choose_profile
from metaforge.settings import Settings

Headers = Mapping[bytes, bytes]

SWEEP_SECONDS = 15.0
MAX_STREAM_SECONDS = 30 * 24 * 3600.0
"""Streams end with the credential that opened them, and with this at the latest."""
_NOBODY = Hello()
_HANDSHAKE_VERSIONS = frozenset(revision.encode() for revision in HANDSHAKE)
_ROUTING = (b"mcp-protocol-version", b"mcp-method", b"mcp-name")


class HttpServer:
    """The ASGI application.

    Args:
        service: what answers.
        settings: limits, key and idle time.
        host: the address that is listened on; decides which `Host` and `Origin` are ours.
        access: the judge of callers, where others in the process share it.

    Raises:
        BadSetting: an open server on an address that others can reach.
    """

    def __init__(self, service: Service, settings: Settings, host: str, access: Access | None = None) -> None:
        self._service = service
        self._access = access or Access(settings, host)
        self._limit_bytes = settings.max_request_mb << 20
        self._dispatcher = Dispatcher(service)
        self._sessions = Sessions(settings.session_idle_seconds)
        self._stateless = StatelessClients()
        self._profile = settings.profile
        self._requests = Requests(self._dispatcher)
        self._streams: set[EventStream] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self._sweep_seconds = min(SWEEP_SECONDS, settings.session_idle_seconds / 2)
        self._loop: asyncio.AbstractEventLoop

    # -- life ------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to serve in the running event loop, and to end idle sessions."""
        self._loop = asyncio.get_running_loop()
        self._requests.start()
        self._await_sweep()

    def stop(self) -> None:
        """Withdraw every call and close every stream, so that connections can end."""
        if self._sweep is not None:
            self._sweep.cancel()
        self._requests.cancel_all()
        self._sessions.end_all()
        for stream in list(self._streams):
            stream.close()

    def _expire(self) -> None:
        self._sessions.expire(self._loop.time())
        self._await_sweep()

    def _await_sweep(self) -> None:
        self._sweep = self._loop.call_later(self._sweep_seconds, self._expire)

    # -- the way in ------------------------------------------------------------------------------------------------

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        if scope["type"] != "http":
            await refuse_other(scope, receive, send)
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if reason := self._access.foreign(headers):
            await refuse(send, 403, reason)
            return
        path, method = scope["path"].rstrip("/"), scope["method"]
        if method in ("GET", "HEAD") and await self._told_to_anybody(path, scope, headers, send):
            return
        identity = self._access.known(headers, scope.get("client"))
        if identity is None:
            judged = await self._access.judge(headers, scope.get("client"))
            if isinstance(judged, Denied):
                await respond(send, judged.status, judged.body, judged.headers)
                return
            identity = judged
        if path in ("/mcp", "/rpc") and method == "POST":
            await self._post(scope, headers, identity, receive, send, is_rpc=path == "/rpc")
        elif path == "/mcp" and method in ("GET", "DELETE") and _is_handshake_header(headers):
            await (self._open_stream if method == "GET" else self._delete)(headers, identity, receive, send)
        elif path == "/metrics" and method in ("GET", "HEAD"):
            await send_metrics(send)
        else:
            await no_such_route(send, path, method)

    async def _told_to_anybody(self, path: str, scope: dict[str, Any], headers: Headers, send: Send) -> bool:
        """Answer what needs no credential: health, and where to get one. Return whether it was that."""
        if path == "/health":
            await respond(send, 200, orjson.dumps(await self._service.health(ClientInfo())))
            return True
        found = self._access.metadata(path, headers, scope.get("scheme", "http"))
        if found is not None:
            await respond(send, 200, orjson.dumps(found), [(b"cache-control", b"max-age=300")])
        return found is not None

    # -- POST ------------------------------------------------------------------------------------------------------

    async def _post(
        self,
        scope: dict[str, Any],
        headers: Headers,
        identity: Identity,
        receive: Receive,
        send: Send,
        *,
        is_rpc: bool,
    ) -> None:
        body = await self._body(headers, receive, send)
        if body is None:
            return
        try:
            message = jsonrpc.decode(body)
        except MetaForgeError as fault:
            await fail(send, 400, fault, getattr(fault, "request_id", None))
            return
        body = None  # a call may wait for minutes, and needs it no more
        method = message.get("method")
        if is_rpc or method in LEGACY_METHODS:
            await self._legacy(scope, headers, identity, message, receive, send)
        elif not _is_handshake_header(headers) or method == "server/discover" or _has_envelope(message):
            await self._stateless_post(scope, headers, identity, message, receive, send)
        elif method == "initialize" and "id" in message:
            await self._initialize(scope, identity, message, send)
        else:
            await self._handshake_post(headers, identity, message, receive, send)

    async def _body(self, headers: Headers, receive: Receive, send: Send) -> bytes | None:
        """Return the request's body; None when it was refused, or its sender has gone."""
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > self._limit_bytes:
            await self._too_large(send)
            return None
        event = await receive()
        body: bytes = event.get("body", b"")
        if not event.get("more_body"):
            return body if event["type"] == "http.request" else None
        parts, size_bytes = [body], len(body)
        while event.get("more_body"):
            event = await receive()
            if event["type"] == "http.disconnect":
                return None
            parts.append(event.get("body", b""))
            size_bytes += len(parts[-1])
            if size_bytes > self._limit_bytes:
                await self._too_large(send)
                return None
        return b"".join(parts)

    async def _too_large(self, send: Send) -> None:
        limit = self._limit_bytes >> 20
        reason = f"The body is larger than {limit} MB (METAFORGE_MAX_REQUEST_MB): put data into a file of the workspace"
        await refuse(send, 413, reason)

    async def _initialize(self, scope: dict[str, Any], identity: Identity, message: Message, send: Send) -> None:
        try:
            hello = read_initialize(message.get("params") or {})
            profile = self._profile_of(scope)
        except MetaForgeError as fault:
            await fail(send, 200, fault, message["id"])
            return
        client = self._sessions.open(
            hello, actor_id=identity.actor_id, trust=identity.trust, now=self._loop.time(),
            verified=identity.verified, principal=identity.principal, profile=profile,
        )  # fmt: skip
        if client is None:
            await refuse(send, 503, "Every session is at work: try again later", message["id"])
            return
        body = initialize_result(hello, self._service.version, self._service.instructions(profile))
        session_header = (b"mcp-session-id", client.session.id.encode())
        await respond(send, 200, jsonrpc.encode(jsonrpc.result(message["id"], body)), [session_header])

    async def _handshake_post(
        self, headers: Headers, identity: Identity, message: Message, receive: Receive, send: Send
    ) -> None:
        client = await self._session(headers, identity, send, message.get("id"))
        if client is None:
            return
        method = message.get("method")
        if method is None:
            client.settle(message)
        elif "id" not in message:
            self._dispatcher.notified(method, message.get("params") or {}, client.calls)
        else:
            exchange = _exchange(client, Dialect.HANDSHAKE, message, headers, send, identity)
            await self._requests.run(exchange, receive)
            return
        await respond(send, 202)

    async def _stateless_post(
        self,
        scope: dict[str, Any],
        headers: Headers,
        identity: Identity,
        message: Message,
        receive: Receive,
        send: Send,
    ) -> None:
        method = message.get("method")
        if method is None:
            await refuse(send, 400, "In this revision answers come with the call sent again")
            return
        if "id" not in message:
            await respond(send, 202)
            return
        try:
            hello = read_envelope(method, message.get("params") or {}, _routing_headers(scope["headers"], headers))
            client = self._stateless.get(hello, identity, self._profile_of(scope))
        except MetaForgeError as fault:
            await fail(send, http_status(fault.code), fault, message["id"])
            return
        await self._requests.run(_exchange(client, Dialect.STATELESS, message, headers, send, identity), receive)

    async def _legacy(
        self,
        scope: dict[str, Any],
        headers: Headers,
        identity: Identity,
        message: Message,
        receive: Receive,
        send: Send,
    ) -> None:
        if "id" not in message or "method" not in message:
            await respond(send, 204)
            return
        session_id = headers.get(b"mcp-session-id", b"").decode("latin-1")
        client = self._sessions.get(session_id, self._loop.time())
        if client is None or client.principal != identity.principal:
            try:
                client = self._stateless.get(_NOBODY, identity, self._profile_of(scope))
            except MetaForgeError as fault:
                await fail(send, 200, fault, message["id"])
                return
        await self._requests.run(_exchange(client, Dialect.LEGACY, message, headers, send, identity), receive)

    def _profile_of(self, scope: dict[str, Any]) -> str:
        """Return the profile that a request's address names, else the server's own.

        Raises:
            UnknownProfile: there is none of this name, or the server was started with another.
        """
        query = scope.get("query_string")
        return choose_profile(_asked_profile(query), self._profile) if query else self._profile

    # -- sessions --------------------------------------------------------------------------------------------------

    async def _session(self, headers: Headers, identity: Identity, send: Send, request_id: Any = None) -> Client | None:
        """Return the client of the session that a request names; answer 400 or 404 when there is none.

        A session belongs to the credential that opened it: with another one it is not there.
        """
        session_id = headers.get(b"mcp-session-id", b"").decode("latin-1")
        client = self._sessions.get(session_id, self._loop.time())
        if client is not None and client.principal == identity.principal:
            return client
        if not session_id:
            reason = (
                "The header Mcp-Session-Id is missing: send initialize first, then its session id with every request"
            )
            await refuse(send, 400, reason, request_id)
        else:
            reason = "This session has ended or never was: send initialize to begin a new one"
            await refuse(send, 404, reason, request_id)
        return None

    async def _open_stream(self, headers: Headers, identity: Identity, receive: Receive, send: Send) -> None:
        client = await self._session(headers, identity, send)
        if client is None:
            return
        if isinstance(client.stream, EventStream):
            client.stream.close()
        stream = EventStream()
        client.stream = stream
        stream.put(b": open\n\n")
        self._streams.add(stream)
        gone = asyncio.ensure_future(when_gone(receive, stream.close))
        left_seconds = min(identity.expires_at - time.time(), MAX_STREAM_SECONDS)
        expiry = self._loop.call_later(left_seconds, stream.close)
        try:
            await stream.run(send)
        finally:
            expiry.cancel()
            gone.cancel()
            self._streams.discard(stream)
            if client.stream is stream:
                client.stream = None

    async def _delete(self, headers: Headers, identity: Identity, receive: Receive, send: Send) -> None:
        client = await self._session(headers, identity, send)
        if client is None:
            return
        self._sessions.end(client.session.id)
        if isinstance(client.stream, EventStream):
            client.stream.close()
        await respond(send, 204)


def _exchange(
    client: Client, dialect: Dialect, message: Message, headers: Headers, send: Send, identity: Identity
) -> Exchange:
    response = Response(send, can_stream=b"text/event-stream" in headers.get(b"accept", b""))
    exchange = Exchange(client, dialect, message["id"], message["method"], message.get("params") or {}, response)
    if identity.service is not None:  # said anew with every request: a session may serve several runs
        exchange.caller = replace(client.caller, service=identity.service)
    return exchange


@lru_cache(maxsize=64)
def _asked_profile(query: bytes) -> str:
    return parse_qs(query.decode("latin-1")).get("profile", [""])[0]


def _is_handshake_header(headers: Headers) -> bool:
    version = headers.get(b"mcp-protocol-version")
    return version is None or version in _HANDSHAKE_VERSIONS


def _has_envelope(message: Message) -> bool:
    params = message.get("params")
    return params is not None and is_stateless(params)


def _routing_headers(raw: list[Header], headers: Headers) -> RoutingHeaders:
    names = [name for name, _ in raw]
    repeated = next((name.decode() for name in _ROUTING if names.count(name) > 1), "")
    values = (headers.get(name) for name in _ROUTING)
    version, method, subject = (None if value is None else value.decode("latin-1") for value in values)
    return RoutingHeaders(version, method, subject, repeated)

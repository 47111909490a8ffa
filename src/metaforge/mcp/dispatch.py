"""From a request to its answer, whatever transport and dialect it came by."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

from metaforge.core.clock import elapsed_ms
from metaforge.core.errors import Cancelled, InvalidArguments, InvalidParams, MetaForgeError, UnknownMethod
from metaforge.core.ids import new_call_id
from metaforge.mcp.exchange import Exchange
from metaforge.mcp.listing import Listing, refuse_cursor
from metaforge.mcp.peer import LOG_LEVELS, Peer
from metaforge.mcp.results import call_result, legacy_result, resource_contents
from metaforge.mcp.service import Service
from metaforge.protocol import jsonrpc, legacy
from metaforge.protocol.failures import failure
from metaforge.protocol.handshake import server_info
from metaforge.protocol.idempotency import META_KEY
from metaforge.protocol.jsonrpc import Message, RequestId
from metaforge.protocol.request_state import BadRequestState, RequestStates, bind
from metaforge.protocol.revisions import STATELESS, Dialect
from metaforge.protocol.stateless import CACHE, InputRequired, complete, discover_result, input_required_result
from metaforge.telemetry import logs
from metaforge.tools.context import Outcome

_CALL_METHOD = {Dialect.HANDSHAKE: "tools/call", Dialect.STATELESS: "tools/call", Dialect.LEGACY: "tool/call"}
Quick = Callable[[Exchange], Any]
Slow = Callable[[Exchange], Awaitable[dict[str, Any]]]


class Dispatcher:
    """Answers requests of every dialect from one Service.

    `answer_now` covers what needs no waiting, `answer` the rest; both turn every failure into an answer.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        self._listing = Listing(service)
        self._made_states: RequestStates | None = None
        self._server = server_info(service.version)
        self._is_client_ready = False
        listing = self._listing
        common: dict[str, Quick] = {"resources/templates/list": self._templates}
        self._quick: dict[Dialect, dict[str, Quick]] = {
            Dialect.HANDSHAKE: {
                **common,
                "ping": lambda exchange: {},
                "tools/list": lambda exchange: listing.handshake(exchange.caller.profile),
                "logging/setLevel": _set_level,
            },
            Dialect.STATELESS: {
                **common,
                "server/discover": lambda exchange: discover_result(
                    service.version, service.instructions(exchange.caller.profile)
                ),
                "tools/list": self._list_stateless,
            },
            Dialect.LEGACY: {
                "tool/list": lambda exchange: listing.legacy(
                    legacy.read_capability(exchange.params), exchange.caller.profile
                )
            },
        }
        resources: dict[str, Slow] = {"resources/list": self._resources, "resources/read": self._read}
        self._slow: dict[Dialect, dict[str, Slow]] = {
            Dialect.HANDSHAKE: resources,
            Dialect.STATELESS: resources,
            Dialect.LEGACY: {"health/check": self._health},
        }

    def notified(self, method: str, params: Message, calls: Mapping[RequestId, Exchange]) -> None:
        """Act on a notification.

        Args:
            calls: the requests that the client may cancel.
        """
        if method == "notifications/cancelled":
            request_id = params.get("requestId")
            if isinstance(request_id, str) or type(request_id) is int:
                exchange = calls.get(request_id)
                if exchange is not None:
                    exchange.cancel()
        elif method == "notifications/initialized":
            self.client_ready()

    def client_ready(self) -> None:
        """Tell the application, once, that somebody is there."""
        if not self._is_client_ready:
            self._is_client_ready = True
            self.service.client_ready()

    def answer_now(self, exchange: Exchange) -> Message | None:
        """Answer a request that needs no waiting; None when it has to be awaited with `answer`."""
        dialect, method = exchange.dialect, exchange.method
        if method == _CALL_METHOD[dialect]:
            return None
        handler = self._quick[dialect].get(method)
        if handler is None:
            return None if method in self._slow[dialect] else self._fail(_unknown_method(exchange), exchange)
        try:
            if "cursor" in exchange.params:
                refuse_cursor(method, exchange.params)
            return jsonrpc.result(exchange.id, handler(exchange))
        except Exception as fault:  # noqa: BLE001 - the process boundary: every fault becomes an answer
            return self._fail(fault, exchange)

    def answer(self, exchange: Exchange) -> Coroutine[Any, Any, Message]:
        """Answer a request, once awaited.

        Raises:
            asyncio.CancelledError: the client withdrew; nothing may be answered.
        """
        method = exchange.method
        if method == "tools/call":
            return self._call(exchange)
        return self._call_legacy(exchange) if method == "tool/call" else self._answer_slowly(exchange)

    async def _answer_slowly(self, exchange: Exchange) -> Message:
        try:
            if "cursor" in exchange.params:
                refuse_cursor(exchange.method, exchange.params)
            body = await self._slow[exchange.dialect][exchange.method](exchange)
            if exchange.dialect is Dialect.STATELESS:
                complete(body, self.service.version)
                body.update(CACHE)
            return jsonrpc.result(exchange.id, body)
        except Exception as fault:  # noqa: BLE001 - the process boundary: every fault becomes an answer
            return self._fail(fault, exchange)

    async def _call(self, exchange: Exchange) -> Message:
        started = time.perf_counter()
        call_id = new_call_id()
        params = exchange.params
        tool_id, meta = params.get("name"), params.get("_meta")
        if type(tool_id) is not str or not tool_id:
            fault = InvalidParams('tools/call: "name" is missing; it is a string such as "calculix.run_fea"')
            return self._fail(fault, exchange)
        token = trace = key = None
        if type(meta) is dict:
            token, trace, key = meta.get("progressToken"), meta.get("traceparent"), meta.get(META_KEY)
        arguments: dict[str, Any] = params.get("arguments") or {}
        try:
            if type(arguments) is not dict:
                raise InvalidArguments('"arguments" must be an object of the tool\'s arguments by name')
            answers = carried = None
            if exchange.dialect is Dialect.STATELESS:
                answers, carried = self._redeem(exchange, tool_id, arguments)
            peer = Peer(exchange, token, answers, carried)
            try:
                outcome = await self.service.call_tool(
                    tool_id,
                    arguments,
                    call_id=call_id,
                    caller=exchange.caller,
                    trace_id=trace if type(trace) is str else "",
                    progress=peer.progress if token is not None else None,
                    ask=peer,
                    idempotency_key=key if type(key) is str else "",
                )
            finally:
                peer.close()
            return self._told(exchange, outcome, call_id)
        except InputRequired as pause:
            return self._pause(exchange, pause, tool_id, arguments)
        except (Exception, asyncio.CancelledError) as fault:  # noqa: BLE001 - the process boundary
            return self._refuse(fault, exchange, tool_id, call_id, started)

    async def _call_legacy(self, exchange: Exchange) -> Message:
        started = time.perf_counter()
        call_id = new_call_id()
        try:
            asked = legacy.read_call(exchange.params)
        except MetaForgeError as fault:
            return self._fail(fault, exchange)
        peer = Peer(exchange)
        try:
            outcome = await self.service.call_tool(
                asked.tool_id,
                asked.arguments,
                call_id=call_id,
                caller=exchange.caller,
                timeout_seconds=asked.timeout_seconds,
                trace_id=asked.trace_id,
                progress=peer.progress,
                ask=peer,
            )
            result = legacy_result(outcome, asked.tool_id, call_id, elapsed_ms(started))
            return jsonrpc.result(exchange.id, result)
        except (Exception, asyncio.CancelledError) as fault:  # noqa: BLE001 - the process boundary
            return self._refuse(fault, exchange, asked.tool_id, call_id, started)
        finally:
            peer.close()

    def _told(self, exchange: Exchange, outcome: Outcome, call_id: str) -> Message:
        result = call_result(outcome, call_id, exchange.client.session.hello.revision)
        if links := self.service.links(call_id):
            result["_meta"]["links"] = links
        if exchange.dialect is Dialect.STATELESS:
            complete(result, self.service.version)
        return jsonrpc.result(exchange.id, result)

    def _refuse(self, fault: BaseException, exchange: Exchange, tool_id: str, call_id: str, started: float) -> Message:
        """Answer a call that failed; pass a withdrawal on, because no answer may follow it."""
        if exchange.cancelled:
            raise asyncio.CancelledError from fault
        if isinstance(fault, asyncio.CancelledError):
            fault = Cancelled("The call was cancelled inside the server", retryable=True)
        assert isinstance(fault, Exception)
        told = self._fail(fault, exchange, tool_id=tool_id, call_id=call_id, duration_ms=elapsed_ms(started))
        if "_meta" in told.get("result", ()) and (links := self.service.links(call_id)):
            told["result"]["_meta"]["links"] = links
        return told

    def _fail(
        self, fault: Exception, exchange: Exchange, *, tool_id: str = "", call_id: str = "", duration_ms: float = 0.0
    ) -> Message:
        if not isinstance(fault, MetaForgeError):
            logs.event(
                "mcp_request_failed", "error", method=exchange.method, call_id=call_id, exception=_traceback(fault)
            )
        return failure(
            fault, exchange.id, exchange.dialect,
            tool_id=tool_id, call_id=call_id, duration_ms=duration_ms, server=self._server,
        )  # fmt: skip

    def encode(self, answer: Message) -> bytes:
        """Return an answer as bytes; one that cannot be written down becomes an error of our own."""
        try:
            return jsonrpc.encode(answer)
        except TypeError as fault:
            logs.event("mcp_answer_not_json", "error", request_id=answer.get("id"), exception=str(fault))
            return jsonrpc.encode(failure(fault, answer.get("id"), Dialect.HANDSHAKE))

    # -- calls that pause for an answer (stateless) ----------------------------------------------------------------

    @property
    def _states(self) -> RequestStates:
        if self._made_states is None:
            self._made_states = RequestStates(self.service.request_state_key())
        return self._made_states

    def _redeem(
        self, exchange: Exchange, tool_id: str, arguments: dict[str, Any]
    ) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        """Return the answers that a call brings with it, those of earlier rounds included, and what was carried."""
        params = exchange.params
        state, responses = params.get("requestState"), params.get("inputResponses")
        if state is None and responses is None:
            return None, None
        binding = bind(exchange.method, tool_id, arguments, exchange.client.principal)
        if responses is not None and not isinstance(responses, dict):
            raise BadRequestState
        payload = self._states.redeem(state, binding, time.monotonic(), time.time())
        key, answers = payload["key"], payload["answers"]
        if responses and key in responses:
            answers[key] = responses[key]
        carried = payload.get("carried")
        return dict(answers), None if carried is None else {**carried, "nonce": payload["nonce"]}

    def _pause(self, exchange: Exchange, pause: InputRequired, tool_id: str, arguments: dict[str, Any]) -> Message:
        binding = bind(exchange.method, tool_id, arguments, exchange.client.principal)
        payload: dict[str, Any] = {"key": pause.key, "answers": pause.answers}
        if pause.carried is None:
            state = self._states.issue(binding, payload, time.monotonic())
        else:
            state = self._states.issue_shared(binding, {**payload, "carried": pause.carried}, pause.until)
        return jsonrpc.result(exchange.id, input_required_result(pause, state, self.service.version))

    # -- everything that is no call --------------------------------------------------------------------------------

    def _list_stateless(self, exchange: Exchange) -> Any:
        self.client_ready()
        return self._listing.stateless(exchange.caller.profile)

    def _templates(self, exchange: Exchange) -> dict[str, Any]:
        body: dict[str, Any] = {"resourceTemplates": self.service.resource_templates()}
        if exchange.dialect is Dialect.STATELESS:
            complete(body, self.service.version)
            body.update(CACHE)
        return body

    async def _resources(self, exchange: Exchange) -> dict[str, Any]:
        return {"resources": await self.service.list_resources()}

    async def _read(self, exchange: Exchange) -> dict[str, Any]:
        uri = exchange.params.get("uri")
        if not isinstance(uri, str):
            raise InvalidParams('resources/read: "uri" is missing; resources/list names what there is')
        found = await self.service.read_resource(uri, exchange.caller)
        return {"contents": [resource_contents(content) for content in found]}

    async def _health(self, exchange: Exchange) -> dict[str, Any]:
        return await self.service.health(exchange.client.info)


def _set_level(exchange: Exchange) -> dict[str, Any]:
    level = exchange.params.get("level")
    if level not in LOG_LEVELS:
        raise InvalidParams(f'logging/setLevel: "level" must be one of {", ".join(LOG_LEVELS)}')
    exchange.client.session.log_level = level
    return {}


def _unknown_method(exchange: Exchange) -> UnknownMethod:
    spoken = f"revision {STATELESS}" if exchange.dialect is Dialect.STATELESS else f"the {exchange.dialect} dialect"
    return UnknownMethod(f"Unknown method {exchange.method!r} in {spoken}", method=exchange.method)


def _traceback(fault: Exception) -> str:
    import traceback

    return "".join(traceback.format_exception(fault))

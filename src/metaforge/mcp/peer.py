"""The client as one call sees it: progress, log lines, and questions to the person in front of it."""

import asyncio
from typing import Any

from metaforge.core.errors import ToolError
from metaforge.mcp.exchange import Channel, Exchange
from metaforge.protocol import jsonrpc, legacy
from metaforge.protocol.jsonrpc import Message
from metaforge.protocol.revisions import Dialect
from metaforge.protocol.stateless import LOG_LEVEL_KEY, InputRequired, MissingCapability
from metaforge.telemetry import logs

LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


class Unreachable(ToolError):
    """There is no stream by which the client could be asked."""

    default_kind = "client_unreachable"


class QuestionFailed(ToolError):
    """The client answered a question with an error. `data`: code."""

    default_kind = "question_failed"


class QuestionWithdrawn(ToolError):
    """The server stopped waiting for an answer."""

    default_kind = "question_withdrawn"


class Peer:
    """Reaches the client during one call; does nothing after the call has ended.

    Args:
        exchange: the call.
        token: the client's progress token, of whatever type, or None.
        answers: what was answered in earlier rounds of a stateless call, by question.
        carried: what a stateless call brings back of what it was sent away with, signed by us.
    """

    __slots__ = (
        "_answers", "_asked_count", "_base", "_exchange", "_fraction", "_is_closed", "_open", "_token", "_withdrawing",
        "carried",
    )  # fmt: skip

    def __init__(
        self,
        exchange: Exchange,
        token: Any = None,
        answers: dict[str, Any] | None = None,
        carried: dict[str, Any] | None = None,
    ) -> None:
        self._exchange = exchange
        self._token = token
        self._answers = answers
        self.carried = carried
        self._asked_count = 0
        self._base = 0.0
        self._fraction = -1.0
        self._is_closed = False
        self._open: list[tuple[str, asyncio.Future[Message], Channel]] = []
        self._withdrawing = "the call was cancelled"

    @property
    def can_ask(self) -> bool:
        """Whether a question would reach a client that can show it."""
        exchange = self._exchange
        if exchange.dialect is Dialect.LEGACY or not exchange.client.session.hello.can("elicitation"):
            return False
        return exchange.dialect is Dialect.STATELESS or self._route() is not None

    @property
    def has_progress(self) -> bool:
        """Whether progress reaches the client."""
        exchange = self._exchange
        return (self._token is not None or exchange.dialect is Dialect.LEGACY) and exchange.own.is_open

    def progress(self, fraction: float, message: str) -> None:
        """Report progress. What the client sees grows with every report, as the protocol wants."""
        if self._is_closed:
            return
        exchange = self._exchange
        if exchange.dialect is Dialect.LEGACY:
            exchange.own.send(legacy.progress(exchange.id, fraction, message))
            return
        if self._token is None:
            return
        before = self._fraction
        if fraction <= before:
            if before >= 1.0:
                return
            fraction = before + (1.0 - before) * 1e-3
        self._fraction = fraction
        base = self._base
        params: dict[str, Any] = {"progressToken": self._token, "progress": base + fraction, "total": base + 1.0}
        if message:
            params["message"] = message
        exchange.own.send(jsonrpc.notification("notifications/progress", params))

    def report_waiting(self, elapsed_seconds: float, total_seconds: float, message: str) -> None:
        """Report that the call waits and does no work yet; what it reports of its work later goes on from here."""
        if self._is_closed:
            return
        exchange = self._exchange
        if exchange.dialect is Dialect.LEGACY:
            exchange.own.send(legacy.progress(exchange.id, 0.0, message))
        elif self._token is not None:
            self._base = max(elapsed_seconds, self._base + 0.001 if self._fraction >= 0 else 0.0)
            self._fraction = 0.0
            params = {
                "progressToken": self._token, "progress": self._base, "total": max(total_seconds, self._base),
                "message": message,
            }  # fmt: skip
            exchange.own.send(jsonrpc.notification("notifications/progress", params))

    async def log(self, level: str, data: Any) -> None:
        """Send the client a log line, if it wants lines of this level.

        Args:
            level: debug, info, notice, warning, error, critical, alert or emergency.
            data: any JSON value.
        """
        if level not in LOG_LEVELS:
            raise ValueError(f"{level!r} is no log level: use one of {', '.join(LOG_LEVELS)}")
        threshold = self._log_threshold()
        if self._is_closed or threshold is None or LOG_LEVELS.index(level) < LOG_LEVELS.index(threshold):
            return
        params = {"level": level, "logger": "metaforge", "data": data}
        self._exchange.own.send(jsonrpc.notification("notifications/message", params))

    async def ask(self, message: str, schema: dict[str, Any]) -> dict[str, Any]:
        """Ask the person in front of the client.

        Args:
            message: the question.
            schema: a flat object schema of the form to fill in.

        Returns:
            `action` (accept, decline or cancel) and, when accepted, `content`.

        Raises:
            MissingCapability: the client did not say that it can ask.
            Unreachable: no stream leads to it.
            QuestionFailed: it answered with an error.
            QuestionWithdrawn: `withdraw` was called.
            InputRequired: the call must be sent again with the answer; let it pass.
        """
        params = _form(message, schema)
        if self._exchange.client.session.hello.revision < "2025-11-25":
            del params["mode"]
        return await self._request("elicitation/create", params, "elicitation")

    @property
    def comes_back(self) -> bool:
        """Whether a question ends the request, which is sent again with the answer."""
        return self._exchange.dialect is Dialect.STATELESS

    def brought(self, key: str) -> dict[str, Any] | None:
        """Return the answer that a call brought to a question it was sent away with by `send_away`."""
        answer = (self._answers or {}).get(key)
        return answer if isinstance(answer, dict) else None

    def send_away(
        self, key: str, message: str, schema: dict[str, Any], carried: dict[str, Any], until: float
    ) -> InputRequired:
        """Return what to raise for the call to be sent again with the answer to a question.

        Args:
            key: names the question.
            message, schema: as `ask` takes them.
            carried: comes back, signed, as `carried`; using it once is the asker's care.
            until: the time of day, in seconds since the epoch, from which on it is refused.
        """
        question = {"method": "elicitation/create", "params": _form(message, schema)}
        return InputRequired(key, question, self._answers or {}, carried, until)

    async def sample(self, params: dict[str, Any]) -> dict[str, Any]:
        """Let the client's model complete something.

        Args:
            params: those of `sampling/createMessage`.

        Raises:
            As `ask`.
        """
        return await self._request("sampling/createMessage", params, "sampling")

    def withdraw(self, reason: str) -> None:
        """Take down every question that is open; whoever waits gets QuestionWithdrawn."""
        self._withdrawing = reason
        for _, waiter, _ in self._open:
            if not waiter.done():
                waiter.set_exception(QuestionWithdrawn(f"The question was withdrawn: {reason}"))

    def close(self) -> None:
        """End it with the call: what a tool still reports is dropped."""
        self._is_closed = True

    async def _request(self, method: str, params: dict[str, Any], capability: str) -> dict[str, Any]:
        exchange = self._exchange
        if exchange.dialect is Dialect.LEGACY:
            raise Unreachable(
                f"{method} cannot be sent: the legacy dialect has no questions", fix="call the tool by tools/call"
            )
        if exchange.dialect is Dialect.STATELESS:
            return self._replayed(method, params, capability)
        self._need(capability, method)
        route = self._route()
        if route is None:
            raise Unreachable(
                f"{method} cannot be sent: the client has no stream open and does not accept one for this call",
                fix="send Accept: application/json, text/event-stream with the call, or open GET /mcp",
            )
        session = exchange.client.session
        waiter: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        question = session.ask(method, params, waiter)
        entry = (question["id"], waiter, route)
        self._open.append(entry)
        try:
            if not route.send(question):
                raise Unreachable(f"{method} could not be sent: the client's stream has closed", retryable=True)
            answer = await waiter
        finally:
            self._open.remove(entry)
            self._take_down(entry)
        return _result_of(answer, method)

    def _replayed(self, method: str, params: dict[str, Any], capability: str) -> dict[str, Any]:
        """Return the answer the client brought with it, or ask it to come back with one."""
        self._asked_count += 1
        key = f"question-{self._asked_count}"
        answers = self._answers or {}
        if isinstance(answer := answers.get(key), dict):
            return answer
        self._need(capability, method)
        raise InputRequired(key, {"method": method, "params": params}, answers)

    def _need(self, capability: str, method: str) -> None:
        if not self._exchange.client.session.hello.can(capability):
            raise MissingCapability(
                f"{method} cannot be sent: the client did not declare the capability {capability!r}",
                requiredCapabilities={capability: {}},
            )

    def _route(self) -> Channel | None:
        """Return the stream that carries a question: the client's standing one, else the call's own."""
        exchange = self._exchange
        stream = exchange.client.stream
        if stream is not None and stream.is_open:
            return stream
        return exchange.own if exchange.own.is_open else None

    def _take_down(self, entry: tuple[str, asyncio.Future[Message], Channel]) -> None:
        """Withdraw a question that is still open, by its own stream or another that still leads to the client."""
        request_id, _, route = entry
        notice = self._exchange.client.session.withdraw(request_id, self._withdrawing)
        if notice is None:
            return
        channel = route if route.is_open else self._route()
        delivered = channel.send(notice) if channel is not None else False
        logs.event("mcp_elicitation_withdrawn", request_id=request_id, reason=self._withdrawing, delivered=delivered)

    def _log_threshold(self) -> str | None:
        exchange = self._exchange
        if exchange.dialect is Dialect.HANDSHAKE:
            return exchange.client.session.log_level
        meta = exchange.params.get("_meta")
        level = meta.get(LOG_LEVEL_KEY) if isinstance(meta, dict) else None
        return level if level in LOG_LEVELS else None


def _form(message: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"mode": "form", "message": message, "requestedSchema": schema}


def _result_of(answer: Message, method: str) -> dict[str, Any]:
    error = answer.get("error")
    if error is not None:
        told = error if isinstance(error, dict) else {}
        raise QuestionFailed(
            f"The client answered {method} with an error: {told.get('message', error)}", code=told.get("code")
        )
    result = answer.get("result")
    return result if isinstance(result, dict) else {}

"""The server over standard input and output: one client, one JSON object a line, many calls at once."""

import asyncio
import contextlib
import signal
from collections.abc import Callable

from metaforge.core.errors import InvalidRequest, MetaForgeError
from metaforge.mcp.clients import StatelessClients, make_client
from metaforge.mcp.dispatch import Dispatcher
from metaforge.mcp.exchange import Client, Exchange
from metaforge.mcp.pipes import LineReader, LineWriter, read_lines
from metaforge.mcp.service import Service
from metaforge.protocol import jsonrpc
from metaforge.protocol.failures import failure
from metaforge.protocol.handshake import Hello, initialize_result, read_initialize
from metaforge.protocol.jsonrpc import Message, RequestId
from metaforge.protocol.revisions import LEGACY_METHODS, Dialect
from metaforge.protocol.stateless import is_stateless, read_envelope
from metaforge.telemetry import logs
from metaforge.tools.context import Trust

DRAIN_SECONDS = 0.2
"""How long calls in flight may still answer once the client has closed its end: `printf ... | metaforge-mcp` works."""
CLOSE_SECONDS = 0.5
ACTOR = "local"
SESSION_ID = "stdio"


class StdioServer:
    """Serves one client over two descriptors.

    Args:
        service: the application.
        stdin, stdout: the descriptors; nothing else may write to the second.
        max_request_bytes: the longest line that is read.
        on_end: called once when the end begins.
        profile: what the client is served; empty for every tool.
    """

    def __init__(
        self,
        service: Service,
        stdin: int,
        stdout: int,
        max_request_bytes: int,
        on_end: Callable[[], None],
        profile: str = "",
    ) -> None:
        self._service = service
        self._profile = profile
        self._dispatcher = Dispatcher(service)
        self._stdin = stdin
        self._on_end = on_end
        self._max_request_bytes = max_request_bytes
        self._reader = LineReader(max_request_bytes, self._line, self._too_long, self._stop)
        self._writer = LineWriter(stdout, self._hold_back, self._stop)
        self._client = self._met(Hello())
        self._stateless = StatelessClients(actor_id=ACTOR, trust=Trust.LOCAL, session_id=SESSION_ID)
        self._in_flight: dict[RequestId, Exchange] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped: asyncio.Event | None = None

    # -- the channel of every exchange ----------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether the client still reads."""
        return self._writer.is_open

    def send(self, message: Message) -> bool:
        """Write one message."""
        return self._writer.write(jsonrpc.encode(message))

    # -- life ------------------------------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Serve until stdin closes, SIGTERM or SIGINT comes, or the client stops reading; then end every call."""
        self._loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(NotImplementedError, RuntimeError):
                self._loop.add_signal_handler(number, self._interrupt)
        await read_lines(self._stdin, self._reader)
        await self._stopped.wait()
        self._on_end()
        await self._end()

    def _stop(self) -> None:
        if self._stopped is not None:
            self._stopped.set()

    def _interrupt(self) -> None:
        for exchange in list(self._in_flight.values()):
            exchange.cancel()
        self._stop()

    async def _end(self) -> None:
        running = [exchange.task for exchange in self._in_flight.values() if exchange.task is not None]
        if running:
            await asyncio.wait(running, timeout=DRAIN_SECONDS)
        for exchange in list(self._in_flight.values()):
            exchange.cancel()
        try:
            await asyncio.wait_for(self._service.close(), CLOSE_SECONDS)
        except TimeoutError:
            logs.event("mcp_close_timed_out", "warning", seconds=CLOSE_SECONDS)

    def _hold_back(self, is_behind: bool) -> None:
        transport = self._reader.transport
        if transport is not None:
            if is_behind:
                transport.pause_reading()
            else:
                transport.resume_reading()

    # -- messages --------------------------------------------------------------------------------------------------

    def _too_long(self, request_id: bytes | None) -> None:
        limit = self._max_request_bytes >> 20
        fault = InvalidRequest(f"The message is longer than {limit} MB and was skipped (METAFORGE_MAX_REQUEST_MB)")
        found = jsonrpc.decode(b'{"jsonrpc":"2.0","result":0,"id":%s}' % request_id)["id"] if request_id else None
        self.send(failure(fault, found, Dialect.HANDSHAKE))

    def _line(self, line: bytes) -> None:
        try:
            message = jsonrpc.decode(line)
        except MetaForgeError as fault:
            self.send(failure(fault, getattr(fault, "request_id", None), Dialect.HANDSHAKE))
            return
        method, params = message.get("method"), message.get("params") or {}
        if method is None:
            self._client.settle(message)
        elif "id" not in message:
            self._dispatcher.notified(method, params, self._in_flight)
        elif method == "initialize":
            self._initialize(message["id"], params)
        else:
            self._request(message["id"], method, params)

    def _initialize(self, request_id: RequestId, params: Message) -> None:
        try:
            hello = read_initialize(params)
        except MetaForgeError as fault:
            self.send(failure(fault, request_id, Dialect.HANDSHAKE))
            return
        self._client = self._met(hello)
        body = initialize_result(hello, self._service.version, self._service.instructions(self._profile))
        self.send(jsonrpc.result(request_id, body))

    def _request(self, request_id: RequestId, method: str, params: Message) -> None:
        client, dialect = self._client, Dialect.HANDSHAKE
        if method in LEGACY_METHODS:
            dialect = Dialect.LEGACY
        elif method == "server/discover" or is_stateless(params):
            dialect = Dialect.STATELESS
            try:
                client = self._stateless.get(read_envelope(method, params, None), profile=self._profile)
            except MetaForgeError as fault:
                self.send(failure(fault, request_id, dialect))
                return
        exchange = Exchange(client, dialect, request_id, method, params, self)
        if request_id in self._in_flight:
            reused = InvalidRequest(f"The id {request_id!r} belongs to a request that is still running")
            self.send(failure(reused, None, dialect))
            return
        answer = self._dispatcher.answer_now(exchange)
        if answer is not None:
            self._writer.write(self._dispatcher.encode(answer))
            return
        self._in_flight[request_id] = exchange
        assert self._loop is not None
        exchange.task = self._loop.create_task(self._run(exchange))

    async def _run(self, exchange: Exchange) -> None:
        try:
            answer = await self._dispatcher.answer(exchange)
            if not exchange.cancelled:
                self._writer.write(self._dispatcher.encode(answer))
        except asyncio.CancelledError:
            pass
        finally:
            del self._in_flight[exchange.id]

    def _met(self, hello: Hello) -> Client:
        return make_client(hello, actor_id=ACTOR, trust=Trust.LOCAL, session_id=SESSION_ID, profile=self._profile)

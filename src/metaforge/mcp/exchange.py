"""One request in flight, and the way back to the client that sent it."""

import asyncio
from typing import Any, Protocol

from metaforge.mcp.service import ClientInfo
from metaforge.protocol.jsonrpc import Message, RequestId
from metaforge.protocol.revisions import Dialect
from metaforge.protocol.session import Arrival, Session
from metaforge.telemetry import logs
from metaforge.tools.context import Caller

ClientSession = Session["asyncio.Future[Message]"]


class Channel(Protocol):
    """Where messages for a client can go before the answer does."""

    @property
    def is_open(self) -> bool:
        """Whether something sent now can reach the client."""
        ...

    def send(self, message: Message) -> bool:
        """Send without waiting; False when the client is out of reach."""
        ...


class Client:
    """A client as both transports keep it: its session, and who it is to the application."""

    __slots__ = ("caller", "calls", "info", "principal", "session", "stream")

    def __init__(self, session: ClientSession, caller: Caller, info: ClientInfo, principal: str = "") -> None:
        self.session = session
        self.caller = caller
        self.principal = principal or caller.actor_id
        """The credential that opened the session; requests with another are not of it."""
        self.info = info
        self.calls: dict[RequestId, Exchange] = {}
        """Requests in flight that the client may cancel, by its own id."""
        self.stream: Channel | None = None
        """The stream that stays open beside the calls, where the client opened one."""

    def settle(self, answer: Message) -> None:
        """Hand an answer of the client's to whoever asked; one that comes too late is told in the log alone."""
        arrival, waiter = self.session.receive(answer)
        if waiter is not None and not waiter.done():
            waiter.set_result(answer)
        elif arrival is Arrival.LATE:
            logs.event("mcp_elicitation_late_response_ignored", "warning", request_id=answer.get("id"))


class Exchange:
    """One request: what was asked, by whom, and how to answer.

    Attributes:
        caller: who asks: the client, with what this request alone says of it.
        own: the call's own channel: the pipe, or the response of its POST.
        task: what to cancel when the client withdraws; set while the request runs.
        cancelled: whether the client withdrew, so that no answer may follow.
    """

    __slots__ = ("caller", "cancelled", "client", "dialect", "id", "method", "own", "params", "task")

    def __init__(
        self, client: Client, dialect: Dialect, request_id: RequestId, method: str, params: dict[str, Any], own: Channel
    ) -> None:
        self.client = client
        self.caller = client.caller
        self.dialect = dialect
        self.id = request_id
        self.method = method
        self.params = params
        self.own = own
        self.task: asyncio.Task[Any] | None = None
        self.cancelled = False

    def cancel(self) -> None:
        """Withdraw the request; the task ends by itself and answers nothing."""
        if not self.cancelled:
            self.cancelled = True
            if self.task is not None:
                self.task.cancel()

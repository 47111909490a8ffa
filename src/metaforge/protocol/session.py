"""What the server remembers of one client: who it is, and the questions it has been asked. No I/O."""

from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar

from metaforge.protocol import jsonrpc
from metaforge.protocol.handshake import Hello
from metaforge.protocol.jsonrpc import Message, RequestId

Waiter = TypeVar("Waiter")

REMEMBERED_WITHDRAWN_COUNT = 256


class Arrival(StrEnum):
    """What an answer of the client's turned out to be."""

    ANSWER = "answer"
    LATE = "late"
    """Its question was withdrawn: acknowledged, told in the log, never applied."""
    STRAY = "stray"
    """Nothing was asked under this id."""


@dataclass
class Session(Generic[Waiter]):
    """One client, from `initialize` to the end of its connection or session.

    Attributes:
        id: unguessable over HTTP, where it is what the client proves itself with.
        hello: what the client said of itself.
        log_level: the least severe level it wants to see, by `logging/setLevel`.
        pending: open questions by request id; the waiter is whatever the transport waits with.
    """

    id: str
    hello: Hello = field(default_factory=Hello)
    log_level: str = "info"
    pending: dict[RequestId, Waiter] = field(default_factory=dict)
    _withdrawn: deque[RequestId] = field(default_factory=lambda: deque(maxlen=REMEMBERED_WITHDRAWN_COUNT))
    _asked_count: int = 0

    def ask(self, method: str, params: dict[str, Any], waiter: Waiter) -> Message:
        """Return the request that puts a question to the client, and remember who waits for the answer."""
        self._asked_count += 1
        kind = "elicit" if method == "elicitation/create" else "ask"
        request_id = f"{kind}-{self.id[:8]}-{self._asked_count}"
        self.pending[request_id] = waiter
        return jsonrpc.request(request_id, method, params)

    def receive(self, answer: Message) -> tuple[Arrival, Waiter | None]:
        """Take in a response of the client's; the question it answers is then closed."""
        request_id = answer.get("id")
        if request_id is not None and request_id in self.pending:
            return Arrival.ANSWER, self.pending.pop(request_id)
        return (Arrival.LATE if request_id in self._withdrawn else Arrival.STRAY), None

    def withdraw(self, request_id: RequestId, reason: str) -> Message | None:
        """Close a question unanswered; return the notification that lets the client take it down, if it is open."""
        if self.pending.pop(request_id, None) is None:
            return None
        self._withdrawn.append(request_id)
        return jsonrpc.notification("notifications/cancelled", {"requestId": request_id, "reason": reason})

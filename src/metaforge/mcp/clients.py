"""Clients: from what one said of itself to who it is for the application, and the table of HTTP sessions."""

from typing import TYPE_CHECKING

import orjson

from metaforge.core.ids import new_session_id
from metaforge.mcp.exchange import Client
from metaforge.mcp.service import ClientInfo
from metaforge.protocol.handshake import Hello
from metaforge.protocol.session import Session
from metaforge.tools.context import Caller, Trust

if TYPE_CHECKING:
    from metaforge.access.identity import Identity

MAX_SESSION_COUNT = 4096
_REMEMBERED_COUNT = 256


def make_client(
    hello: Hello,
    *,
    actor_id: str,
    trust: Trust,
    session_id: str,
    verified: bool = False,
    principal: str = "",
    profile: str = "",
) -> Client:
    """Return a client with its session and its names for the application."""
    caller = Caller(actor_id, trust, hello.name, hello.version, session_id, verified, profile=profile)
    info = ClientInfo(hello.name, hello.version, hello.requested, hello.revision, hello.can("elicitation"), profile)
    return Client(Session(session_id, hello), caller, info, principal)


class StatelessClients:
    """Clients that say who they are with every request: made once for each that says the same.

    Args:
        session_id: names the connection that they all share, as the two ends of a pipe; empty where requests come
            from anywhere, so that none can be told from another.
    """

    def __init__(self, *, actor_id: str = "anonymous", trust: Trust = Trust.UNTRUSTED, session_id: str = "") -> None:
        self._actor_id = actor_id
        self._trust = trust
        self._session_id = session_id
        self._known: dict[tuple[str, str, str, str, bytes], Client] = {}

    def get(self, hello: Hello, identity: "Identity | None" = None, profile: str = "") -> Client:
        """Return the client that says this of itself.

        Args:
            identity: whose credential came with it; None where all share one connection.
            profile: what it is served; empty for every tool.
        """
        principal = identity.principal if identity is not None else ""
        key = principal, profile, hello.name, hello.version, orjson.dumps(hello.capabilities)
        client = self._known.get(key)
        if client is None:
            if len(self._known) >= _REMEMBERED_COUNT:
                self._known.clear()
            actor_id, trust, verified = self._actor_id, self._trust, False
            if identity is not None:
                actor_id, trust, verified = identity.actor_id, identity.trust, identity.verified
            client = make_client(
                hello, actor_id=actor_id, trust=trust, session_id=self._session_id,
                verified=verified, principal=principal, profile=profile,
            )  # fmt: skip
            self._known[key] = client
        return client


class Sessions:
    """HTTP sessions by id, ended when they are idle too long or there are too many.

    Args:
        idle_seconds: how long one may be unused.
        limit_count: how many there may be; the longest idle makes room for a new one.
    """

    def __init__(self, idle_seconds: float, limit_count: int = MAX_SESSION_COUNT) -> None:
        self._idle_seconds = idle_seconds
        self._limit_count = limit_count
        self._clients: dict[str, Client] = {}
        self._used_at: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._clients)

    def open(
        self,
        hello: Hello,
        *,
        actor_id: str,
        trust: Trust,
        now: float,
        verified: bool = False,
        principal: str = "",
        profile: str = "",
    ) -> Client | None:
        """Return a new session's client; None when every session is at work and there is no room."""
        if len(self._clients) >= self._limit_count:
            idle = [session_id for session_id, client in self._clients.items() if not _is_busy(client)]
            if not idle:
                return None
            self.end(min(idle, key=self._used_at.__getitem__))
        client = make_client(
            hello, actor_id=actor_id, trust=trust, session_id=new_session_id(),
            verified=verified, principal=principal, profile=profile,
        )  # fmt: skip
        self._clients[client.session.id] = client
        self._used_at[client.session.id] = now
        return client

    def get(self, session_id: str, now: float) -> Client | None:
        """Return the client of a session, which counts as used."""
        client = self._clients.get(session_id)
        if client is not None:
            self._used_at[session_id] = now
        return client

    def end(self, session_id: str) -> Client | None:
        """Forget a session and withdraw what it has running; return its client, or None when there is none."""
        client = self._clients.pop(session_id, None)
        if client is not None:
            del self._used_at[session_id]
            for exchange in list(client.calls.values()):
                exchange.cancel()
        return client

    def expire(self, now: float) -> list[Client]:
        """End every session that is idle too long; one with a call or a stream is not idle."""
        ended: list[Client] = []
        for session_id, client in list(self._clients.items()):
            if _is_busy(client):
                self._used_at[session_id] = now
            elif now - self._used_at[session_id] > self._idle_seconds:
                self.end(session_id)
                ended.append(client)
        return ended

    def end_all(self) -> list[Client]:
        """End every session."""
        return [client for session_id in list(self._clients) if (client := self.end(session_id))]


def _is_busy(client: Client) -> bool:
    return bool(client.calls) or (client.stream is not None and client.stream.is_open)

"""Who a request is from, or why it is refused."""

import math
from dataclasses import dataclass, field
from enum import StrEnum

import orjson

from metaforge.tools.context import ServiceClaims, Trust

Header = tuple[bytes, bytes]


class Method(StrEnum):
    """What a caller showed."""

    OPEN = "open"
    """Nothing: the server asks for nothing."""
    API_KEY = "api_key"
    OAUTH = "oauth"


@dataclass(frozen=True)
class Identity:
    """A caller over HTTP, as far as it is known."""

    actor_id: str
    """Who acts, for records: `anonymous`, `api-key`, or `user:` and the token's subject."""
    trust: Trust
    method: Method
    principal: str
    """What a session is bound to: the same for every request with this credential or its successor."""
    verified: bool = False
    """Whether an issuer vouches for the person; an API key identifies nobody, and a client's own token is no person."""
    name: str = ""
    """What to call a person: the token's name and subject, or as typed at sign-in."""
    scopes: frozenset[str] = frozenset()
    expires_at: float = math.inf
    """Seconds since 1970 after which the credential is no longer good."""
    service: ServiceClaims | None = None
    """What a caller with the service key says of its run; believed only after the run has been looked up."""
    session_id: str = ""
    """The browser session that this identity comes from; empty where a header carried the credential."""


OPEN = Identity("anonymous", Trust.UNTRUSTED, Method.OPEN, "open")
KEY_HOLDER = Identity("api-key", Trust.UNTRUSTED, Method.API_KEY, "api_key")


@dataclass(frozen=True)
class Denied:
    """A refusal, ready to be sent: `status`, `headers` and `body`."""

    reason: str
    """What is wrong with the credential, and what to send instead."""
    status: int = 401
    headers: tuple[Header, ...] = field(default=())

    @property
    def body(self) -> bytes:
        """The documented JSON body."""
        return orjson.dumps({"detail": {"error_type": "auth_error", "reason": self.reason}})

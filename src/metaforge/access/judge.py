"""The judge of every request over HTTP: from its headers to an identity, or to a refusal that says what to send."""

import hashlib
import hmac
import math
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from metaforge.access.addresses import Addresses, is_loopback
from metaforge.access.attempts import Attempts
from metaforge.access.claims import SERVICE_KEY_HEADER, ServiceKey
from metaforge.access.identity import KEY_HOLDER, OPEN, Denied, Identity, Method
from metaforge.access.metadata import challenge, metadata_url, read_metadata
from metaforge.access.mode import OAuthConfig, auth_mode, same
from metaforge.access.origins import Origins
from metaforge.settings import BadSetting, Settings
from metaforge.tools.context import Trust

if TYPE_CHECKING:
    from metaforge.access.tokens import Token, TokenVerifier

Headers = Mapping[bytes, bytes]
Peer = Sequence[object] | None

REMEMBERED_COUNT = 1024
REMEMBERED_SECONDS = 300.0
"""How long a verified token is good without another look at the issuer's keys; never beyond its own end."""


class Access:
    """Judges the headers of every request.

    Args:
        settings: mode, keys and issuer.
        host: the address that is listened on.

    Raises:
        BadSetting: an open server on an address that others can reach, or settings that do not go together.
    """

    def __init__(self, settings: Settings, host: str) -> None:
        self.mode = auth_mode(settings)
        is_local = is_loopback(host)
        self._public_url = settings.public_url.rstrip("/")
        if self.mode == "off":
            _refuse_open(host, self._public_url)
        self._origins = Origins(is_local=is_local, public_url=self._public_url)
        self._addresses = Addresses(settings.trusted_proxies)
        self._takes_key = "api_key" in self.mode
        self._key = settings.api_key if self._takes_key else ""
        self._key_header = b"Bearer " + self._key.encode("utf-8", "surrogateescape")
        self.oauth = OAuthConfig.of(settings) if "oauth" in self.mode else None
        self._service = ServiceKey("" if self.mode == "off" else settings.service_key)
        self.attempts = Attempts()
        self._known: dict[bytes, Identity] = {}
        self._known_until: dict[bytes, float] = {}

    @cached_property
    def tokens(self) -> "TokenVerifier":
        """What verifies tokens; made at the first, because it loads the cryptography."""
        from metaforge.access.tokens import TokenVerifier

        assert self.oauth is not None
        return TokenVerifier(self.oauth)

    def foreign(self, headers: Headers) -> str:
        """Say why a request comes from a page it should not come from; empty when it does not."""
        return self._origins.foreign(headers)

    def known(self, headers: Headers, peer: Peer = None) -> Identity | None:
        """Return who a request is from where that takes no waiting; None when `judge` has to look closer.

        Args:
            peer: the other end of the connection, as ASGI's `scope["client"]`.
        """
        if self.mode == "off":
            return OPEN
        header = headers.get(b"authorization", b"")
        if self._takes_key and hmac.compare_digest(header, self._key_header):
            if self.attempts and self._wait_seconds(headers, peer):
                return None
            found: Identity | None = KEY_HOLDER
        else:
            found = self._remembered(header) if self._known else None
        if found is not None and SERVICE_KEY_HEADER in headers:
            return self._service.serving(found, headers)
        return found

    async def judge(self, headers: Headers, peer: Peer = None) -> Identity | Denied:
        """Return who a request is from, or why it is refused.

        Args:
            peer: the other end of the connection, as ASGI's `scope["client"]`.
        """
        found = self.known(headers, peer)
        if found is not None:
            return found
        scheme, _, secret = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        secret = secret.strip()
        if scheme.lower() != "bearer" or not secret:
            return self._denied(headers, self._wanted, "")
        judged = await self.judge_secret(secret, headers, peer)
        if isinstance(judged, Identity):
            if judged.method is Method.OAUTH:
                self._remember(headers[b"authorization"], judged)
            return self._service.serving(judged, headers)
        return judged

    async def judge_secret(self, secret: str, headers: Headers, peer: Peer = None) -> Identity | Denied:
        """Judge an API key or a token by itself, wherever it came from; wrong ones are counted by address."""
        if wait := self._wait_seconds(headers, peer):
            return too_many(wait)
        if self._takes_key and same(secret, self._key_text):
            return KEY_HOLDER
        if self.oauth is not None and (secret.count(".") == 2 or not self._takes_key):
            return await self._judge_token(secret, headers, peer)
        self._note_wrong(secret, headers, peer)
        return self._denied(headers, "the bearer key is not the server's METAFORGE_MCP_API_KEY", "invalid_token")

    async def _judge_token(self, secret: str, headers: Headers, peer: Peer) -> Identity | Denied:
        from metaforge.access.keys import IssuerUnavailable
        from metaforge.access.tokens import BadToken

        assert self.oauth is not None
        try:
            token = await self.tokens.verify(secret)
        except BadToken as fault:
            if fault.is_forged:
                self._note_wrong(secret, headers, peer)
            return self._denied(headers, fault.reason, "invalid_token")
        except IssuerUnavailable as fault:
            retry = (b"retry-after", b"%d" % math.ceil(fault.retry_after_seconds))
            return Denied(f"the token cannot be checked now: {fault.reason}", 503, (retry,))
        missing = [scope for scope in self.oauth.scopes if scope not in token.scopes]
        if missing:
            reason = f"the token lacks the scope {' '.join(missing)}"
            return self._denied(headers, reason, "insufficient_scope", status=403)
        return _identity(self.oauth.issuer, token)

    def may_decide(self, identity: Identity) -> Denied | None:
        """Return why an identity may not decide approvals over the web; None when it may.

        A token made for an agent lacks the scope, so that nobody approves their own write with it.
        """
        scope = self.oauth.approve_scope if self.oauth is not None else ""
        if identity.method is Method.OAUTH and scope and scope not in identity.scopes:
            reason = f"deciding approvals needs a token with the scope {scope} (METAFORGE_OAUTH_APPROVE_SCOPE)"
            header = challenge("insufficient_scope", reason, scopes=(scope,))
            return Denied(reason, 403, ((b"www-authenticate", header),))
        return None

    def metadata(self, path: str, headers: Headers, scheme: str = "http") -> dict[str, Any] | None:
        """Return the protected-resource metadata that a path names; None where there is none.

        Args:
            path: as requested, such as `/.well-known/oauth-protected-resource/mcp`.
            scheme: of the request, for a server that was not told its own URL.
        """
        if self.oauth is None:
            return None
        return read_metadata(path, self._base_url(headers, scheme), self.oauth)

    # -- refusals --------------------------------------------------------------------------------------------------

    @property
    def _wanted(self) -> str:
        """What a request without a credential is told."""
        key, token = "a bearer key is required: send Authorization: Bearer <METAFORGE_MCP_API_KEY>", ""
        if self.oauth is not None:
            token = f"an access token of {self.oauth.issuer} is required: send Authorization: Bearer <token>"
        return {"api_key": key, "oauth": token}.get(self.mode, f"{key}; or {token}")

    def _denied(self, headers: Headers, reason: str, error: str, status: int = 401) -> Denied:
        told = reason if error else ""
        if self.oauth is None:
            header = challenge(error, told)
        else:
            url = metadata_url(self._base_url(headers, "http"))
            header = challenge(error, told, url=url, scopes=self.oauth.scopes)
        return Denied(reason, status, ((b"www-authenticate", header),))

    def _base_url(self, headers: Headers, scheme: str) -> str:
        return self._public_url or f"{scheme}://{headers.get(b'host', b'').decode('latin-1')}"

    # -- what is remembered ----------------------------------------------------------------------------------------

    def _remembered(self, header: bytes) -> Identity | None:
        digest = hashlib.sha256(header).digest()
        found = self._known.get(digest)
        if found is None or time.time() < self._known_until[digest]:
            return found
        del self._known[digest], self._known_until[digest]
        return None

    def _remember(self, header: bytes, identity: Identity) -> None:
        """Keep a verified token by its digest: the next request with it costs one look-up."""
        if len(self._known) >= REMEMBERED_COUNT:
            oldest = next(iter(self._known))
            del self._known[oldest], self._known_until[oldest]
        digest = hashlib.sha256(header).digest()
        self._known[digest] = identity
        self._known_until[digest] = min(identity.expires_at, time.time() + REMEMBERED_SECONDS)

    @cached_property
    def _key_text(self) -> str:
        return self._key.encode("utf-8", "surrogateescape").decode("latin-1")

    # -- guesses ---------------------------------------------------------------------------------------------------

    def _wait_seconds(self, headers: Headers, peer: Peer) -> float:
        return self.attempts.wait_seconds(self._addresses.client(peer, headers), time.monotonic())

    def _note_wrong(self, secret: str, headers: Headers, peer: Peer) -> None:
        self.attempts.note(self._addresses.client(peer, headers), secret, time.monotonic())


def too_many(wait_seconds: float) -> Denied:
    """Return the refusal of an address that showed too many wrong secrets."""
    seconds = max(1, math.ceil(wait_seconds))
    reason = f"too many wrong credentials from this address: try again in {seconds} s"
    return Denied(reason, 429, ((b"retry-after", b"%d" % seconds),))


def _identity(issuer: str, token: "Token") -> Identity:
    return Identity(
        actor_id=f"user:{token.subject}",
        trust=Trust.REMOTE,
        method=Method.OAUTH,
        principal=f"oauth {issuer} {token.client_id} {token.subject}",
        verified=token.is_person,
        name=f"{token.name} ({token.subject})" if token.name not in ("", token.subject) else token.subject,
        scopes=token.scopes,
        expires_at=token.expires_at,
    )


def _refuse_open(host: str, public_url: str) -> None:
    from metaforge.access.addresses import host_of

    if not is_loopback(host):
        raise BadSetting(
            f"Listening on {host} without a key is refused: anyone who reaches it could run tools. "
            "Set METAFORGE_MCP_API_KEY or METAFORGE_OAUTH_ISSUER, or listen on 127.0.0.1"
        )
    if public_url and not is_loopback(host_of(public_url)):
        raise BadSetting(
            f"METAFORGE_PUBLIC_URL={public_url} says that others reach this server, and it asks for no key: "
            "set METAFORGE_MCP_API_KEY or METAFORGE_OAUTH_ISSUER"
        )

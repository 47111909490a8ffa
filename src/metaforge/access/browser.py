"""People in browsers: signing in, the signed cookie that remembers it, and what a browser is recognised by."""

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from metaforge.access.csrf import Csrf
from metaforge.access.identity import KEY_HOLDER, Denied, Header, Identity, Method
from metaforge.access.judge import Access, Peer
from metaforge.access.secret import SigningSecret
from metaforge.settings import Settings
from metaforge.tools.context import Trust

if TYPE_CHECKING:
    from joserfc.jwk import OctKey

SESSION_SECONDS = 8 * 3600
VISIT_SECONDS = 30 * 24 * 3600
MAX_NAME_CHARS = 80
MAX_SIGNED_OUT_COUNT = 4096
_ALGORITHM = "HS256"
_TYPE = "metaforge-session"


@dataclass(frozen=True)
class Visit:
    """A browser, signed in or not.

    Attributes:
        browser_id: what its forms' tokens are bound to.
        cookie: the `Set-Cookie` header that the answer must carry; None for a browser that is known already.
    """

    browser_id: str
    cookie: Header | None = None


@dataclass(frozen=True)
class SignedIn:
    """A person who has just signed in, and the header that makes the browser remember it."""

    identity: Identity
    cookie: Header


class Browser:
    """Judges requests of browsers: by bearer credential where one is sent, else by the session's cookie.

    Args:
        access: judges credentials.
        settings: the secret, and the URL that tells whether cookies travel by https alone.
        clock: seconds since 1970.
    """

    def __init__(self, access: Access, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        self._access = access
        self._clock = clock
        self._secret = SigningSecret.of(settings)
        self.csrf = Csrf(self._secret)
        urls = (settings.public_url, settings.dashboard_url)
        self._is_secure = any(url.lower().startswith("https:") for url in urls)
        prefix = "__Host-" if self._is_secure else ""
        self._session_cookie, self._visit_cookie = prefix + "metaforge_session", prefix + "metaforge_visit"
        issuer = access.oauth.issuer if access.oauth is not None else ""
        self._proofs = {
            Method.API_KEY: self._secret.mark("api_key", settings.api_key) if "api_key" in access.mode else "",
            Method.OAUTH: self._secret.mark("oauth", issuer) if issuer else "",
        }
        """What ends a session when the key or the issuer it was opened with is replaced."""
        self._scopes = {*access.oauth.scopes, access.oauth.approve_scope} if access.oauth is not None else set()
        """The ones that decide something here; a cookie has no room for all that a token may carry."""
        self._signed_out: dict[str, float] = {}

    async def judge(self, headers: Mapping[bytes, bytes], peer: Peer = None) -> Identity | Denied:
        """Return who a request is from, or why it is refused; `Identity.session_id` tells a cookie from a header.

        A request that changes something and was let in by its cookie must show a form token too.
        """
        if self._access.mode == "off" or b"authorization" in headers:
            return await self._access.judge(headers, peer)
        text = read_cookies(headers).get(self._session_cookie, "")
        if text and (found := self._read(text)):
            return found
        return await self._access.judge(headers, peer)

    def visit(self, headers: Mapping[bytes, bytes], identity: Identity | None = None) -> Visit:
        """Return what a browser is recognised by, for the tokens of its forms.

        Args:
            identity: who it is, where it is signed in; the sign-in page has none.
        """
        if identity is not None and identity.session_id:
            return Visit(identity.session_id)
        known = read_cookies(headers).get(self._visit_cookie, "")
        if len(known) == 32 and known.isalnum():
            return Visit(known)
        made = secrets.token_hex(16)
        return Visit(made, self._cookie(self._visit_cookie, made, VISIT_SECONDS))

    async def sign_in(
        self, secret: str, name: str, headers: Mapping[bytes, bytes], peer: Peer = None
    ) -> SignedIn | Denied:
        """Open a session for whoever shows the API key or an access token; wrong ones are counted by address.

        Args:
            secret: the key or token, as typed.
            name: what a key's holder calls themselves; kept as said, never as verified.
        """
        judged = await self._access.judge_secret(secret.strip(), headers, peer)
        if isinstance(judged, Denied):
            return judged
        now = int(self._clock())
        ends = int(min(now + SESSION_SECONDS, judged.expires_at))
        typed = "".join(mark for mark in name.strip()[:MAX_NAME_CHARS] if mark.isprintable())
        identity = replace(judged, session_id=secrets.token_hex(16), expires_at=ends, name=judged.name or typed)
        cookie = self._cookie(self._session_cookie, self._write(identity, now), ends - now)
        return SignedIn(identity, cookie)

    def sign_out(self, identity: Identity) -> Header:
        """End a session in this process, and return the header that makes the browser forget it."""
        now = self._clock()
        self._signed_out = {each: ends for each, ends in self._signed_out.items() if ends > now}
        if identity.session_id and len(self._signed_out) < MAX_SIGNED_OUT_COUNT:
            self._signed_out[identity.session_id] = identity.expires_at
        return self._cookie(self._session_cookie, "", 0)

    def _write(self, identity: Identity, now: int) -> str:
        from joserfc import jwt

        claims = {
            "sub": identity.actor_id,
            "method": identity.method,
            "principal": identity.principal,
            "name": identity.name,
            "verified": identity.verified,
            "scopes": sorted(identity.scopes & self._scopes),
            "sid": identity.session_id,
            "proof": self._proofs[identity.method],
            "iat": now,
            "exp": int(identity.expires_at),
        }
        return jwt.encode({"alg": _ALGORITHM, "typ": _TYPE}, claims, self._key())

    def _read(self, text: str) -> Identity | None:
        """Return who a cookie stands for; None for one that is not ours, too old, ended or of a replaced key."""
        from joserfc import jwt
        from joserfc.errors import JoseError

        try:
            token = jwt.decode(text, self._key(), algorithms=[_ALGORITHM])
        except (JoseError, ValueError, RecursionError):
            return None
        claims: dict[str, Any] = token.claims
        if token.header.get("typ") != _TYPE or claims["exp"] <= self._clock() or claims["sid"] in self._signed_out:
            return None
        method = Method(claims["method"])
        if not self._proofs[method] or claims["proof"] != self._proofs[method]:
            return None
        found = replace(
            KEY_HOLDER, name=claims["name"], session_id=claims["sid"], expires_at=float(claims["exp"])
        )  # fmt: skip
        if method is Method.API_KEY:
            return found
        return replace(
            found, actor_id=claims["sub"], trust=Trust.REMOTE, method=method, principal=claims["principal"],
            verified=claims["verified"], scopes=frozenset(claims["scopes"]),
        )  # fmt: skip

    def _key(self) -> "OctKey":
        from joserfc.jwk import OctKey

        return OctKey.import_key(self._secret.key("sessions"))

    def _cookie(self, name: str, value: str, max_age_seconds: int) -> Header:
        """Return a cookie that scripts cannot read and other sites' forms do not bring."""
        parts = [f"{name}={value}", "Path=/", f"Max-Age={max_age_seconds}", "HttpOnly", "SameSite=Lax"]
        if self._is_secure:
            parts.append("Secure")
        return b"set-cookie", "; ".join(parts).encode("latin-1")


def read_cookies(headers: Mapping[bytes, bytes]) -> dict[str, str]:
    """Return a request's cookies; of two by one name the first, which is the one for the narrower path."""
    found: dict[str, str] = {}
    for part in headers.get(b"cookie", b"").decode("latin-1").split(";"):
        name, equals, value = part.partition("=")
        if equals:
            found.setdefault(name.strip(), value.strip().strip('"'))
    return found

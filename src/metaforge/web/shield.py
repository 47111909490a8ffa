"""What stands before every route of the gateway: who may come in, from which page, with how much, and how browsers
must treat what they get.
"""

from collections.abc import MutableMapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

import orjson
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from metaforge.access.browser import Browser
from metaforge.access.csrf import HEADER as CSRF_HEADER
from metaforge.access.identity import Identity
from metaforge.access.judge import Access
from metaforge.settings import Settings
from metaforge.web.faults import fault_body
from metaforge.web.front import Receive, Scope, Send

Header = tuple[bytes, bytes]

SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))
SIGN_IN_PATH = "/sign-in"
OPEN_PATHS = ("/static/", SIGN_IN_PATH)
"""What anybody may fetch: nothing of a design."""
PAGE_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    b"connect-src 'self' blob:; worker-src 'self' blob:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Pages: scripts and styles from this server alone, none inline."""
DATA_POLICY = b"default-src 'none'; frame-ancestors 'none'; sandbox"
"""Data and contents: nothing in them runs."""
_HEADERS: tuple[Header, ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)


class Shield:
    """An ASGI application around another.

    Args:
        inner: what is protected.
        access: from which pages requests may come.
        settings: the largest body, and the addresses people use.
        browser: who may come in, by header or by the cookie of who signed in.
    """

    def __init__(self, inner: ASGIApp, access: Access, settings: Settings, browser: Browser) -> None:
        self._inner = inner
        self._access = access
        self._browser = browser
        self._limit_bytes = settings.max_request_mb << 20
        self._own_origins = {_origin(url) for url in (settings.dashboard_url, settings.public_url) if url}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request, or refuse it."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        sending = _Protected(send, is_data=scope["path"].startswith("/v1/"))
        if refusal := self._refusal(scope, headers):
            status, reason = refusal
            await _refuse(sending, status, orjson.dumps(fault_body(status, reason)), ())
            return
        judged = await self._browser.judge(headers, scope.get("client"))
        if isinstance(judged, Identity):
            if reason := self._forged(scope, headers, judged):
                await _refuse(sending, 403, orjson.dumps(fault_body(403, reason, "csrf")), ())
                return
            scope.setdefault("state", {})["identity"] = judged
        elif not scope["path"].startswith(OPEN_PATHS):
            if judged.status == 401 and _is_page(scope, headers):
                await _send_to_sign_in(sending, scope)
            else:
                await _refuse(sending, judged.status, judged.body, judged.headers)
            return
        await self._inner(scope, _Counted(receive, self._limit_bytes), sending)

    def _refusal(self, scope: Scope, headers: dict[bytes, bytes]) -> tuple[int, str] | None:
        """Return status and reason of a refusal, or None for a request that may pass once it is known whose it is."""
        unsafe = scope["method"] not in SAFE_METHODS
        if reason := self._access.foreign(headers) or (self._cross_site(headers) if unsafe else ""):
            return 403, reason
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > self._limit_bytes:
            return 413, _too_large(self._limit_bytes)
        if unsafe and scope["path"].startswith("/v1/") and _has_body(headers) and not _is_json(headers):
            return 415, "The body must be JSON: send Content-Type: application/json"
        return None

    def _forged(self, scope: Scope, headers: dict[bytes, bytes], identity: Identity) -> str:
        """Say why a change of the API that a cookie let in is not taken; pages check their own forms."""
        if not identity.session_id or scope["method"] in SAFE_METHODS or not scope["path"].startswith("/v1/"):
            return ""
        shown = headers.get(CSRF_HEADER, b"").decode("latin-1")
        return self._browser.csrf.refusal(shown, self._browser.visit(headers, identity).browser_id)

    def _cross_site(self, headers: dict[bytes, bytes]) -> str:
        """Say why a change comes from another site's page; empty when it does not. Programs send neither header."""
        site = headers.get(b"sec-fetch-site", b"none")
        if site not in (b"same-origin", b"none"):
            return f"A page of another site ({site.decode('latin-1')}) may not change anything here"
        origin = headers.get(b"origin", b"").decode("latin-1").lower()
        if not origin or origin in self._own_origins:
            return ""
        if urlsplit(origin).netloc == headers.get(b"host", b"").decode("latin-1").lower():
            return ""
        return f"A page of {origin!r} may not change anything here: use the dashboard's own address"


class _Protected:
    """Adds the headers that browsers obey to a response, where it does not have them."""

    __slots__ = ("_is_data", "_send")

    def __init__(self, send: Send, *, is_data: bool) -> None:
        self._send = send
        self._is_data = is_data

    async def __call__(self, event: MutableMapping[str, Any]) -> None:
        event = dict(event)
        if event["type"] == "http.response.start":
            told = list(event.get("headers") or ())
            names = {name.lower() for name, _ in told}
            policy = DATA_POLICY if self._is_data else PAGE_POLICY
            more = [*_HEADERS, (b"content-security-policy", policy), (b"cache-control", b"no-store")]
            event["headers"] = [*told, *(each for each in more if each[0] not in names)]
        await self._send(event)


class _Counted:
    """Reads a body up to a limit."""

    __slots__ = ("_left_bytes", "_limit_bytes", "_receive")

    def __init__(self, receive: Receive, limit_bytes: int) -> None:
        self._receive = receive
        self._limit_bytes = self._left_bytes = limit_bytes

    async def __call__(self) -> Scope:
        event = await self._receive()
        self._left_bytes -= len(event.get("body", b""))
        if self._left_bytes < 0:
            raise HTTPException(413, _too_large(self._limit_bytes))
        return event


async def _refuse(send: Send, status: int, body: bytes, headers: Sequence[Header]) -> None:
    told = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *headers]
    await send({"type": "http.response.start", "status": status, "headers": told})
    await send({"type": "http.response.body", "body": body})


def _is_page(scope: Scope, headers: dict[bytes, bytes]) -> bool:
    """Whether a person's browser asks for a page, and can be asked to sign in."""
    asks = scope["method"] == "GET" and not scope["path"].startswith("/v1/")
    return asks and b"text/html" in headers.get(b"accept", b"")


async def _send_to_sign_in(send: Send, scope: Scope) -> None:
    query = b"?" + scope["query_string"] if scope.get("query_string") else b""
    wanted = quote(scope.get("raw_path", scope["path"].encode()).partition(b"?")[0] + query, safe="")
    location = f"{SIGN_IN_PATH}?next={wanted}".encode()
    headers = [(b"location", location), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 303, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def _too_large(limit_bytes: int) -> str:
    return f"The body is larger than {limit_bytes >> 20} MB (METAFORGE_MAX_REQUEST_MB)"


def _has_body(headers: dict[bytes, bytes]) -> bool:
    return headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers


def _is_json(headers: dict[bytes, bytes]) -> bool:
    return headers.get(b"content-type", b"").split(b";")[0].strip().lower() == b"application/json"


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower() if parts.netloc else ""

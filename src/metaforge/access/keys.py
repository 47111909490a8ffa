"""The issuer's signing keys: fetched when the first token comes, kept, and asked for again when a key is unknown."""

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from metaforge.access.mode import is_safe_url
from metaforge.core.certificates import trusted_certificates
from metaforge.telemetry import logs

if TYPE_CHECKING:
    from joserfc.jwk import Key

FETCH_SECONDS = 5.0
FRESH_SECONDS = 3600.0
STALE_SECONDS = 24 * 3600.0
"""How long known keys are used while the issuer does not answer."""
RETRY_SECONDS = 3.0
"""How long nobody asks an issuer that has just failed."""
BURST_COUNT = 4
REFILL_SECONDS = 30.0
"""Unknown key ids make the server ask again: this many times at once, then once in so many seconds."""
MAX_BYTES = 512 * 1024
MAX_KEYS_COUNT = 100
MAX_TRIED_COUNT = 8
"""Keys that a token without a key id is held against."""
MIN_RSA_BITS = 2048
KEY_TYPES = ("RSA", "EC", "OKP")
_WELL_KNOWN = ("/.well-known/openid-configuration", "/.well-known/oauth-authorization-server")


class IssuerUnavailable(Exception):
    """The issuer's keys cannot be had, so that no token can be checked.

    Attributes:
        retry_after_seconds: when it is worth trying again.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after_seconds = RETRY_SECONDS


class SigningKeys:
    """Public keys of one issuer. Symmetric keys and weak ones are never taken from it.

    Args:
        issuer: its URL, which its metadata must repeat.
        jwks_url: where the keys are; empty: where the metadata says.
        clock: seconds on a monotonic clock.
    """

    def __init__(self, issuer: str, jwks_url: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        self._issuer = issuer
        self._jwks_url = jwks_url
        self._clock = clock
        self._keys: list[Key] = []
        self._fetched_at = float("-inf")
        self._failed_at = float("-inf")
        self._failure = ""
        self._allowance = float(BURST_COUNT)
        self._allowance_at = clock()
        self._lock = asyncio.Lock()
        self.fetch_count = 0
        """How often the issuer was asked for keys."""

    async def find(self, key_id: str | None, key_type: str) -> "list[Key]":
        """Return the keys that may have signed a token; empty when the issuer knows none.

        Args:
            key_id: the token's `kid`; None where it names no key.
            key_type: RSA, EC or OKP, as its algorithm needs.

        Raises:
            IssuerUnavailable: no keys are known and none can be had.
        """
        now = self._clock()
        age_seconds = now - self._fetched_at
        if age_seconds > FRESH_SECONDS and (failure := await self._renew(now)) and age_seconds > STALE_SECONDS:
            raise IssuerUnavailable(failure)
        found = self._matching(key_id, key_type)
        if not found and self._fetched_at < now and self._may_ask_again(now):
            if failure := await self._renew(now):
                raise IssuerUnavailable(failure)
            found = self._matching(key_id, key_type)
        return found

    def _matching(self, key_id: str | None, key_type: str) -> "list[Key]":
        fitting = [key for key in self._keys if key.key_type == key_type]
        if key_id is None:
            return fitting[:MAX_TRIED_COUNT]
        return [key for key in fitting if key.kid == key_id]

    def _may_ask_again(self, now: float) -> bool:
        self._allowance = min(BURST_COUNT, self._allowance + (now - self._allowance_at) / REFILL_SECONDS)
        self._allowance_at = now
        if self._allowance < 1:
            return False
        self._allowance -= 1
        return True

    async def _renew(self, since: float) -> str:
        """Fetch the keys unless they were fetched since then, one fetch at a time.

        Returns:
            Why the keys are still the old ones; empty when they are new.
        """
        async with self._lock:
            if self._fetched_at > since:
                return ""
            now = self._clock()
            if now - self._failed_at < RETRY_SECONDS:
                return self._failure
            try:
                self._keys = await self._fetch()
            except IssuerUnavailable as fault:
                self._failed_at, self._failure = self._clock(), fault.reason
                logs.event("oauth_issuer_unavailable", "warning", issuer=self._issuer, reason=fault.reason)
                return fault.reason
            self._fetched_at = self._clock()
            return ""

    async def _fetch(self) -> "list[Key]":
        trust = await trusted_certificates()
        import httpx

        self.fetch_count += 1
        try:
            async with asyncio.timeout(FETCH_SECONDS), httpx.AsyncClient(timeout=FETCH_SECONDS, verify=trust) as http:
                url = self._jwks_url or await self._find_url(http)
                return _read_keys(await _get_json(http, url), url)
        except (httpx.HTTPError, httpx.InvalidURL, OSError, TimeoutError) as fault:
            told = str(fault) or type(fault).__name__
            raise IssuerUnavailable(f"the issuer {self._issuer} cannot be reached: {told}") from None

    async def _find_url(self, http: Any) -> str:
        reasons: list[str] = []
        for url in _metadata_urls(self._issuer):
            try:
                metadata = await _get_json(http, url)
            except IssuerUnavailable as fault:
                reasons.append(fault.reason)
                continue
            if metadata.get("issuer") != self._issuer:
                raise IssuerUnavailable(
                    f"{url} speaks for {metadata.get('issuer')!r}, not for METAFORGE_OAUTH_ISSUER={self._issuer!r}"
                )
            keys_url = metadata.get("jwks_uri")
            if not isinstance(keys_url, str) or not is_safe_url(keys_url):
                raise IssuerUnavailable(f"{url} names no jwks_uri by https: set METAFORGE_OAUTH_JWKS_URL")
            return keys_url
        raise IssuerUnavailable("; ".join(reasons))


def _metadata_urls(issuer: str) -> list[str]:
    """Return where an issuer's metadata may be: OpenID Connect appends the name, OAuth puts it before the path."""
    from urllib.parse import urlsplit

    parts = urlsplit(issuer)
    root, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    openid, oauth = _WELL_KNOWN
    return list(dict.fromkeys([root + path + openid, root + oauth + path, root + openid + path]))


async def _get_json(http: Any, url: str) -> dict[str, Any]:
    import orjson

    body = bytearray()
    async with http.stream("GET", url, headers={"accept": "application/json"}) as response:
        if response.status_code != 200:
            raise IssuerUnavailable(f"{url} answered {response.status_code}")
        async for part in response.aiter_bytes():
            body += part
            if len(body) > MAX_BYTES:
                raise IssuerUnavailable(f"{url} answered more than {MAX_BYTES >> 10} KiB")
    try:
        found = orjson.loads(body)
    except ValueError:
        raise IssuerUnavailable(f"{url} answered no JSON") from None
    if not isinstance(found, dict):
        raise IssuerUnavailable(f"{url} answered no JSON object")
    return found


def _read_keys(body: dict[str, Any], url: str) -> "list[Key]":
    """Return the public signing keys of a key set; what cannot be used is left out."""
    from joserfc import jwk
    from joserfc.errors import JoseError

    entries = body.get("keys")
    if not isinstance(entries, list):
        raise IssuerUnavailable(f"{url} is no key set: it has no list `keys`")
    keys: list[Key] = []
    for entry in entries[:MAX_KEYS_COUNT]:
        if not isinstance(entry, dict) or entry.get("kty") not in KEY_TYPES or entry.get("use", "sig") != "sig":
            continue
        public = {name: value for name, value in entry.items() if name not in ("d", "p", "q", "dp", "dq", "qi", "oth")}
        try:
            key = jwk.import_key(public)
            if key.key_type == "RSA" and getattr(key.public_key, "key_size", 0) < MIN_RSA_BITS:
                raise ValueError(f"an RSA key has {MIN_RSA_BITS} bits or more")
            keys.append(key)
        except (JoseError, ValueError, TypeError, KeyError) as fault:
            told = {"kid": str(entry.get("kid"))[:100], "reason": str(fault)[:200]}
            logs.event("oauth_key_ignored", "warning", url=url, **told)
    if not keys:
        raise IssuerUnavailable(f"{url} holds no signing key that can be used")
    return keys

"""Access tokens: JWTs that an issuer signed for this server."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from metaforge.access.keys import SigningKeys
from metaforge.access.mode import OAuthConfig

if TYPE_CHECKING:
    from joserfc.jwk import Key
    from joserfc.jws import JWSRegistry

MAX_TOKEN_CHARS = 16 * 1024
MAX_SUBJECT_CHARS = 200
LEEWAY_SECONDS = 30
"""How far the issuer's clock may be off."""
KEY_TYPE_OF = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384", "ES512"), "EC"),
    **dict.fromkeys(("EdDSA", "Ed25519"), "OKP"),
}
"""Signatures that only the issuer can make. None of them takes a shared secret, and `none` is no signature."""
_TYPES = ("", "jwt", "at+jwt", "application/at+jwt")
_NAME_CLAIMS = ("preferred_username", "email", "name")


class BadToken(Exception):
    """A token that is not good here.

    Attributes:
        reason: what is wrong with it, for whoever holds it.
        is_forged: whether nobody but its sender vouches for it; False for a real token that is too old or for others.
    """

    def __init__(self, reason: str, *, is_forged: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_forged = is_forged


@dataclass(frozen=True)
class Token:
    """What a good token says."""

    subject: str
    client_id: str
    name: str
    is_person: bool
    """False where a client got the token for itself, with nobody signed in."""
    scopes: frozenset[str]
    expires_at: float


class TokenVerifier:
    """Checks tokens against the issuer's keys.

    Args:
        config: issuer and audiences.
        clock: seconds since 1970.
    """

    def __init__(self, config: OAuthConfig, clock: Callable[[], float] = time.time) -> None:
        self._config = config
        self._clock = clock
        self.keys = SigningKeys(config.issuer, config.jwks_url)

    async def verify(self, text: str) -> Token:
        """Return what a token says once its signature, issuer, audience and times are found good.

        Raises:
            BadToken: it is not good here.
            IssuerUnavailable: the issuer's keys cannot be had.
        """
        header = self._header(text)
        algorithm, key_id = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in KEY_TYPE_OF:
            allowed = ", ".join(KEY_TYPE_OF)
            raise BadToken(f"the token is signed by {str(algorithm)[:20]!r}; use one of {allowed}", is_forged=True)
        if not isinstance(key_id, str | None) or str(header.get("typ") or "").lower() not in _TYPES:
            raise BadToken("the token is no access token: its header says something else", is_forged=True)
        keys = await self.keys.find(key_id, KEY_TYPE_OF[algorithm])
        if not keys:
            named = f"{KEY_TYPE_OF[algorithm]} key {str(key_id)[:100]!r} that the token names"
            raise BadToken(f"the issuer has no {named}", is_forged=True)
        return self._read(self._open(text, algorithm, keys))

    @cached_property
    def _registry(self) -> "JWSRegistry":
        from joserfc.jws import JWSRegistry

        registry = JWSRegistry(algorithms=list(KEY_TYPE_OF), strict_check_header=False)
        registry.max_header_length = 4096
        return registry

    def _header(self, text: str) -> dict[str, Any]:
        from joserfc import jws
        from joserfc.errors import JoseError

        if len(text) > MAX_TOKEN_CHARS:
            raise BadToken(f"the token is longer than {MAX_TOKEN_CHARS} characters", is_forged=True)
        try:
            return dict(jws.extract_compact(text.encode("ascii"), registry=self._registry).headers())
        except (JoseError, ValueError, RecursionError):
            raise BadToken("the bearer token is no signed JWT", is_forged=True) from None

    def _open(self, text: str, algorithm: str, keys: "list[Key]") -> dict[str, Any]:
        """Return the claims, if one of the keys signed them."""
        from joserfc import jwt
        from joserfc.errors import JoseError

        for key in keys:
            if key.alg not in (None, algorithm):
                continue
            try:
                return dict(jwt.decode(text, key, algorithms=[algorithm], registry=self._registry).claims)
            except (JoseError, ValueError, RecursionError):
                continue
        raise BadToken("the token's signature is not the issuer's", is_forged=True)

    def _read(self, claims: dict[str, Any]) -> Token:
        from joserfc.errors import ClaimError, ExpiredTokenError
        from joserfc.jwt import JWTClaimsRegistry

        config = self._config
        rules = JWTClaimsRegistry(
            now=int(self._clock()),
            leeway=LEEWAY_SECONDS,
            iss={"essential": True, "value": config.issuer},
            aud={"essential": True, "values": list(config.audiences)},
            exp={"essential": True},
            sub={"essential": True},
        )
        try:
            rules.validate(claims)
        except ExpiredTokenError:
            raise BadToken("the token has expired: get a new one from the issuer", is_forged=False) from None
        except ClaimError as fault:
            raise BadToken(self._told(getattr(fault, "claim", ""), claims, str(fault)), is_forged=False) from None
        subject = claims["sub"]
        if len(subject) > MAX_SUBJECT_CHARS or not subject.isprintable():
            raise BadToken("the token's subject cannot be written down", is_forged=False)
        client_id = _text(claims.get("client_id")) or _text(claims.get("azp"))
        return Token(
            subject=subject,
            client_id=client_id,
            name=next((name for claim in _NAME_CLAIMS if (name := _text(claims.get(claim)))), ""),
            is_person=not _is_machine(claims, client_id),
            scopes=_scopes(claims),
            expires_at=float(claims["exp"]),
        )

    def _told(self, claim: str, claims: dict[str, Any], otherwise: str) -> str:
        config = self._config
        if claim == "aud":
            wanted = " or ".join(config.audiences)
            return f"the token is for {str(claims.get('aud'))[:200]}, not for this server: ask the issuer for {wanted}"
        if claim == "iss":
            return f"the token is from {str(claims.get('iss'))[:200]}; this server believes {config.issuer}"
        return f"the token is not good: {otherwise}"


def _is_machine(claims: dict[str, Any], client_id: str) -> bool:
    """Whether a client got the token for itself: its subject is then the client (RFC 9068), or the issuer says so."""
    own_subjects = (client_id, f"{client_id}@clients")
    return (
        (bool(client_id) and claims["sub"] in own_subjects)
        or claims.get("gty") == "client-credentials"
        or claims.get("idtyp") == "app"
        or (bool(client_id) and claims.get("preferred_username") == f"service-account-{client_id.lower()}")
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) and len(value) <= MAX_SUBJECT_CHARS and value.isprintable() else ""


def _scopes(claims: dict[str, Any]) -> frozenset[str]:
    """Return the scopes: `scope` is one text by RFC 9068, `scp` a list or a text with some issuers."""
    found: list[str] = []
    for claim in ("scope", "scp"):
        value = claims.get(claim)
        listed = value.split() if isinstance(value, str) else value if isinstance(value, list) else []
        found += [each for each in listed if isinstance(each, str)]
    return frozenset(found)

"""`requestState`: what the server must remember of a call that waits for an answer, kept by the client, signed by us.

A state is attacker-controlled when it comes back. It is good once, for a while, for the same method, tool, arguments
and caller; every other use is refused with one and the same words.
"""

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import Any

import orjson

from metaforge.core.errors import InvalidParams

TTL_SECONDS = 600.0
MAX_OUTSTANDING_COUNT = 4096
_SIGNATURE_BYTES = 32


class BadRequestState(InvalidParams):
    """The state is forged, used, too old, or belongs to another call. Which of these is not told."""

    def __init__(self) -> None:
        super().__init__("The requestState is not valid for this call: send the call again without it")


class RequestStates:
    """Issues states and takes each back once.

    Args:
        key: the secret they are signed with; the same in all processes that take back each other's.
    """

    def __init__(self, key: bytes, ttl_seconds: float = TTL_SECONDS) -> None:
        self._key = key
        self._ttl_seconds = ttl_seconds
        self._outstanding: dict[str, float] = {}

    def issue(self, binding: bytes, payload: Mapping[str, Any], now: float) -> str:
        """Return a state that carries `payload` for the call that `binding` stands for.

        Args:
            now: seconds on a monotonic clock.
        """
        self._forget(now)
        nonce = secrets.token_hex(8)
        self._outstanding[nonce] = now + self._ttl_seconds
        body = orjson.dumps({"nonce": nonce, "payload": payload})
        return base64.urlsafe_b64encode(self._sign(body, binding) + body).decode()

    def issue_shared(self, binding: bytes, payload: Mapping[str, Any], until: float) -> str:
        """Return a state that any process with the key takes back.

        Whoever acts on the payload sees to it that this happens once, by the `nonce` that `redeem` adds to it.

        Args:
            until: the time of day, in seconds since the epoch, from which on it is refused.
        """
        body = orjson.dumps({"nonce": secrets.token_hex(16), "payload": payload, "until": until})
        return base64.urlsafe_b64encode(self._sign(body, binding) + body).decode()

    def redeem(self, state: Any, binding: bytes, now: float, time_of_day: float = 0.0) -> dict[str, Any]:
        """Return the payload of a state, which is then used up; a shared one with its `nonce`.

        Args:
            now: seconds on a monotonic clock.
            time_of_day: seconds since the epoch, for shared states.

        Raises:
            BadRequestState: for every reason there is.
        """
        self._forget(now)
        if not isinstance(state, str):
            raise BadRequestState
        try:
            raw = base64.b64decode(state.encode(), altchars=b"-_", validate=True)
        except (binascii.Error, UnicodeEncodeError):
            raise BadRequestState from None
        signature, body = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, self._sign(body, binding)):
            raise BadRequestState
        told = orjson.loads(body)
        payload: dict[str, Any] = told["payload"]
        if "until" in told:
            if time_of_day >= told["until"]:
                raise BadRequestState
            return {**payload, "nonce": told["nonce"]}
        if self._outstanding.pop(told["nonce"], None) is None:
            raise BadRequestState
        return payload

    def _sign(self, body: bytes, binding: bytes) -> bytes:
        return hmac.digest(self._key, len(binding).to_bytes(4, "big") + binding + body, "sha256")

    def _forget(self, now: float) -> None:
        """Drop what is too old; it lies in the order of issue."""
        outstanding = self._outstanding
        while outstanding:
            oldest = next(iter(outstanding))
            if outstanding[oldest] > now and len(outstanding) < MAX_OUTSTANDING_COUNT:
                return
            del outstanding[oldest]


def bind(method: str, subject: str, arguments: Mapping[str, Any], principal: str) -> bytes:
    """Return what a state is bound to: a digest of the method, the tool, its arguments and the caller."""
    parts = [method, subject, arguments, principal]
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).digest()

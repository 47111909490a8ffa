"""The service key, and what a caller that shows it says of its run."""

from collections.abc import Mapping
from dataclasses import replace

from metaforge.access.identity import Identity
from metaforge.access.mode import same
from metaforge.telemetry import logs
from metaforge.tools.context import ServiceClaims

SERVICE_KEY_HEADER = b"x-metaforge-service-key"
MIN_KEY_CHARS = 16
MAX_CLAIM_CHARS = 200
_CLAIMS = {
    "run_id": b"x-metaforge-run",
    "phase": b"x-metaforge-phase",
    "model": b"x-metaforge-model",
    "project_id": b"x-metaforge-project",
}


class ServiceKey:
    """Recognises the worker of server-driven runs by a secret that no other client holds.

    Args:
        key: the secret; a short or empty one recognises nobody.
    """

    def __init__(self, key: str) -> None:
        self._key = key if len(key) >= MIN_KEY_CHARS else ""
        if key and not self._key:
            logs.event("mcp_service_key_too_short", "warning", chars=len(key), needed_chars=MIN_KEY_CHARS)

    def serving(self, identity: Identity, headers: Mapping[bytes, bytes]) -> Identity:
        """Return the identity with its claims if the request shows the key and names a run, else as it is.

        A wrong key is no error: the caller is then the client that its other credential makes it.
        """
        shown = headers.get(SERVICE_KEY_HEADER, b"").decode("utf-8", "surrogateescape")
        if not self._key or not same(shown, self._key):
            return identity
        told = {name: _claim(headers.get(header, b"")) for name, header in _CLAIMS.items()}
        if not told["run_id"]:
            return identity
        return replace(identity, service=ServiceClaims(**told))


def _claim(value: bytes) -> str:
    text = value.decode("utf-8", "replace").strip()
    return text if len(text) <= MAX_CLAIM_CHARS and text.isprintable() else ""

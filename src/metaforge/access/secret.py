"""The secret that signs what browsers keep for us."""

import contextlib
import hashlib
import hmac
import os
import secrets
from pathlib import Path

from metaforge.settings import BadSetting, Settings

MIN_SECRET_CHARS = 32
_BYTES = 32


class SigningSecret:
    """One secret, and keys for each purpose that tell nothing of each other.

    Args:
        secret: the bytes everything is made from.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    @classmethod
    def of(cls, settings: Settings) -> "SigningSecret":
        """Return METAFORGE_SESSION_SECRET, or the one kept below METAFORGE_HOME, made at its first use.

        Raises:
            BadSetting: it is too short to be a secret.
        """
        if text := settings.session_secret:
            if len(text) < MIN_SECRET_CHARS:
                raise BadSetting(
                    f"METAFORGE_SESSION_SECRET has {len(text)} characters; use {MIN_SECRET_CHARS} or more, "
                    "such as those of `openssl rand -hex 32`"
                )
            return cls(text.encode())
        return cls(_kept(settings.home_path / "secrets" / "sessions"))

    def key(self, purpose: str) -> bytes:
        """Return the key for one purpose."""
        return hmac.digest(self._secret, purpose.encode(), hashlib.sha256)

    def mark(self, purpose: str, text: str) -> str:
        """Return a short proof that whoever holds it got it from us for this purpose and text."""
        digest = hmac.digest(self.key(purpose), text.encode("utf-8", "surrogateescape"), hashlib.sha256)
        return digest[:16].hex()


def _kept(path: Path) -> bytes:
    """Return the secret of a file that its owner alone can read; the first of several processes makes it."""
    with contextlib.suppress(OSError):
        if len(found := path.read_bytes()) >= _BYTES:
            return found
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(secrets.token_bytes(_BYTES))
        file.flush()
        os.fsync(file.fileno())
    try:
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()
    return path.read_bytes()

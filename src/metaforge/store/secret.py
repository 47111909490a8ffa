"""A secret that all processes of one home share."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

_BYTES = 32


def kept_secret(path: Path) -> bytes:
    """Return the secret in a file that only its owner may read; it is made at the first call of any process.

    Where no file can be kept the secret is this call's own: nobody else has it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists():
            _make(path)
        if len(kept := path.read_bytes()) == _BYTES:
            return kept
    except OSError:
        pass
    return secrets.token_bytes(_BYTES)


def _make(path: Path) -> None:
    """Write the file whole under another name first: of several processes at once, one gives it its name."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(descriptor, secrets.token_bytes(_BYTES))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    with suppress(FileExistsError):
        os.link(draft, path)
    draft.unlink()

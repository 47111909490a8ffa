"""Ids of calls, sessions and digests."""

import hashlib
import os
from pathlib import Path

_CHUNK_BYTES = 1 << 20
_POOL_COUNT = 256

_pool: list[str] = []


def new_call_id() -> str:
    """Return 16 hex digits, unique for all practical purposes (64 random bits)."""
    try:
        return _pool.pop()
    except IndexError:
        # One system call for many ids: asking for each costs more than the rest of finding it.
        digits = os.urandom(8 * _POOL_COUNT).hex()
        _pool.extend(digits[start : start + 16] for start in range(0, len(digits), 16))
        return _pool.pop()


def new_session_id() -> str:
    """Return 32 hex digits from the system's random source, unguessable."""
    return os.urandom(16).hex()


def sha256_bytes(content: bytes) -> str:
    """Return the SHA-256 of bytes as 64 hex digits."""
    return hashlib.sha256(content).hexdigest()


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file's content as 64 hex digits, reading 1 MiB at a time."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()

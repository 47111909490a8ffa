"""The certificates that outgoing connections are held against."""

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl

_read: "list[ssl.SSLContext]" = []


async def trusted_certificates() -> "ssl.SSLContext":
    """Return them, read once, beside the event loop: it takes tens of milliseconds."""
    if not _read:
        _read.append(await asyncio.to_thread(_load))
    return _read[-1]


def _load() -> "ssl.SSLContext":
    import httpx

    trust = httpx.create_ssl_context()
    httpx.AsyncClient(verify=trust)  # imports what a client needs
    return trust

"""The revisions of the protocol, and the three dialects a request can be written in."""

from enum import StrEnum
from typing import Any

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Revisions that begin with `initialize`, oldest first."""
STATELESS = "2026-07-28"
"""The revision in which every request carries its own client, version and capabilities."""
SUPPORTED = (STATELESS, *reversed(HANDSHAKE))
STRUCTURED_SINCE = "2025-06-18"
"""The first revision with structured results, resource links and elicitation."""


class Dialect(StrEnum):
    """How a request is written, and so how its answer must be."""

    HANDSHAKE = "handshake"
    STATELESS = "stateless"
    LEGACY = "legacy"
    """MetaForge's own `tool/list`, `tool/call` and `health/check`."""


LEGACY_METHODS = frozenset({"tool/list", "tool/call", "health/check"})


def negotiate(requested: Any) -> str:
    """Return the handshake revision to speak: the client's own where it is known, else the newest."""
    return requested if requested in HANDSHAKE else HANDSHAKE[-1]

"""What tells an OAuth client where to get a token: the challenge of a 401, and the resource's own metadata."""

from collections.abc import Sequence
from typing import Any

from metaforge.access.mode import OAuthConfig, resource_of

WELL_KNOWN = "/.well-known/oauth-protected-resource"
_RESOURCE_PATH = "/mcp"


def metadata_url(base_url: str) -> str:
    """Return where the metadata of the MCP endpoint is."""
    return f"{base_url}{WELL_KNOWN}{_RESOURCE_PATH}"


def read_metadata(path: str, base_url: str, config: OAuthConfig) -> dict[str, Any] | None:
    """Return the metadata document (RFC 9728) at a path; None where there is none."""
    if path.rstrip("/") not in (WELL_KNOWN, WELL_KNOWN + _RESOURCE_PATH):
        return None
    found: dict[str, Any] = {
        "resource": resource_of(base_url),
        "authorization_servers": [config.issuer],
        "bearer_methods_supported": ["header"],
        "resource_name": "MetaForge",
    }
    if config.scopes:
        found["scopes_supported"] = list(config.scopes)
    return found


def challenge(error: str = "", description: str = "", *, url: str = "", scopes: Sequence[str] = ()) -> bytes:
    """Return the value of `WWW-Authenticate`.

    Args:
        error: invalid_token or insufficient_scope; empty where nothing was sent.
        description: what is wrong, for people.
        url: where the resource's metadata is; empty where tokens are not taken.
        scopes: what the token must carry.
    """
    parts = {"resource_metadata": url} if url else {"realm": "metaforge"}
    parts |= {"scope": " ".join(scopes)} if scopes else {}
    parts |= {"error": error, "error_description": description} if error else {}
    return ("Bearer " + ", ".join(f'{name}="{_quoted(value)}"' for name, value in parts.items())).encode("latin-1")


def _quoted(text: str) -> str:
    """Return a text that may stand between quotes in a header."""
    return "".join(mark if " " <= mark <= "~" and mark not in '"\\' else "'" for mark in text)

"""Who may talk to the server: bearer key, `Origin` and `Host`, and the rules that keep an open server local."""

import hmac
from collections.abc import Mapping

from metaforge.core.errors import AuthDenied
from metaforge.settings import BadSetting, Settings

_REMEMBERED_COUNT = 256


def is_loopback(host: str) -> bool:
    """Whether a host name or address means this machine."""
    import ipaddress  # a server over stdio has no addresses to judge, and starts two milliseconds sooner

    host = host.strip("[]")
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def auth_mode(settings: Settings) -> str:
    """Return `off` or `api_key`.

    Raises:
        BadSetting: a mode that does not exist, or a key that is missing.
    """
    mode = settings.auth_mode.strip().lower() or ("api_key" if settings.api_key else "off")
    if mode not in ("off", "api_key"):
        raise BadSetting(f"METAFORGE_AUTH_MODE={settings.auth_mode!r} is refused: use off or api_key")
    if mode == "api_key" and not settings.api_key:
        raise BadSetting("METAFORGE_AUTH_MODE=api_key needs a key: set METAFORGE_MCP_API_KEY")
    return mode


def check_stdio_key(settings: Settings) -> None:
    """Hold a stdio client to the key, where one is set.

    Raises:
        AuthDenied: METAFORGE_MCP_CLIENT_KEY is not METAFORGE_MCP_API_KEY.
    """
    if settings.api_key and not _same(settings.client_key, settings.api_key):
        what = "does not match" if settings.client_key else "is not set, but"
        raise AuthDenied(
            f"auth_error: METAFORGE_MCP_CLIENT_KEY {what} METAFORGE_MCP_API_KEY: "
            "unset both for an open local server, or set both to the same value",
            error_type="auth_error",
        )


class Access:
    """Judges the headers of every HTTP request.

    Args:
        settings: auth mode and key.
        host: the address that is listened on.

    Raises:
        BadSetting: an open server on an address that others can reach.
    """

    def __init__(self, settings: Settings, host: str) -> None:
        self.mode = auth_mode(settings)
        self._key = settings.api_key
        self._is_local = is_loopback(host)
        self._fine_hosts: dict[tuple[bytes, bytes], None] = {}
        if self.mode == "off" and not self._is_local:
            raise BadSetting(
                f"Listening on {host} without a key is refused: anyone who reaches it could run tools. "
                "Set METAFORGE_MCP_API_KEY, or listen on 127.0.0.1"
            )

    def foreign(self, headers: Mapping[bytes, bytes]) -> str:
        """Say why a request comes from a page it should not come from; empty when it does not.

        A browser names the page in `Origin`. A page that has its own name resolve to this machine is told by `Host`.
        """
        pair = headers.get(b"host", b""), headers.get(b"origin", b"")
        if pair in self._fine_hosts:
            return ""
        host = _host_of("//" + pair[0].decode("latin-1"))
        if self._is_local and not is_loopback(host):
            return f"Host {host!r} is not this machine: use 127.0.0.1 or localhost"
        if pair[1]:
            origin = _host_of(pair[1].decode("latin-1"))
            if not origin or not (is_loopback(origin) if self._is_local else origin == host):
                return f"Origin {pair[1].decode('latin-1')!r} may not use this server"
        if len(self._fine_hosts) < _REMEMBERED_COUNT:
            self._fine_hosts[pair] = None
        return ""

    def denied(self, headers: Mapping[bytes, bytes]) -> str:
        """Say why a request is not authenticated; empty when it is."""
        if self.mode == "off":
            return ""
        scheme, _, key = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            return "a bearer key is required: send Authorization: Bearer <METAFORGE_MCP_API_KEY>"
        return "" if _same(key.strip(), self._key) else "the bearer key is not the server's METAFORGE_MCP_API_KEY"


def _same(left: str, right: str) -> bool:
    return hmac.compare_digest(left.encode("utf-8", "surrogateescape"), right.encode("utf-8", "surrogateescape"))


def _host_of(url: str) -> str:
    from urllib.parse import urlsplit

    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""

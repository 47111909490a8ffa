"""Which pages may use the server: a browser names them in `Origin`, and the server it means in `Host`."""

from collections.abc import Mapping

from metaforge.access.addresses import host_of, is_loopback

_REMEMBERED_COUNT = 256


class Origins:
    """Judges `Host` and `Origin` of every request.

    Args:
        is_local: whether only this machine reaches the server; a page whose name was made to resolve here is then
            told by `Host`.
        public_url: the URL that clients use where a proxy stands in front; its host is ours too.
    """

    def __init__(self, *, is_local: bool, public_url: str = "") -> None:
        self._is_local = is_local
        self._public_host = host_of(public_url)
        self._fine: dict[tuple[bytes, bytes], None] = {}

    def foreign(self, headers: Mapping[bytes, bytes]) -> str:
        """Say why a request comes from a page it should not come from; empty when it does not."""
        pair = headers.get(b"host", b""), headers.get(b"origin", b"")
        if pair in self._fine:
            return ""
        host = host_of("//" + pair[0].decode("latin-1"))
        if self._is_local and not self._is_ours(host):
            return f"Host {host!r} is not this machine: use 127.0.0.1 or localhost"
        if pair[1]:
            origin = host_of(pair[1].decode("latin-1"))
            if not origin or not (self._is_ours(origin) or (origin == host and not self._is_local)):
                return f"Origin {pair[1].decode('latin-1')!r} may not use this server"
        if len(self._fine) < _REMEMBERED_COUNT:
            self._fine[pair] = None
        return ""

    def _is_ours(self, host: str) -> bool:
        return (self._is_local and is_loopback(host)) or (bool(host) and host == self._public_host)

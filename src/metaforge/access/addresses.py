"""Hosts and addresses: what is this machine, and where a request really comes from."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from metaforge.settings import BadSetting

if TYPE_CHECKING:
    from ipaddress import IPv4Network, IPv6Network

UNKNOWN = "unknown"
_MAX_HOPS_COUNT = 32


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


def host_of(url: str) -> str:
    """Return the host of a URL, or an empty text where it names none."""
    from urllib.parse import urlsplit

    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


class Addresses:
    """Tells clients apart by address, behind reverse proxies too.

    Args:
        trusted_proxies: addresses or networks (CIDR) whose `X-Forwarded-For` is believed.

    Raises:
        BadSetting: one of them is no address.
    """

    def __init__(self, trusted_proxies: Sequence[str] = ()) -> None:
        import ipaddress

        self._proxies: list[IPv4Network | IPv6Network] = []
        for text in trusted_proxies:
            try:
                self._proxies.append(ipaddress.ip_network(text, strict=False))
            except ValueError:
                raise BadSetting(
                    f"METAFORGE_TRUSTED_PROXIES: {text!r} is no address or network such as 10.0.0.0/8"
                ) from None

    def client(self, peer: Sequence[object] | None, headers: Mapping[bytes, bytes]) -> str:
        """Return the address a request is counted under: an IPv4 address, or the /64 network of an IPv6 one.

        Args:
            peer: the other end of the connection, as ASGI's `scope["client"]`.
            headers: a trusted proxy says in `X-Forwarded-For` for whom it asks; anybody else's is not read.
        """
        address = str(peer[0]) if peer else ""
        if self._proxies and self._is_proxy(address):
            hops = headers.get(b"x-forwarded-for", b"").decode("latin-1").split(",")[-_MAX_HOPS_COUNT:]
            for hop in reversed([each.strip() for each in hops if each.strip()]):
                address = hop
                if not self._is_proxy(hop):
                    break
        return _network_of(address)

    def _is_proxy(self, address: str) -> bool:
        import ipaddress

        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(found in network for network in self._proxies)


def _network_of(address: str) -> str:
    import ipaddress

    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return UNKNOWN
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, 64), strict=False))

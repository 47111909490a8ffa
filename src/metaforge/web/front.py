"""One server for machines and people: paths of the MCP server go to it untouched, all others to the gateway."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from metaforge.access.metadata import WELL_KNOWN

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

MACHINE_PATHS = frozenset(
    path + end for path in ("/mcp", "/rpc", "/health", "/metrics", WELL_KNOWN, WELL_KNOWN + "/mcp") for end in ("", "/")
)


class Application(Protocol):
    """An ASGI application that is told when it begins and when it must end."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        ...

    def start(self) -> None:
        """Begin, in the running event loop."""
        ...

    def stop(self) -> None:
        """End every stream, so that connections can end."""
        ...


class Front:
    """Chooses by path. A request to a machine's path passes nothing but one look-up.

    Args:
        machine: serves /mcp, /rpc, /health, /metrics, and says where tokens come from.
        gateway: serves everything else.
    """

    def __init__(self, machine: Application, gateway: Application) -> None:
        self._machine = machine
        self._gateway = gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and scope["path"] not in MACHINE_PATHS:
            await self._gateway(scope, receive, send)
        else:
            await self._machine(scope, receive, send)

    def start(self) -> None:
        """Begin to serve in the running event loop."""
        self._machine.start()
        self._gateway.start()

    def stop(self) -> None:
        """Withdraw every call and close every stream."""
        self._machine.stop()
        self._gateway.stop()

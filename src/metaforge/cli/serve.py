"""`metaforge serve`: dashboard, API and MCP server in one process."""

import gc
import socket
import sys
from dataclasses import replace

from metaforge.settings import Settings


def run(host: str, port: int, adapters: str, profile: str, *, allow_twin_mutations: bool) -> int:
    """Serve until told to stop.

    Args:
        host: address to listen on.
        port: 0 for any that is free.
        adapters: names to load, separated by commas; empty for those of the settings.
        profile: what clients are served; empty for that of the settings.
        allow_twin_mutations: whether twin.query_cypher is listed as one that may write.

    Raises:
        BadSetting: an unsafe address, or one that cannot be listened on.
        UnknownProfile: there is no such profile.

    Returns:
        The exit status.
    """
    gc.disable()  # until everything is imported; run_serving turns it on again
    from metaforge.access.judge import Access
    from metaforge.app import App
    from metaforge.mcp.__main__ import leave_soon, run_serving
    from metaforge.mcp.http import HttpServer
    from metaforge.mcp.serve import listen, serve_http
    from metaforge.web.front import Front
    from metaforge.web.gateway import build
    from metaforge.web.pages import routes

    # This process is the gateway: sending its approvals to one would send them in a circle.
    settings = replace(Settings.from_environment(), gateway_url="")
    if adapters:
        settings = replace(settings, adapters=tuple(name.strip() for name in adapters.split(",") if name.strip()))
    if profile:
        settings = replace(settings, profile=profile)
    if allow_twin_mutations:
        settings = replace(settings, allow_twin_mutations=True)
    access = Access(settings, host)
    bound = listen(host, port)
    settings = replace(settings, dashboard_url=address_of(settings, host, bound.getsockname()[1]))
    app = App(settings, over_stdio=False)
    services = app.gateway_services(access)
    gateway = build(services, routes(services))
    print(_welcome(settings, bound), file=sys.stderr, flush=True)

    def around(server: HttpServer) -> Front:
        return Front(server, gateway)

    run_serving(serve_http(app, settings, bound, host, leave_soon, around, access))
    return 0


def address_of(settings: Settings, host: str, port: int) -> str:
    """Return where people reach the dashboard, for the links to it; empty where that cannot be known.

    Args:
        settings: an address they name comes first.
        host: what is listened on.
        port: what is listened on.
    """
    if told := settings.dashboard_url or settings.public_url.rstrip("/"):
        return told
    if host in ("0.0.0.0", "::"):
        return ""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _welcome(settings: Settings, bound: socket.socket) -> str:
    shown = settings.dashboard_url or f"port {bound.getsockname()[1]}"
    return f"metaforge dashboard: {shown}"

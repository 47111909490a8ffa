"""The unified server: `python -m metaforge.mcp --transport stdio|http`."""

import argparse
import gc
import os
import sys
import threading
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from metaforge.settings import Settings

EXIT_SECONDS = 0.95
"""How long the end may take, whatever a library or a thread still does; what was answered is on disk by then."""
GC_THRESHOLDS = (20_000, 20, 50)
"""A call leaves no cycles behind, so looking for them as often as Python does costs much and finds nothing."""
DEFAULT_PORT = 8765


def main(argv: list[str] | None = None) -> int:
    """Run the server until its client leaves or it is told to stop.

    Returns:
        The exit status: 0, or 1 when it could not start.
    """
    options = _options(argv)
    over_stdio = options.transport == "stdio"
    stdout = _take_stdout() if over_stdio else -1
    gc.disable()
    from metaforge.core.errors import MetaForgeError

    try:
        return _run_stdio(options, stdout) if over_stdio else _run_http(options)
    except MetaForgeError as fault:
        return _say(fault.message)
    except OSError as fault:
        return _say(f"cannot start: {fault}")
    except KeyboardInterrupt:
        return 0


def _options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="metaforge-mcp", description="Engineering tools over MCP.")
    parser.add_argument("--transport", choices=("stdio", "http"), default="stdio")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (http; default %(default)s)")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="port (http; default %(default)s; 0: any)")
    parser.add_argument("--adapters", default="", metavar="A,B", help="load only these adapters")
    parser.add_argument(
        "--profile", default="", metavar="NAME",
        help="serve the tools of one kind of work: core, mechanical, simulation, electronics or robotics",
    )  # fmt: skip
    parser.add_argument(
        "--allow-twin-mutations", action="store_true", help="list twin.query_cypher as one that may write"
    )
    return parser.parse_args(argv)


def _settings(options: argparse.Namespace) -> "Settings":
    from dataclasses import replace

    from metaforge.settings import Settings

    settings = Settings.from_environment()
    changes: dict[str, Any] = {}
    if options.adapters:
        changes["adapters"] = tuple(name.strip() for name in options.adapters.split(",") if name.strip())
    if options.profile:
        changes["profile"] = options.profile
    if options.allow_twin_mutations:
        changes["allow_twin_mutations"] = True
    return replace(settings, **changes) if changes else settings


def _run_stdio(options: argparse.Namespace, stdout: int) -> int:
    from metaforge.access.mode import check_stdio_key
    from metaforge.app import App
    from metaforge.mcp.stdio import StdioServer

    settings = _settings(options)
    check_stdio_key(settings)
    app = App(settings, over_stdio=True)
    _ready(app.ready_line())
    server = StdioServer(app, 0, stdout, settings.max_request_mb << 20, leave_soon, settings.profile)
    run_serving(server.serve())
    return 0


def _run_http(options: argparse.Namespace) -> int:
    from metaforge.access.judge import Access
    from metaforge.app import App
    from metaforge.mcp.serve import listen, serve_http

    settings = _settings(options)
    Access(settings, options.host)
    bound = listen(options.host, options.port)
    app = App(settings, over_stdio=False)
    _ready(app.ready_line())
    run_serving(serve_http(app, settings, bound, options.host, leave_soon))
    return 0


def run_serving(serving: Coroutine[Any, Any, None]) -> None:
    """Run to the end."""
    import asyncio

    try:
        from uvloop import new_event_loop
    except ImportError:
        new_event_loop = asyncio.new_event_loop
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.enable()
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(serving)


def leave_soon() -> None:
    """Leave in time even if something holds the exit."""
    last = threading.Timer(EXIT_SECONDS, os._exit, (0,))
    last.daemon = True
    last.start()


def _take_stdout() -> int:
    """Return the real stdout as a private descriptor, and point descriptor 1 at stderr, before anything can print."""
    private = os.dup(1)
    os.dup2(2, 1)
    return private


def _ready(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _say(message: str) -> int:
    print(message if message.startswith("auth_error") else f"metaforge-mcp: {message}", file=sys.stderr, flush=True)
    return 1


def run() -> NoReturn:
    """Exit with the status of `main`."""
    sys.exit(main())


if __name__ == "__main__":
    run()

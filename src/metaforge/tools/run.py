"""Run one adapter: `python -m metaforge.tools.run MODULE:CLASS [--http HOST[:PORT]]`.

The first thing it does is take stdin and stdout away from everything imported later.
"""

import argparse
import importlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from metaforge.tools.server import McpToolServer

NICE = 10
"""An adapter's work yields to the server's."""


def load(target: str) -> "McpToolServer":
    """Import `module:Class` and make one."""
    from metaforge.tools.server import McpToolServer

    module, _, name = target.partition(":")
    server = getattr(importlib.import_module(module), name)()
    if not isinstance(server, McpToolServer):
        raise TypeError(f"{target} is not an McpToolServer")
    return server


def _limit(text: str) -> tuple[str, int]:
    name, _, value = text.partition("=")
    return name, int(value)


def _address(text: str) -> tuple[str, int | None]:
    """Split `HOST:PORT`, `HOST` or `PORT`; an IPv6 address stands in brackets when a port follows."""
    if text.isdigit():
        return "", int(text)
    host, colon, port = text.rpartition(":")
    if colon and port.isdigit() and (":" not in host or host.startswith("[")):
        return host.strip("[]"), int(port)
    return text.strip("[]"), None


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="metaforge.tools.run", description=__doc__)
    parser.add_argument("target", help="module:Class of the adapter")
    parser.add_argument(
        "--http",
        metavar="HOST[:PORT]",
        help="serve POST /rpc and /mcp instead of stdio; the port is the adapter's own unless given",
    )
    parser.add_argument("--limit", metavar="NAME=N", type=_limit, action="append", default=[], help="bound the process")
    parser.add_argument("--guard", metavar="PID", type=int, help="end every descendant when this or process PID ends")
    options = parser.parse_args(argv)
    if options.guard:
        from metaforge.tools.guard import fork_under_guard

        fork_under_guard(options.guard)
    elif os.getpid() == 1 and not options.http:
        # A container's first process gets no signal that it does not handle, limits' own among them, and must collect
        # orphans: that is the guard's work.
        from metaforge.tools.guard import apply_limits, fork_under_guard

        fork_under_guard(0)
        apply_limits({"nice": NICE})
    if options.limit:
        from metaforge.tools.guard import apply_limits

        apply_limits(dict(options.limit))
    if options.http:
        import asyncio

        host, port = _address(options.http)
        asyncio.run(load(options.target).start_http(host or "127.0.0.1", port))
        return
    from metaforge.tools.descriptors import take_stdin, take_stdout

    reader, writer = take_stdin(), take_stdout()
    load(options.target).serve(reader, writer)


if __name__ == "__main__":
    main()

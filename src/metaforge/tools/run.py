"""Run one adapter: `python -m metaforge.tools.run MODULE:CLASS [--http HOST:PORT]`.

The first thing it does is take stdout away from everything imported later.
"""

import argparse
import asyncio
import importlib
import sys

from metaforge.tools.server import McpToolServer, take_stdout


def load(target: str) -> McpToolServer:
    """Import `module:Class` and make one."""
    module, _, name = target.partition(":")
    server = getattr(importlib.import_module(module), name)()
    if not isinstance(server, McpToolServer):
        raise TypeError(f"{target} is not an McpToolServer")
    return server


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="metaforge.tools.run", description=__doc__)
    parser.add_argument("target", help="module:Class of the adapter")
    parser.add_argument("--http", metavar="HOST:PORT", help="serve POST /rpc instead of stdio")
    options = parser.parse_args(argv)
    if options.http:
        host, _, port = options.http.rpartition(":")
        asyncio.run(load(options.target).start_http(host or "127.0.0.1", int(port)))
        return
    writer = take_stdout()
    load(options.target).serve(sys.stdin.buffer, writer)


if __name__ == "__main__":
    main()

"""`metaforge` and `python -m metaforge`."""

import sys


def main() -> None:
    """Run the command line; `metaforge mcp` goes straight to the server, which has to start fast."""
    if sys.argv[1:2] == ["mcp"]:
        from metaforge.mcp.__main__ import main as serve

        sys.argv[:2] = ["metaforge mcp"]
        sys.exit(serve())
    from metaforge.cli.commands import app
    from metaforge.core.errors import MetaForgeError

    try:
        app(prog_name="metaforge")
    except MetaForgeError as fault:
        sys.exit(f"metaforge: {fault.message}")


if __name__ == "__main__":
    main()

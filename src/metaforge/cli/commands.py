"""Every command, its options and its help. Each imports its work when it runs: help and completion stay quick."""

from pathlib import Path
from typing import Annotated

import typer

from metaforge.cli import approval_commands, knowledge_commands, twin_commands

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Real engineering tools for AI agents, over the Model Context Protocol.",
    epilog="Start with: metaforge doctor, then metaforge demo.",
)
calls = typer.Typer(no_args_is_help=True, help="Look at recorded tool calls.")
new = typer.Typer(no_args_is_help=True, help="Start something new.")
app.add_typer(calls, name="calls")
app.add_typer(new, name="new")
app.add_typer(twin_commands.app, name="twin")
app.add_typer(knowledge_commands.app, name="knowledge")
app.add_typer(approval_commands.app, name="approvals")
app.add_typer(approval_commands.ledger, name="ledger")

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def _version(asked: bool) -> None:
    if asked:
        from metaforge import __version__

        typer.echo(f"metaforge {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Real engineering tools for AI agents, over the Model Context Protocol."""


@app.command()
def doctor(as_json: Json = False) -> None:
    """Say what is there, what is missing and the one command that mends it. Exit status 1 when something needed is."""
    from metaforge.cli.doctor import report

    raise typer.Exit(report(as_json=as_json))


@app.command()
def demo(as_json: Json = False) -> None:
    """Make a bracket, mesh it, load it with 1 kN and show the stresses, through the server as an agent would."""
    from metaforge.cli.demo import run

    raise typer.Exit(run(as_json=as_json))


@app.command()
def tools(
    tool: Annotated[str, typer.Argument(help="Show this tool's arguments.", show_default=False)] = "",
    profile: Annotated[
        str,
        typer.Option(metavar="NAME", help="Only those that clients with this profile are served.", show_default=False),
    ] = "",
    as_json: Json = False,
) -> None:
    """List the tools, or show one tool's arguments."""
    from metaforge.cli.tools import show

    raise typer.Exit(show(tool, profile, as_json=as_json))


@app.command()
def call(
    tool: Annotated[str, typer.Argument(help="The tool's id, such as cadquery.create_parametric.")],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE ...",
            help="Arguments; a value is JSON where it parses, else text. `a.b=1` sets b inside a.",
            show_default=False,
        ),
    ] = None,
    args_file: Annotated[
        Path | None, typer.Option(help="Read arguments from a JSON file first; - is standard input.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Call one tool and show its result. Exit status 1 when the tool refuses or fails."""
    from metaforge.cli.call import run

    raise typer.Exit(run(tool, arguments or [], args_file, as_json=as_json))


@app.command()
def adapters(as_json: Json = False) -> None:
    """List the adapters: version, tools, state, and what an unavailable one needs."""
    from metaforge.cli.adapters import show

    raise typer.Exit(show(as_json=as_json))


@app.command()
def blobs(
    send: Annotated[bool, typer.Option("--send", help="Send what the store does not have.")] = False,
    as_json: Json = False,
) -> None:
    """Tell which kept files the store at METAFORGE_BLOB_URL lacks: those from before it was set, or lost there."""
    from metaforge.cli.contents import show

    raise typer.Exit(show(send=send, as_json=as_json))


@app.command("open")
def open_file(
    file: Annotated[Path, typer.Argument(help="A STEP, GLB, PNG or SVG file.")],
    print_only: Annotated[bool, typer.Option("--print", help="Make the page, print its path, open nothing.")] = False,
) -> None:
    """Show a part or picture: with the desktop's viewer, or as one self-contained HTML page."""
    from metaforge.cli.viewer import show

    raise typer.Exit(show(file, print_only=print_only))


@app.command(context_settings={"ignore_unknown_options": True, "help_option_names": []}, add_help_option=False)
def mcp(arguments: Annotated[list[str] | None, typer.Argument(show_default=False)] = None) -> None:
    """Serve the tools to a client: the same as python -m metaforge.mcp, with its options (--help shows them)."""
    import sys

    from metaforge.mcp.__main__ import main

    sys.argv[:] = ["metaforge mcp", *(arguments or [])]
    raise typer.Exit(main())


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any that is free.")] = 8000,
    adapters: Annotated[str, typer.Option(metavar="A,B", help="Load only these adapters.", show_default=False)] = "",
    profile: Annotated[
        str, typer.Option(metavar="NAME", help="Serve clients the tools of one kind of work.", show_default=False)
    ] = "",
    allow_twin_mutations: Annotated[
        bool, typer.Option("--allow-twin-mutations", help="List twin.query_cypher as one that may write.")
    ] = False,
) -> None:
    """Serve everything in one process: the dashboard, the API at /v1, and MCP at /mcp."""
    from metaforge.cli.serve import run

    raise typer.Exit(run(host, port, adapters, profile, allow_twin_mutations=allow_twin_mutations))


@app.command()
def dashboard(
    print_only: Annotated[bool, typer.Option("--print", help="Print the address, open nothing.")] = False,
) -> None:
    """Open the dashboard of the running server in a browser. Exit status 1 when no server answers."""
    from metaforge.cli.dashboard import show

    raise typer.Exit(show(print_only=print_only))


@calls.command("list")
def list_calls(
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many, newest first.")] = 20,
    tool: Annotated[str, typer.Option(help="Only calls of this tool.", show_default=False)] = "",
    status: Annotated[str, typer.Option(help="Only calls that ended so: ok, refused, failed, timeout ...")] = "",
    as_json: Json = False,
) -> None:
    """List recorded calls, newest first."""
    from metaforge.cli.calls import show_list

    raise typer.Exit(show_list(limit, tool, status, as_json=as_json))


@calls.command("show")
def show_call(
    call_id: Annotated[str, typer.Argument(help="The call's id, or its first digits.")], as_json: Json = False
) -> None:
    """Show one call: arguments, input digests, files, program versions."""
    from metaforge.cli.calls import show_one

    raise typer.Exit(show_one(call_id, as_json=as_json))


@new.command("adapter")
def new_adapter(
    name: Annotated[str, typer.Argument(help="The adapter's id: lower-case letters, digits and _.")],
    folder: Annotated[
        Path | None, typer.Option(help="Where to write it. Default: metaforge-NAME here.", show_default=False)
    ] = None,
) -> None:
    """Write a working adapter: server, schema, Dockerfile, requirements and a test that passes."""
    from metaforge.cli.scaffold import write

    raise typer.Exit(write(name, folder))

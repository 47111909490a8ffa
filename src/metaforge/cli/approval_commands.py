"""The commands of `metaforge approvals` and `metaforge ledger`: their options and their help."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="See which calls wait for a person, and decide them.")
ledger = typer.Typer(no_args_is_help=True, help="Check and export the record of approvals.")

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="The approval's id, run_ and 16 digits, or its first digits.")]
Reason = Annotated[str, typer.Option(help="Why; the agent reads it.", show_default=False)]


@app.command("list")
def list_approvals(
    status: Annotated[str, typer.Option(help="pending, decided or all.")] = "pending",
    project: Annotated[str, typer.Option(help="Only those of this project id.", show_default=False)] = "",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many, newest first.")] = 50,
    as_json: Json = False,
) -> None:
    """List the calls that wait for a person, newest first."""
    from metaforge.cli.approvals import show_list

    raise typer.Exit(show_list(status, project, limit, as_json=as_json))


@app.command("show")
def show_approval(approval_id: Id, as_json: Json = False) -> None:
    """Show one: who asks, the exact arguments, what it would change, and what became of it."""
    from metaforge.cli.approvals import show_one

    raise typer.Exit(show_one(approval_id, as_json=as_json))


@app.command()
def approve(
    approval_id: Id,
    changes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE ...",
            help="Run it with these arguments changed; a value is JSON where it parses, else text.",
            show_default=False,
        ),
    ] = None,
    args_file: Annotated[
        Path | None, typer.Option(help="Run it with the arguments in this JSON file instead; - is standard input.")
    ] = None,
    reason: Reason = "",
    as_json: Json = False,
) -> None:
    """Let a waiting call run; it goes on at once."""
    from metaforge.cli.approvals import approve as decide

    raise typer.Exit(decide(approval_id, changes or [], args_file, reason, as_json=as_json))


@app.command()
def reject(approval_id: Id, reason: Reason = "", as_json: Json = False) -> None:
    """Let a waiting call not run."""
    from metaforge.cli.approvals import reject as decide

    raise typer.Exit(decide(approval_id, reason, as_json=as_json))


@app.command()
def watch(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
) -> None:
    """Show what waits and every change as it happens, until Ctrl-C."""
    from metaforge.cli.approvals_watch import watch as follow

    raise typer.Exit(follow(as_json=as_json))


@ledger.command()
def verify(
    head: Annotated[
        str, typer.Option(help="A head noted earlier: fails where it is no longer in the chain.", show_default=False)
    ] = "",
    as_json: Json = False,
) -> None:
    """Check every event of the ledger. Exit status 1 where something was changed, left out or added."""
    from metaforge.cli.ledger import verify as check

    raise typer.Exit(check(head, as_json=as_json))


@ledger.command()
def export(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write. Default: standard output.")
    ] = None,
) -> None:
    """Write every event as a line of JSON, oldest first, secrets left out."""
    from metaforge.cli.ledger import export as write

    raise typer.Exit(write(output))

"""`metaforge twin`: its commands, their options and help. Each imports its work when it runs."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Look into the design record: history, trace, impact, baselines, gates.")
baseline = typer.Typer(no_args_is_help=True, help="Freeze the project's state under a name, and compare.")
app.add_typer(baseline, name="baseline")

Project = Annotated[
    str, typer.Option("--project", "-p", help="Its id or name; not needed where there is only one.", show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Html = Annotated[Path | None, typer.Option("--html", help="Write one self-contained page instead.", show_default=False)]
Key = Annotated[str, typer.Argument(help="KEY, KEY@n or a node id, such as CAD-BRACKET.", show_default=False)]


@app.command("list")
def list_items(project: Project = "", as_json: Json = False) -> None:
    """List the projects, or one project's items."""
    from metaforge.cli.twin_items import show_list

    raise typer.Exit(show_list(project, as_json=as_json))


@app.command()
def history(key: Key, project: Project = "", as_json: Json = False) -> None:
    """Show every revision of an item: who, when, why, and what is suspect since."""
    from metaforge.cli.twin_items import show_history

    raise typer.Exit(show_history(key, project, as_json=as_json))


@app.command()
def diff(
    before: Annotated[str, typer.Argument(help="KEY@n, a node id, or a baseline.", show_default=False)],
    after: Annotated[str, typer.Argument(help="Likewise; for a baseline also now.", show_default=False)],
    project: Project = "",
    as_json: Json = False,
) -> None:
    """Show what differs between two revisions, or between two baselines."""
    from metaforge.cli.twin_items import show_diff

    raise typer.Exit(show_diff(before, after, project, as_json=as_json))


@app.command()
def impact(
    key: Key,
    down: Annotated[bool, typer.Option("--down", help="What it rests on, instead of what rests on it.")] = False,
    depth: Annotated[int, typer.Option(min=1, max=32, help="How many links far.")] = 8,
    project: Project = "",
    as_json: Json = False,
) -> None:
    """Show what a change of an item affects."""
    from metaforge.cli.twin_trace import show_impact

    raise typer.Exit(show_impact(key, project, down=down, depth=depth, as_json=as_json))


@app.command()
def trace(project: Project = "", html: Html = None, as_json: Json = False) -> None:
    """Show the trace matrix: every requirement, what verifies it, how it stands, and what nothing answers."""
    from metaforge.cli.twin_trace import show_trace

    raise typer.Exit(show_trace(project, html, as_json=as_json))


@app.command()
def suspect(project: Project = "", as_json: Json = False) -> None:
    """List what rests on a revision that the design has left behind."""
    from metaforge.cli.twin_trace import show_suspects

    raise typer.Exit(show_suspects(project, as_json=as_json))


@app.command()
def review(
    link_id: Annotated[
        str, typer.Argument(help="A suspect link, or a node: all its suspect links.", show_default=False)
    ],
    reason: Annotated[str, typer.Option(help="Why it still holds.", prompt=True, show_default=False)],
    project: Project = "",
) -> None:
    """Say that what is suspect was looked at again and still holds for the current revision."""
    from metaforge.cli.twin_trace import review_links

    raise typer.Exit(review_links(link_id, reason, project))


@app.command()
def gate(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="GATE ...", help="suspect, uncovered, unverified, open_drafts. Default: all.",
                       show_default=False),
    ] = None,
    project: Project = "",
    as_json: Json = False,
) -> None:  # fmt: skip
    """Ask the release gates. Exit status 1 when something is in the way."""
    from metaforge.cli.twin_trace import show_gates

    raise typer.Exit(show_gates(names or [], project, as_json=as_json))


@app.command()
def prd(project: Project = "", as_json: Json = False) -> None:
    """Print the product requirements document: the prose, and what is current of needs and requirements."""
    from metaforge.cli.twin_items import show_prd

    raise typer.Exit(show_prd(project, as_json=as_json))


@baseline.command("create")
def create_baseline(
    name: Annotated[str, typer.Argument(help="One line, such as PDR-1.", show_default=False)],
    note: Annotated[str, typer.Option(help="Why it is made.", show_default=False)] = "",
    project: Project = "",
    as_json: Json = False,
) -> None:
    """Freeze the heads of all items. A baseline never changes; drafts are not part of it."""
    from metaforge.cli.twin_baselines import create

    raise typer.Exit(create(name, note, project, as_json=as_json))


@baseline.command("list")
def list_baselines(project: Project = "", as_json: Json = False) -> None:
    """List the project's baselines, the oldest first."""
    from metaforge.cli.twin_baselines import show_list

    raise typer.Exit(show_list(project, as_json=as_json))


@baseline.command("diff")
def diff_baselines(
    before: Annotated[str, typer.Argument(help="A baseline.", show_default=False)],
    after: Annotated[str, typer.Argument(help="Another, or now.")] = "now",
    project: Project = "",
    html: Html = None,
    as_json: Json = False,
) -> None:
    """Show what was added, revised and removed between two baselines, and why."""
    from metaforge.cli.twin_baselines import show_diff

    raise typer.Exit(show_diff(before, after, project, html, as_json=as_json))

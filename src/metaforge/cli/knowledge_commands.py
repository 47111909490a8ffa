"""`metaforge knowledge`: its commands, their options and help. Each imports its work when it runs."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Put documents in and ask them, without leaving this machine.")

Project = Annotated[
    str, typer.Option("--project", "-p", help="Its id or name. Default: documents of no project.", show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Type = Annotated[
    str,
    typer.Option("--type", "-t", metavar="TYPE", help="component, constraint, design_decision, failure or session.",
                 show_default=False),
]  # fmt: skip


@app.command()
def ingest(
    files: Annotated[
        list[Path],
        typer.Argument(help="Markdown, text, HTML, PDF, DOCX, CSV, STEP or KiCad files, or folders of them."),
    ],
    knowledge_type: Type,
    project: Project = "",
    mpn: Annotated[str, typer.Option(help="The part that they are the datasheet of.", show_default=False)] = "",
    as_json: Json = False,
) -> None:
    """Put documents in. The same file again changes nothing; a changed one supersedes what was there."""
    from metaforge.cli.knowledge import ingest_files

    raise typer.Exit(ingest_files(files, knowledge_type, project, mpn, as_json=as_json))


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="A question, words, or a part number.", show_default=False)],
    top: Annotated[int, typer.Option(min=1, max=50, help="At most so many answers.")] = 5,
    knowledge_type: Type = "",
    project: Project = "",
    history: Annotated[bool, typer.Option("--history", help="Superseded revisions too.")] = False,
    as_json: Json = False,
) -> None:
    """Quote the passages that answer a question, with where they stand. Exit status 1 when none does."""
    from metaforge.cli.knowledge import show_answers

    raise typer.Exit(show_answers(query, top, knowledge_type, project, history=history, as_json=as_json))


@app.command("sources")
def list_sources(
    project: Project = "",
    history: Annotated[bool, typer.Option("--history", help="Superseded revisions too.")] = False,
    as_json: Json = False,
) -> None:
    """List the documents."""
    from metaforge.cli.knowledge import show_sources

    raise typer.Exit(show_sources(project, history=history, as_json=as_json))


@app.command()
def remove(
    source_path: Annotated[str, typer.Argument(help="As `sources` lists it.", show_default=False)],
    project: Project = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove a document with its history, for good."""
    from metaforge.cli.knowledge import remove_source

    if not yes:
        typer.confirm(f"Remove {source_path} and every revision of it?", abort=True)
    raise typer.Exit(remove_source(source_path, project))


@app.command()
def reembed(project: Project = "") -> None:
    """Give passages their vectors that were put in without an embedder, or with another model."""
    from metaforge.cli.knowledge import reembed_project

    raise typer.Exit(reembed_project(project))

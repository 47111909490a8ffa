"""`metaforge knowledge`: what its commands do."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from metaforge.app import App
from metaforge.cli.local import CALLER, with_app
from metaforge.cli.screen import console, print_json, progress
from metaforge.cli.twin_record import plain
from metaforge.core.counts import counted
from metaforge.core.errors import MetaForgeError, ToolError
from metaforge.knowledge.model import TYPES, Found
from metaforge.knowledge.resources import source_row
from metaforge.knowledge.services import About, Document, Taken
from metaforge.twin.overview import find_project

T = TypeVar("T")
SUFFIXES = frozenset(
    {
        ".md", ".markdown", ".txt", ".rst", ".html", ".htm", ".pdf", ".docx", ".csv", ".tsv", ".step", ".stp",
        ".kicad_sch", ".kicad_pcb", ".kicad_pro",
    }
)  # fmt: skip
"""What is taken of a folder; a file that is named is read whatever it is called."""


def ingest_files(files: Sequence[Path], knowledge_type: str, project: str, mpn: str, *, as_json: bool) -> int:
    """Put files in. Returns 1 when one could not be read."""
    if knowledge_type not in TYPES:
        console(stderr=True).print(f"there is no type {knowledge_type!r}; there are: {', '.join(TYPES)}")
        return 2
    faults: dict[str, str] = {}

    def put(app: App, project_id: str) -> list[Taken]:
        about = About(project_id, knowledge_type, {"mpn": mpn} if mpn else {}, author=CALLER.actor_id)
        every = list(_files(files))
        taken: list[Taken] = []
        with progress() as bar:
            task = bar.add_task("ingest", total=max(len(every), 1), doing="")
            for number, path in enumerate(every):
                name = _name(path)

                def report(fraction: float, doing: str, done: int = number) -> None:
                    bar.update(task, completed=done + fraction, doing=doing)

                try:
                    taken.append(app.knowledge.take(Document(name, file=path), about, report))
                except ToolError as fault:
                    faults[name] = fault.text()
        return taken

    taken = _run(project, put)
    if taken is None:
        return 1
    if as_json:
        rows = [
            asdict(each.ingested) | {"content_sha256": each.content_sha256, "notes": list(each.notes)} for each in taken
        ]
        print_json({"ingested": rows, "faults": faults})
    else:
        _show_taken(taken, faults)
    return 1 if faults or not taken else 0


def _show_taken(taken: Sequence[Taken], faults: dict[str, str]) -> None:
    out = console()
    for each in taken:
        done = each.ingested
        what = "unchanged" if done.is_unchanged else f"revision {done.revision}"
        out.print(f"{plain(done.source_path)}: {counted(done.chunks_indexed, 'passage')}, {what}")
        for note in each.notes:
            out.print(f"  note: {plain(note)}", style="yellow")
    for name, fault in faults.items():
        console(stderr=True).print(f"{plain(name)}: {plain(fault)}", style="red")


def show_answers(query: str, top: int, knowledge_type: str, project: str, *, history: bool, as_json: bool) -> int:
    """Show what documents say. Returns 1 when nothing is near enough."""
    found = _run(
        project,
        lambda app, project_id: app.knowledge.library.search(
            project_id=project_id, query=query, top_k=top, knowledge_type=knowledge_type or None,
            include_historical=history,
        ),
    )  # fmt: skip
    if found is None:
        return 1
    if as_json:
        print_json(asdict(found))
    else:
        _show_found(found)
    return 0 if found.hits else 1


def _show_found(found: Found) -> None:
    out = console()
    for hit in found.hits:
        place = f", page {hit.page}" if hit.page else f", line {hit.line}" if hit.line else ""
        out.print(f"{hit.similarity:.2f}  {plain(hit.source_path)}{place}  {plain(hit.heading)}", style="bold")
        if hit.context and hit.kind == "table_row":
            out.print(f"      {plain(hit.context)}", style="dim")
        for line in hit.text.splitlines():
            out.print(f"      {plain(line)}")
    if not found.hits:
        out.print(f"None of {counted(found.passage_count, 'passage')} answers that.")
        for near in found.pointers:
            place = f"{near.source_path}  {near.heading}".rstrip()
            out.print(f"  {near.similarity:.2f} of {near.threshold:.2f}  {plain(place)}", style="dim")
    for note in found.notes:
        console(stderr=True).print(f"note: {note}", style="yellow")


def show_sources(project: str, *, history: bool, as_json: bool) -> int:
    """List the documents. Returns the exit status."""
    found = _run(project, lambda app, project_id: app.knowledge.library.sources(project_id, include_historical=history))
    if found is None:
        return 1
    if as_json:
        print_json([source_row(each) for each in found])
        return 0
    out = console()
    for each in found:
        old = ", superseded" if each.is_historical else ""
        out.print(
            f"{plain(each.source_path)}  {each.knowledge_type}, revision {each.revision}{old}, "
            f"{counted(each.passage_count, 'passage')}, {each.created_at[:10]}"
        )
    out.print(counted(len(found), "source"), style="dim")
    return 0


def remove_source(source_path: str, project: str) -> int:
    """Remove a document. Returns the exit status."""
    count = _run(project, lambda app, project_id: app.knowledge.library.remove(project_id, source_path))
    if count is None:
        return 1
    console().print(f"{plain(source_path)} is removed: {counted(count, 'passage')}")
    return 0


def reembed_project(project: str) -> int:
    """Embed what has no vector of the present model. Returns the exit status."""

    def work(app: App, project_id: str) -> int:
        library = app.knowledge.library
        if library.problem:
            raise ToolError(library.problem, kind="no_embedder")
        with progress() as bar:
            task = bar.add_task("embed", total=None, doing="")
            return library.reembed(project_id, lambda done, total: bar.update(task, completed=done, total=total))

    count = _run(project, work)
    if count is None:
        return 1
    console().print(f"{counted(count, 'passage')} embedded")
    return 0


def _run(project: str, work: Callable[[App, str], T]) -> T | None:
    async def inside(app: App) -> T:
        project_id = ""
        if project:
            with app.twin_services.store.read() as view:
                project_id = find_project(view, project).project_id
        return work(app, project_id)

    try:
        return with_app(inside)
    except MetaForgeError as fault:
        told = fault.text() if isinstance(fault, ToolError) else fault.message
        console(stderr=True).print(f"metaforge: {plain(told)}", style="red")
        return None


def _files(named: Sequence[Path]) -> Iterator[Path]:
    for path in named:
        if path.is_dir():
            yield from sorted(each for each in path.rglob("*") if each.suffix.lower() in SUFFIXES and each.is_file())
        else:
            yield path


def _name(path: Path) -> str:
    """Return a path as answers tell it: as it was given, below the present folder where it lies there."""
    here = Path.cwd()
    absolute = path.absolute()
    return absolute.relative_to(here).as_posix() if absolute.is_relative_to(here) else path.as_posix()

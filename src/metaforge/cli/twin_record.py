"""What the twin's commands share: the project meant, work on the record, and text that a terminal may be shown."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from metaforge.app import App
from metaforge.cli.local import CALLER, with_app
from metaforge.cli.screen import console
from metaforge.core.errors import MetaForgeError, ToolError
from metaforge.twin.change import Change
from metaforge.twin.model import Project, Reader
from metaforge.twin.overview import find_project, list_projects
from metaforge.twin.view import View

T = TypeVar("T")
JOINERS = "\u200c\u200d"
"""They join or part letters and emoji, and do nothing else."""


def read(project: str, work: Callable[[View, Project], T]) -> T | None:
    """Run `work` on a project's record as everybody sees it; None after an error was told.

    Args:
        project: an id or a name; empty for the only one there is.
        work: what to read.
    """

    def look(app: App) -> T:
        store = app.twin_services.store
        with store.read() as view:
            found = _project(view, project)
        with store.read(Reader("", found.project_id)) as view:
            return work(view, found)

    return _run(look)


def read_projects() -> list[dict[str, Any]] | None:
    """Return all projects, the latest change first; None after an error was told."""

    def look(app: App) -> list[dict[str, Any]]:
        with app.twin_services.store.read() as view:
            return list_projects(view, 1000, 0)[0]

    return _run(look)


def write(project: str, reason: str, work: Callable[[Change], T]) -> T | None:
    """Run `work` in one change by the local person; None after an error was told."""

    def do(app: App) -> T:
        store = app.twin_services.store
        with store.read() as view:
            found = _project(view, project)
        with store.change(author=CALLER.actor_id, reason=reason, project_id=found.project_id) as change:
            return work(change)

    return _run(do)


def _run(work: Callable[[App], T]) -> T | None:
    async def on_app(app: App) -> T:
        return work(app)

    try:
        return with_app(on_app)
    except ToolError as fault:
        told = f"{fault.message}\n{fault.fix}" if fault.fix else fault.message
        console(stderr=True).print(plain(told, lines=True), style="red")
    except MetaForgeError as fault:
        console(stderr=True).print(plain(fault.message, lines=True), style="red")
    return None


def _project(view: View, asked: str) -> Project:
    if asked:
        return find_project(view, asked)
    there = view.projects()
    if len(there) == 1:
        return there[0]
    if not there:
        raise ToolError(
            "There is no project yet", kind="no_project", fix="Make one: metaforge call project.create name=..."
        )
    shown = "\n".join(f"  {each.project_id}  {each.name[:80]}" for each in there[:20])
    raise ToolError(f"There are {len(there)} projects; say which with --project:\n{shown}", kind="ambiguous_project")


def plain(text: str, *, lines: bool = False) -> str:
    """Return a text without characters that move a cursor, colour or hide: names in the record are anybody's."""
    kept = JOINERS + ("\n\t" if lines else "")
    return "".join(each if each.isprintable() or each in kept else " " for each in text)


def when(moment: str) -> str:
    """Return a stored time as the person's clock shows it."""
    return datetime.fromisoformat(moment).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def save_page(page: str, path: Path) -> int:
    """Write an HTML page where it was asked for. Returns the exit status."""
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as fault:
        console(stderr=True).print(f"{path} cannot be written: {fault.strerror or fault}", style="red")
        return 1
    console().print(f"Wrote {path.resolve()}")
    return 0

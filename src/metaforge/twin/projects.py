"""Write projects. A deleted one is hidden and nothing of it is lost."""

from dataclasses import replace
from typing import TYPE_CHECKING

from metaforge.core.errors import ToolError
from metaforge.twin.bodies import check_text
from metaforge.twin.ids import new_id
from metaforge.twin.model import ChangeKind, Project
from metaforge.twin.unknown import unknown_project

if TYPE_CHECKING:
    from metaforge.twin.change import Change


def create(change: "Change", name: str, description: str, status: str) -> Project:
    """Create a project; see `Change.create_project`."""
    made = Project(
        new_id("p"), _named(name), check_text(description, "The description"), check_text(status, "The status"),
        change.author, change.now, change.now,
    )  # fmt: skip
    change.transaction.run(
        "insert into projects (project_id, name, description, status, author, created_at, updated_at, deleted_at) "
        "values (?, ?, ?, ?, ?, ?, ?, '')",
        made.project_id, made.name, made.description, made.status, made.author, made.created_at, made.updated_at,
    )  # fmt: skip
    change.log(ChangeKind.PROJECT, ref=made.project_id, body={"what": "create"}, project_id=made.project_id)
    return made


def update(change: "Change", project_id: str, name: str | None, description: str | None, status: str | None) -> Project:
    """Change a project; see `Change.update_project`."""
    found = _found(change, project_id)
    made = replace(
        found,
        name=found.name if name is None else _named(name),
        description=found.description if description is None else check_text(description, "The description"),
        status=found.status if status is None else check_text(status, "The status"),
        updated_at=change.now,
    )
    change.transaction.run(
        "update projects set name = ?, description = ?, status = ?, updated_at = ? where project_id = ?",
        made.name, made.description, made.status, made.updated_at, project_id,
    )  # fmt: skip
    before = {"name": found.name, "description": found.description, "status": found.status}
    change.log(ChangeKind.PROJECT, ref=project_id, body={"what": "update", "before": before}, project_id=project_id)
    return made


def delete(change: "Change", project_id: str) -> None:
    """Hide a project; see `Change.delete_project`."""
    _found(change, project_id)
    change.transaction.run("update projects set deleted_at = ? where project_id = ?", change.now, project_id)
    change.log(ChangeKind.PROJECT, ref=project_id, body={"what": "delete"}, project_id=project_id)


def _found(change: "Change", project_id: str) -> Project:
    change.claim(project_id)
    found = change.view.project(project_id)
    if found is None:
        raise unknown_project(change.view, project_id)
    return found


def _named(name: str) -> str:
    if not name.strip():
        raise ToolError("A project needs a name, and this one is empty", kind="empty_name")
    return check_text(name.strip(), "The project's name")

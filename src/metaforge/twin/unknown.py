"""The errors of names that nothing has, each telling what there is instead."""

from difflib import get_close_matches
from typing import TYPE_CHECKING

from metaforge.core.errors import ToolError
from metaforge.twin.model import Item

if TYPE_CHECKING:
    from metaforge.twin.view import View

_SHOWN_COUNT = 8


def unknown_item(view: "View", key: str) -> ToolError:
    """Return the error for a key that no item has which this reader sees."""
    project_id = view.reader.project_id
    query = (
        "select key from items where head_node_id is not null and (? = '' or project_id = ?) order by updated_at desc"
    )
    known = [row[0] for row in view.transaction.rows(query + " limit 2000", project_id, project_id)]
    near = get_close_matches(key, known, _SHOWN_COUNT, 0.5) or known[:_SHOWN_COUNT]
    scope = f"project {project_id}" if project_id else "any project"
    return ToolError(
        f"There is no item {key} in {scope}",
        kind="unknown_item",
        fix=f"Use one there is: {', '.join(near)}" if near else f"Record it first: there is none in {scope} yet",
        did_you_mean=near,
    )


def unknown_revision(view: "View", item: Item, revision: int | None) -> ToolError:
    """Return the error for a revision that an item does not have, or that this reader may not see."""
    query = "select revision, status from nodes where item_id = ? and (status <> 'draft' or change_set = ?)"
    there = view.transaction.rows(query + " order by revision", item.item_id, view.reader.run_id)
    shown = ", ".join(f"@{number} {status}" for number, status in there[-_SHOWN_COUNT:])
    what = f"no revision {item.key}@{revision}" if revision else f"no approved revision of {item.key}"
    return ToolError(
        f"There is {what} in project {item.project_id or '(none)'}",
        kind="unknown_revision",
        fix=f"There is {shown}" if shown else "It has only open drafts of other runs, which become visible by approval",
    )


def unknown_node(node_id: str) -> ToolError:
    """Return the error for a node id that nothing has, or that is another run's draft."""
    return ToolError(
        f"There is no node {node_id[:120]!r} that this caller may see",
        kind="unknown_node",
        fix="Give a node_id from an earlier result, or an item key such as CAD-BRACKET or CAD-BRACKET@2",
    )


def unknown_project(view: "View", project_id: str) -> ToolError:
    """Return the error for a project that does not exist or was deleted."""
    known = view.transaction.rows(
        "select project_id, name from projects where deleted_at = '' order by updated_at desc"
    )
    shown = ", ".join(f"{known_id} ({name[:40]})" for known_id, name in known[:_SHOWN_COUNT])
    return ToolError(
        f"There is no project {project_id[:120]!r}",
        kind="unknown_project",
        fix=f"Use one there is: {shown}" if shown else "Create one with project.create",
    )

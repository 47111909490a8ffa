"""Where projects stand: lists, work products, and the brief that a client reads when it opens one."""

from typing import TYPE_CHECKING, Any

from metaforge.core.counts import counted
from metaforge.core.errors import ToolError
from metaforge.twin.links import doubts
from metaforge.twin.model import Project
from metaforge.twin.pinning import WORK_PRODUCTS
from metaforge.twin.unknown import unknown_project

if TYPE_CHECKING:
    from metaforge.twin.view import View

_WORK_PRODUCTS = (
    "select items.key, items.kind, items.name, items.head_revision, items.head_node_id, items.updated_at from items "
    f"where items.project_id = ? and items.kind in ({', '.join('?' * (len(WORK_PRODUCTS) + 1))}) "
    "and items.head_revision is not null order by items.key limit ?"
)
_MAX_WORK_PRODUCTS = 200
_RECENT_COUNT = 5
Row = dict[str, Any]


def list_projects(view: "View", limit: int, offset: int) -> tuple[list[Row], int]:
    """Return a page of projects, the latest change first, and how many there are."""
    rows = view.transaction.rows(
        "select projects.project_id, name, description, status, created_at, updated_at, "
        "(select max(at) from changelog where changelog.project_id = projects.project_id), "
        "(select count(*) from items where items.project_id = projects.project_id and head_revision is not null) "
        "from projects where deleted_at = '' order by 7 desc, 1 desc limit ? offset ?",
        limit, offset,
    )  # fmt: skip
    total = int(view.transaction.value("select count(*) from projects where deleted_at = ''"))
    return [
        {
            "id": project_id, "name": name, "description": description, "status": status, "created_at": created_at,
            "last_updated": max(updated_at, changed_at or ""), "item_count": item_count,
        }
        for project_id, name, description, status, created_at, updated_at, changed_at, item_count in rows
    ], total  # fmt: skip


def project_named(view: "View", name: str) -> Project:
    """Return the project of exactly this name, whatever its case.

    Raises:
        ToolError: `unknown_project`, `ambiguous_project`.
    """
    wanted = name.strip().casefold()
    return _only([each for each in view.projects() if each.name.casefold() == wanted], view, name)


def find_project(view: "View", query: str) -> Project:
    """Return the project that an id, a name or a part of a name means.

    Raises:
        ToolError: `unknown_project`, `ambiguous_project`.
    """
    if (found := view.project(query.strip())) is not None:
        return found
    wanted, there = query.strip().casefold(), view.projects()
    exact = [each for each in there if each.name.casefold() == wanted]
    return _only(exact or [each for each in there if wanted and wanted in each.name.casefold()], view, query)


def no_such_project(view: "View", project_id: str) -> ToolError:
    """Return the error for an id that no project has; it names those there are."""
    return unknown_project(view, project_id)


def _only(found: list[Project], view: "View", asked: str) -> Project:
    if not found:
        raise unknown_project(view, asked)
    if len(found) > 1:
        shown = ", ".join(f"{each.project_id} ({each.name[:60]})" for each in found[:8])
        raise ToolError(
            f"{len(found)} projects fit {asked[:80]!r}", kind="ambiguous_project", fix=f"Give one's id: {shown}"
        )
    return found[0]


def work_products(view: "View", project_id: str) -> list[Row]:
    """Return a project's parts, assemblies and bill of materials with their heads."""
    rows = view.transaction.rows(_WORK_PRODUCTS, project_id, *WORK_PRODUCTS, "bom", _MAX_WORK_PRODUCTS)
    return [
        {"item_key": key, "item_type": kind, "name": name, "head_ref": f"{key}@{revision}", "node_id": node_id}
        for key, kind, name, revision, node_id, _ in rows
    ]


def agent_count(view: "View", project_id: str) -> int:
    """Return how many agents have worked in a project's sessions."""
    return int(
        view.transaction.value(
            "select count(distinct agent_code) from sessions where project_id = ? and agent_code <> ''", project_id
        )
    )


def brief(view: "View", project: Project) -> Row:
    """Return what somebody who starts to work on a project should know."""
    own = view.of_project(project.project_id)
    kinds = view.transaction.rows(
        "select kind, count(*) from items where project_id = ? and head_revision is not null group by 1 order by 1",
        project.project_id,
    )
    recent = view.transaction.rows(
        "select node_id, name, created_at from nodes where project_id = ? and kind = 'design_decision' "
        "order by node_id desc limit ?",
        project.project_id, _RECENT_COUNT,
    )  # fmt: skip
    doubtful = doubts(own)
    drafts = view.transaction.value(
        "select count(*) from drafts join items on items.item_id = drafts.item_id where items.project_id = ?",
        project.project_id,
    )
    return {
        "items": dict(kinds),
        "suspect_count": len(doubtful),
        "suspect": [{"node_id": each.node_id, "why": each.why} for each in list(doubtful.values())[:_RECENT_COUNT]],
        "open_draft_count": int(drafts or 0),
        "recent_decisions": [{"node_id": node_id, "title": name, "at": at} for node_id, name, at in recent],
    }


def brief_words(told: Row) -> str:
    """Say a brief in a line."""
    items = ", ".join(f"{count} {kind}" for kind, count in told["items"].items()) or "no items yet"
    doubt = f"; {counted(told['suspect_count'], 'record')} suspect" if told["suspect_count"] else ""
    drafts = f"; {counted(told['open_draft_count'], 'open draft')}" if told["open_draft_count"] else ""
    return f"{items}{doubt}{drafts}"

"""Items: heads, revisions with their content and links, and what differs between two revisions."""

from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from metaforge.twin.baseline_diff import diff_nodes
from metaforge.twin.links import suspects
from metaforge.twin.model import Item, Node
from metaforge.twin.neighbours import look_around
from metaforge.twin.view import View
from metaforge.web.api.parameters import Filter, ItemKey, Page, ProjectId, Revision, Served
from metaforge.web.api.projects import found_project

router = APIRouter(tags=["items"], prefix="/projects/{project_id}")
MAX_LINKS = 200


class ItemRow(BaseModel):
    """An item in a list. Heads are null while there are only drafts."""

    key: str
    item_type: str
    name: str
    head_ref: str | None
    head_revision: int | None
    head_node_id: str | None
    last_revision: int
    created_at: str
    updated_at: str


class Items(BaseModel):
    """A part of a project's items, by key."""

    items: list[ItemRow]
    next_offset: int | None = Field(None, description="Where the next part begins; null after the last.")


class RevisionRow(BaseModel):
    """A revision without its content."""

    ref: str
    node_id: str
    revision: int | None
    is_head: bool
    status: str
    name: str
    author: str
    created_at: str
    change_reason: str
    change_set: str
    run_id: str
    phase: str
    gate: str
    decided_by: str
    status_reason: str


class SuspectRow(BaseModel):
    """A record that rests on an earlier revision."""

    link_id: str
    type: str
    source: str
    kind: str
    name: str
    pinned_ref: str
    why: str


class ItemDetail(BaseModel):
    """An item, its revisions with the latest first, and what rests on earlier ones."""

    item: ItemRow
    revisions: list[RevisionRow]
    suspect: list[SuspectRow]
    next_offset: int | None = None


class RevisionDetail(BaseModel):
    """A revision with its content and what it is linked to."""

    revision: RevisionRow
    project_id: str
    kind: str
    content: dict[str, Any]
    neighbours: list[dict[str, Any]]
    edges: list[dict[str, Any]]
    more_links: bool = Field(description="Whether there are more links than are told.")


class DiffRow(BaseModel):
    """One value that differs. A side that has no value is left out."""

    path: str
    what: str = Field(description="added, removed or changed.")
    before: Any = None
    after: Any = None


class Diff(BaseModel):
    """What differs between two revisions of an item."""

    before: RevisionRow
    after: RevisionRow
    fields: list[DiffRow]


class ItemFilter(Page):
    """Which items."""

    kind: str = Query("", pattern="^([a-z][a-z0-9_]{0,49})?$", description="Of this kind only, such as cad_model.")


class DiffFilter(Filter):
    """Which revisions."""

    before: int = Query(ge=1, le=999_999_999, description="The earlier revision's number.")
    after: int = Query(ge=1, le=999_999_999, description="The later revision's number.")


def item_row(item: Item) -> ItemRow:
    """Return what a list tells of an item."""
    return ItemRow(
        key=item.key, item_type=item.kind, name=item.name, head_ref=item.head_ref, head_revision=item.head_revision,
        head_node_id=item.head_node_id, last_revision=item.last_revision, created_at=item.created_at,
        updated_at=item.updated_at,
    )  # fmt: skip


def revision_row(node: Node, head_node_id: str | None) -> RevisionRow:
    """Return what a list tells of a revision."""
    return RevisionRow(
        ref=node.ref, node_id=node.node_id, revision=node.revision, is_head=node.node_id == head_node_id,
        status=str(node.status), name=node.name, author=node.author, created_at=node.created_at,
        change_reason=node.change_reason, change_set=node.change_set, run_id=node.run_id, phase=node.phase,
        gate=node.gate, decided_by=node.decided_by, status_reason=node.status_reason,
    )  # fmt: skip


@router.get("/items")
async def list_items(served: Served, project_id: ProjectId, page: Annotated[ItemFilter, Query()]) -> Items:
    """List a project's items by key."""

    def look(view: View) -> Items:
        found_project(view, project_id)
        found = list(islice(view.items(page.kind), page.offset, page.offset + page.limit + 1))
        more = page.offset + page.limit if len(found) > page.limit else None
        return Items(items=[item_row(each) for each in found[: page.limit]], next_offset=more)

    return await served.read(look, project_id=project_id)


@router.get("/items/{key}")
async def read_item(served: Served, project_id: ProjectId, key: ItemKey, page: Annotated[Page, Query()]) -> ItemDetail:
    """Read an item and a part of its revisions, the latest first."""

    def look(view: View) -> ItemDetail:
        found_project(view, project_id)
        history = view.history(key)
        item, nodes = history.item, history.revisions[::-1]
        part = nodes[page.offset : page.offset + page.limit]
        doubtful = suspects(view, item.item_id)[:MAX_LINKS]
        return ItemDetail(
            item=item_row(item),
            revisions=[revision_row(node, item.head_node_id) for node in part],
            suspect=[
                SuspectRow(link_id=each.link.link_id, type=each.link.type, source=each.source.ref,
                           kind=each.source.kind, name=each.source.name, pinned_ref=each.pinned_ref, why=each.why)
                for each in doubtful
            ],
            next_offset=page.offset + page.limit if len(nodes) > page.offset + page.limit else None,
        )  # fmt: skip

    return await served.read(look, project_id=project_id)


@router.get("/items/{key}/revisions/{revision}")
async def read_revision(
    served: Served, project_id: ProjectId, key: ItemKey, revision: Revision, nothing: Annotated[Filter, Query()]
) -> RevisionDetail:
    """Read one revision: its content, and what it is linked to."""

    def look(view: View) -> RevisionDetail:
        found_project(view, project_id)
        around = look_around(view, f"{key}@{revision}", MAX_LINKS)
        node = around.node
        return RevisionDetail(
            revision=revision_row(node, view.item(key).head_node_id), project_id=node.project_id, kind=node.kind,
            content=dict(node.body), neighbours=around.neighbours, edges=around.edges, more_links=around.more,
        )  # fmt: skip

    return await served.read(look, project_id=project_id)


@router.get("/items/{key}/diff", response_model_exclude_unset=True)
async def read_diff(served: Served, project_id: ProjectId, key: ItemKey, which: Annotated[DiffFilter, Query()]) -> Diff:
    """Read what differs between two revisions, field by field."""

    def look(view: View) -> Diff:
        found_project(view, project_id)
        left, right = view.revision(key, which.before), view.revision(key, which.after)
        head = view.item(key).head_node_id
        fields = [DiffRow(**each.as_json()) for each in diff_nodes(left, right)]
        return Diff(before=revision_row(left, head), after=revision_row(right, head), fields=fields)

    return await served.read(look, project_id=project_id)

"""`metaforge://items/{project}/{KEY@n}` and `metaforge://prd/{project}`: the design record as resources."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import orjson

from metaforge.core.errors import ResourceNotFound, ResourceUnreadable, ToolError
from metaforge.record.resources import Content, Resources
from metaforge.store.location import StoreUnavailable

if TYPE_CHECKING:
    from metaforge.twin.model import Node, Project
    from metaforge.twin.store import TwinStore
    from metaforge.twin.view import View

NO_PROJECT = "-"
ITEM_TEMPLATE = {
    "uriTemplate": "metaforge://items/{project}/{ref}",
    "name": "item",
    "description": "An item's current revision (KEY) or one of them (KEY@n), with content and links. "
    "{project} is a project id, or - for items of none.",
    "mimeType": "application/json",
}
PRD_TEMPLATE = {
    "uriTemplate": "metaforge://prd/{project}",
    "name": "prd",
    "description": "A project's requirements document: its prose and its current requirements.",
    "mimeType": "text/markdown",
}


class TwinResources:
    """Reads what everybody may see: approved heads and closed revisions, no run's drafts."""

    def __init__(self, store: "Callable[[], TwinStore]") -> None:
        """Remember how to get at the store, which is not made before it is asked."""
        self._store = store

    def item(self, uri: str, name: str) -> Content:
        """Return an item's revision as JSON.

        Raises:
            ResourceNotFound: no such project, item or revision; it names what there is.
            ResourceUnreadable: the store cannot be read, or the content is damaged.
        """
        from metaforge.twin.model import Reader

        project_id, _, ref = name.partition("/")
        project_id, ref = unquote(project_id), unquote(ref)
        try:
            with self._store().read(Reader("", "" if project_id == NO_PROJECT else project_id)) as view:
                node = view[ref]
                return Content("application/json", orjson.dumps(_json(view, node), option=orjson.OPT_INDENT_2))
        except ToolError as fault:
            raise _not_found(uri, fault) from None
        except StoreUnavailable as fault:
            raise ResourceUnreadable(f"{uri} cannot be read: {fault.message}", uri=uri) from None

    def prd(self, uri: str, name: str) -> Content:
        """Return a project's PRD as Markdown; raises what `item` raises."""
        from metaforge.twin.model import Reader
        from metaforge.twin.prd import render

        project_id = unquote(name)
        try:
            with self._store().read(Reader("", project_id)) as view:
                project: Project | None = view.project(project_id)
                if project is None:
                    raise ResourceNotFound(f"No such resource: {uri} (no project has that id)", uri=uri)
                return Content("text/markdown", render(view, project).encode())
        except StoreUnavailable as fault:
            raise ResourceUnreadable(f"{uri} cannot be read: {fault.message}", uri=uri) from None


def add_resources(resources: Resources, store: "Callable[[], TwinStore]") -> None:
    """Let a server serve the design record's resources."""
    served = TwinResources(store)
    resources.add("items", ITEM_TEMPLATE, served.item)
    resources.add("prd", PRD_TEMPLATE, served.prd)


def _json(view: "View", node: "Node") -> dict[str, Any]:
    from metaforge.twin.trace import node_row

    links = view.links(node.node_id)
    others = view.nodes([*(link.source_node_id for link in links), *(link.target_node_id for link in links)])
    told = []
    for link in links:
        outgoing = link.source_node_id == node.node_id
        other = others.get(link.target_node_id if outgoing else link.source_node_id)
        if other is not None:
            told.append({"type": link.type, "direction": "outgoing" if outgoing else "incoming", **node_row(other)})
    return {
        "ref": node.ref, "node_id": node.node_id, "kind": node.kind, "name": node.name, "status": node.status,
        "project_id": node.project_id, "author": node.author, "change_reason": node.change_reason,
        "created_at": node.created_at, "content": dict(node.body), "links": told,
    }  # fmt: skip


def _not_found(uri: str, fault: ToolError) -> ResourceNotFound:
    fix = f". {fault.fix}" if fault.fix else ""
    return ResourceNotFound(f"No such resource: {uri} ({fault.message}{fix})", uri=uri)
